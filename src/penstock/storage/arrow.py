"""Arrow tables as Spark sees them: every column, and every field inside one, may be NULL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


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


def loosened(table: pa.Table) -> pa.Table:
    """The table with everything nullable, so that tables of one shape can be put together."""
    return table.cast(pa.schema([pa.field(f.name, _loose(f.type)) for f in table.schema]))


def _loose(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(f.name, _loose(f.type)) for f in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("element", _loose(data_type.value_type)))
    if pa.types.is_map(data_type):
        return pa.map_(_loose(data_type.key_type), pa.field("value", _loose(data_type.item_type)))
    return data_type
