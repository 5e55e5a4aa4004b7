"""Rows on the driver to Spark and back: types, tables, and values that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType
from sqlglot import exp

from penstock.frames.arrow.groups import whole
from penstock.frames.frame import NotHere
from penstock.frames.sizes import Size
from penstock.frames.spark.frame import SparkFrame
from penstock.frames.spark.interpreted import in_turn
from penstock.frames.spark.problems import SPARK_PROBLEMS
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.spark.types import collected, fits_arrow, nullable, to_arrow_schema
from penstock.sql.trees import column

if TYPE_CHECKING:
    from penstock.frames.frame import Frame

_AT = "__at"


def to_spark(spark: SparkOnDemand, table: pa.Table, schema: StructType | None = None) -> SparkFrame:
    """Rows on the driver, for Spark; their types are told by Arrow's unless they are given."""
    known = schema or spark_schema(table.schema)
    make = lambda: spark.session().createDataFrame(table, known)  # noqa: E731
    return SparkFrame.of(spark, make, known.names, Size.exactly(table.num_rows))


def on_driver(spark: SparkOnDemand, table: pa.Table, schema: StructType, *, settled: bool = False) -> Frame:
    """Rows that are on the driver, of these types for Spark; ``settled`` as in ``ArrowFrame``."""
    from penstock.frames.arrow.frame import ArrowFrame

    loose = StructType([StructField(f.name, nullable(f.dataType)) for f in schema.fields])
    if not survives(loose):
        return to_spark(spark, table, loose)
    return ArrowFrame.of(spark, table.cast(to_arrow_schema(loose, timezone="UTC")), settled=settled)


def spark_schema(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def survives(schema: StructType) -> bool:
    """Whether Arrow's types say all that Spark's do: not of a collated text, for one."""
    try:
        return fits_arrow(schema) and spark_schema(to_arrow_schema(schema, timezone="UTC")) == schema
    except PySparkException:  # a type that Arrow does not have
        return False


def asked_of_spark(spark: SparkOnDemand, rows: pa.Table, nodes: Sequence[exp.Expr]) -> list[pa.Array]:
    """The values of expressions for each row; raises ``NotHere`` if they are no values that Arrow can hold."""
    numbered = rows.append_column(_AT, pa.array(np.arange(rows.num_rows)))
    names = [f"__v{i}" for i in range(len(nodes))]
    asked = to_spark(spark, numbered).select([(_AT, column(_AT)), *zip(names, nodes, strict=True)])
    if not survives(asked.schema):
        raise NotHere
    if not rows.num_rows:
        return [pa.nulls(0, field.type) for field in to_arrow_schema(asked.schema, timezone="UTC")][1:]
    try:
        with in_turn(spark.session(), interpreted=asked.size.not_compiled):
            found = collected(asked.frame).sort_by(_AT)
    except SPARK_PROBLEMS:  # a condition that comes later may spare some rows the error
        raise NotHere from None
    if not found.column(_AT).equals(numbered.column(_AT)):  # a generator gives more rows, or fewer
        raise NotHere
    return [whole(found.column(name)) for name in names]
