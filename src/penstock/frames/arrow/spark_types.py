"""Spark's types as Arrow's, whichever version of PySpark there is."""

from __future__ import annotations

import inspect

import pyarrow as pa
from pyspark.sql.pandas import types
from pyspark.sql.types import StructType

_ZONED = "timezone" in inspect.signature(types.to_arrow_schema).parameters


def to_arrow_schema(schema: StructType, *, timezone: str = "UTC") -> pa.Schema:
    """A timestamp gets this zone. Before Spark 4.2 there is no choice, and it is UTC."""
    if _ZONED:
        return types.to_arrow_schema(schema, timezone=timezone)
    assert timezone == "UTC"
    return types.to_arrow_schema(schema)
