"""Tables in memory for the rules: rows before and after a change, on the driver, and no Spark anywhere.

What the driver cannot do raises ``NeedsSpark``: nothing is computed by anybody else here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
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
from penstock.ivm.context import Moment, Stored
from penstock.plan.operators import Scan, Values
from penstock.sql.trees import column, columns

Rows = Counter[tuple[Hashable, ...]]


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


@dataclass(frozen=True)
class Relation:
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

    tables: Mapping[str, Relation]
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
        return replace(self)

    def looked_up(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored | None:
        return None


def counted(frame: Frame, *, weighted: bool) -> Rows:
    """The rows of a frame and how often each is there; NaN is NaN, and 0.0 is not -0.0."""
    table = frame.rows()
    if table is None:
        raise NeedsSpark
    names = sorted(name for name in table.column_names if name != WEIGHT)
    columns = [[identity(value) for value in table.column(name).to_pylist()] for name in names]
    weights = table.column(WEIGHT).to_pylist() if weighted else [1] * table.num_rows
    found: Rows = Counter()
    for row, weight in zip(zip(*columns, strict=True), weights, strict=True):
        found[row] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def identity(value: Any) -> Hashable:
    match value:
        case float():
            return repr(value)
        case dict():
            return tuple((key, identity(inner)) for key, inner in value.items())
        case list():
            return tuple(map(identity, value))
    return value


def without_spark() -> AbstractContextManager[None]:
    """Settings are in force that no session has to be asked for."""
    return under(NO_SPARK, USUAL)
