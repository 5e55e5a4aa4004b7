"""Two sets of results beside each other: the ratios of each cell before and after, and what got worse. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.bench.measure import ALWAYS, PENSTOCK, TITLES, Cell, Result
from penstock.bench.report import Sheet, ratio_text, seconds_text

WORSE = 0.1
"""A cell that lost more than this share of its ratio got worse; less is noise."""

OTHERS = [name for name in TITLES if name not in (PENSTOCK, ALWAYS)]
"""The contenders that Penstock is compared with; itself under another policy is none."""


@dataclass(frozen=True)
class Pair:
    """A cell before and after; None where it was not measured."""

    workload: str
    case: str
    before: Cell | None
    after: Cell | None

    def ratios(self, other: str) -> tuple[float | None, float | None]:
        """How many times as long as Penstock another contender took, before and after."""
        return _ratio(self.before, other), _ratio(self.after, other)

    def seconds(self) -> tuple[float | None, float | None]:
        return _median(self.before), _median(self.after)

    def worse(self) -> list[str]:
        """The contenders that Penstock has lost ground to. Without any, Penstock itself, if it takes longer.

        >>> seconds = ({"penstock": [t], "full": [4.0]} for t in (1.2, 1.0))
        >>> slow, fast = (Cell(case="c", rows=1, changed=1, views=1, seconds=s) for s in seconds)
        >>> Pair("w", "c", fast, slow).worse(), Pair("w", "c", slow, fast).worse(), Pair("w", "c", None, fast).worse()
        (['full'], [], [])
        """
        compared = {other: self.ratios(other) for other in OTHERS}
        known = {other: (b, a) for other, (b, a) in compared.items() if b is not None and a is not None}
        if known:
            return [other for other, (before, after) in known.items() if after < before * (1 - WORSE)]
        before, after = self.seconds()
        return [PENSTOCK] if before is not None and after is not None and after > before / (1 - WORSE) else []


def _ratio(cell: Cell | None, other: str) -> float | None:
    return None if cell is None else cell.ratio(other)


def _median(cell: Cell | None) -> float | None:
    return None if cell is None else cell.median(PENSTOCK)


def pairs(before: Iterable[Result], after: Iterable[Result]) -> list[Pair]:
    """The cells of both, those that came to it last."""
    old = {(result.workload, cell.case): cell for result in before for cell in result.cells}
    new = {(result.workload, cell.case): cell for result in after for cell in result.cells}
    return [Pair(*key, old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]


def sheet(compared: Sequence[Pair]) -> Sheet:
    """A row a cell: Penstock's seconds and the ratios, each before and after, and what got worse."""
    shown = [other for other in OTHERS if any(pair.ratios(other) != (None, None) for pair in compared)]
    columns = ["workload", "case", TITLES[PENSTOCK], *(TITLES[other] for other in shown), "worse"]
    return Sheet(columns, [_row(pair, shown) for pair in compared])


def _row(pair: Pair, shown: Sequence[str]) -> list[str]:
    ratios = [_beside(*map(ratio_text, pair.ratios(other))) for other in shown]
    worse = ", ".join(TITLES[name] for name in pair.worse())
    return [pair.workload, pair.case, _beside(*map(seconds_text, pair.seconds())), *ratios, worse]


def _beside(before: str, after: str) -> str:
    """
    >>> _beside("4.0 x", "5.0 x"), _beside("-", "-")
    ('4.0 x, 5.0 x', '-')
    """
    return "-" if before == after == "-" else f"{before}, {after}"


def markdown(before: Sequence[Result], after: Sequence[Result]) -> str:
    """The part of the page: what was compared, its table with what got worse in bold, and how many cells that are."""
    compared = pairs(before, after)
    table = sheet(compared)
    kinds = ["---" if column in ("workload", "case", "worse") else "---:" for column in table.columns]
    lines = [f"Before: {_told(before)}. After: {_told(after)}.", "", _line(table.columns), _line(kinds)]
    for pair, row in zip(compared, table.rows, strict=True):
        bold = {TITLES[name] for name in pair.worse()} | ({"worse"} if pair.worse() else set())
        texts = [f"**{t}**" if c in bold else t for c, t in zip(table.columns, row, strict=True)]
        lines.append(_line(texts))
    return "\n".join([*lines, "", verdict(compared)])


def verdict(compared: Sequence[Pair]) -> str:
    """
    >>> verdict([])
    'Of 0 cells that were measured both times, 0 are more than 10 % worse.'
    """
    both = [pair for pair in compared if pair.before is not None and pair.after is not None]
    worse = sum(bool(pair.worse()) for pair in both)
    return f"Of {len(both):,} cells that were measured both times, {worse:,} are more than {WORSE:.0%} worse.".replace(
        "%", " %"
    )


def _told(results: Sequence[Result]) -> str:
    """What a set of results was measured with."""
    machine = {f"{name} {value}" for result in results for name, value in result.machine.items()}
    scales = {f"scale {result.scale:g}" for result in results}
    return ", ".join([*sorted(scales), *sorted(machine)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
