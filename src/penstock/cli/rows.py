"""A DataFrame's rows as a table for people or as JSON. Spark turns the values into text, so they read as in Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from penstock.cli.output import plain_table
from penstock.observe.values import distinct, jsonable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from penstock.engine.here import Found

NULL = Text("NULL", style="dim")
_READABLE = 16
"""A column that is folded to fewer characters cannot be read."""


@dataclass(frozen=True)
class Page:
    """Rows to show; ``total`` counts those that are not among them too."""

    columns: list[str]
    numeric: list[bool]
    rows: list[tuple[str | None, ...]]
    total: int

    def table(self) -> Table:
        table = plain_table(*self.columns)
        for column, numeric in zip(table.columns, self.numeric, strict=True):
            column.justify = "right" if numeric else "left"
        for row in self.rows:
            table.add_row(*[NULL if value is None else Text(value) for value in row])
        return table

    def readable(self, width: int) -> Table:
        """The table; where its columns would be too narrow to be read in that width, a line for each value."""
        if self._narrowest() <= width:
            return self.table()
        table = Table.grid(padding=(0, 2, 0, 0))
        for number, row in enumerate(self.rows):
            if number:
                table.add_row()
            for column, value in zip(self.columns, row, strict=True):
                table.add_row(Text(column, style="bold"), NULL if value is None else Text(value, overflow="fold"))
        return table

    def _narrowest(self) -> int:
        """How wide a table is if no column is folded to less than what can be read."""
        texts = [[column, *(row[i] or "" for row in self.rows)] for i, column in enumerate(self.columns)]
        return sum(min(max(map(len, column)), _READABLE) + 1 for column in texts) - 1

    def caption(self) -> str:
        if len(self.rows) < self.total:
            more = self.total - len(self.rows)
            return f"{len(self.rows):,} rows shown, {more:,} more (--limit N shows N rows)"
        return "1 row" if self.total == 1 else f"{self.total:,} rows"


def fetch_here(found: Found, limit: int | None, *, json: bool) -> Page | list[dict[str, Any]] | None:
    """The same for rows that were read without Spark; None if only Spark knows how their values are written."""
    kinds = [found.rows.types[name].partition("(")[0] for name in found.rows.columns]
    plain, texts = found.rows.rows(), found.as_text()
    if plain is None or texts is None or not set(kinds) <= _WRITTEN:
        return None
    values = [
        (plain if json and kind in _OF_JSON else texts).column(i).slice(0, limit).to_pylist()
        for i, kind in enumerate(kinds)
    ]
    rows = list(zip(*values, strict=True))
    if json:
        return [dict(zip(distinct(found.names), row, strict=True)) for row in rows]
    return Page(found.names, [kind in _NUMERIC for kind in kinds], rows, plain.num_rows)


_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_OF_JSON = ("tinyint", "smallint", "int", "bigint", "boolean", "float", "double")
_WRITTEN = {*_NUMERIC, *_OF_JSON, "string", "date", "timestamp", "timestamp_ntz"}


def fetch(frame: DataFrame, limit: int) -> Page:
    """At most ``limit`` rows as text. The rest is counted, which runs the query again."""
    from pyspark.sql.types import BinaryType, NumericType, StringType

    from penstock.frames.spark.problems import spark_errors

    types = [field.dataType for field in frame.schema]
    places = _by_place(frame)
    texts = places.select(
        *[places[i] if isinstance(t, BinaryType) else places[i].cast(StringType()) for i, t in enumerate(types)]
    )
    with spark_errors("the query failed"):
        found = texts.limit(limit + 1).collect()
        total = frame.count() if len(found) > limit else len(found)
    rows = [tuple(jsonable(value) for value in row) for row in found[:limit]]
    return Page(frame.columns, [isinstance(t, NumericType) for t in types], rows, total)


def fetch_json(frame: DataFrame, limit: int | None) -> list[dict[str, Any]]:
    """The rows as JSON objects. A column's name that comes twice gets a number."""
    from penstock.frames.spark.problems import spark_errors

    places = _by_place(frame)
    plain = places.select(*[places[i].cast(_json_type(f.dataType)) for i, f in enumerate(frame.schema)])
    names = distinct(frame.columns)
    with spark_errors("the query failed"):
        found = (plain if limit is None else plain.limit(limit)).collect()
    return [dict(zip(names, [_unfold(value) for value in row], strict=True)) for row in found]


def _by_place(frame: DataFrame) -> DataFrame:
    """The frame with its columns named by their place, so that two of one name can be told apart."""
    return frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])


def _json_type(kind: DataType) -> DataType:
    """The type in which JSON can carry the values: what is neither number, boolean nor nested becomes a string."""
    from pyspark.sql import types as t

    match kind:
        case t.ArrayType():
            return t.ArrayType(_json_type(kind.elementType), kind.containsNull)
        case t.MapType():
            return t.MapType(t.StringType(), _json_type(kind.valueType), kind.valueContainsNull)
        case t.StructType():
            return t.StructType([t.StructField(f.name, _json_type(f.dataType), f.nullable) for f in kind.fields])
        case t.IntegralType() | t.FractionalType() | t.BooleanType() | t.BinaryType() if not isinstance(
            kind, t.DecimalType
        ):
            return kind
    return t.StringType()


def _unfold(value: Any) -> Any:
    """Rows within a row as objects."""
    from pyspark.sql import Row

    match value:
        case Row():
            return {name: _unfold(item) for name, item in zip(value.__fields__, value, strict=True)}
        case list():
            return [_unfold(item) for item in value]
        case dict():
            return {key: _unfold(item) for key, item in value.items()}
    return value
