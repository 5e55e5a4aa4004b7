"""Rows on the driver that stand where a Spark frame can, so that a rule does not know where its rows are.

What is asked of them is done at once by Arrow, as far as Arrow gives what Spark would (``expressions``). A few
values that it does not are asked of Spark and come back. For anything else the rows become a frame of Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.aggregates import aggregated
from penstock.frames.arrow.expressions.types import cast as converted
from penstock.frames.arrow.expressions.types import has_floats, widest_of
from penstock.frames.arrow.expressions.values import Rows, computed, parsed
from penstock.frames.arrow.groups import Groups, Numbers, consolidated, ranks, whole
from penstock.frames.arrow.joins import join_of
from penstock.frames.arrow.spark_types import to_arrow_schema
from penstock.frames.arrow.tables import NotHere, collected, fits_arrow, nullable
from penstock.frames.arrow.windows import ordered, placed
from penstock.frames.clock import left_to_spark, phase
from penstock.frames.settings import in_force
from penstock.frames.spark.interpreted import running
from penstock.frames.spark.problems import SPARK_PROBLEMS
from penstock.sql.dialect import SparkSql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Given = ParamSpec("Given")

_AT = "__at"
_UTC = ("UTC", "Etc/UTC", "Z")


def on_driver(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """A frame of rows that are on the driver."""
    schema = StructType([StructField(f.name, nullable(f.dataType)) for f in schema.fields])
    if not _survives(schema):
        return spark.createDataFrame(table, schema)
    return cast("DataFrame", Local(spark, schema, lambda: table.cast(to_arrow_schema(schema, timezone="UTC"))))


def when_asked(
    spark: SparkSession, schema: StructType, load: Callable[[], pa.Table], read: Callable[[], DataFrame]
) -> DataFrame:
    """A frame of rows that ``load`` brings to the driver, and that ``read`` gives Spark without them."""
    schema = StructType([StructField(f.name, nullable(f.dataType)) for f in schema.fields])
    return cast("DataFrame", Local(spark, schema, load, read)) if _survives(schema) else read()


def _survives(schema: StructType) -> bool:
    """Whether Arrow's types say all that Spark's do: not of a collated text, for one."""
    try:
        return fits_arrow(schema) and bool(
            from_arrow_schema(to_arrow_schema(schema, timezone="UTC"), prefer_timestamp_ntz=True) == schema
        )
    except Exception:  # a type that Arrow does not have
        return False


def as_local(frame: object) -> Local | None:
    """A frame as what it is, if its rows are on the driver, or will be when they are asked for."""
    return frame if isinstance(frame, Local) else None


def is_local(frame: DataFrame) -> bool:
    """Whether the rows of a frame are on the driver; they are brought there if need be."""
    return table_of(frame) is not None


def table_of(frame: DataFrame) -> pa.Table | None:
    """The rows of a frame, if they are on the driver; they are brought there if need be."""
    local = as_local(frame)
    try:
        return None if local is None else local.table
    except NotHere:
        return None


def _computing(step: Callable[Given, DataFrame]) -> Callable[Given, DataFrame]:
    """What a step takes is time of computing."""

    @wraps(step)
    def measured(*given: Given.args, **named: Given.kwargs) -> DataFrame:
        with phase("computing"):
            return step(*given, **named)

    return measured


class Local:
    """See above. All that is not defined here is asked of the frame that Spark has of the rows."""

    is_cached = False

    def __init__(
        self,
        spark: SparkSession,
        schema: StructType,
        load: Callable[[], pa.Table],
        read: Callable[[], DataFrame] | None = None,
    ):
        self.sparkSession = spark
        self.schema = schema
        self._load = load
        self._read = read

    @property
    def table(self) -> pa.Table:
        """The rows; raises ``NotHere`` if they are Spark's to read."""
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
    def frame(self) -> DataFrame:
        """The same rows for Spark."""
        if self._read is not None:
            return self._read()
        return self.sparkSession.createDataFrame(self.table, self.schema)

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.frame, name)

    # -- steps, each of which falls back to Spark's --------------------------------------------------------------------

    def select(self, *columns: Any) -> DataFrame:
        if all(isinstance(c, str) for c in columns):
            return self.selected(columns)
        return self.frame.select(*columns)

    @_computing
    def selected(self, texts: Sequence[str]) -> DataFrame:
        """As ``selectExpr``."""
        try:
            nodes = [parsed(text) for text in texts]
            if any(_is_generator(node) for node in nodes):
                return self._generated(nodes, texts)
            return self._selected(nodes, texts)
        except NotHere as problem:
            left_to_spark(f"SELECT {', '.join(texts)}", problem)
            return self.frame.selectExpr(*texts)

    @_computing
    def where(self, condition: Any) -> DataFrame:
        if not isinstance(condition, str):
            return self.frame.where(condition)
        try:
            return self._kept(self._values([parsed(condition)], [condition])[0])
        except NotHere as problem:
            left_to_spark(f"WHERE {condition}", problem)
            return self.frame.where(condition)

    @_computing
    def grouped(self, keys: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
        """Raises ``NotHere`` if that is Spark's work."""
        rows = self.rows
        by = {name: rows.column(name) for name in map(_bare, keys)}
        if any(has_floats(values.type) for values in by.values()):
            raise NotHere
        groups = Groups(list(by.values()), rows.count)
        found = {name: values.take(pa.array(groups.first)) for name, values in by.items()}
        for text in aggregates:
            expression = parsed(text)
            found[_name(expression)] = aggregated(expression, rows, groups, found)
        return self.made(found)

    @_computing
    def consolidated(self, weight: str, beside: Sequence[str]) -> DataFrame:
        """As ``zset.consolidate``."""
        found = consolidated(self.table, weight, beside)
        types = {f.name: f for f in self.schema.fields}
        schema = StructType([types[name] for name in found.column_names])
        return cast("DataFrame", Local(self.sparkSession, schema, lambda: found))

    @_computing
    def copied(self, weight: str) -> DataFrame:
        """As ``zset.copies``."""
        rows = self.rows
        times = rows.column(weight).to_numpy(zero_copy_only=False)
        places = np.repeat(np.arange(rows.count), np.maximum(times, 0))
        return self._at(places, [name for name in self.columns if name != weight])

    @_computing
    def joined(self, other: Local, on: str, how: str) -> DataFrame:
        """Raises ``NotHere`` if that is Spark's work."""
        return join_of(self, other, on, how)

    def unionByName(self, other: DataFrame) -> DataFrame:
        rows = as_local(other)
        return self.frame.unionByName(other) if rows is None else self._with(rows, self.columns)

    def unionAll(self, other: DataFrame) -> DataFrame:
        rows = as_local(other)
        return self.frame.unionAll(other) if rows is None else self._with(rows, rows.columns)

    @_computing
    def _with(self, other: Local, names: Sequence[str]) -> DataFrame:
        """The rows of both; ``names`` are the columns of the other one, in the order of this one's."""
        try:
            one, two = self.rows, other.rows
            found = {}
            for mine, theirs in zip(self.columns, names, strict=True):
                a, b = one.column(mine), two.column(theirs)
                kind = widest_of([a.type, b.type])
                found[mine] = pa.concat_arrays([converted(a, kind), converted(b, kind)])
            return self.made(found)
        except (NotHere, pa.ArrowException) as problem:
            left_to_spark(f"UNION ALL of {', '.join(names)}", problem)
            return self.frame.unionByName(other.frame.select(*names).toDF(*self.columns))

    def coalesce(self, partitions: int) -> DataFrame:
        return cast("DataFrame", self)

    def drop(self, *columns: str) -> DataFrame:
        return self._renamed([(name, name) for name in self.columns if name not in columns])

    def withColumnRenamed(self, old: str, new: str) -> DataFrame:
        return self._renamed([(name, new if name == old else name) for name in self.columns])

    def toDF(self, *names: str) -> DataFrame:
        return self._renamed(list(zip(self.columns, names, strict=True)))

    def distinct(self) -> DataFrame:
        try:
            return self.grouped(list(map(_quoted, self.columns)), [])
        except NotHere:
            return self.frame.distinct()

    # -- how ----------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> Rows:
        table = self.table
        columns = {name: whole(table.column(name)) for name in table.column_names}
        return Rows(columns, table.num_rows, in_force(self.sparkSession))

    def _selected(self, nodes: Sequence[exp.Expr], texts: Sequence[str]) -> DataFrame:
        wanted: list[tuple[str, exp.Expr, str]] = []
        for expression, text in zip(nodes, texts, strict=True):
            if isinstance(expression, exp.Star):
                wanted += [(name, exp.column(name, quoted=True), _quoted(name)) for name in self.columns]
            else:
                wanted.append((_name(expression), expression, text))
        if len({name.lower() for name, _, _ in wanted}) < len(wanted):
            raise NotHere
        plain = [(_plain_column(e), name) for name, e, _ in wanted]
        if all(old in self.columns for old, _ in plain):
            return self._renamed(cast("list[tuple[str, str]]", plain))
        values = self._values([e for _, e, _ in wanted], [text for _, _, text in wanted])
        return self.made(dict(zip([name for name, _, _ in wanted], values, strict=True)))

    def _generated(self, nodes: Sequence[exp.Expr], texts: Sequence[str]) -> DataFrame:
        """EXPLODE beside columns: each row as often as its array has elements."""
        (number,) = [i for i, e in enumerate(nodes) if _is_generator(e)]
        generator = nodes[number].unalias()
        if not isinstance(generator, exp.Explode) or type(generator) is not exp.Explode or generator.expressions:
            raise NotHere
        places, elements = _exploded(generator.this, self.rows)
        name = _name(nodes[number])
        if name in self.columns:
            raise NotHere
        rows = self.table.take(pa.array(places)).append_column(name, elements)
        schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
        repeated = Local(self.sparkSession, schema, lambda: rows)
        return repeated.selected([_quoted(name) if i == number else text for i, text in enumerate(texts)])

    def first_rows(self, order: Sequence[exp.Expr], ties: Sequence[str], limit: int, offset: int) -> DataFrame:
        """The first rows in an order, after which come ties; raises ``NotHere`` if that is Spark's work."""
        rows = self.rows
        by = [*ordered(order, rows), *(ranks(rows.column(name)) for name in ties)]
        places = np.lexsort(tuple(reversed(by)))[offset : offset + limit]
        return self._at(places, self.columns)

    def value_of(self, node: exp.Expr) -> pa.Array:
        return self._values([node], [node.sql(dialect=SparkSql)])[0]

    def _values(self, nodes: Sequence[exp.Expr], texts: Sequence[str]) -> list[pa.Array]:
        """The values of expressions; those that Arrow does not give are asked of Spark, if the rows are few."""
        rows = self.rows
        values: list[pa.Array | None] = []
        for expression in nodes:
            try:
                values.append(_value(expression, rows))
            except NotHere:
                values.append(None)
        missing = [i for i, found in enumerate(values) if found is None]
        if missing:
            for i, found in zip(missing, self.asked([texts[i] for i in missing]), strict=True):
                values[i] = found
        return cast("list[pa.Array]", values)

    def asked(self, texts: Sequence[str]) -> list[pa.Array]:
        """Values by Spark, row by row."""
        for text in texts:
            left_to_spark(text)
        if self.table.num_rows > limits.ASKED_ROWS or any(_AT in text for text in texts):
            raise NotHere
        numbered = self.table.append_column(_AT, pa.array(np.arange(self.table.num_rows)))
        frame = self.sparkSession.createDataFrame(
            numbered, StructType([*self.schema.fields, StructField(_AT, LongType())])
        )
        names = [f"__v{i}" for i in range(len(texts))]
        bare = [_without_alias(text) for text in texts]
        asked = frame.selectExpr(_AT, *[f"{text} AS {name}" for text, name in zip(bare, names, strict=True)])
        schema = StructType([StructField(f.name, nullable(f.dataType)) for f in asked.schema.fields])
        if not _survives(schema):
            raise NotHere
        if not self.table.num_rows:
            return [pa.nulls(0, field.type) for field in to_arrow_schema(schema, timezone="UTC")][1:]
        try:
            with running(self.sparkSession, interpreted=self.table.num_rows <= limits.LITTLE_ROWS):
                found = collected(asked)
        except SPARK_PROBLEMS:  # a condition that comes later may spare some rows the error
            raise NotHere from None
        found = found.sort_by(_AT)
        if not found.column(_AT).equals(numbered.column(_AT)):  # a generator gives more rows, or fewer
            raise NotHere
        return [whole(found.column(name)) for name in names]

    def _kept(self, condition: pa.Array) -> DataFrame:
        if not pa.types.is_boolean(condition.type):
            raise NotHere
        true = condition.fill_null(False)
        if true.true_count == len(true):
            return cast("DataFrame", self)
        return self.like(self.table.filter(true))

    def _at(self, places: Numbers, names: Sequence[str]) -> DataFrame:
        taken = self.like(self.table.take(pa.array(places)))
        return cast("Local", taken)._renamed([(name, name) for name in names])

    def _renamed(self, names: Sequence[tuple[str, str]]) -> DataFrame:
        """Some columns, each by its name here and the one it gets; the rows are not brought here for it."""
        types = {f.name: f.dataType for f in self.schema.fields}
        old, new = [name for name, _ in names], [name for _, name in names]
        schema = StructType([StructField(name, types[column]) for column, name in names])
        made = Local(
            self.sparkSession, schema, lambda: self.table.select(old).rename_columns(new),
            (lambda: self.frame.select(*map(_quoted, old)).toDF(*new)) if self._read is not None else None,
        )  # fmt: skip
        return cast("DataFrame", made)

    def like(self, table: pa.Table) -> DataFrame:
        return cast("DataFrame", Local(self.sparkSession, self.schema, lambda: table))

    def made(self, columns: Mapping[str, pa.Array]) -> DataFrame:
        if not columns:
            raise NotHere
        table = pa.table(dict(columns))
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
        return cast("DataFrame", Local(self.sparkSession, schema, lambda: table))


def _name(expression: exp.Expr) -> str:
    """What a column is called; of an expression without a name only Spark knows."""
    if isinstance(expression, exp.Alias) or (isinstance(expression, exp.Column) and not expression.table):
        return str(expression.alias_or_name)
    raise NotHere


def _value(expression: exp.Expr, rows: Rows) -> pa.Array:
    inner = expression.unalias()
    return placed(inner, rows) if isinstance(inner, exp.Window) else computed(expression, rows)


def _is_generator(expression: exp.Expr) -> bool:
    return isinstance(expression.unalias(), exp.UDTF | exp.Explode)


def _exploded(array: exp.Expr, rows: Rows) -> tuple[Numbers, pa.Array]:
    """Of each element of the rows' arrays the row that it belongs to, and the element."""
    if isinstance(array, exp.Array) and array.expressions:
        options = [computed(e, rows) for e in array.expressions]
        kind = widest_of([values.type for values in options])
        elements = pa.concat_arrays([converted(values, kind) for values in options])
        order = np.arange(len(elements)).reshape(len(options), rows.count).T.ravel()
        return np.repeat(np.arange(rows.count), len(options)), elements.take(pa.array(order))
    values = computed(array, rows)
    if not pa.types.is_list(values.type):
        raise NotHere
    return pc.list_parent_indices(values).to_numpy(), pc.list_flatten(values)


def _plain_column(expression: exp.Expr) -> str | None:
    """The column that an expression is, maybe under another name."""
    inner = expression.this if isinstance(expression, exp.Alias) else expression
    return inner.name if isinstance(inner, exp.Column) and not inner.table else None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _without_alias(text: str) -> str:
    """The expression in a text that may name it."""
    expression = parsed(text)
    if not isinstance(expression, exp.Alias):
        return text
    for end in (f" AS {expression.alias}", f" AS {_quoted(expression.alias)}"):
        if text.endswith(end):
            return text[: -len(end)]
    raise NotHere
