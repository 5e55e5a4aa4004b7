"""The rules at work on a few rows in memory: for examples and tests. Spark, Delta and the catalog are nowhere near.

What the driver cannot do raises ``NeedsSpark``: nothing is computed by anybody else here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.frames.arrow.expressions import written_rows
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.clock import current
from penstock.frames.frame import Frame
from penstock.frames.keys import Anywhere
from penstock.frames.names import WEIGHT
from penstock.frames.settings import USUAL, under
from penstock.frames.spark.turns import Turns
from penstock.frames.zset import Delta, ZSet
from penstock.ivm import rules
from penstock.ivm.context import Moment, Stored
from penstock.ivm.layout import argument_of, as_aggregate
from penstock.ivm.node import maintained_node
from penstock.plan.build import build
from penstock.plan.nodes import split
from penstock.plan.operators import Aggregate, Distinct, Operator, Scan, Sessions, Values
from penstock.sql.query import parse_query
from penstock.sql.trees import column, columns, tree


class NeedsSpark(Exception):
    """The driver alone cannot do it."""


class NoSpark:
    """Where no session comes from."""

    started = False

    def __init__(self) -> None:
        self.turns = Turns()

    def session(self) -> Any:
        raise NeedsSpark(", ".join(self.notes()))

    @staticmethod
    def notes() -> list[str]:
        """What was left to Spark, as far as a clock has noted it."""
        clock = current()
        return clock.by_spark if clock is not None else []


NO_SPARK = NoSpark()


def without_spark() -> AbstractContextManager[None]:
    """Settings are in force that no session has to be asked for."""
    return under(NO_SPARK, USUAL)


@dataclass(frozen=True)
class ChangedTable:
    """A table before and after a change."""

    pre: pa.Table
    post: pa.Table

    @property
    def delta(self) -> pa.Table | None:
        """What came and went, as rows with weights; None for nothing."""
        signed = [rows.append_column(WEIGHT, pa.array([sign] * rows.num_rows, pa.int64())) for rows, sign in
                  ((self.pre, -1), (self.post, 1))]  # fmt: skip
        frame = ArrowFrame.of(NO_SPARK, pa.concat_tables(signed)).consolidated()
        rows = frame.rows()
        assert rows is not None
        return rows if rows.num_rows else None


@dataclass(frozen=True)
class Memory:
    """A rule's ``Context``."""

    tables: Mapping[str, ChangedTable]
    watermarks: tuple[int | None, int | None] = (None, None)
    utc: bool = True

    def given(self, values: Values) -> ZSet:
        table = written_rows(values.rows, values.columns, USUAL)
        assert table is not None
        return ZSet(ArrowFrame.of(NO_SPARK, table))

    def delta(self, scan: Scan) -> Delta | None:
        change = self.tables[scan.relation].delta
        if change is None:
            return None
        append_only = min(change.column(WEIGHT).to_pylist()) > 0
        frame = ArrowFrame.of(NO_SPARK, change)
        named = [(name, column(stored)) for name, stored in scan.stored]
        kept = frame.select([*named, *columns([WEIGHT])])
        kept = kept if append_only else kept.consolidated()
        return Delta(kept, append_only)

    def read(self, scan: Scan, moment: Moment) -> ZSet:
        relation = self.tables[scan.relation]
        frame = ArrowFrame.of(NO_SPARK, relation.pre if moment == "pre" else relation.post)
        return ZSet(frame.select([(name, column(stored)) for name, stored in scan.stored]))

    def count(self, scan: Scan) -> int:
        return self.tables[scan.relation].post.num_rows

    def near(self, bounds: pa.Table | None, sought: Anywhere | None = None) -> Memory:
        return self

    def watermark(self, moment: Moment) -> int | None:
        return self.watermarks[0 if moment == "pre" else 1]

    def keep(self, frame: Frame) -> Frame:
        return frame


@dataclass(frozen=True)
class Held:
    """A node's own table: a rule's ``Stored``."""

    table: pa.Table
    worth_locating: bool = False

    @property
    def count(self) -> int:
        return self.table.num_rows

    @property
    def expected(self) -> int:
        return self.table.num_rows

    def read(self, *, located: bool = False) -> Frame:
        return ArrowFrame.of(NO_SPARK, self.table)

    def only(self, columns: Sequence[str]) -> Stored:
        return replace(self, table=self.table.select(list(columns)))

    def near(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored:
        return self

    def within(self, reach: pa.Table | None, columns: Mapping[str, str]) -> Stored:
        return self

    def looked_up(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored | None:
        return None


def types_of(body: Operator, memory: Memory) -> dict[str, str]:
    """What Spark would say of the measures' arguments and values; rows on the driver have the same types."""
    if not isinstance(body, Aggregate | Distinct) or isinstance(body, Sessions):
        return {}
    grouped = as_aggregate(body)
    child = rules.evaluate(grouped.child, memory, "post").frame
    arguments = [argument_of(function) or tree("1") for _, function in grouped.measures]
    given = child.select([(f"x{i}", e) for i, e in enumerate(arguments)]).types if arguments else {}
    values = child.group([], [(f"v{i}", e) for i, (_, e) in enumerate(grouped.measures)]).types if arguments else {}
    return {**given, **values}


# -- examples ----------------------------------------------------------------------------------------------------------


def table(
    names: str, rows: Sequence[tuple[Any, ...]], *, gone: Sequence[tuple[Any, ...]] = (), new: Sequence[Any] = ()
) -> ChangedTable:
    """A table with rows in it, of which some go, and others come.

    >>> table("k v", [("a", 1), ("b", 2)], gone=[("b", 2)], new=[("c", 3)]).post.to_pydict()
    {'k': ['a', 'c'], 'v': [1, 3]}
    """
    left = list(rows)
    for row in gone:
        left.remove(row)
    every = pa.table(dict(zip(names.split(), map(list, zip(*rows, *new, strict=True)), strict=True)))
    schema = every.schema
    return ChangedTable(*(_of_rows(schema, one) for one in (rows, [*left, *new])))


def _of_rows(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def change(query: str, **tables: ChangedTable) -> None:
    """Print what a query's rule makes of the change of the tables: the rows that go and come, with their weights.

    >>> change("SELECT v FROM t WHERE v > 1", t=table("v", [(1,), (2,)], gone=[(2,)], new=[(3,), (3,), (0,)]))
    -1  2
    +2  3
    """
    with without_spark():
        schemas = {name: tuple(one.pre.column_names) for name, one in tables.items()}
        for node in split(build(parse_query(query), schemas), "query"):
            memory = Memory(tables)
            maintained = maintained_node(node, types_of(node.body, memory))
            before, after = (maintained.evaluate(memory, moment).rows() for moment in ("pre", "post"))
            assert before is not None
            changed = maintained.delta(memory, Held(before))
            tables = {**tables, node.name: ChangedTable(before, after)}
        _print(changed, [name for name, _ in node.outputs])


def change_of(op: Operator, watermarks: tuple[int | None, int | None] = (None, None), **tables: ChangedTable) -> None:
    """The same for an operator that no query has by itself; ``watermarks`` are those before and after the change."""
    with without_spark():
        found = rules.delta(op, Memory(tables, watermarks))
        _print(None if found is None else found.frame, op.columns)


def _print(change: Frame | None, names: Sequence[str]) -> None:
    rows = None if change is None else change.rows()
    if rows is None:
        return
    found: Counter[str] = Counter()
    for row in rows.to_pylist():
        found["  ".join("NULL" if row[name] is None else str(row[name]) for name in names)] += row[WEIGHT]
    for text, weight in sorted(found.items()):
        if weight:
            print(f"{weight:+}  {text}")
