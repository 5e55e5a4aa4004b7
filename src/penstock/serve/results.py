"""Rows on their way out: batches of Arrow, written as JSON, NDJSON, CSV or Arrow's stream, a piece at a time.

Rows that Spark computes and that may be many go through files in a temporary directory, so that neither Java nor Python
ever holds all of them.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.observe.values import distinct, jsonable
from penstock.serve.problems import Refused, dumped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from penstock.engine.here import Found

PIECE = 2_000
"""Rows that are turned into text at once."""
COLLECTED = 20_000
"""Rows of Spark's that are fetched at once; of more, files are made first."""


@dataclass
class Rows:
    """Rows that are read once, from the first to the last."""

    names: list[str]
    schema: pa.Schema
    batches: Iterable[pa.Table]
    close: Callable[[], None] = lambda: None
    more: bool = field(default=False, init=False)
    """Whether there were more rows than a limit; known at the end."""
    returned: int = field(default=0, init=False)

    @classmethod
    def of(cls, names: Sequence[str], table: pa.Table) -> Rows:
        return cls(list(names), table.schema, [table])

    def begun(self) -> Rows:
        """With the first rows at hand, so that what goes wrong is told before anything is sent."""
        batches = iter(self.batches)
        first = list(islice(batches, 1))
        self.batches = chain(first, batches)
        return self

    def pieces(self, limit: int | None) -> Iterator[pa.Table]:
        """At most so many rows, a few at a time."""
        try:
            for batch in self.batches:
                for start in range(0, batch.num_rows, PIECE):
                    piece = batch.slice(start, PIECE)
                    if limit is not None and self.returned + piece.num_rows > limit:
                        piece, self.more = piece.slice(0, limit - self.returned), True
                    self.returned += piece.num_rows
                    if piece.num_rows:
                        yield piece
                    if self.more:
                        return
        finally:
            self.close()

    def dicts(self, limit: int | None) -> Iterator[list[dict[str, Any]]]:
        """The same as objects whose values JSON has. A name that comes twice gets a number."""
        names = distinct(self.names)
        for piece in self.pieces(limit):
            columns = [[jsonable(value) for value in values(column)] for column in piece.columns]
            yield [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values; a map as an object, or as pairs if its keys are lists or structs, which no object has.
    If there are times that Python does not know, all times are texts."""
    maps = None if _has_odd_keys(column.type) else "lossy"
    try:
        return list(column.to_pylist(maps_as_pydicts=maps))
    except (ValueError, OverflowError):
        return list(column.cast(_timeless(column.type)).to_pylist(maps_as_pydicts=maps))


def _has_odd_keys(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return pa.types.is_nested(kind.key_type) or _has_odd_keys(kind.item_type)
    return pa.types.is_nested(kind) and any(_has_odd_keys(kind.field(i).type) for i in range(kind.num_fields))


def _timeless(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_timeless(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _timeless(f.type)) for f in kind])
    return pa.map_(_timeless(kind.key_type), _timeless(kind.item_type)) if pa.types.is_map(kind) else kind


_TYPES = {
    pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float",
    pa.float64(): "double", pa.bool_(): "boolean", pa.date32(): "date", pa.null(): "void",
}  # fmt: skip


def type_name(kind: pa.DataType) -> str:
    """What a type is called in SQL.

    >>> type_name(pa.int32()), type_name(pa.timestamp("us", "UTC")), type_name(pa.list_(pa.struct({"a": pa.string()})))
    ('int', 'timestamp', 'array<struct<a:string>>')
    """
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "binary"
    return _TYPES.get(kind, "string")


# -- where rows come from ---------------------------------------------------------------------------------------------


def found_here(found: Found) -> Rows | None:
    """Rows that were read without Spark."""
    table = found.rows.rows()
    return None if table is None else Rows.of(found.names, table)


def computed(frame: DataFrame, limit: int | None) -> Rows:
    """Rows that Spark is to compute, at most one more than the limit."""
    from penstock.frames.spark.problems import spark_errors
    from penstock.frames.spark.types import collected

    names = frame.columns
    places = frame.toDF(*[f"c{i}" for i in range(len(names))])
    frame = places.select(*[_carried(places, i) for i in range(len(names))])
    if limit is not None and limit <= COLLECTED:
        with spark_errors("the query failed"):
            return Rows.of(names, collected(frame.limit(limit + 1)))
    return _spooled(names, frame if limit is None else frame.limit(limit + 1))


def _carried(frame: DataFrame, place: int) -> Any:
    """A column as Arrow and Parquet can carry it; what they cannot becomes text."""
    from pyspark.sql import functions as F

    field, column = frame.schema[place], frame[f"c{place}"]
    if field.dataType.typeName() == "variant":
        return F.to_json(column).alias(field.name)
    return column.cast("string").alias(field.name) if _is_odd(field.dataType) else column


def _is_odd(kind: DataType) -> bool:
    """Whether there is in it what not all formats have."""
    from pyspark.sql import types as t

    match kind:
        case t.StructType(fields=fields):
            return any(_is_odd(f.dataType) for f in fields)
        case t.ArrayType(elementType=element):
            return _is_odd(element)
        case t.MapType(keyType=key, valueType=value):
            return _is_odd(key) or _is_odd(value)
    usual = (t.NumericType, t.StringType, t.BooleanType, t.BinaryType, t.DateType, t.TimestampType, t.TimestampNTZType)
    return not isinstance(kind, usual)


def _spooled(names: list[str], frame: DataFrame) -> Rows:
    from pyspark.sql.types import StructField, StructType

    from penstock.frames.spark.problems import spark_errors
    from penstock.frames.spark.types import nullable, to_arrow_schema

    place = Path(tempfile.mkdtemp(prefix="penstock-rows-"))

    def remove() -> None:
        shutil.rmtree(place, ignore_errors=True)

    try:
        with spark_errors("the query failed"):
            frame.write.parquet((place / "rows").as_uri())
        files = [
            pq.ParquetFile(f, coerce_int96_timestamp_unit="us") for f in sorted((place / "rows").glob("*.parquet"))
        ]
        if not files:
            raise Refused(400, "the query gave no columns.", help="Select something.")
        schema = to_arrow_schema(StructType([StructField(f.name, nullable(f.dataType)) for f in frame.schema]))
        batches = (pa.Table.from_batches([b]).cast(schema) for file in files for b in file.iter_batches(PIECE))
        return Rows(list(names), schema, batches, remove)
    except BaseException:
        remove()
        raise


# -- how they are written ---------------------------------------------------------------------------------------------

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
FORMATS = (JSON, NDJSON, CSV, ARROW)


def wanted(accept: str | None) -> str:
    """The format that a request's Accept asks for.

    >>> wanted(None), wanted("text/html, text/csv;q=0.5, */*;q=0.1"), wanted("application/json;q=0, text/csv")
    ('application/json', 'text/csv', 'text/csv')
    """
    asked: list[tuple[float, int, str]] = []
    for place, part in enumerate((accept or "*/*").split(",")):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((_weight(p[2:]) for p in parameters if p.startswith("q=")), 1.0)
        asked.append((-weight, place, kind.lower()))
    for weight, _, kind in sorted(asked):
        fits = next((one for one in FORMATS if _matches(kind, one)), None)
        if fits is not None and weight < 0:
            return fits
    raise Refused(406, f"none of what is accepted can be given. Accept one of {', '.join(FORMATS)}.",
                  help="Leave Accept out for JSON.")  # fmt: skip


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _matches(asked: str, kind: str) -> bool:
    return asked in (kind, "*/*", kind.partition("/")[0] + "/*")


def written(rows: Rows, kind: str, limit: int | None, around: dict[str, Any] | None = None) -> Iterator[bytes]:
    """The rows in a format; JSON has them as ``result`` in an object with what is ``around``, and counts behind it."""
    if kind == NDJSON:
        return _ndjson(rows, limit)
    if kind == CSV:
        return _csv(rows, limit)
    return _arrow(rows, limit) if kind == ARROW else _json(rows, limit, around or {})


def _json(rows: Rows, limit: int | None, around: dict[str, Any]) -> Iterator[bytes]:
    head = dumped(around)[:-1]
    yield head + (b',"result":[' if around else b'"result":[')
    first = True
    for piece in rows.dicts(limit):
        yield (b"" if first else b",") + dumped(piece)[1:-1]
        first = False
    yield b"]," + dumped({"limit": limit, "returned": rows.returned, "truncated": rows.more})[1:]


def _ndjson(rows: Rows, limit: int | None) -> Iterator[bytes]:
    for piece in rows.dicts(limit):
        yield b"".join(dumped(row) + b"\n" for row in piece)


def _csv(rows: Rows, limit: int | None) -> Iterator[bytes]:
    """NULL is nothing at all, an empty text is two quotes."""
    yield _lines([distinct(rows.names)])
    for piece in rows.dicts(limit):
        yield _lines(row.values() for row in piece)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dict() | list():
            text = json.dumps(value, ensure_ascii=False)
        case _:
            text = str(value)
    quoted = not text or any(c in text for c in '",\r\n') or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _lines(rows: Iterable[Iterable[Any]]) -> bytes:
    return "".join(",".join(map(_cell, row)) + "\r\n" for row in rows).encode("utf-8", "replace")


def _arrow(rows: Rows, limit: int | None) -> Iterator[bytes]:
    schema = pa.schema([pa.field(n, f.type) for n, f in zip(distinct(rows.names), rows.schema, strict=True)])
    sink = io.BytesIO()

    def taken() -> bytes:
        piece = sink.getvalue()
        sink.seek(0)
        sink.truncate()
        return piece

    with pa.ipc.new_stream(sink, schema) as writer:
        yield taken()
        for piece in rows.pieces(limit):
            writer.write_table(pa.table(piece.columns, schema=schema))
            yield taken()
    yield taken()
