"""Aggregates on the driver are what Spark computes: value and type, for every function and kind of key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from longer import varied
from penstock.frames.arrow.aggregates import aggregated
from penstock.frames.arrow.expressions.values import Rows, computed, parsed
from penstock.frames.arrow.groups import Groups, normalised, pairs
from penstock.frames.frame import NotHere
from penstock.frames.settings import ANSI, ZONE, Settings, under
from penstock.frames.spark.types import collected
from random_rows import SEEDS, RandomRows, check_same

KEYS = ((), ("k",), ("kf",), ("pf", "b"), ("i", "x"), ("g",))
HERE = (
    "COUNT(*)", "COUNT(1)", "COUNT(i)", "COUNT(i, x)", "COUNT_IF(b)", "SUM(i)", "SUM(s)", "SUM(d)", "SUM(e)", "SUM(f)",
    "SUM(g)", "AVG(i)", "AVG(t)", "AVG(d)", "AVG(e)", "AVG(f)", "AVG(g)", "MEAN(d)", "TRY_SUM(i)", "TRY_AVG(d)",
    *[f"{extreme}({column})" for extreme in ("MIN", "MAX")
      for column in ("i", "l", "d", "w", "f", "g", "q", "x", "y", "b", "day", "ts", "n", "p", "pf", "kf")],
    "COUNT(DISTINCT i)", "COUNT(DISTINCT x)", "COUNT(DISTINCT i, x)", "COUNT(DISTINCT kf)", "COUNT(DISTINCT pf)",
    "COUNT(DISTINCT kf, b)", "SUM(DISTINCT i)", "SUM(DISTINCT d)", "AVG(DISTINCT i)", "AVG(DISTINCT d)",
    "MAX(DISTINCT i)", "MIN(DISTINCT x)", "STDDEV(i)", "STDDEV(d)", "STDDEV(f)", "STDDEV(g)", "STDDEV_POP(f)",
    "STDDEV_SAMP(i)", "STD(d)", "VARIANCE(f)", "VAR_POP(f)", "VAR_SAMP(e)", "VAR_POP(i)", "VAR_SAMP(q)",
    *[f"ARRAY_SORT({collect}({column}))" for collect in ("COLLECT_LIST", "COLLECT_SET", "ARRAY_AGG")
      for column in ("i", "d", "q", "x", "day", "ts", "p", "b", "y")],
    "COLLECT_LIST(i)", "COLLECT_LIST(pf)", "COLLECT_LIST(f)", "ARRAY_SORT(COLLECT_LIST(f))",
    "ARRAY_SORT(COLLECT_LIST(pf))", "ARRAY_SORT(COLLECT_LIST(DISTINCT x))", "PERCENTILE(i, 0.5)",
    "PERCENTILE(d, 0.3)", "PERCENTILE(q, 0.75)", "PERCENTILE(l, 1)", "PERCENTILE(e, 0)", "PERCENTILE(s, 0.123)",
    "PERCENTILE(i, ARRAY(0.5, 0.1, 1))", "MEDIAN(i)", "MEDIAN(d)", "MEDIAN(q)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY d)", "BOOL_AND(b)", "BOOL_OR(b)", "EVERY(b)", "SOME(b)", "ANY(b)",
    "BIT_AND(i)", "BIT_OR(l)", "BIT_XOR(t)", "BIT_AND(s)", "REGR_COUNT(i, q)", "FIRST(i)", "LAST(x)", "FIRST(f)",
    "FIRST(x, true)", "LAST(i) IGNORE NULLS", "ANY_VALUE(p)", "FIRST_VALUE(pf) IGNORE NULLS",
    "SUM(i) FILTER (WHERE b)", "COUNT(*) FILTER (WHERE i > 0)", "MAX(x) FILTER (WHERE NOT b)",
    "COUNT(DISTINCT i) FILTER (WHERE b)", "STDDEV(f) FILTER (WHERE b)", "MEDIAN(i) FILTER (WHERE b)",
    "FIRST(i) FILTER (WHERE b)", "ARRAY_SORT(COLLECT_SET(x) FILTER (WHERE b))", "SUM(i + 1)", "AVG(i * 2)",
    "MAX(IF(b, STRUCT(i AS by, x AS value), NULL)).value", "MIN(STRUCT(f AS by, i AS value)).value",
    "COALESCE(SUM(IF(b, i, 0)), 0L)", "SUM(i) + COUNT(*)", "MAX(i) - MIN(s)",
)  # fmt: skip
"""What is computed on the driver for all rows but wild ones."""

MAYBE = (
    "SUM(l)", "SUM(w)", "AVG(l)", "AVG(w)", "SUM(DISTINCT f)", "AVG(DISTINCT l)", "ARRAY_SORT(COLLECT_SET(f))",
    "ARRAY_SORT(COLLECT_SET(kf))", "ARRAY_SORT(COLLECT_SET(pf))", "MEDIAN(f)", "PERCENTILE(kf, 0.4)", "STDDEV(l)",
    "VAR_POP(w)", "VAR_POP(kf)", "STDDEV(DISTINCT i)", "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY i)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY i DESC)", "PERCENTILE_APPROX(i, 0.5)", "APPROX_COUNT_DISTINCT(x)",
    "CORR(f, q)", "COVAR_POP(q, q)", "KURTOSIS(q)", "SKEWNESS(q)", "REGR_SLOPE(q, i)", "MODE(k)", "LISTAGG(k)",
    "MEDIAN(g)",
)  # fmt: skip
"""What is Spark's by its form, or for some rows."""


COMBINATIONS = [{ZONE: zone, ANSI: ansi} for zone, ansi in (("UTC", "true"), ("Europe/Berlin", "false"))]


@pytest.mark.parametrize("changed", COMBINATIONS, ids=lambda c: "-".join(c.values()))
@pytest.mark.parametrize(("seed", "count", "wild"), varied(SEEDS, often=(SEEDS[0], *SEEDS[4:])))
def test_aggregates_are_what_spark_computes(
    spark: SparkSession, seed: int, count: int, wild: bool, changed: dict[str, str]
) -> None:
    settings, data = Settings.of(changed), RandomRows(seed, count, wild=wild)
    with under(spark, settings):
        for keys in KEYS[seed % 2 :: 2] if changed == COMBINATIONS[0] else KEYS[:1]:
            compare(spark, data, data.rows(settings), keys, wild, f"by {keys}, {data.about}, {changed}")


def compare(spark: SparkSession, data: RandomRows, rows: Rows, keys: tuple[str, ...], wild: bool, about: str) -> None:
    by = {key: normalised(rows.column(key)) for key in keys}
    groups = Groups(list(by.values()), rows.count)
    here = {key: values.take(pa.array(groups.first)) for key, values in by.items()}
    found = {key: here[key] for key in keys}
    for text in (*HERE, *MAYBE):
        try:
            found[text] = aggregated(parsed(text), rows, groups, here)
        except NotHere:
            assert wild or text in MAYBE, f"{text} is not on the driver, {about}"
    found["MIN(id)"] = aggregated(parsed("MIN(id)"), rows, groups, here)  # tells the groups apart
    # Beside DISTINCT, Spark adds up the other aggregates in another order.
    for distinct in (False, True):
        asked = {text: found[text] for text in found if ("DISTINCT" in text) == distinct or text in (*keys, "MIN(id)")}
        told(spark, data, asked, keys, about)


def told(spark: SparkSession, data: RandomRows, found: dict[str, pa.Array], keys: tuple[str, ...], about: str) -> None:
    """What Spark says of them is the same."""
    names = {text: f"v{number}" for number, text in enumerate(found)}
    selected = ", ".join(f"{text} AS {name}" for text, name in names.items())
    data.frame(spark).createOrReplaceTempView("random_rows")
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    there = spark.sql(f"SELECT {selected} FROM random_rows{grouped}")
    place = names["MIN(id)"]
    theirs = collected(there).sort_by(place)
    order = pa.compute.sort_indices(found["MIN(id)"])
    for text, name in names.items():
        check_same(text, found[text].take(order), there, name, theirs.column(name), about)


@pytest.mark.parametrize("key", ["kf", "pf", "g"])
@pytest.mark.parametrize("equal", ["=", "<=>"])
def test_floats_meet_as_they_do_in_spark(spark: SparkSession, key: str, equal: str) -> None:
    """NaN is equal to NaN, and 0.0 to -0.0, also inside a struct."""
    left, right = (RandomRows(seed, 25) for seed in (7, 8))
    mine, theirs = ([data.rows().column(key)] for data in (left, right))
    places, others = pairs(mine, theirs, [equal == "<=>"], (25, 25))
    left.frame(spark).createOrReplaceTempView("mine")
    right.frame(spark).createOrReplaceTempView("theirs")
    there = spark.sql(f"SELECT m.id, t.id AS other FROM mine m JOIN theirs t ON m.{key} {equal} t.{key}").collect()
    assert sorted(zip(places.tolist(), others.tolist(), strict=True)) == sorted(map(tuple, there))


COMPARED = [
    f"pf {operator} STRUCT({number} AS a, {other} AS b)"
    for operator in ("=", "<", ">=", "<>")
    for number, other in (("kf", "1"), ("f", "2"), ("-kf", "i"))
]


def test_structs_of_floats_are_compared_as_by_spark(spark: SparkSession) -> None:
    data = RandomRows(9, 60, wild=True)
    rows = data.rows()
    there = data.frame(spark).selectExpr(*[f"{text} AS v{number}" for number, text in enumerate(COMPARED)])
    found = collected(there)
    for number, text in enumerate(COMPARED):
        check_same(text, computed(parsed(text), rows), there, f"v{number}", found.column(f"v{number}"), data.about)
