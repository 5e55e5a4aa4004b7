"""A hundred million rows beside ten million: the README's cascade and a view of each operator, filled and changed.

Done economically, since each pass over so many rows takes minutes: the tables are made once for all cases, large
changes are measured once, and plain Spark recomputes the views once, at the end. That is what all cells of a case are
compared with, and what the maintained rows are checked against.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench import bars
from penstock.bench.contenders import Penstock, Recomputation
from penstock.bench.measure import FULL, PENSTOCK, Cell, Goal, at_most
from penstock.bench.stage import same_rows
from penstock.bench.workloads import cascade, operators
from penstock.bench.workloads.workload import Workload
from penstock.engine.report import Report
from penstock.errors import InternalError

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

SIZES = (10_000_000, 100_000_000)
FEW = 1_000

_CASCADE = "cascade"
_BACKFILL = "backfill"
_PROPORTIONAL = 12.0
"""How many times as long ten times the work may take."""
_FEW_LIMITS = {"filter": 1.5, "aggregate": 1.5, _CASCADE: 2.0, "join": 2.0, "join + aggregate": 2.0}
_PYTHON, _JAVA = 4, 10
"""GiB; the heap of Java is to be bounded to 8 by ``PENSTOCK_DRIVER_MEMORY``."""


@dataclass(frozen=True, kw_only=True)
class _Change:
    """So many rows of a table: some are new, of the others half are corrected and half deleted."""

    name: str
    share: float | None = None
    """Of the table; None: a few rows, however large it is."""
    new: float
    """The share of the new ones among them."""


_FEW = _Change(name=f"{FEW:,} changed", new=0.5)
_MANY = (
    _Change(name="0.1 % new", share=0.001, new=1.0),
    _Change(name="0.1 % corrected", share=0.001, new=0.0),
    _Change(name="10 % changed", share=0.1, new=0.5),
)


@dataclass(kw_only=True)
class _Table:
    """A table that is written to at its end: new rows come behind all others, corrections go to the newest ones."""

    stage: Stage
    name: str
    more: Callable[[int, int], str]
    """The query of the rows with these numbers."""
    correction: str
    cases: dict[str, list[str]]
    """Views over it, by kind."""
    rows: int
    """At the beginning."""
    next: int
    """The number of the next row that comes."""
    before: int
    """The number of the oldest row that was corrected until now."""

    def change(self, count: int, new: float, number: int) -> int:
        """Change about so many rows; gives how many it were."""
        fresh = round(count * new)
        if fresh:
            self.stage.sql(f"INSERT INTO {self.name} {self.more(self.next, self.next + fresh)}")
            self.next += fresh
        if fresh == count:
            return fresh
        # Every other one of the newest rows, so that neither whole files nor whole groups are replaced.
        last, self.before = self.before, self.before - 2 * (count - fresh)
        among = f"id >= {self.before} AND id < {last} AND pmod(hash(id, {number}), 4)"
        corrected = self.stage.sql(f"UPDATE {self.name} SET {self.correction} WHERE {among} = 0")
        return fresh + corrected + self.stage.sql(f"DELETE FROM {self.name} WHERE {among} = 1")


class _Backfill(Penstock):
    """The views are created, with all rows."""

    def refresh(self, views: Sequence[str]) -> None:
        made = [self.stage.database.create_view(view, self.stage.views[view]) for view in views]
        self.report = Report([one for report in made if report is not None for one in report.values()], 0)


def _create(stage: Stage, rows: int) -> list[_Table]:
    heads = rows // 8 + 10_000  # room for those that new facts refer to
    facts: Callable[[int, int], str] = lambda first, last: operators.facts(first, last, 0, 0, True)  # noqa: E731
    contents = {
        "trades": (cascade.COLUMNS, cascade.trades(0, rows)),
        "facts": (operators.FACTS, facts(0, rows)),
        "heads": (operators.HEADS, operators.heads(heads)),
    }
    stage.create(contents, {}, {view: bars.in_spark(view) for view in bars.VIEWS})
    stage.views |= {**bars.VIEWS, **operators.VIEWS}
    by_kind = {operators.KINDS[view]: [view] for view in operators.VIEWS}
    table = partial(_Table, stage=stage, rows=rows, next=rows, before=rows)
    return [
        table(name="trades", more=cascade.trades, correction="price = price + 1", cases={_CASCADE: list(bars.VIEWS)}),
        table(name="facts", more=facts, correction="amount = (amount + 37) % 1000", cases=by_kind),
    ]


def _run(bench: Bench) -> list[Cell]:
    cells = []
    for size in SIZES:
        with bench.stage() as stage:
            tables = _create(stage, bench.rows(size))
            measured = [cell for table in tables for cell in _measured(stage, table)]
            cells += _compared(stage, tables, measured)
    return cells


def _measured(stage: Stage, table: _Table) -> Iterator[Cell]:
    """Filling the views over a table, then changes from small to large."""
    yield from _cells(stage, table, _BACKFILL, lambda number: table.rows, own=_Backfill(stage))
    few = max(int(FEW * min(stage.bench.scale * 10, 1)), 40)
    yield from _cells(stage, table, _FEW.name, partial(table.change, few, _FEW.new), warm_up=1, repeat=None)
    for change in _MANY:
        count = max(round(table.rows * (change.share or 0)), 4)
        yield from _cells(stage, table, change.name, partial(table.change, count, change.new))


def _cells(
    stage: Stage,
    table: _Table,
    name: str,
    change: Callable[[int], int],
    *,
    warm_up: int = 0,
    repeat: int | None = 1,
    own: Penstock | None = None,
) -> list[Cell]:
    behind = f", {name}, {table.rows:,} rows"
    cases = {f"{kind}{behind}": views for kind, views in table.cases.items()}
    kinds = {f"{kind}{behind}": f"{kind}, {name}" for kind in table.cases}
    return stage.measure(
        cases, change, [], rows=table.rows, warm_up=warm_up, kinds=kinds, check=False, repeat=repeat, own=own
    )


def _compared(stage: Stage, tables: Sequence[_Table], cells: Sequence[Cell]) -> list[Cell]:
    """The cells beside one recomputation of each case, whose rows the maintained ones must be."""
    plain, seconds = Recomputation(stage), {}
    for kind, views in [pair for table in tables for pair in table.cases.items()]:
        stage.bench.say(f"{kind}: recomputation")
        started = time.perf_counter()
        plain.refresh(views)
        seconds[kind] = time.perf_counter() - started
        for view in views:
            _check(stage, plain, view)
    if FULL not in stage.bench.against:
        return list(cells)
    return [
        replace(cell, seconds={**cell.seconds, FULL: [seconds[_kind(cell)]] * len(cell.seconds[PENSTOCK])})
        for cell in cells
    ]


def _check(stage: Stage, plain: Recomputation, view: str) -> None:
    stage.bench.say(f"checking {view}")
    expected = plain.rows(view)
    if not same_rows(stage.database.table(view).select(*expected.columns), expected):
        raise InternalError(
            f"view {view!r} differs from its query after {stage.round} changes. Its times mean nothing. "
            "Please report this."
        )


def _kind(cell: Cell) -> str:
    return cell.kind.rpartition(", ")[0]


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    """Ten times the rows with ten times the change take about ten times as long; the same few rows no longer."""
    goals = []
    for kind in dict.fromkeys(cell.kind for cell in cells):
        own = sorted((cell for cell in cells if cell.kind == kind), key=lambda cell: cell.rows)
        few = kind.endswith(_FEW.name)
        limit = _FEW_LIMITS.get(_kind(own[0])) if few else _PROPORTIONAL
        if len(own) > 1 and limit is not None:
            before, after = own[0].median(PENSTOCK), own[-1].median(PENSTOCK)
            growth = after / before if before and after is not None else None
            goals.append(at_most("times as long as with a tenth of the rows", growth, limit, own[-1].case))
    return [*goals, _memory(cells, "python", "Python", _PYTHON), _memory(cells, "java", "Java", _JAVA)]


def _memory(cells: Sequence[Cell], process: str, title: str, limit: float) -> Goal:
    peak = max((cell.peaks.get(PENSTOCK, {}).get(process, 0) for cell in cells), default=0)
    return at_most(f"GiB of memory of {title}", peak / 2**30 if peak else None, limit)


LARGE = Workload(
    name="large",
    title="a cascade and a view of each operator over 10 and 100 million rows: filled, and 1,000 rows to 10 % changed",
    run=_run,
    goals=_goals,
)
