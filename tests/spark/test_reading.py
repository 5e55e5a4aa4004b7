"""Our reading of a query is Spark's: what Spark makes of the text, and of what our parser made of it, is the same.

A few hundred random expressions and a few random queries are read every time; ``make test-fuzz MINUTES=30`` reads new
ones for that long.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from random import Random, SystemRandom

import pytest
import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import penstock
from oracle import after, assert_fresh, assert_same_rows, rows
from penstock.sql.dialect import SparkSql
from readings import QueryWriter, Writer

MINUTES = float(os.environ.get("PENSTOCK_FUZZ_MINUTES", "0"))


# -- expressions ------------------------------------------------------------------------------------------------------


def as_spark_reads(spark: SparkSession, text: str) -> str | None:
    """Spark's own tree of an expression; None for what is none."""
    try:
        read = spark._jsparkSession.sessionState().sqlParser().parseExpression(text).toString()
    except (Py4JJavaError, PySparkException):
        return None
    return re.sub(r"#\d+", "", read).replace("NOT isnull(", "isnotnull(")


def assert_read_alike(spark: SparkSession, text: str) -> bool:
    theirs = as_spark_reads(spark, text)
    if theirs is None:
        return False
    written = sqlglot.parse_one(text, dialect=SparkSql).sql(dialect=SparkSql)
    assert as_spark_reads(spark, written) == theirs, f"{text!r} was read as {written!r}"
    return True


def test_random_expressions_are_read_as_spark_reads_them(spark: SparkSession) -> None:
    writer = Writer(Random(16))
    read = sum(assert_read_alike(spark, writer.condition(3)) for _ in range(300))
    assert read > 250


@pytest.mark.skipif(not MINUTES, reason="the long run: make test-fuzz MINUTES=30")
def test_expressions_for_minutes(spark: SparkSession) -> None:
    seed, end = SystemRandom().getrandbits(64), time.monotonic() + MINUTES * 60
    writer = Writer(Random(seed))
    while time.monotonic() < end:
        assert_read_alike(spark, writer.condition(4))


SPELLINGS = [
    "a = b < c", "a <=> b = c", "a <> b >= c", "a = b IS NULL", "a = b IS NOT NULL", "NOT a = b IS NULL", "!a = b",
    "NOT a <=> b", "a = b IN (c)", "a < b NOT IN (c, NULL)", "a BETWEEN b AND b = c", "a = b BETWEEN b AND c",
    "a IS DISTINCT FROM b = c", "a = b IS TRUE", "a OR b AND c = a", "(a = b) = c", "a = (b = c)", "i + j || s",
    "'1' || j + 1 = k", "s || i LIKE s || '%'", "i & j << 1", "i | j ^ i & 3", "i << 1 + 1", "i >> 1 >> 1",
    "- i * j", "~ i * j", "~~i", "- -i", "i - -1", "i - - - 1", "-1::STRING || s", "-i::STRING", "i DIV 2 * j",
    "i % 5 DIV 2", "i * j % 5", "i !< j", "i !> j = a", "i == j", "i = j = a", "i > j > a", "i <> j != a",
    "s COLLATE UTF8_LCASE = 'X' || ''", "s || 'X' COLLATE UTF8_LCASE = 'xX'", "CASE WHEN a THEN i ELSE j END = i < a",
    "IF(a = b < c, 1, 0)", "COALESCE(a = b, c) = b", "exists(array(i, j), x -> x = i < a)",
    "transform(array(a, b), x -> x = b < c)", "CAST(a = b < c AS INT) + 1", "(a = b < c)::INT + 1",
    "named_struct('x', a = b < c).x", "array(a = b < c)[0]", "map('k', a <=> b = c)['k']",
    "d + INTERVAL 1 DAY - INTERVAL 1 MONTH", "d - INTERVAL 1 YEAR 2 MONTHS", "d + INTERVAL -1 DAY", "d = d < a",
    "i BETWEEN j AND j + 1 AND a", "s LIKE 'x' || '%' AND a", "s RLIKE 'x' || '$' OR a", "NOT NOT a",
    "NOT (NOT a) IS NULL", "(NOT a) IS NULL", "(a OR b) IS NULL", "(a AND b) = c", "s NOT LIKE '!%' ESCAPE '!'",
    "COUNT_IF(a <=> b) OVER ()",
]  # fmt: skip


@pytest.fixture
def flags(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (k INT, a BOOLEAN, b BOOLEAN, c BOOLEAN, i INT, j INT, s STRING, d DATE)")
    return db


CHANGES = (
    "INSERT INTO t VALUES (1, false, true, false, 12, 5, 'x', DATE'2024-02-29'), (2, true, true, false, -3, 7, 'Xy', "
    "NULL), (3, false, false, true, NULL, 1, 'xX', DATE'2023-01-31'), (4, NULL, false, NULL, 6, 6, "
    "NULL, DATE'1970-01-01')",
    "UPDATE t SET a = NOT a, i = j WHERE k < 3",
)


def test_spellings_are_computed_as_spark_computes_them(flags: penstock.Database) -> None:
    """On the driver, where the tree counts, and not the text."""
    columns = ", ".join(f"{text} AS e{n}" for n, text in enumerate(SPELLINGS) if "OVER" not in text)
    flags.create_view("v", f"SELECT k, {columns} FROM t", policy="INCREMENTAL STRICT")
    flags.create_view("w", "SELECT k FROM t WHERE a <> b >= c OR a = b IS NULL", policy="INCREMENTAL STRICT")
    flags.create_view("u", "SELECT k, i >>> 1 + 1 AS e FROM t", policy="INCREMENTAL STRICT")
    flags.create_view("o", "SELECT k, COUNT_IF(a <=> b) OVER () AS n FROM t")
    for change in CHANGES:
        after(flags, change, o=("INCREMENTAL", "FULL"))
        plain = flags.sql(f"SELECT k, {columns} FROM t")
        assert_same_rows(flags.table("v"), plain)


# -- what Spark does not have, or leaves open -------------------------------------------------------------------------

LARGEST = "MAX(CASE WHEN ({0}) IS NOT NULL THEN STRUCT(({0}) AS p, ({1}) AS q) END).q"
"""MAX_BY, of rows that tie the one with the largest value."""

REWRITTEN = {
    "MAX_BY(s, NOT a) AS m": (None, LARGEST.format("NOT a", "s")),
    "MIN_BY(s, a OR b) AS m": (None, LARGEST.format("a OR b", "s").replace("MAX", "MIN")),
    "MAX_BY(s, a = b < c) AS m": (None, LARGEST.format("(a = b) < c", "s")),
    "MIN_BY(s, k) FILTER (WHERE a = b < c) AS m": (None, "MIN_BY(s, CASE WHEN (a = b) < c THEN k END)"),
    "MAX_BY(a = b < c, k) AS m": (None, "MAX_BY((a = b) < c, k)"),
    "COLLECT_SET(a = b IS NULL) AS l": (None, "ARRAY_SORT(COLLECT_SET(ISNULL(a = b)))"),
    "COLLECT_LIST(s) FILTER (WHERE a OR b) AS l": (None, "ARRAY_SORT(COLLECT_LIST(CASE WHEN a OR b THEN s END))"),
    "SIZE(COLLECT_LIST(DISTINCT a = b < c)) AS l": (None, "COUNT(DISTINCT (a = b) < c)"),
    "MAX_BY(s, k) AS m, TO_CHAR(MAX(d), 'yyyy') AS y": (None, "MAX_BY(s, k), TO_CHAR(MAX(d), 'yyyy')"),
    "MAX_BY(s, k) AS m, LISTAGG(s, '-') WITHIN GROUP (ORDER BY s DESC) AS l": (
        "AGGREGATE_FUNCTION",
        "MAX_BY(s, k), LISTAGG(s, '-') WITHIN GROUP (ORDER BY s DESC)",
    ),
    "MAX_BY(s, k, 2) AS m": ("AGGREGATE_FUNCTION", "MAX_BY(s, k, 2)"),
}


def test_settled_aggregates_are_those_of_spark(flags: penstock.Database) -> None:
    for n, items in enumerate(REWRITTEN):
        flags.sql(f"CREATE MATERIALIZED VIEW v{n} AS SELECT c, {items} FROM t GROUP BY c")
    reasons = {f"v{n}": reason for n, (reason, _) in enumerate(REWRITTEN.values())}
    assert {name: view.reason_code for name, view in flags._catalog.world().views.items()} == reasons
    for change in CHANGES:
        recomputed = {name: "FULL" for name, reason in reasons.items() if reason is not None}
        after(flags, change, action=("INCREMENTAL", "NO_DATA"), **recomputed)
        source = flags.spark.read.format("delta").load(flags._catalog.world().tables["t"].path)
        source.createOrReplaceTempView("plain_t")
        for n, (_, plain) in enumerate(REWRITTEN.values()):
            assert_same_rows(flags.table(f"v{n}"), flags.spark.sql(f"SELECT c, {plain} FROM plain_t GROUP BY c"), plain)


EVENTS = (
    "INSERT INTO e VALUES (1, TIMESTAMP'2024-01-01 10:10:00', 'x', true, false), (2, TIMESTAMP'2024-01-01 10:50:00', "
    "'y', false, true), (3, TIMESTAMP'2024-01-01 11:05:00', NULL, true, NULL), (4, NULL, 'z', false, false)",
    "UPDATE e SET a = NOT a WHERE k < 3",
)


WINDOWS = [
    (
        "SELECT TUMBLE_START(at, INTERVAL '1 hour') AS h, COUNT(*) AS n FROM e WHERE a = b < true "
        "GROUP BY TUMBLE(at, INTERVAL '1 hour')",
        "SELECT DATE_TRUNC('HOUR', at), COUNT(*) FROM e WHERE (a = b) < true GROUP BY 1",
    ),
    (
        "SELECT TUMBLE_END(at + INTERVAL 1 HOUR, INTERVAL '1 hour') AS h, LAST_VALUE(a = b < true) AS l FROM e "
        "WHERE at IS NOT NULL GROUP BY TUMBLE(at + INTERVAL 1 HOUR, INTERVAL '1 hour')",
        "SELECT DATE_TRUNC('HOUR', at) + INTERVAL 2 HOURS, MAX_BY((a = b) < true, at) FROM e WHERE at > '1970-01-01' "
        "GROUP BY 1",
    ),
    (
        "SELECT HOP_START(at, INTERVAL '1 hour', INTERVAL '2 hours') AS h, COUNT(*) AS n FROM e "
        "WHERE a <=> b = true GROUP BY HOP(at, INTERVAL '1 hour', INTERVAL '2 hours')",
        "SELECT window.start, COUNT(*) FROM e WHERE (a <=> b) = true GROUP BY window(at, '2 hours', '1 hour')",
    ),
    (
        "SELECT SESSION_START(at, INTERVAL '30 minutes') AS h, BOOL_OR(a = b IS NULL) AS o FROM e "
        "GROUP BY SESSION(at, INTERVAL '30 minutes')",
        "SELECT session_window.start, BOOL_OR((a = b) IS NULL) FROM e GROUP BY session_window(at, '30 minutes')",
    ),
    (
        "SELECT window.end AS h, FIRST_VALUE(s) AS f, BOOL_AND(a = b < true) AS o FROM e GROUP BY window(at, '1 hour')",
        "SELECT window.end, MIN_BY(s, at), BOOL_AND((a = b) < true) FROM e GROUP BY window(at, '1 hour')",
    ),
]


def test_windows_are_those_of_spark(db: penstock.Database) -> None:
    db.sql("CREATE TABLE e (k INT, at TIMESTAMP, s STRING, a BOOLEAN, b BOOLEAN)")
    for n, (query, _) in enumerate(WINDOWS):
        db.create_view(f"v{n}", query, policy="INCREMENTAL STRICT")
    for change in EVENTS:
        after(db, change, action=("INCREMENTAL", "NO_DATA"))
        db.spark.read.format("delta").load(db._catalog.world().tables["e"].path).createOrReplaceTempView("plain_e")
        for n, (_, plain) in enumerate(WINDOWS):
            assert_same_rows(db.table(f"v{n}"), db.spark.sql(plain.replace(" e ", " plain_e ")), plain)


def test_a_query_that_spark_reads_differently_is_recomputed_from_the_users_text(flags: penstock.Database) -> None:
    flags.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT c, COLLECT_LIST(i) AS l, "
        "GET_JSON_OBJECT(MAX('{\"a\": 1970}'), 'a') AS y FROM t GROUP BY c"
    )
    flags.sql(CHANGES[0])
    after(flags, action="FULL")
    assert rows(flags.table("v"))[0] == (None, [6], None)


def test_what_is_emitted_later_must_be_read_as_spark_does(db: penstock.Database) -> None:
    db.sql("CREATE TABLE e (at TIMESTAMP, d DATE, WATERMARK FOR at AS at - INTERVAL 1 MINUTE)")
    query = (
        "SELECT TUMBLE_START(at, INTERVAL '1 hour') AS h, GET_JSON_OBJECT(MAX('{}'), 'a') AS y FROM e "
        "GROUP BY TUMBLE(at, INTERVAL '1 hour')"
    )
    for policy in ("AUTO", "FULL"):
        with pytest.raises(penstock.DefinitionError, match="reads this one differently"):
            db.sql(f"CREATE MATERIALIZED VIEW v AS {query} REFRESH POLICY {policy} EMIT AFTER WATERMARK")


# -- grouping sets ----------------------------------------------------------------------------------------------------


def test_a_grouping_set_without_keys_has_a_row_without_rows(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, v INT)")
    sets = {
        "alone": "GROUPING SETS (())", "nested": "GROUPING SETS (GROUPING SETS (()))",
        "twice": "GROUPING SETS ((), ())", "both": "GROUPING SETS ((), (k))", "one": "GROUPING SETS ((k))",
        "rolled": "ROLLUP(k)", "cubed": "CUBE(k)", "product": "GROUPING SETS (()), GROUPING SETS (())",
        "keyed": "k, GROUPING SETS (())",
    }  # fmt: skip
    for name, by in sets.items():
        items = "COUNT(*) AS n, SUM(v) AS s, COUNT(DISTINCT v) AS d, GROUPING_ID() AS g"
        db.create_view(name, f"SELECT {items} FROM t GROUP BY {by}", policy="INCREMENTAL STRICT")
        db.create_view(f"{name}_has", f"SELECT COUNT(*) AS n FROM t GROUP BY {by} HAVING COUNT(*) = 0")
        assert_fresh(db, name, "FULL")
    assert rows(db.table("alone")) == [(0, None, 0, 0)]
    for change in ("INSERT INTO t VALUES (1, 2), (NULL, 3)", "INSERT INTO t VALUES (1, 5)", "DELETE FROM t"):
        after(db, change, action=("INCREMENTAL", "NO_DATA"))
    assert rows(db.table("alone")) == [(0, None, 0, 0)]


# -- windows of time --------------------------------------------------------------------------------------------------


def test_a_window_is_judged_by_its_own_time(db: penstock.Database) -> None:
    db.sql("CREATE TABLE e (at TIMESTAMP, local TIMESTAMP_NTZ)")
    by = "SELECT window({0}, '1 hour').start AS h, COUNT(*) AS n FROM {1} GROUP BY window({0}, '1 hour')"
    queries = {
        "zoned": by.format("at", "e"), "zoneless": by.format("local", "e"),
        "renamed": by.format("x", "(SELECT local AS x FROM e)"),
        "cast": by.format("CAST(at AS TIMESTAMP_NTZ)", "e"), "back": by.format("CAST(local AS TIMESTAMP)", "e"),
        "session": by.format("local", "e").replace("window(", "session_window("),
    }  # fmt: skip
    for name, query in queries.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    views = db._catalog.world().views
    assert {name: views[name].reason for name in queries} == {
        "zoned": None, "back": None,
        "zoneless": "Spark's window of local, which is a time without a zone",
        "renamed": "Spark's window of x, which is a time without a zone",
        "cast": "Spark's window of CAST(at AS TIMESTAMP_NTZ), which is a time without a zone",
        "session": "Spark's window of local, which is a time without a zone",
    }  # fmt: skip


# -- whole queries ----------------------------------------------------------------------------------------------------


def read_queries(db: penstock.Database, random: Random, count: int) -> None:
    """Random queries as views: each equals what Spark makes of its text, and only a known reason makes it FULL."""
    writer = QueryWriter(random)
    db.sql("CREATE TABLE t (k INT, a BOOLEAN, b BOOLEAN, c BOOLEAN, i INT, j INT, s STRING, d DATE, at TIMESTAMP)")
    db.sql(writer.insert())
    queries: dict[str, str] = {}
    while len(queries) < count:
        name, query = f"v{len(queries)}", writer.query()
        try:
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        except penstock.PenstockError as problem:
            if "the query is not valid" in str(problem):  # its types do not fit
                continue
            problem.add_note(query)
            raise
        queries[name] = query
    for change in (writer.insert(), "DELETE FROM t WHERE i < j", "UPDATE t SET a = NOT a, s = NULL WHERE b"):
        db.sql(change)
        db.refresh()
        for name, query in queries.items():
            reason = db._catalog.world().views[name].reason_code
            try:
                assert_fresh(db, name, ("INCREMENTAL", "NO_DATA") if reason is None else ("FULL", "NO_DATA"))
            except AssertionError as problem:
                problem.add_note(query)
                raise
            assert reason in (None, "PLAN_MISMATCH", "EXPRESSION", "AGGREGATE_FUNCTION"), query


def test_random_queries_are_read_as_spark_reads_them(db: penstock.Database) -> None:
    read_queries(db, Random(16), 6)


@pytest.mark.skipif(not MINUTES, reason="the long run: make test-fuzz MINUTES=30")
def test_queries_for_minutes(spark: SparkSession, tmp_path: Path) -> None:
    end, n = time.monotonic() + MINUTES * 60, 0
    while time.monotonic() < end:
        n, seed = n + 1, SystemRandom().getrandbits(64)
        with penstock.connect(tmp_path / str(n)) as db:
            try:
                read_queries(db, Random(seed), 12)
            except BaseException as problem:
                problem.add_note(f"Random({seed})")
                raise
