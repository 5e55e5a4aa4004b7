"""Spark's types as Arrow's, and rows between the two: every column, and every field inside one, may be NULL."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas import types
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from penstock.frames.arrow.tables import loosened

_ZONED = "timezone" in inspect.signature(types.to_arrow_schema).parameters


def to_arrow_schema(schema: StructType, *, timezone: str = "UTC") -> pa.Schema:
    """A timestamp gets this zone. Before Spark 4.2 there is no choice, and it is UTC."""
    if _ZONED:
        return types.to_arrow_schema(schema, timezone=timezone)
    assert timezone == "UTC"
    return types.to_arrow_schema(schema)


def local_frame(spark: SparkSession, schema: StructType, rows: Sequence[Sequence[Any]] = ()) -> DataFrame:
    """A few rows, or none, as a local relation. A list of rows would need Python processes to be read."""
    loose = StructType([StructField(f.name, f.dataType) for f in schema.fields])
    records = [dict(zip(loose.names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(records, schema=to_arrow_schema(loose, timezone="UTC")), loose)


class Kept:
    """Frames that are the same whenever they are made again. Those that were asked for last are kept."""

    def __init__(self, most: int = 256):
        self._most = most
        self._known: OrderedDict[tuple[SparkSession, Hashable], DataFrame] = OrderedDict()
        self._lock = Lock()

    def frame(self, spark: SparkSession, key: Hashable, make: Callable[[], DataFrame]) -> DataFrame:
        with self._lock:
            found = self._known.pop((spark, key), None)
        found = make() if found is None else found
        with self._lock:
            self._known[spark, key] = found
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return found


_empty = Kept()


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows, as a local relation. Making one takes forty round trips, so it is made once."""
    return _empty.frame(spark, schema.json(), lambda: local_frame(spark, schema))


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
