"""Window functions on the driver are what Spark computes: value and type, for every function, order and frame."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from itertools import count as count_from

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.frames.arrow.expressions.values import parsed
from penstock.frames.arrow.tables import loosened
from penstock.frames.arrow.windows import placed
from penstock.frames.frame import NotHere
from penstock.frames.settings import ANSI, ZONE, Settings, under
from random_rows import SEEDS, RandomRows, check_same

PARTITIONS = ("", "PARTITION BY k ", "PARTITION BY kf, b ", "PARTITION BY pf ")
ORDERS = (
    "ORDER BY i, id", "ORDER BY i DESC, id", "ORDER BY d NULLS LAST, x DESC NULLS FIRST, id DESC", "ORDER BY f, id",
    "ORDER BY pf DESC, id", "ORDER BY ts DESC NULLS FIRST, id", "ORDER BY x, id", "ORDER BY y, day DESC, id",
)  # fmt: skip
TIED = ("ORDER BY i", "ORDER BY q DESC NULLS LAST", "ORDER BY b, k", "ORDER BY p DESC", "ORDER BY pf", "ORDER BY kf")
RANKS = ("RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()")
PLACED = (
    "ROW_NUMBER()", "NTILE(1)", "NTILE(3)", "NTILE(50)", "LAG(i)", "LEAD(x, 2)", "LAG(f, 3, 0D)", "LEAD(l, 1, 0)",
    "LAG(d, 1, 0)", "LAG(i, 1, s)", "LEAD(i, 0)", "LAG(i, -2)", "LAG(x, 2, k)", "LAG(p)", "LEAD(b, 1, true)",
    "LAG(i) IGNORE NULLS", "LEAD(d, 2) IGNORE NULLS", "LAG(i, 2, 7) IGNORE NULLS", "LEAD(x, -1, 'z') IGNORE NULLS",
    "LAG(i, 0, 7) IGNORE NULLS", "LAG(ts, 1, NULL)", "LEAD(pf, 1) IGNORE NULLS",
)  # fmt: skip
FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS 3 PRECEDING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND 4 FOLLOWING", "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND CURRENT ROW", "ROWS BETWEEN 20 PRECEDING AND 10 FOLLOWING", "",
)  # fmt: skip
FRAMED = (
    "SUM(i)", "SUM(t)", "SUM(d)", "SUM(e)", "SUM(f)", "SUM(g)", "AVG(i)", "AVG(d)", "AVG(e)", "AVG(f)", "AVG(g)",
    "COUNT(*)", "COUNT(i)", "COUNT(i, x)", "COUNT(1)", "MIN(i)", "MAX(i)", "MIN(d)", "MAX(f)", "MIN(f)", "MAX(g)",
    "MIN(x)", "MAX(x)", "MAX(y)", "MIN(b)", "MAX(p)", "MIN(pf)", "MAX(ts)", "MIN(day)", "COUNT_IF(b)", "BOOL_AND(b)",
    "EVERY(b)", "SOME(b)", "BOOL_OR(b)", "FIRST_VALUE(i)", "LAST_VALUE(x)", "FIRST(f)", "LAST(p)", "ANY_VALUE(i)",
    "FIRST_VALUE(i) IGNORE NULLS", "LAST_VALUE(f) IGNORE NULLS", "FIRST(x, true)", "NTH_VALUE(i, 1)",
    "NTH_VALUE(x, 3)", "NTH_VALUE(i, 2) IGNORE NULLS", "SUM(i) FILTER (WHERE b)", "COUNT(*) FILTER (WHERE i > 0)",
    "MAX(x) FILTER (WHERE NOT b)", "MEAN(d)",
)  # fmt: skip
RANGED = (
    "SUM(i)", "SUM(q)", "AVG(d)", "AVG(q)", "COUNT(*)", "MIN(x)", "MAX(q)", "COUNT_IF(b)", "BOOL_OR(b)", "MIN(day)",
)  # fmt: skip
RANGES = {
    "i": ("1 PRECEDING AND 1 FOLLOWING", "2 PRECEDING AND CURRENT ROW", "UNBOUNDED PRECEDING AND 1 PRECEDING",
          "1 FOLLOWING AND UNBOUNDED FOLLOWING", "CURRENT ROW AND 3 FOLLOWING", "4 PRECEDING AND 2 PRECEDING"),
    "t DESC NULLS LAST": ("1 PRECEDING AND 2 FOLLOWING", "UNBOUNDED PRECEDING AND 1 FOLLOWING"),
    "l DESC": ("2 PRECEDING AND CURRENT ROW",),
    "d": ("1.5 PRECEDING AND 1 FOLLOWING", "0.25 PRECEDING AND CURRENT ROW"),
    "e DESC": ("5000000 PRECEDING AND CURRENT ROW",),
    "q NULLS LAST": ("0.5D PRECEDING AND 1 FOLLOWING", "CURRENT ROW AND CURRENT ROW"),
    "kf DESC": ("1 PRECEDING AND 0.5 FOLLOWING",),
    "g": ("0.1 PRECEDING AND 0.2 FOLLOWING",),
    "day": ("10 PRECEDING AND CURRENT ROW", "INTERVAL 20 DAY PRECEDING AND INTERVAL '10' DAY FOLLOWING",
            "INTERVAL 1 MONTH PRECEDING AND INTERVAL '2' MONTHS FOLLOWING",
            "INTERVAL 1 YEAR PRECEDING AND CURRENT ROW"),
    "day DESC": ("INTERVAL 1 MONTH PRECEDING AND CURRENT ROW",),
    "ts": ("INTERVAL 1 HOUR PRECEDING AND CURRENT ROW",
           "INTERVAL '45' MINUTE PRECEDING AND INTERVAL 60 MINUTES FOLLOWING"),
    "n DESC NULLS LAST": ("INTERVAL 40 HOURS PRECEDING AND INTERVAL '6' HOUR FOLLOWING",
                          "INTERVAL 1 MONTH PRECEDING AND INTERVAL 3 MONTHS FOLLOWING"),
}  # fmt: skip
UTC_ONLY = [
    f"{function} OVER ({by}ORDER BY ts{down} RANGE BETWEEN {span})"
    for function in RANGED
    for by in PARTITIONS[:2]
    for down in ("", " DESC")
    for span in (
        "INTERVAL 1 DAY PRECEDING AND CURRENT ROW",
        "INTERVAL 1 MONTH PRECEDING AND INTERVAL 1 MONTH FOLLOWING",
    )
]


def turned(options: tuple[str, ...], number: int) -> str:
    return options[number % len(options)]


def texts() -> list[str]:
    """Every function with every frame, and the partitions and orders in turns."""
    found = [f"{rank} OVER ({by}{order})" for rank in RANKS for by in PARTITIONS for order in (*TIED, ORDERS[2])]
    found += [
        f"{f} OVER ({turned(PARTITIONS, n)}{order})" for n, f in enumerate(PLACED) for order in ORDERS[n % 2 :: 2]
    ]
    pairs = [(f, frame) for f in FRAMED for frame in FRAMES]
    found += [
        f"{f} OVER ({turned(PARTITIONS, n)}{turned(ORDERS, n // 3)} {frame})" for n, (f, frame) in enumerate(pairs)
    ]
    found += [
        f"{f} OVER ({turned(PARTITIONS, n)}ORDER BY {key} RANGE BETWEEN {span})"
        for key, spans in RANGES.items()
        for span in spans
        for n, f in enumerate(RANGED)
    ]
    found += [f"{f} OVER ({turned(PARTITIONS, n)}{turned(TIED, n)})" for n, f in enumerate(RANGED)]
    found += [f"{f} OVER ({by})" for f in RANGED for by in PARTITIONS]
    return list(dict.fromkeys(found))


MAYBE = (
    "SUM(l) OVER (ORDER BY id ROWS 2 PRECEDING)", "SUM(w) OVER (PARTITION BY k ORDER BY id)",
    "AVG(w) OVER (ORDER BY id)", "AVG(l) OVER (ORDER BY id)", "STDDEV(f) OVER (ORDER BY id)",
    "COLLECT_LIST(i) OVER (ORDER BY id)", "MAX(i) FILTER (WHERE b) OVER ()",
    "SUM(i) OVER (ORDER BY i RANGE BETWEEN 2147483647 PRECEDING AND CURRENT ROW)",
    "SUM(i) OVER (ORDER BY i RANGE BETWEEN 1.5 PRECEDING AND CURRENT ROW)", "LAG(i, 1, 0D) OVER (ORDER BY id)",
    "LAG(i, 1, l) OVER (ORDER BY id)", "FIRST(i) FILTER (WHERE b) OVER (ORDER BY id)", "BIT_AND(i) OVER (ORDER BY id)",
)  # fmt: skip
"""What is Spark's by its form, or for some rows."""


COMBINATIONS = [{ZONE: zone, ANSI: ansi} for zone in ("UTC", "Europe/Berlin") for ansi in ("true", "false")]


MINUTES = float(os.environ.get("PENSTOCK_FUZZ_MINUTES", "0"))


@pytest.mark.parametrize("changed", COMBINATIONS, ids=lambda c: "-".join(c.values()))
@pytest.mark.parametrize(("seed", "count", "wild"), SEEDS)
def test_windows_are_what_spark_computes(
    spark: SparkSession, seed: int, count: int, wild: bool, changed: dict[str, str]
) -> None:
    """The rows take turns in what is asked of them, so that each is asked of some."""
    asked = [*texts(), *UTC_ONLY][seed % 3 :: 3]
    if changed != COMBINATIONS[0]:  # nothing but these looks at the settings
        asked = [text for text in asked if "RANGE" in text]
    told(spark, RandomRows(seed, count, wild=wild), [*asked, *MAYBE], Settings.of(changed), wild=wild)


@pytest.mark.skipif(not MINUTES, reason="PENSTOCK_FUZZ_MINUTES says how long to go on")
def test_windows_for_a_while(spark: SparkSession) -> None:
    end, everything = time.monotonic() + 60 * MINUTES, [*texts(), *UTC_ONLY, *MAYBE]
    for seed in count_from(1_000):
        if time.monotonic() > end:
            break
        chance = random.Random(seed)
        data = RandomRows(seed, chance.choice([2, 5, 20, 100]), wild=seed % 2 == 0, spread=chance.choice([2, 6, 30]))
        told(spark, data, chance.sample(everything, 150), Settings.of(chance.choice(COMBINATIONS)), wild=True)


def told(spark: SparkSession, data: RandomRows, asked: Sequence[str], settings: Settings, *, wild: bool) -> None:
    """Whatever the driver computes is what Spark says; all but wild rows are computed there."""
    with under(spark, settings):
        here: dict[str, pa.Array] = {}
        for text in asked:
            try:
                here[text] = placed(parsed(text), data.rows(settings))  # type: ignore[arg-type]
            except NotHere:
                assert wild or text in MAYBE or (text in UTC_ONLY and not settings.utc), f"{text} is not on the driver"
        assert len(here) > len(asked) / 2
        by_window = sorted(here, key=lambda text: text.partition(" OVER ")[2])
        for first in range(0, len(by_window), AT_ONCE):
            compare(spark, data, {text: here[text] for text in by_window[first : first + AT_ONCE]}, settings)


AT_ONCE = 60
"""Windows in one query: Spark takes longer for each, the more of them there are."""


def compare(spark: SparkSession, data: RandomRows, here: dict[str, pa.Array], settings: Settings) -> None:
    names = {text: f"v{number}" for number, text in enumerate(here)}
    there = data.frame(spark).selectExpr("id", *[f"{text} AS {name}" for text, name in names.items()])
    found = loosened(there.toArrow()).sort_by("id")
    for text, name in names.items():
        check_same(text, here[text], there, name, found.column(name), f"{data.about}, {settings.shown}")
