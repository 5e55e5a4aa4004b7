"""Rows that Spark computes: steps are put together to one query, which Spark is asked to analyse once, at its end.

Spark would analyse every step as soon as it is taken, and every expression is a round trip: for a small change that
costs more than all else that is done with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import DataType, StructType
from sqlglot import exp

from penstock.frames.clock import phase
from penstock.frames.frame import Alternative, Frame, How
from penstock.frames.mismatch import raising
from penstock.frames.names import WEIGHT
from penstock.frames.sizes import Size
from penstock.frames.spark.dataframes import has_order, identity, identity_of, is_special, sql_over
from penstock.frames.spark.interpreted import in_turn
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.spark.types import collected, nullable
from penstock.plan.operators import render
from penstock.sql.dialect import quoted
from penstock.sql.trees import Named, Same, column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOKEN = uuid.uuid4().hex[:8]
_numbers = count(1)
_HOW = {
    "inner": "JOIN", "left": "LEFT JOIN", "full": "FULL JOIN", "left_semi": "LEFT SEMI JOIN",
    "left_anti": "LEFT ANTI JOIN",
}  # fmt: skip


class SparkFrame:
    """``source`` is what stands behind FROM; ``inputs`` are the frames that its names mean, made when needed."""

    def __init__(
        self, spark: SparkOnDemand, source: str, inputs: Mapping[str, _Input], columns: Sequence[str], size: Size,
    ):  # fmt: skip
        self._spark = spark
        self._source = source
        self._inputs = inputs
        self.columns = tuple(columns)
        self.size = size

    @classmethod
    def of(cls, spark: SparkOnDemand, make: Callable[[], DataFrame], columns: Sequence[str], size: Size) -> SparkFrame:
        """What Spark reads, or has computed."""
        name = f"__frame_{_TOKEN}_{next(_numbers)}__"  # which is no part of another
        return cls(spark, name, {name: _Input(make)}, columns, size)

    @classmethod
    def of_frame(cls, spark: SparkOnDemand, frame: DataFrame, size: Size) -> SparkFrame:
        return cls.of(spark, lambda: frame, frame.columns, size)

    @cached_property
    def frame(self) -> DataFrame:
        """As Spark knows it."""
        if self._source in self._inputs:
            return self._inputs[self._source].frame
        # What stands for a frame goes with it, so what is cached of a frame's plan would go too, unless it is another.
        frames = {name: given.frame.where("true") if given.frame.is_cached else given.frame
                  for name, given in self._inputs.items()}  # fmt: skip
        # Spark would take ${..} for a variable, even inside quotes.
        text = f"SELECT * FROM {self._source}".replace("${", "\\u0024{")
        return sql_over(self._spark.session(), text, frames)

    @cached_property
    def schema(self) -> StructType:
        """Everything in it may be NULL."""
        found = nullable(self.frame.schema)
        assert isinstance(found, StructType)
        return found

    @property
    def types(self) -> Mapping[str, str]:
        return {field.name: field.dataType.simpleString() for field in self.schema.fields}

    def expecting(self, size: Size) -> SparkFrame:
        return self._like(self._source, self.columns, size)

    def rows(self) -> pa.Table | None:
        return None

    def arrow(self) -> pa.Table:
        with phase("computing"), in_turn(self._spark.session(), interpreted=self.size.not_compiled):
            return collected(self.frame)

    # -- steps --------------------------------------------------------------------------------------------------------

    def select(self, outputs: Sequence[Named]) -> SparkFrame:
        return self._then(f"SELECT {self._listed(outputs)}", [name for name, _ in outputs])

    def only(self, columns: Sequence[str]) -> SparkFrame:
        return self._then(f"SELECT {', '.join(map(quoted, columns))}", columns)

    def renamed(self, names: Mapping[str, str]) -> SparkFrame:
        return self.select([(names.get(name, name), column(name)) for name in self.columns])

    def where(self, condition: exp.Expr) -> SparkFrame:
        return self._then("SELECT *", self.columns, f"WHERE {self._spelled(condition)}")

    def nothing(self) -> SparkFrame:
        return self._then("SELECT *", self.columns, "WHERE false").expecting(Size.exactly(0))

    def join(
        self, other: Frame, conditions: Sequence[exp.Expr], how: How = "inner", *, few: bool = False
    ) -> SparkFrame:
        number = next(_numbers)
        mine, theirs = f"__left_{number}", f"__right_{number}"
        right = as_spark(other)
        kinds = _Types([self, right])
        on = " AND ".join(f"({kinds.spelled(c)})" for c in conditions) or "true"
        sent = self._sent(right, how, mine, theirs)
        source = f"(SELECT {sent}* FROM {self._source} AS {mine} {_HOW[how]} {right._source} AS {theirs} ON {on})"
        one_sided = how in ("left_semi", "left_anti")
        columns = self.columns if one_sided else (*self.columns, *right.columns)
        size = self.size.joined(right.size, few=few or one_sided)
        return SparkFrame(self._spark, source, {**self._inputs, **right._inputs}, columns, size)

    def _sent(self, right: SparkFrame, how: How, mine: str, theirs: str) -> str:
        """The side of which every executor gets all rows, if one is surely small: Spark obeys, whatever it costs. Of a
        left join it cannot be the left."""
        if how == "inner" and self.size.surely_on_driver:
            return f"/*+ BROADCAST({mine}) */ "
        return f"/*+ BROADCAST({theirs}) */ " if how != "full" and right.size.surely_on_driver else ""

    def with_nulls(self, other: Frame, columns: Sequence[str]) -> SparkFrame:
        types = other.types
        nulls = ", ".join(f"CAST(NULL AS {types[name]}) AS {quoted(name)}" for name in columns)
        return self._then(f"SELECT {nulls}, *", [*columns, *self.columns])

    def group(self, keys: Sequence[str], measures: Sequence[Named]) -> SparkFrame:
        names = ", ".join(map(quoted, keys))
        by = f"GROUP BY {names}" if keys else ""
        parts = ([names] if keys else []) + ([self._listed(measures)] if measures else [])
        columns = [*keys, *(name for name, _ in measures)]
        return self._in_one_task()._then(f"SELECT {', '.join(parts)}", columns, by)

    def _in_one_task(self) -> SparkFrame:
        """In one partition if the rows are few, so that grouping needs no shuffle."""
        return self._then("SELECT /*+ COALESCE(1) */ *", self.columns) if self.size.in_one_task else self

    def union(self, other: Frame) -> SparkFrame:
        right, names = as_spark(other), ", ".join(map(quoted, self.columns))
        source = f"(SELECT {names} FROM {self._source} UNION ALL SELECT {names} FROM {right._source})"
        inputs = {**self._inputs, **right._inputs}
        return SparkFrame(self._spark, source, inputs, self.columns, self.size + right.size)

    def consolidated(self, beside: Sequence[str] = ()) -> SparkFrame:
        fields = [f for f in self.schema.fields if f.name != WEIGHT and f.name not in beside]
        special = {f.name: f"__identity{i}" for i, f in enumerate(fields) if is_special(f.dataType)}
        told = [f"{identity(f)} AS {special[f.name]}" for f in fields if f.name in special]
        rows = self._in_one_task()
        rows = rows._then(f"SELECT {', '.join(['*', *told])}", [*self.columns, *special.values()]) if told else rows
        keys = [special.get(f.name, quoted(f.name)) for f in fields]
        kept = [f"ANY_VALUE({quoted(name)}) AS {quoted(name)}" for name in special]
        kept += [f"MAX(STRUCT({', '.join(map(quoted, beside))})) AS __beside"] if beside else []
        by = f"GROUP BY {', '.join(keys)}" if keys else ""
        totals = [*keys, *kept, f"SUM({WEIGHT}) AS {WEIGHT}"]
        found = rows._then(f"SELECT {', '.join(totals)}", [*keys, *special, WEIGHT], f"{by} HAVING SUM({WEIGHT}) <> 0")
        names = [f.name for f in fields]
        shown = [*map(quoted, names), WEIGHT, *(f"__beside.{name} AS {name}" for name in beside)]
        return found._then(f"SELECT {', '.join(shown)}", [*names, WEIGHT, *beside])

    def copies(self) -> SparkFrame:
        # A sequence down from one would be copies too.
        there = self._then(f"SELECT *, EXPLODE(SEQUENCE(1L, {WEIGHT})) AS __copy", self.columns, f"WHERE {WEIGHT} > 0")
        return there.only([name for name in self.columns if name != WEIGHT])

    def first(self, order: Sequence[exp.Expr], limit: int, offset: int) -> SparkFrame:
        by = ", ".join([*map(render, order), *map(quoted, self.sortable(self.columns))])
        behind = f"ORDER BY {by} LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
        rows = self._in_one_task()._then("SELECT *", self.columns, behind)
        return rows.expecting(Size(limit, self.size.read, certain=True))

    def windows(self, functions: Sequence[Named]) -> SparkFrame:
        columns = [*self.columns, *(name for name, _ in functions)]
        return self._in_one_task()._then(f"SELECT *, {self._listed(functions)}", columns)

    def sessions(self, below: Sequence[str], keys: Sequence[Named], measures: Sequence[Named]) -> SparkFrame:
        names = [*below, *(name for name, _ in keys), *(name for name, _ in measures)]
        by = [*map(quoted, below), *(render(e) for _, e in keys)]
        listed = [*map(quoted, below), self._listed([*keys, *measures])]
        groups = self._in_one_task()._then(f"SELECT {', '.join(listed)}", names, f"GROUP BY {', '.join(by)}")
        # Spark marks the column, and would join sessions again wherever it is grouped by.
        session = quoted(keys[-1][0])
        plain = f"NAMED_STRUCT('start', {session}.start, 'end', {session}.`end`) AS {session}"
        shown = [plain if name == keys[-1][0] else quoted(name) for name in names]
        return groups._then(f"SELECT {', '.join(shown)}", names)

    def generate(self, generator: exp.Expr, outputs: Sequence[str], kept: Sequence[str]) -> SparkFrame:
        names = quoted(outputs[0]) if len(outputs) == 1 else f"({', '.join(map(quoted, outputs))})"
        shown = [*map(quoted, kept), f"{self._spelled(generator)} AS {names}"]
        return self._then(f"SELECT {', '.join(shown)}", [*kept, *outputs]).expecting(self.size.guess())

    def each(self, alternatives: Sequence[Alternative]) -> SparkFrame:
        parts = [
            f"IF({self._spelled(condition)}, STRUCT({self._listed(outputs)}), NULL)"
            for condition, outputs in alternatives
        ]
        columns = [name for name, _ in alternatives[0][1]]
        return self._then(f"SELECT INLINE(ARRAY_COMPACT(ARRAY({', '.join(parts)})))", columns)

    def sound(self, condition: exp.Expr, problem: str) -> SparkFrame:
        return self._then("SELECT *", self.columns, f"WHERE IF({self._spelled(condition)}, true, {raising(problem)})")

    def sortable(self, columns: Sequence[str]) -> list[str]:
        return [name for name in columns if name != WEIGHT and has_order(self.schema[name].dataType)]

    def any(self, condition: exp.Expr) -> bool:
        return not self.where(condition).frame.isEmpty()

    # -- text ---------------------------------------------------------------------------------------------------------

    def _then(self, what: str, columns: Sequence[str], behind: str = "") -> SparkFrame:
        return self._like(f"({what} FROM {self._source} {behind})", columns, self.size)

    def _like(self, source: str, columns: Sequence[str], size: Size) -> SparkFrame:
        return SparkFrame(self._spark, source, self._inputs, columns, size)

    def _listed(self, outputs: Sequence[Named]) -> str:
        return ", ".join(f"{self._spelled(e)} AS {quoted(name)}" for name, e in outputs)

    def _spelled(self, expression: exp.Expr) -> str:
        return _Types([self]).spelled(expression)


class _Types:
    """Expressions over frames as Spark SQL. To say when two values are the same one, their type must be known."""

    def __init__(self, frames: Sequence[SparkFrame]):
        self._frames = frames

    def spelled(self, expression: exp.Expr) -> str:
        if not expression.find(Same):
            return render(expression)
        return render(expression.transform(lambda node: self._told(node) if isinstance(node, Same) else node))

    def _told(self, node: Same) -> exp.Expr:
        kind = self._type_of(node.left)
        sides = [exp.Var(this=identity_of(render(side), kind)) for side in (node.left, node.right)]
        return exp.NullSafeEQ(this=sides[0], expression=sides[1])

    def _type_of(self, value: exp.Expr) -> DataType:
        assert isinstance(value, exp.Column)
        name = value.table or value.name
        frame = next(frame for frame in self._frames if name in frame.columns)
        kind = frame.schema[name].dataType
        if not value.table:
            return kind
        assert isinstance(kind, StructType)
        return kind[value.name].dataType


class _Input:
    """A frame that is made when it is asked for, once."""

    def __init__(self, make: Callable[[], DataFrame]):
        self._make = make

    @cached_property
    def frame(self) -> DataFrame:
        return self._make()


def as_spark(frame: Frame) -> SparkFrame:
    """A frame as Spark's, wherever its rows are."""
    from penstock.frames.arrow.frame import ArrowFrame  # each becomes the other where it must

    if isinstance(frame, ArrowFrame):
        return frame.by_spark
    assert isinstance(frame, SparkFrame)
    return frame
