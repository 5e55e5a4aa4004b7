"""TUMBLE, TUMBLE_START, TUMBLE_END and first and last by event time, in Spark's own words."""

from __future__ import annotations

import pytest

from penstock.errors import SqlError
from penstock.sql.dialect import SparkSql
from penstock.sql.query import parse_query, spark_text

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT HOP_START(ts, INTERVAL 1 SECOND, INTERVAL 2 SECONDS) FROM t", "go with one HOP"),
        ("SELECT 1 FROM t GROUP BY HOP(ts, INTERVAL 1 SECOND)", "takes a timestamp and two intervals"),
        ("SELECT 1 FROM t GROUP BY HOP(ts, INTERVAL 1 SECOND, INTERVAL 1 DAY)", "1000 are the most"),
        ("SELECT 1 FROM t GROUP BY HOP(ts, INTERVAL 1 MONTH, INTERVAL 1 DAY)", "an interval of fixed length"),
        (
            "SELECT HOP_END(u, INTERVAL 1 SECOND, INTERVAL 2 SECONDS) FROM t "
            "GROUP BY HOP(ts, INTERVAL 1 SECOND, INTERVAL 2 SECONDS)",
            "with the same arguments",
        ),
    ],
)
def test_hops_that_make_no_sense(query: str, problem: str) -> None:
    with pytest.raises(SqlError, match=problem):
        parse_query(query)


def start(width: int, ts: str = "ts") -> str:
    return f"DATE_ADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST({ts} AS TIMESTAMP)), {width}), {ts})"


@pytest.mark.parametrize(
    ("interval", "width"),
    [
        ("INTERVAL '1 second'", SECOND),
        ("INTERVAL 1 SECOND", SECOND),
        ("INTERVAL '1' SECOND", SECOND),
        ("INTERVAL '90 seconds'", 90 * SECOND),
        ("INTERVAL '1 minute 30 seconds'", 90 * SECOND),
        ("interval 2 hours", 7200 * SECOND),
        ("INTERVAL '1 day'", 86400 * SECOND),
        ("INTERVAL '1 week'", 7 * 86400 * SECOND),
        ("INTERVAL '250 milliseconds'", 250_000),
        ("INTERVAL '0.5 seconds'", 500_000),
    ],
)
def test_widths(interval: str, width: int) -> None:
    text = spark_text(f"SELECT TUMBLE_START(ts, {interval}) AS s, tumble_end(ts, {interval}) AS e FROM t")
    assert text == f"SELECT {start(width)} AS s, DATE_ADD(MICROSECOND, {width}, {start(width)}) AS e FROM t"


@pytest.mark.parametrize(
    "call",
    [
        "TUMBLE(ts, INTERVAL '1 month')",
        "TUMBLE(ts, INTERVAL '1 year')",
        "TUMBLE(ts, INTERVAL '1 day 1 month')",
        "TUMBLE(ts, INTERVAL '0 seconds')",
        "TUMBLE(ts, INTERVAL '-1 second')",
        "TUMBLE(ts, INTERVAL 'soon')",
        "TUMBLE(ts, '1 second')",
        "TUMBLE(ts, 5)",
        "TUMBLE(ts)",
        "TUMBLE(ts, INTERVAL '1 second', 3)",
    ],
)
def test_wrong_intervals(call: str) -> None:
    with pytest.raises(SqlError, match=r"TUMBLE (needs|takes) .*INTERVAL '1 minute'"):
        spark_text(f"SELECT 1 AS one FROM t GROUP BY {call}")


def test_first_and_last_by_event_time() -> None:
    text = spark_text(
        "SELECT s, FIRST_VALUE(p) AS o, LAST_VALUE(p) AS c, FIRST(p) + 1 AS f FROM t GROUP BY s, TUMBLE(ts, INTERVAL '1 second')"  # noqa: E501
    )
    pair = "STRUCT(ts AS at, p AS value)"
    assert text == (
        f"SELECT s, MIN({pair}).value AS o, MAX({pair}).value AS c, MIN({pair}).value + 1 AS f "
        f"FROM t GROUP BY s, {start(SECOND)}"
    )


def test_a_name_is_kept_when_there_is_no_alias() -> None:
    text = spark_text("SELECT FIRST_VALUE(p) FROM t GROUP BY TUMBLE(ts, INTERVAL '1 second')")
    assert "AS `FIRST_VALUE(p)` FROM" in text


def test_first_value_elsewhere_is_sparks_own() -> None:
    text = "SELECT FIRST_VALUE(p) AS o FROM t GROUP BY s"
    assert spark_text(text) == text
    over = "SELECT FIRST_VALUE(p) OVER (ORDER BY ts) AS o, TUMBLE_START(ts, INTERVAL '1 second') AS s FROM t"
    assert "FIRST_VALUE(p) OVER (ORDER BY ts)" in spark_text(over)


def test_each_select_has_its_own_event_time() -> None:
    text = spark_text(
        "SELECT FIRST_VALUE(o) AS o FROM (SELECT TUMBLE_START(ts, INTERVAL '1 second') AS bar, FIRST_VALUE(p) AS o FROM t "  # noqa: E501
        "GROUP BY TUMBLE(ts, INTERVAL '1 second')) GROUP BY TUMBLE(bar, INTERVAL '1 minute')"
    )
    assert "MIN(STRUCT(bar AS at, o AS value)).value AS o" in text
    assert "MIN(STRUCT(ts AS at, p AS value)).value AS o" in text
    assert start(60 * SECOND, "bar") in text


def test_the_tree_and_the_text_agree() -> None:
    query = (
        "SELECT TUMBLE_START(ts, INTERVAL '1 second') AS s, MAX(p) AS m FROM t GROUP BY TUMBLE(ts, INTERVAL '1 second')"
    )
    assert parse_query(query).sql(dialect=SparkSql) == spark_text(query)
