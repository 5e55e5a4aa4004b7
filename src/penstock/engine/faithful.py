"""Whether our parser read a query as Spark does. Each reads the text on its own, and Spark compares the two plans.

A parser that takes one argument for another, or drops one, would give a view that is kept fresh and is wrong. Such a
view recomputes instead, with the reason PLAN_MISMATCH.

Spark's windows of time are planned in other functions, of which no plan can tell that they are the same. So the rest of
the query is compared by plan, with the windows put back, and the windows by the rows that they give for some times.
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
from penstock.frames.spark.types import Kept
from penstock.sql.dialect import SparkSql
from penstock.sql.intervals import microseconds
from penstock.sql.names import key_of
from penstock.sql.query import (
    parse_query,
    round_trip,
    spark_text,
    substitute_tables,
    windows_round_trip,
    windows_spelled_out,
)

_WIDTH = "spark.sql.debug.maxToStringFields"
_TIMES = "times"
_FAR = (-62_135_596_800_000_000, -2_208_988_800_000_001, 1_709_251_199_999_999, 253_402_300_799_999_999)
"""The years 1, 1899, 2024 and 9999."""


def is_faithful(spark: SparkSession, text: str, schemas: Mapping[str, StructType]) -> bool:
    """Whether Spark sees the same query in the text and in what our parser made of it.

    No job runs, unless the query has windows of Spark's own: then one on a few times.
    """
    if not _is_same(spark, text, round_trip(text), schemas):
        return False
    windows = windows_spelled_out(text)
    if not windows:
        return True
    return _is_same(spark, text, windows_round_trip(text), schemas) and all(_agree(spark, w) for w in windows)


def _is_same(spark: SparkSession, text: str, read: str, schemas: Mapping[str, StructType]) -> bool:
    with TempViews(spark) as views:
        for key, schema in schemas.items():
            views.add(key, _opaque(spark, key, schema))
        try:
            # The case of a unit is lost in reading.
            forms = dict.fromkeys([read, re.sub(r"DATE_TRUNC\('\w+'", lambda found: found[0].lower(), read)])
            theirs, *ours = (
                spark.sql(substitute_tables(t, lambda name: views.names[key_of(name)]))
                for t in (spark_text(text), *forms)
            )
            return any(o.sameSemantics(theirs) for o in ours) or _optimized(ours[0]) == _optimized(theirs)
        except (PySparkException, SqlError):  # what we wrote cannot even be read
            return False


def _agree(spark: SparkSession, lengths: str) -> bool:
    """Whether windows of these lengths have the same times in them as Spark spells them and as we do."""
    query = f"SELECT at, window(at, {lengths}) AS w FROM {_TIMES} GROUP BY at, window(at, {lengths})"
    theirs, ours = (f"SELECT at, w.start, w.end FROM ({q})" for q in (query, parse_query(query).sql(dialect=SparkSql)))
    differing = f"({theirs} EXCEPT ALL {ours}) UNION ALL ({ours} EXCEPT ALL {theirs})"
    with TempViews(spark) as views:
        times = spark.sql(_some_times(lengths))
        views.add(_TIMES, times)
        return spark.sql(substitute_tables(differing, lambda name: views.names[key_of(name)])).isEmpty()


def _some_times(lengths: str) -> str:
    """Times at the bounds of windows and just beside them, before and after the epoch, far away, and none."""
    widths = [_length(part) for part in lengths.split(",")]
    bounds = {factor * width for width in widths for factor in (-7, -1, 0, 1, 3, 1_000)}
    micros = sorted({bound + beside for bound in bounds for beside in (-1, 0, 1)} | set(_FAR))
    values = ", ".join(f"({value})" for value in micros)
    return f"SELECT TIMESTAMP_MICROS(m) AS at FROM VALUES {values}, (NULL) AS v(m)"


def _length(part: str) -> int:
    text = part.strip().strip("'").lower().removeprefix("interval ")
    return int(text) if text.isdigit() else microseconds(text) or 0


def has_zoneless_windows(spark: SparkSession, text: str, schemas: Mapping[str, StructType]) -> bool:
    """Whether a window of time in the query is one of TIMESTAMP_NTZ. Spark says so when it spells the window out."""
    frame = run_query(spark, text, {key: _opaque(spark, key, schema) for key, schema in schemas.items()})
    return "TimestampNTZType, LongType" in _plans(frame)


def _opaque(spark: SparkSession, name: str, schema: StructType) -> DataFrame:
    """A relation that Spark cannot see into, so that its optimizer does not evaluate the query; another for each name.

    It is made once: that takes as long as reading a short query.
    """
    return _relations.frame(spark, (name, schema.json()), lambda: _made(spark, schema))


_relations = Kept()


def _made(spark: SparkSession, schema: StructType) -> DataFrame:

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
