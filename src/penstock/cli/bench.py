"""``bench``: how long a refresh takes, beside other ways to the same rows."""

from __future__ import annotations

import importlib.util
import traceback
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import out, plain_table, print_table, say_error, say_hint
from penstock.errors import NotFoundError, PenstockError

if TYPE_CHECKING:
    from penstock.bench.measure import Result
    from penstock.bench.workloads import Workload

_LEFT = ("case", "refreshes", "target")
_OTHERS = "full, always, merge, pipelines, duckdb, disk"


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[WORKLOAD]...", help="Which workloads; without any, all of them.")
    ] = None,
    scale: Annotated[
        float,
        typer.Option("--scale", metavar="X", min=0.0001, help="Multiply the numbers of rows. Targets apply at 1."),
    ] = 1.0,
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Measured runs; medians are shown.")] = 3,
    against: Annotated[
        str, typer.Option("--against", metavar="LIST", help=f"Contenders beside Penstock, of {_OTHERS}.")
    ] = _OTHERS.replace(" ", ""),
    directory: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where results (JSON) and pictures (PNG) go.")
    ] = Path("bench-results"),
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="PAGE", help="Measure nothing: fill this page from the results in --out."),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare", metavar="BEFORE", help="Measure nothing: compare results from before with those in --out."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Measure nothing: list the workloads.")] = False,
) -> None:
    """Measure refreshes against other ways to the same rows.

    Those are recomputation, MERGE by hand, Declarative Pipelines and DuckDB; of a store, the local disk.
    """
    from penstock.bench.workloads import WORKLOADS

    if show:
        _list(list(WORKLOADS.values()))
    elif compare is not None:
        _compare(compare, directory, write, list(WORKLOADS))
    elif write is not None:
        _write(directory, write, list(WORKLOADS))
    else:
        chosen = _chosen(names or list(WORKLOADS), WORKLOADS)
        contenders = _contenders(against)
        failed = _measure(chosen, scale, repeat, contenders, directory)
        _pictures(directory, directory, list(WORKLOADS))
        if failed:
            say_error(f"these workloads failed: {', '.join(failed)}.")
            raise typer.Exit(1)


def _list(workloads: list[Workload]) -> None:
    table = plain_table("workload", "what happens")
    for workload in workloads:
        table.add_row(workload.name, workload.title)
    print_table(table)


def _chosen(names: list[str], workloads: dict[str, Workload]) -> list[Workload]:
    """The workloads of these names; a name also means those that begin with it, so 'cascade' means three."""
    chosen: dict[str, Workload] = {}
    for name in names:
        meant = {key: w for key, w in workloads.items() if key == name or key.startswith(f"{name}-")}
        if not meant:
            raise NotFoundError(f"there is no workload {name!r}. Choose of {', '.join(workloads)}.")
        chosen |= meant
    return list(chosen.values())


def _contenders(text: str) -> frozenset[str]:
    known = set(_OTHERS.split(", "))
    wanted = {name.strip() for name in text.split(",") if name.strip()}
    if unknown := wanted - known:
        raise NotFoundError(f"there is no contender {sorted(unknown)[0]!r}. Choose of {_OTHERS}.")
    return frozenset(wanted)


def _measure(
    workloads: list[Workload], scale: float, repeat: int, against: frozenset[str], directory: Path
) -> list[str]:
    """Run the workloads one after the other, also after one has failed; gives the names of those."""
    from penstock.bench.run import run, save
    from penstock.bench.session import sparks
    from penstock.bench.stage import Bench
    from penstock.cli.progress import Progress

    failed = []
    progress = Progress()
    for in_store, some in groupby(workloads, attrgetter("in_store")):
        with sparks("pipelines" in against and not in_store) as session:
            bench = Bench(sparks=session, scale=scale, repeat=repeat, against=against, say=progress)
            for workload in some:
                out().print(f"\n{workload.name}: {workload.title}", style="bold")
                if scale != 1:
                    say_hint(f"at scale {scale:g}")
                try:
                    with progress.during("starting"):
                        result = run(workload, bench)
                except Exception as problem:  # hours of other measurements must not be lost with it
                    say_error(str(problem) if isinstance(problem, PenstockError) else traceback.format_exc())
                    failed.append(workload.name)
                    continue
                _print(result)
                say_hint(f"kept in {save(result, directory)}")
    return failed


def _print(result: Result) -> None:
    from penstock.bench.report import remarks, sheet, whole_goals

    shown = sheet(result)
    table = plain_table(*shown.columns, right=tuple(c for c in shown.columns if c not in _LEFT))
    for row in shown.rows:
        table.add_row(*row)
    print_table(table)
    for line in [*whole_goals(result), *remarks(result)]:
        out().print(line)


def _pictures(results: Path, directory: Path, names: list[str]) -> list[Path]:
    from penstock.bench.run import saved
    from penstock.bench.session import INSTALL

    if importlib.util.find_spec("matplotlib") is None:
        say_hint(f"no pictures: matplotlib not installed: {INSTALL}")
        return []
    from penstock.bench.plots import draw

    drawn = draw(saved(results, names), directory)
    if drawn:
        say_hint(f"pictures: {', '.join(str(file) for file in drawn)}")
    return drawn


def _compare(before: Path, after: Path, page: Path | None, names: list[str]) -> None:
    """Show the results of two directories or files beside each other, or write them into their place on the page."""
    from penstock.bench import comparison
    from penstock.bench.report import filled

    old, new = _found(before, names), _found(after, names)
    if page is not None:
        page.write_text(filled(page.read_text(), {"before and after": comparison.markdown(old, new)}))
        out().print(f"{page}: what was before and after is filled in")
        return
    compared = comparison.pairs(old, new)
    shown = comparison.sheet(compared)
    table = plain_table(*shown.columns, right=tuple(shown.columns[2:-1]))
    for row in shown.rows:
        table.add_row(*row)
    print_table(table)
    out().print(comparison.verdict(compared))


def _found(results: Path, names: list[str]) -> list[Result]:
    from penstock.bench.run import saved

    found = saved(results, names)
    if not found:
        raise NotFoundError(f"there are no results in {str(results)!r}. Measure first: penstock bench --out {results}.")
    return found


def _write(results: Path, page: Path, names: list[str]) -> None:
    """Fill the page from the results; its pictures go beside it."""
    from penstock.bench import on_driver
    from penstock.bench.report import filled, markdown, summary

    found = _found(results, names)
    pictures = _pictures(results, page.parent / "benchmarks", names)
    parts = {result.workload: markdown(result) for result in found} | {"summary": summary(found)}
    if on_driver.small(found):
        parts["on the driver"] = on_driver.markdown(found)
    if pictures:
        parts["pictures"] = "\n\n".join(f"![{file.stem}](benchmarks/{file.name})" for file in pictures)
    page.write_text(filled(page.read_text(), parts))
    out().print(f"{page} filled from {len(found)} workloads")
