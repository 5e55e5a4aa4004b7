"""Rows on the driver: whatever is computed there is what Spark computes, and what is not surely the same is Spark's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import penstock
from penstock.frames.arrow.expressions.values import computed, parsed
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import Frame, How, NotHere
from penstock.frames.names import WEIGHT
from penstock.frames.spark.frame import SparkFrame, as_spark
from penstock.frames.spark.session import Running
from penstock.frames.spark.types import to_arrow_schema
from penstock.sql.trees import Named, column, columns

SCHEMA = (
    "i INT, l BIGINT, s SMALLINT, t TINYINT, d DECIMAL(10,2), e DECIMAL(20,6), w DECIMAL(38,0), f DOUBLE, x STRING, "
    "y STRING, b BOOLEAN, c BOOLEAN, day DATE, at TIMESTAMP, p STRUCT<at: TIMESTAMP, value: INT>, `odd name` INT, "
    f"{WEIGHT} BIGINT"
)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def whole(bits: int) -> st.SearchStrategy[int]:
    limit = 2 ** (bits - 1)
    return st.sampled_from([0, 1, -1, 2, 3, 7, -7, limit - 1, -limit]) | st.integers(-20, 20)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    numbers = st.sampled_from([0, 1, -1, 5, -5, 50, limit, -limit]) | st.integers(-2000, 2000)
    return numbers.map(lambda n: Decimal(f"{n}E-{scale}"))


TIMES = (st.integers(-3, 3) | st.sampled_from([1_700_000_000_123_456, -1, 86_400_000_000, -86_400_000_001])).map(
    lambda micros: _EPOCH + timedelta(microseconds=micros)
)
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, 1e300, 3.0])
TEXTS = st.sampled_from(["", "a", "A", "b", "ab", "é", "日本", "a b", "it's", "a\nb", "a.b", "日"])
ROW = st.fixed_dictionaries(
    {
        "i": st.none() | whole(32), "l": st.none() | whole(64), "s": st.none() | whole(16), "t": st.none() | whole(8),
        "d": st.none() | decimals(10, 2), "e": st.none() | decimals(20, 6), "w": st.none() | decimals(38, 0),
        "f": st.none() | FLOATS, "x": st.none() | TEXTS, "y": st.none() | TEXTS, "b": st.none() | st.booleans(),
        "c": st.none() | st.booleans(),
        "day": st.none() | st.sampled_from([date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(1600, 1, 1)]),
        "at": st.none() | TIMES,
        "p": st.none() | st.fixed_dictionaries({"at": st.none() | TIMES, "value": st.none() | whole(32)}),
        "odd name": st.none() | whole(32), WEIGHT: st.sampled_from([1, 1, 2, -1, -2]),
    }
)  # fmt: skip
ROWS = st.lists(ROW, max_size=8)

HERE = [
    "i", "`odd name`", "p.value", "p", "7", "-3", "2147483648", "1.50", "0.05", "1.5BD", "7L", "'it'", "true",
    "DATE'2024-02-29'", "i IS NULL", "p IS NOT NULL", "x = y", "x < y", "b AND c", "b OR c", "NOT b", "i <=> s",
    "p <=> p", "p < STRUCT(at AS at, i AS value)", "i IN (1, 2, 7)", "x IN ('a', 'b')", "i BETWEEN -1 AND t",
    "IF(b, i, 5)", "CASE WHEN i > 3 THEN x WHEN c THEN y END", "COALESCE(i, t, 0)", "STRUCT(i AS a, x AS b).b",
    "DATE_TRUNC('SECOND', at)", "DATE_TRUNC('DAY', at)",
    "DATE_TRUNC('WEEK', at)", "DATE_TRUNC('MONTH', at)", "DATE_TRUNC('YEAR', at)", "CAST(at AS DATE)",
    "CAST(i AS BIGINT)", "TIMESTAMP_MICROS(5)",
    "UNIX_MICROS(at)", "PMOD(i, 7)", "i % 7", "CAST(i AS DECIMAL(20,4))", "d = e", "d > 1.5", "d < i", "w >= l",
    "CAST(t AS DOUBLE)", "CAST(f AS STRING) <=> CAST(f + 0D AS STRING)", "day > DATE'1970-01-01'", "at <= at",
    "CAST(NULL AS INT)", "i = 1 OR NULL", "COALESCE(b, false) = c", "x LIKE 'a%'", "x LIKE '_'",
    "x NOT LIKE '%b'", "y LIKE 'a_b'", "y LIKE '%'", "i NOT IN (1, 2, 7)", "x NOT IN ('a')", "i NOT BETWEEN -1 AND t",
    "NOT x LIKE 'a%'", "day + INTERVAL 1 DAY", "day - INTERVAL '3' MONTH", "day + INTERVAL '1' YEAR",
    "DATE'2024-01-31' + INTERVAL '1' MONTH", "day < DATE'2024-03-31' - INTERVAL 1 MONTHS", "YEAR(day)", "MONTH(day)",
    "EXTRACT(YEAR FROM day)", "EXTRACT(DAY FROM day)", "SUBSTRING(x, 1, 2)", "SUBSTRING(y, 2)", "SUBSTR(x, 3, 0)",
    "LENGTH(x)", "x || y", "CONCAT(x, 'é', y)",
]  # fmt: skip
"""What is computed on the driver for all rows."""

MAYBE = [
    "i + s", "i + 1", "l + 1", "i * l", "l - s", "t * t", "-i", "-d", "i % t", "l % i", "d + e", "d - 1.25", "d * e",
    "d * 2", "e * i", "e * e", "d * e * d", "e * (1 - d) * (1 + d)", "d / e",
    "d / 3", "e / CAST(i AS DECIMAL(20,0))", "d % e", "i / 2", "i / t", "f + 1D", "f * f", "f > 1D",
    "f = f", "f > 1.5", "CAST(l AS INT)", "CAST(e AS DECIMAL(10,2))", "CAST(d AS BIGINT)", "CAST(w AS DOUBLE)",
    "CAST(w AS DECIMAL(20,0))", "w + 1BD", "IF(t = 0, NULL, i / t)", "IF(b, i, l)", "IF(b, d, e)", "IF(b, d, i)",
    "COALESCE(d, 0)", "CASE WHEN i <> 0 THEN 100 / i ELSE -1 END", "i <> 0 AND 100 / i > 2",
    "IF(i = 0, NULL, CAST(w AS DOUBLE) / CAST(i AS DOUBLE))", "CAST(x AS INT)", "UPPER(x)", "LENGTH(y) + i",
    "GREATEST(i, t)", "DATE_TRUNC('QUARTER', at)", "t < f", "f >= l",
    "CAST(day AS TIMESTAMP)", "SUBSTRING(x, -1, 1)", "SUBSTRING(x, 0, 2)", "SUBSTRING(x, t)", "LEFT(x, 1)",
    "day + INTERVAL '1' HOUR", "at + INTERVAL 1 DAY", "day - INTERVAL 1 WEEK", "day + INTERVAL '9000' YEAR", "YEAR(at)",
    "CONCAT(x, i)", "i || x", "day - DATE'1970-01-01'", "EXTRACT(WEEK FROM day)", "DAY(day)", "CHAR_LENGTH(y)",
    "day + INTERVAL '-1' DAY", "day + INTERVAL '1-1' YEAR TO MONTH", "INTERVAL 1 DAY + day", "DATE_ADD(day, t)",
    "ROUND(d, 1)", "ABS(i)", "i IN (1, NULL)", "x LIKE '\\\\%'", "x LIKE 'a/%' ESCAPE '/'", "COUNT(i, t) OVER ()",
    "x ILIKE 'A%'", "x NOT ILIKE 'A%'", "x NOT RLIKE 'a'", "CASE i WHEN 1 THEN x END", "i IS DISTINCT FROM t",
    "b IS TRUE", "b IS NOT FALSE", "CAST(x AS VARCHAR(1))", "MAX(i) OVER (PARTITION BY x)",
]  # fmt: skip
"""What is Spark's where it may overflow, divide by zero, or is no simple thing."""

AGGREGATES = [
    "COUNT(*) AS n", "COUNT(i) AS ni", "COUNT_IF(b) AS nb", "SUM(i) AS si", "SUM(s) AS ss", "SUM(d) AS sd",
    "MIN(i) AS low", "MAX(d) AS high", "MIN(x) AS lx", "MAX(x) AS hx", "MIN(p) AS lp", "MAX(p) AS hp",
    "MAX(at) AS last", "MIN(day) AS first", "MAX(b) AS any", "COALESCE(SUM(IF(b, i, 0)), 0L) AS some",
    "MIN(STRUCT(at AS at, x AS v)).v AS o", "CAST(SUM(d) AS DECIMAL(30,2)) AS wide",
]  # fmt: skip

few = settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with penstock.connect(tmp_path_factory.mktemp("driver")) as db:
        yield db.spark


def local(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> ArrowFrame:
    schema = to_arrow_schema(StructType.fromDDL(SCHEMA), timezone="UTC")
    return ArrowFrame.of(Running(spark), pa.Table.from_pylist(list(rows), schema))


def named(text: str) -> Named:
    """An expression with its name."""
    expression = parsed(text)
    return expression.alias, expression.unalias()


def identity(value: Any) -> Hashable:
    match value:
        case float():
            return repr(value)
        case dict():
            return tuple((k, identity(v)) for k, v in value.items())
    return value


def contents(frame: Frame) -> Counter[Hashable]:
    """The rows of a frame, as a multiset."""
    return Counter(tuple(identity(v) for v in row.values()) for row in frame.arrow().to_pylist())


def same(here: Frame, there: SparkFrame) -> None:
    """The one was done on the driver, the other by Spark."""
    assert isinstance(here, ArrowFrame)
    assert list(here.types.items()) == list(there.types.items())
    assert contents(here) == contents(there)


@few
@given(rows=ROWS)
def test_values_are_those_that_spark_computes(spark: SparkSession, rows: list[dict[str, Any]]) -> None:
    frame = local(spark, rows)
    values: dict[str, pa.Array] = {}
    for text in [*HERE, *MAYBE]:
        try:
            values[text] = computed(parsed(text), frame.batch)
        except NotHere:
            assert text in MAYBE, f"{text} is not computed on the driver"
    names = {text: f"v{i}" for i, text in enumerate(values)}
    here = frame.made({"at": pa.array(range(len(rows)), pa.int64()), **{names[t]: v for t, v in values.items()}})
    numbered = frame.table.append_column("at_row", pa.array(range(len(rows)), pa.int64()))
    asked = ArrowFrame.of(Running(spark), numbered).by_spark.frame
    there = asked.selectExpr("at_row AS at", *[f"{text} AS {name}" for text, name in names.items()])
    mine, theirs = here.table.to_pylist(), there.toArrow().sort_by("at").to_pylist()
    types = {f.name: f.dataType.simpleString() for f in there.schema.fields}
    for text, name in names.items():
        assert here.types[name] in (types[name], "void"), text
        assert [identity(row[name]) for row in mine] == [identity(row[name]) for row in theirs], text


PLACES = [
    f"{function}() OVER (PARTITION BY {by} ORDER BY {order}, at_row)"
    for function in ("ROW_NUMBER", "RANK", "DENSE_RANK")
    for by in ("x", "b, p", "1")
    for order in ("i", "i DESC, x", "d NULLS LAST", "p DESC NULLS FIRST")
]


BLANK = {**dict.fromkeys([*"ilstdewfxybc", "day", "at", "p", "odd name"]), WEIGHT: 1}
"""A row of NULLs."""


@few
@given(rows=ROWS, ties=st.booleans())
@example(rows=[{**BLANK, "p": {"at": None, "value": value}} for value in (None, 0)], ties=False)
def test_places_are_those_that_spark_gives(spark: SparkSession, rows: list[dict[str, Any]], ties: bool) -> None:
    frame = local(spark, rows)
    numbered = frame.table.append_column("at_row", pa.array(range(len(rows)), pa.int64()))
    here = ArrowFrame.of(Running(spark), numbered)
    texts = [text if not ties or "ROW_NUMBER" in text else text.replace(", at_row", "") for text in PLACES]
    functions = [(f"v{i}", parsed(text)) for i, text in enumerate(texts)]
    kept = ["at_row", *(name for name, _ in functions)]
    same(here.windows(functions).only(kept), here.by_spark.windows(functions).only(kept))


@few
@given(rows=ROWS)
def test_arrays_are_taken_apart_as_by_spark(spark: SparkSession, rows: list[dict[str, Any]]) -> None:
    frame = local(spark, rows)
    for array in ("ARRAY(0, 1, 2)", "ARRAY(i, s)", "ARRAY(x, y)"):
        asked = parsed(f"EXPLODE({array})"), ["element"], ["i", "l"]
        same(frame.generate(*asked), frame.by_spark.generate(*asked))


@few
@given(rows=ROWS, keys=st.sampled_from([[], ["x"], ["i", "b"], ["p"], ["at", "day"], ["e", "odd name"]]))
def test_groups_are_those_that_spark_makes(spark: SparkSession, rows: list[dict[str, Any]], keys: list[str]) -> None:
    frame = local(spark, rows)
    measures = [named(text) for text in AGGREGATES]
    same(frame.group(keys, measures), frame.by_spark.group(keys, measures))


@few
@given(rows=ROWS)
def test_rows_are_added_up_as_by_spark(spark: SparkSession, rows: list[dict[str, Any]]) -> None:
    """NaN is NaN, 0.0 is not -0.0, NULL is NULL, also inside a struct."""
    frame = local(spark, [*rows, *rows[:3]])
    same(frame.consolidated(), frame.by_spark.consolidated())


HOW: list[How] = ["inner", "left", "full", "left_semi", "left_anti"]
ON = [
    "i = j", "i <=> j", "i = j AND x < z", "x = z AND i <=> j", "i < j", "true", "d = j", "b AND i = j", "p = q",
    "i = j AND UPPER(x) = z", "UPPER(x) <=> UPPER(z)", "i = j AND j <> 0 AND 10 / j > i", "i <=> j AND UPPER(z) > x",
]  # fmt: skip


@few
@given(left=ROWS, right=ROWS, on=st.sampled_from(ON), how=st.sampled_from(HOW))
def test_rows_meet_as_they_do_in_spark(
    spark: SparkSession, left: list[dict[str, Any]], right: list[dict[str, Any]], on: str, how: How
) -> None:
    mine = local(spark, left).select(columns(["i", "x", "d", "b", "p"]))
    theirs = local(spark, right).select([("j", column("l")), ("z", column("y")), ("q", column("p"))])
    conditions = [parsed(on)]
    same(mine.join(theirs, conditions, how), as_spark(mine).join(as_spark(theirs), conditions, how))
