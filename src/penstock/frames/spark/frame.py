"""Selecting, grouping and joining: of rows on the driver there (``arrow.frame``), else in few round trips to the JVM.

PySpark hands every expression over on its own, and Spark analyses every step as soon as it is taken, which for a tiny
change costs more than all else that is done with it. A ``Query`` is a chain of steps that is analysed once, at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.frames.arrow.frame import Local, as_local
from penstock.frames.arrow.tables import NotHere
from penstock.frames.clock import left_to_spark
from penstock.frames.mismatch import StateMismatch, raising


def select(frame: DataFrame, *expressions: str) -> DataFrame:
    """As ``frame.selectExpr``."""
    rows = as_local(frame)
    if rows is not None:
        return rows.selected(expressions)
    return frame.selectExpr(*expressions)


_ALL = "__all"


def grouped(frame: DataFrame, keys: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    """As ``frame.groupBy(..).agg(..)``: the keys, which are names of columns, and aggregates with their names."""
    rows = as_local(frame)
    if rows is not None:
        try:
            return rows.grouped(keys, aggregates)
        except NotHere as problem:
            left_to_spark(f"GROUP BY {', '.join(keys)} of {', '.join(aggregates)}", problem)
            frame = rows.frame
    together = f"STRUCT({', '.join(aggregates)}) AS {_ALL}"
    if not keys:
        return select(select(frame, together), f"{_ALL}.*")
    made = frame.groupBy(*keys).agg(F.expr(together))
    return select(made, *keys, f"{_ALL}.*")


def join(left: DataFrame, right: DataFrame, on: str, how: str = "inner", *, sent: str = "") -> DataFrame:
    """As ``left.join``; ``sent`` is the side, left or right, of which every executor gets all rows."""
    mine, theirs = as_local(left), as_local(right)
    if mine is not None and theirs is not None:
        try:
            return mine.joined(theirs, on, how)
        except NotHere as problem:
            left_to_spark(f"{how} join ON {on}", problem)
    left = F.broadcast(spark_frame(left)) if sent == "left" else spark_frame(left)
    right = F.broadcast(spark_frame(right)) if sent == "right" else spark_frame(right)
    return left.join(right, F.expr(on), how)


def spark_frame(frame: DataFrame) -> DataFrame:
    """The frame as Spark's, wherever its rows are."""
    rows = as_local(frame)
    return frame if rows is None else rows.frame


_numbers = count(1)
_FRAME = re.compile(r"__frame_\d+")


@dataclass(frozen=True)
class Query:
    """Steps over frames: ``source`` is what stands behind FROM, ``here`` does the same with rows on the driver."""

    source: str
    inputs: Mapping[str, DataFrame]
    here: Callable[[], Local]

    @classmethod
    def of(cls, frame: DataFrame) -> Query:
        name = f"__frame_{next(_numbers)}"
        return cls(name, {name: frame}, lambda: _local(frame))

    def select(self, *expressions: str) -> Query:
        return self._then(f"SELECT {', '.join(expressions)}", "", lambda rows: rows.selected(expressions))

    def where(self, condition: str) -> Query:
        return self._then("SELECT *", f" WHERE {condition}", lambda rows: rows.where(condition))

    def sound(self, condition: str, problem: str) -> Query:
        """All rows, each of which must fulfil a condition that is never NULL; else the state is not what it should be.

        The ``problem`` is raised by the query itself, when it is computed.
        """

        def checked(rows: Local) -> DataFrame:
            if _local(rows.where(f"NOT ({condition})")).table.num_rows:
                raise StateMismatch(problem)
            return _frame(rows)

        return self._then("SELECT *", f" WHERE IF({condition}, true, {raising(problem)})", checked)

    def in_one(self) -> Query:
        """In one partition, so that grouping needs no shuffle."""
        return self._then("SELECT /*+ COALESCE(1) */ *", "", lambda rows: rows.coalesce(1))

    def grouped(self, keys: Sequence[str], aggregates: Sequence[str]) -> Query:
        """The keys, which are names of columns, and aggregates with their names."""
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        text = f"SELECT {', '.join([*keys, *aggregates])}"
        return self._then(text, by, lambda rows: rows.grouped(keys, aggregates))

    def each(self, *alternatives: tuple[str, Sequence[str]]) -> Query:
        """A row for every alternative whose condition a row fulfils: its expressions, of the same names in all."""
        rows = [f"IF({condition}, STRUCT({', '.join(values)}), NULL)" for condition, values in alternatives]
        text = f"SELECT INLINE(ARRAY_COMPACT(ARRAY({', '.join(rows)})))"

        def chosen(rows: Local) -> DataFrame:
            parts = [_local(_local(rows.where(condition)).selected(values)) for condition, values in alternatives]
            total = parts[0]
            for part in parts[1:]:
                total = _local(total.unionByName(_frame(part)))
            return _frame(total)

        return self._then(text, "", chosen)

    def _then(self, what: str, behind: str, here: Callable[[Local], DataFrame]) -> Query:
        return Query(f"({what} FROM {self.source}{behind})", self.inputs, lambda: _local(here(self.here())))

    def followed_by(self, other: Query) -> Query:
        """The rows of both, whose columns are the same."""
        both = f"(SELECT * FROM {self.source} UNION ALL SELECT * FROM {other.source})"
        return Query(both, {**self.inputs, **other.inputs}, lambda: _local(self.here().unionAll(_frame(other.here()))))

    @property
    def frame(self) -> DataFrame:
        """The result, computed if all rows are on the driver, else analysed."""
        try:
            return _frame(self.here())
        except NotHere as problem:
            if any(as_local(frame) is not None for frame in self.inputs.values()):
                left_to_spark(_FRAME.sub("..", self.source)[1:-1], problem)
            return self._analysed()

    def _analysed(self) -> DataFrame:
        spark = next(iter(self.inputs.values())).sparkSession
        # A view that is dropped takes what is cached of its plan along, unless the plan is another.
        frames: dict[str, Any] = {
            name: frame.where("true") if as_local(frame) is None and frame.is_cached else spark_frame(frame)
            for name, frame in self.inputs.items()
        }
        # Spark would take ${..} for a variable, even inside quotes; PySpark takes braces for the name of a frame.
        text = f"SELECT * FROM {self.source}".replace("${", "\\u0024{").replace("{", "{{").replace("}", "}}")
        return spark.sql(_FRAME.sub(lambda found: "{" + found[0] + "}", text), **frames)


def _local(frame: DataFrame) -> Local:
    rows = as_local(frame)
    if rows is None:
        raise NotHere
    return rows


def _frame(rows: Local) -> DataFrame:
    return cast("DataFrame", rows)
