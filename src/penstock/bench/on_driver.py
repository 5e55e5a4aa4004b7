"""Of all results: how many small refreshes needed no Spark job, and which expressions still leave the driver. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from sqlglot import errors, exp, parse_one

from penstock.bench.measure import Cell, Driven, Result

SMALL = 1_000
"""Changed rows of a refresh that is small."""

UNNOTED = "(nothing was noted)"
"""Stands for what a view had Spark jobs for without saying so."""

_LONGEST = 80


def small(results: Iterable[Result]) -> list[tuple[Result, Cell]]:
    """The cells with small changes."""
    return [(result, cell) for result in results for cell in result.cells if cell.changed <= SMALL and cell.driven]


def share(cells: Iterable[Cell]) -> tuple[int, int]:
    """Refreshes of views that needed no Spark job, and all of them.

    >>> share([Cell(case="c", rows=1, changed=1, views=2, seconds={}, driven=[Driven("a", 3, 3), Driven("b", 3, 1)])])
    (4, 6)
    """
    driven = [found for cell in cells for found in cell.driven]
    return sum(found.without_jobs for found in driven), sum(found.refreshes for found in driven)


def left(cells: Iterable[Cell]) -> list[tuple[str, int]]:
    """What was left to Spark, whatever its columns and values are, with the number of views; most frequent first."""
    views: Counter[str] = Counter()
    for cell in cells:
        for found in cell.driven:
            views.update(_notes(found))
    return sorted(views.items(), key=lambda item: (-item[1], item[0]))


def _notes(found: Driven) -> set[str]:
    """What a view has left to Spark; if it had jobs and noted nothing, that is told too."""
    if found.without_jobs < found.refreshes and not found.by_spark:
        return {UNNOTED}
    return {general(note) for note in found.by_spark}


def general(note: str) -> str:
    """A note with every column and value left open, so that equal expressions are told as equal.

    >>> general("UPPER(name) AS n"), general("YEAR(at) AS YEAR(at)"), general("a.x + 1 > 5")
    ('UPPER(..)', 'YEAR(..)', '.. + .. > ..')
    >>> general("rows of `orders`: too many")
    'rows of orders: too many'
    """
    for end in [len(note), *(found.start() for found in re.finditer(" AS ", note))]:
        try:
            tree = parse_one(note[:end], dialect="spark").unalias()
        except errors.SqlglotError:
            continue
        if not isinstance(tree, exp.Column | exp.Identifier | exp.Command | exp.Query):
            return tree.transform(_opened).sql(dialect="spark").replace("`..`", "..")
    text = note.replace("`", "")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip('. ')}.."


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
