"""Whether our parser read a query as Spark does. Each reads the text on its own, and Spark compares the two plans.

A parser that takes one argument for another, or drops one, would give a view that is kept fresh and is wrong. Such a
view recomputes instead, with the reason PLAN_MISMATCH.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.engine.relations import TempViews, run_query, spark_plan
from penstock.errors import SqlError
from penstock.sql.query import round_trip, spark_text, substitute_tables

_WIDTH = "spark.sql.debug.maxToStringFields"


def is_faithful(spark: SparkSession, text: str, schemas: Mapping[str, StructType]) -> bool:
    """Whether Spark sees the same query in the text and in what our parser made of it. No job runs."""
    read = round_trip(text)
    with TempViews(spark) as views:
        for key, schema in schemas.items():
            views.add(key, _opaque(spark, schema))
        try:
            # The case of a unit is lost in reading.
            forms = dict.fromkeys([read, re.sub(r"DATE_TRUNC\('\w+'", lambda found: found[0].lower(), read)])
            theirs, *ours = (
                spark.sql(substitute_tables(t, lambda name: views.names[name.lower()]))
                for t in (spark_text(text), *forms)
            )
            return any(o.sameSemantics(theirs) for o in ours) or _optimized(ours[0]) == _optimized(theirs)
        except (PySparkException, SqlError):  # what we wrote cannot even be read
            return False


def has_zoneless_windows(spark: SparkSession, text: str, schemas: Mapping[str, StructType]) -> bool:
    """Whether a window of time in the query is one of TIMESTAMP_NTZ. Spark says so when it spells the window out."""
    frame = run_query(spark, text, {key: _opaque(spark, schema) for key, schema in schemas.items()})
    return "TimestampNTZType, LongType" in _plans(frame)


def _opaque(spark: SparkSession, schema: StructType) -> DataFrame:
    """A relation that Spark cannot see into, so that its optimizer does not evaluate the query."""

    def unused(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return spark.range(0).mapInArrow(unused, schema)


def _optimized(frame: DataFrame) -> str:
    """Spark's plan after it has simplified it, its numbers counted from one, and two names for one thing made one."""
    plan = _plans(frame).split("== Optimized Logical Plan ==")[1].split("== Physical Plan ==")[0]
    numbers: dict[str, str] = {}
    plan = re.sub(r"#(\d+)", lambda found: f"#{numbers.setdefault(found[1], str(len(numbers)))}", plan)
    plan = re.sub(r"(\blambda \w+?|_common_expr)_\d+#", r"\1#", plan)  # Spark numbers these through all its queries
    plan = re.sub(r"\bdate_trunc\((\w+),", lambda found: found[0].lower(), plan)
    return plan.replace("Join Cross", "Join Inner")


def _plans(frame: DataFrame) -> str:
    """Spark's plans of a query, from the parsed to the physical one, with all their columns."""
    spark = frame.sparkSession
    before = spark.conf.get(_WIDTH, None)
    spark.conf.set(_WIDTH, "100000")
    try:
        return spark_plan(frame, "extended")
    finally:
        spark.conf.unset(_WIDTH) if before is None else spark.conf.set(_WIDTH, before)
