"""Rows on the driver. What is asked of them is done at once by Arrow, as far as Arrow gives what Spark would.

A few values that it does not are asked of Spark and come back. For anything else the rows become a frame of Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, cast

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.aggregates import aggregated
from penstock.frames.arrow.expressions import Rows, computed
from penstock.frames.arrow.expressions.types import cast as converted
from penstock.frames.arrow.expressions.types import widest_of
from penstock.frames.arrow.generators import generated
from penstock.frames.arrow.groups import Groups, Numbers, consolidated, normalised, ranks, whole
from penstock.frames.arrow.joins import joined
from penstock.frames.arrow.sessions import sessions_of
from penstock.frames.arrow.tables import spark_names
from penstock.frames.arrow.windows import all_placed, ordered, placed
from penstock.frames.clock import left_to_spark, phase
from penstock.frames.frame import Alternative, Frame, How, NotHere
from penstock.frames.mismatch import StateMismatch
from penstock.frames.names import WEIGHT
from penstock.frames.settings import in_force
from penstock.frames.sizes import Size
from penstock.frames.spark.session import SparkOnDemand
from penstock.plan.operators import render
from penstock.sql.dialect import SparkSql
from penstock.sql.intervals import MICROSECONDS, microseconds
from penstock.sql.trees import Named, Same, column

if TYPE_CHECKING:
    from penstock.frames.spark.frame import SparkFrame

Given = ParamSpec("Given")
_Step = Callable[Concatenate["ArrowFrame", Given], Frame]


def _step(said: Callable[..., str]) -> Callable[[_Step[Given]], _Step[Given]]:
    """A step that Spark does if Arrow does not; ``said`` tells what it is."""

    def tried(step: _Step[Given]) -> _Step[Given]:
        @wraps(step)
        def done(self: ArrowFrame, *given: Given.args, **named: Given.kwargs) -> Frame:
            with phase("computing"):
                try:
                    return step(self, *given, **named)
                except NotHere as problem:
                    left_to_spark(said(*given), problem)
            return cast("Frame", getattr(self.by_spark, step.__name__)(*given, **named))

        return done

    return tried


def _outputs(outputs: Sequence[Named], *_: object) -> str:
    return f"SELECT {', '.join(f'{render(e)} AS {name}' for name, e in outputs)}"


def _shown(condition: exp.Expr) -> str:
    """A condition for people; how Spark is to tell that two values are the same depends on their types."""
    plain = condition.transform(lambda node: exp.NullSafeEQ(**node.args) if isinstance(node, Same) else node)
    return render(plain)


class ArrowFrame:
    """``load`` brings the rows, of a known schema. ``instead``: how Spark gets them without that.

    ``settled``: their weights are added up, so that no two rows are the same and none has the weight 0.
    """

    def __init__(
        self,
        spark: SparkOnDemand,
        schema: pa.Schema,
        load: Callable[[], pa.Table],
        size: Size,
        instead: Callable[[], SparkFrame] | None = None,
        *,
        settled: bool = False,
    ):
        self._spark = spark
        self.schema = schema
        self._load = load
        self.size = size
        self._instead = instead
        self._settled = settled

    @classmethod
    def of(cls, spark: SparkOnDemand, table: pa.Table, *, settled: bool = False) -> ArrowFrame:
        return cls(spark, table.schema, lambda: table, Size.exactly(table.num_rows), settled=settled)

    def holding(self, table: pa.Table) -> ArrowFrame:
        """Other rows, with the same way to Spark."""
        return ArrowFrame.of(self._spark, table)

    @property
    def table(self) -> pa.Table:
        """The rows; raises ``NotHere`` if they are Spark's to read after all."""
        if self._loaded is None:
            raise NotHere
        return self._loaded

    @cached_property
    def _loaded(self) -> pa.Table | None:
        with phase("reading"):
            try:
                found = self._load()
                return found.combine_chunks() if found.num_rows else found.schema.empty_table()
            except (NotHere, pa.ArrowException, OSError) as problem:
                left_to_spark(f"reading {', '.join(self.columns)}", problem)
                return None

    @cached_property
    def by_spark(self) -> SparkFrame:
        """The same rows for Spark."""
        from penstock.frames.spark.conversion import to_spark  # late: most rows never go there

        return to_spark(self._spark, self.table) if self._instead is None else self._instead()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def types(self) -> Mapping[str, str]:
        return spark_names(self.schema)

    def expecting(self, size: Size) -> Frame:
        return self

    def rows(self) -> pa.Table | None:
        return self._loaded

    def arrow(self) -> pa.Table:
        return self.by_spark.arrow() if self._loaded is None else self._loaded

    # -- steps --------------------------------------------------------------------------------------------------------

    @_step(_outputs)
    def select(self, outputs: Sequence[Named]) -> Frame:
        names = [name for name, _ in outputs]
        if len({name.lower() for name in names}) < len(names):
            raise NotHere
        plain = [_plain_column(e) for _, e in outputs]
        if all(old in self.schema.names for old in plain):
            return self._picked(list(zip(cast("list[str]", plain), names, strict=True)))
        made = self.made(dict(zip(names, self._values([e for _, e in outputs]), strict=True)))
        made._settled = self._settled_in(list(zip(plain, names, strict=True)))
        return made

    def only(self, columns: Sequence[str]) -> Frame:
        return self._picked([(name, name) for name in columns])

    def renamed(self, names: Mapping[str, str]) -> Frame:
        return self._picked([(name, names.get(name, name)) for name in self.columns])

    @_step(lambda condition: f"WHERE {render(condition)}")
    def where(self, condition: exp.Expr) -> Frame:
        true = self._true(condition)
        return self if true.true_count == len(true) else self._like(self.table.filter(true))

    def nothing(self) -> Frame:
        return ArrowFrame.of(self._spark, self.schema.empty_table())

    @_step(lambda other, conditions, how="inner": f"{how} join ON {' AND '.join(map(_shown, conditions))}")
    def join(self, other: Frame, conditions: Sequence[exp.Expr], how: How = "inner", *, few: bool = False) -> Frame:
        if not isinstance(other, ArrowFrame):
            raise NotHere
        return joined(self, other, conditions, how)

    @_step(lambda other, columns: f"NULLs beside {', '.join(columns)}")
    def with_nulls(self, other: Frame, columns: Sequence[str]) -> Frame:
        if not isinstance(other, ArrowFrame):
            raise NotHere
        rows = self.table
        nulls = {name: pa.nulls(rows.num_rows, other.schema.field(name).type) for name in columns}
        return self.made({**nulls, **{name: whole(rows.column(name)) for name in self.columns}})

    @_step(lambda keys, measures: f"GROUP BY {', '.join(keys)} of {', '.join(render(e) for _, e in measures)}")
    def group(self, keys: Sequence[str], measures: Sequence[Named]) -> Frame:
        rows = self.batch
        by = {name: normalised(rows.column(name)) for name in keys}
        groups = Groups(list(by.values()), rows.count)
        found = {name: values.take(pa.array(groups.first)) for name, values in by.items()}
        return self.made({**found, **{name: aggregated(e, rows, groups, found) for name, e in measures}})

    @_step(lambda other: f"UNION ALL of {', '.join(other.columns)}")
    def union(self, other: Frame) -> Frame:
        if not isinstance(other, ArrowFrame):
            raise NotHere
        one, two, found = self.batch, other.batch, {}
        for name in self.columns:
            a, b = one.column(name), two.column(name)
            kind = widest_of([a.type, b.type])
            try:
                found[name] = pa.concat_arrays([converted(a, kind), converted(b, kind)])
            except pa.ArrowException as problem:
                raise NotHere(str(problem)) from None
        return self.made(found)

    @_step(lambda beside=(): "adding up rows")
    def consolidated(self, beside: Sequence[str] = ()) -> Frame:
        if self._settled and not beside:
            return self
        return ArrowFrame.of(self._spark, consolidated(self.table, WEIGHT, beside), settled=not beside)

    @_step(lambda: "copies of rows")
    def copies(self) -> Frame:
        rows = self.batch
        times = rows.column(WEIGHT).to_numpy(zero_copy_only=False)
        places = np.repeat(np.arange(rows.count), np.maximum(times, 0))
        return self._at(places).only([name for name in self.columns if name != WEIGHT])

    @_step(lambda order, limit, offset: f"ORDER BY {', '.join(map(render, order))}")
    def first(self, order: Sequence[exp.Expr], limit: int, offset: int) -> Frame:
        rows = self.batch
        by = [*ordered(order, rows), *(ranks(rows.column(name)) for name in self.sortable(self.columns))]
        return self._at(np.lexsort(tuple(reversed(by)))[offset : offset + limit])

    @_step(_outputs)
    def windows(self, functions: Sequence[Named]) -> Frame:
        rows = self.batch
        try:
            values = all_placed([_window(e) for _, e in functions], rows)
        except NotHere:
            values = self._values([e for _, e in functions])
        return self.made({**rows.columns, **dict(zip([name for name, _ in functions], values, strict=True))})

    @_step(lambda below, keys, measures: f"sessions by {', '.join(render(e) for _, e in keys)}")
    def sessions(self, below: Sequence[str], keys: Sequence[Named], measures: Sequence[Named]) -> Frame:
        window, rows = _session_window(keys[-1][1]), self.batch
        if window[1] >= MICROSECONDS["day"] and not rows.settings.utc:  # where a day is not always as long
            raise NotHere
        times = computed(window[0], rows)
        by = {name: normalised(rows.column(name)) for name in below}
        by |= {name: normalised(computed(e, rows)) for name, e in keys[:-1]}
        places, found = sessions_of(times, list(by.values()), window[1])
        kept = rows.some(places)
        columns = {**kept.columns, **{name: values.take(pa.array(places)) for name, values in by.items()}}
        columns[keys[-1][0]] = found
        return self.made(columns).group([*by, keys[-1][0]], measures)

    @_step(lambda generator, outputs, kept: f"SELECT {render(generator)}")
    def generate(self, generator: exp.Expr, outputs: Sequence[str], kept: Sequence[str]) -> Frame:
        places, columns = generated(generator, self.batch)
        if len(columns) != len(outputs):
            raise NotHere
        rows = self.table.select(list(kept)).take(pa.array(places))
        for name, values in zip(outputs, columns, strict=True):
            rows = rows.append_column(name, values)
        return ArrowFrame.of(self._spark, rows)

    @_step(lambda alternatives: "rows of either kind")
    def each(self, alternatives: Sequence[Alternative]) -> Frame:
        parts = [self.where(condition).select(outputs) for condition, outputs in alternatives]
        total = parts[0]
        for part in parts[1:]:
            total = total.union(part)
        return total

    @_step(lambda condition, problem: f"whether {render(condition)}")
    def sound(self, condition: exp.Expr, problem: str) -> Frame:
        if self._true(condition).false_count:
            raise StateMismatch(problem)
        return self

    def sortable(self, columns: Sequence[str]) -> list[str]:
        return [name for name in columns if name != WEIGHT and _has_order(self.schema.field(name).type)]

    def any(self, condition: exp.Expr) -> bool:
        found = self.where(condition)
        return bool(found.table.num_rows) if isinstance(found, ArrowFrame) else found.any(exp.Boolean(this=True))

    # -- how ----------------------------------------------------------------------------------------------------------

    @property
    def batch(self) -> Rows:
        """The rows as expressions see them."""
        return Rows(self._columns, self.table.num_rows, in_force(self._spark))

    @cached_property
    def _columns(self) -> Mapping[str, pa.Array]:
        return {name: whole(column) for name, column in zip(self.schema.names, self.table.columns, strict=True)}

    def value_of(self, node: exp.Expr) -> pa.Array:
        return self._values([node])[0]

    def _values(self, nodes: Sequence[exp.Expr]) -> list[pa.Array]:
        """The values of expressions; those that Arrow does not give are asked of Spark, if the rows are few."""
        rows = self.batch
        values: list[pa.Array | None] = []
        for expression in nodes:
            try:
                values.append(_value(expression, rows))
            except NotHere:
                values.append(None)
        missing = [i for i, found in enumerate(values) if found is None]
        if missing:
            for i, found in zip(missing, self.asked([nodes[i] for i in missing]), strict=True):
                values[i] = found
        return cast("list[pa.Array]", values)

    def kept(self, true: pa.Array) -> ArrowFrame:
        """The rows that are marked."""
        return ArrowFrame.of(self._spark, self.table.filter(true))

    def asked(self, nodes: Sequence[exp.Expr]) -> list[pa.Array]:
        """Values by Spark, row by row."""
        for node in nodes:
            left_to_spark(render(node))
        if self.table.num_rows > limits.ASKED_ROWS:
            raise NotHere
        from penstock.frames.spark.conversion import asked_of_spark

        return asked_of_spark(self._spark, self.table, nodes)

    def _true(self, condition: exp.Expr) -> pa.Array:
        (found,) = self._values([condition])
        if not pa.types.is_boolean(found.type):
            raise NotHere
        return found.fill_null(False)

    def _at(self, places: Numbers) -> Frame:
        return self._like(self.table.take(pa.array(places)))

    def _picked(self, names: Sequence[tuple[str, str]]) -> Frame:
        """Some columns, each by its name here and the one it gets; the rows are not brought here for it."""
        old, new = [name for name, _ in names], [name for _, name in names]
        schema = pa.schema([self.schema.field(name).with_name(called) for name, called in names])
        outputs = [(called, column(name)) for name, called in names]
        return ArrowFrame(
            self._spark, schema, lambda: self.table.select(old).rename_columns(new), self.size,
            (lambda: self.by_spark.select(outputs)) if self._instead is not None else None,
            settled=self._settled_in(names),
        )  # fmt: skip

    def _settled_in(self, kept: Sequence[tuple[str | None, str]]) -> bool:
        """Whether rows that are told apart still are: by all columns that they had, maybe under other names."""
        return self._settled and (WEIGHT, WEIGHT) in kept and set(self.schema.names) <= {name for name, _ in kept}

    def _like(self, table: pa.Table) -> Frame:
        return ArrowFrame.of(self._spark, table)

    def made(self, columns: Mapping[str, pa.Array]) -> ArrowFrame:
        if not columns:
            raise NotHere
        return ArrowFrame.of(self._spark, pa.table(dict(columns)))


def _value(expression: exp.Expr, rows: Rows) -> pa.Array:
    return placed(expression, rows) if isinstance(expression, exp.Window) else computed(expression, rows)


def _window(expression: exp.Expr) -> exp.Window:
    if not isinstance(expression, exp.Window):
        raise NotHere
    return expression


def _session_window(expression: exp.Expr) -> tuple[exp.Expr, int]:
    """The times that sessions are of, and the gap in microseconds."""
    match expression:
        case exp.Anonymous(expressions=[time, exp.Literal(is_string=True) as gap]):
            micros = microseconds(gap.name)
        case exp.Anonymous(expressions=[time, exp.Interval() as gap]):
            micros = microseconds(gap.sql(dialect=SparkSql).removeprefix("INTERVAL"))
        case _:
            raise NotHere
    if micros is None:
        raise NotHere
    return time, micros


def _plain_column(expression: exp.Expr) -> str | None:
    """The column that an expression is."""
    return expression.name if isinstance(expression, exp.Column) and not expression.table else None


def _has_order(data_type: pa.DataType) -> bool:
    """Whether Spark can sort by values of the type."""
    if pa.types.is_map(data_type):
        return False
    return all(_has_order(data_type.field(i).type) for i in range(data_type.num_fields))
