"""Of all results: how many small refreshes needed no Spark job, and which expressions still leave the driver. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sqlglot import errors, exp, parse_one

from penstock.bench.measure import Cell, Result

SMALL = 1_000
"""Changed rows of a refresh that is small."""


def small(results: Iterable[Result]) -> list[tuple[Result, Cell]]:
    """The cells with small changes."""
    return [(result, cell) for result in results for cell in result.cells if cell.changed <= SMALL and cell.driven]


def share(cells: Iterable[Cell]) -> tuple[int, int]:
    """Refreshes of views that needed no Spark job, and all of them.

    >>> from penstock.bench.measure import Driven
    >>> share([Cell("c", 1, 1, 2, {}, driven=[Driven("a", 3, 3), Driven("b", 3, 1)])])
    (4, 6)
    """
    driven = [found for cell in cells for found in cell.driven]
    return sum(found.without_jobs for found in driven), sum(found.refreshes for found in driven)


def left(cells: Iterable[Cell]) -> list[tuple[str, int]]:
    """What was left to Spark, whatever its columns and values are, with the number of views; most frequent first."""
    views: Counter[str] = Counter()
    for cell in cells:
        for found in cell.driven:
            views.update({general(note) for note in found.by_spark})
    return sorted(views.items(), key=lambda item: (-item[1], item[0]))


def general(note: str) -> str:
    """A note with every column and value left open, so that equal expressions are told as equal.

    >>> general("UPPER(name) AS n"), general("a.x + 1 > 5"), general("rows of orders: too many")
    ('UPPER(..)', '.. + .. > ..', 'rows of orders: too many')
    """
    try:
        tree = parse_one(note, dialect="spark")
    except errors.SqlglotError:
        return note
    if isinstance(tree, exp.Alias):
        tree = tree.this
    if isinstance(tree, exp.Column | exp.Identifier | exp.Command):
        return note
    return tree.transform(_opened).sql(dialect="spark").replace("`..`", "..")


def _opened(node: exp.Expression) -> exp.Expression:
    return exp.to_identifier("..", quoted=True) if isinstance(node, exp.Column | exp.Literal) else node


def markdown(results: Iterable[Result]) -> str:
    """The part of the page: the share by workload and in all, and the expressions."""
    found = small(results)
    return "\n".join([*_shares(found), "", *_expressions([cell for _, cell in found])])


def _shares(found: list[tuple[Result, Cell]]) -> Iterator[str]:
    yield "| workload | small refreshes of a view | without a Spark job |"
    yield "| --- | ---: | ---: |"
    for name in dict.fromkeys(result.workload for result, _ in found):
        yield _share_line(f"[{name}](#{name})", [cell for result, cell in found if result.workload == name])
    yield _share_line("all", [cell for _, cell in found])


def _share_line(name: str, cells: list[Cell]) -> str:
    without, every = share(cells)
    return f"| {name} | {every:,} | {f'{100 * without / every:.1f} %' if every else '-'} |"


def _expressions(cells: list[Cell]) -> Iterator[str]:
    counted = left(cells)
    if not counted:
        yield "Nothing was left to Spark."
        return
    yield "| left to Spark | views |"
    yield "| --- | ---: |"
    for what, views in counted:
        yield f"| `{what.replace('|', chr(92) + '|')}` | {views:,} |"
