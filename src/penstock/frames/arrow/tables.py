"""Arrow tables as Spark sees them: every column, and every field inside one, may be NULL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from penstock.frames.arrow.spark_types import to_arrow_schema


def local_frame(spark: SparkSession, schema: StructType, rows: Sequence[Sequence[Any]] = ()) -> DataFrame:
    """A few rows, or none, as a local relation. A list of rows would need Python processes to be read."""
    loose = StructType([StructField(f.name, f.dataType) for f in schema.fields])
    records = [dict(zip(loose.names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(records, schema=to_arrow_schema(loose, timezone="UTC")), loose)


def fits_arrow(data_type: DataType) -> bool:
    """Whether values of the type survive the way to Arrow and back; a VARIANT does not."""
    match data_type:
        case StructType(fields=fields):
            return all(fits_arrow(f.dataType) for f in fields)
        case ArrayType(elementType=inner):
            return fits_arrow(inner)
        case MapType(keyType=key, valueType=value):
            return fits_arrow(key) and fits_arrow(value)
    return data_type.typeName() not in ("variant", "void")


def collected(frame: DataFrame) -> pa.Table:
    """A frame's rows, with everything nullable. PySpark would refuse a NULL struct whose fields are never NULL."""
    strict = [f.name for f in frame.schema.fields if nullable(f.dataType) != f.dataType]
    for name in strict:
        column = frame[f"`{name.replace('`', '``')}`"]
        frame = frame.withColumn(name, column.cast(nullable(frame.schema[name].dataType)))
    return loosened(frame.toArrow())


def nullable(data_type: DataType) -> DataType:
    """The type with every field inside it nullable."""
    match data_type:
        case StructType(fields=fields):
            return StructType([StructField(f.name, nullable(f.dataType)) for f in fields])
        case ArrayType(elementType=inner):
            return ArrayType(nullable(inner))
        case MapType(keyType=key, valueType=value):
            return MapType(nullable(key), nullable(value))
    return data_type


def settled(rows: pa.Table | pa.RecordBatch) -> Any:
    """The same rows with text and bytes as Arrow computes with: some writers leave views, which few functions take."""
    for i, field in enumerate(rows.schema):
        kind = settled_type(field.type)
        if kind != field.type:
            rows = rows.set_column(i, pa.field(field.name, kind), rows.column(i).cast(kind))
    return rows


def settled_type(data_type: pa.DataType) -> pa.DataType:
    return _SETTLED.get(data_type, data_type)


_SETTLED = {
    pa.string_view(): pa.string(), pa.large_string(): pa.string(), pa.binary_view(): pa.binary(),
    pa.large_binary(): pa.binary(),
}  # fmt: skip


def loosened(table: pa.Table) -> pa.Table:
    """The table with everything nullable and times of UTC, so that tables of one shape can be put together."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = _loose(column.type)
        other = kind != column.type
        columns[name] = pa.chunked_array([_loosened(c) for c in column.chunks], kind) if other else column
    return pa.table(columns)


def _loosened(array: pa.Array) -> pa.Array:
    """A cast would refuse a NULL struct of a type whose fields are never NULL, so nested ones are made anew."""
    kind = _loose(array.type)
    if pa.types.is_struct(kind):
        children = [_loosened(array.field(i)) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind):
        children = [_loosened(array.values)]
    elif pa.types.is_map(kind):
        entries = [_loosened(array.keys), _loosened(array.items)]
        children = [pa.StructArray.from_arrays(entries, fields=[kind.key_field, kind.item_field])]
    else:
        return array.cast(kind)
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], array.null_count, array.offset, children)


def _loose(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(f.name, _loose(f.type)) for f in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("element", _loose(data_type.value_type)))
    if pa.types.is_map(data_type):
        return pa.map_(_loose(data_type.key_type), pa.field("value", _loose(data_type.item_type)))
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:  # Spark names the session's zone; a time has none
        return pa.timestamp(data_type.unit, "UTC")
    return data_type
