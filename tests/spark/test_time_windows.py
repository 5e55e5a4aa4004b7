"""Spark's own window() and session_window(), and SESSION: as Spark computes them, kept fresh."""

from __future__ import annotations

import random

import pytest
from sqlglot import exp

import penstock
from oracle import after, assert_all_fresh, assert_fresh
from penstock.engine.definition import relation_schema
from penstock.engine.faithful import is_faithful
from penstock.errors import SqlError
from penstock.sql import event_time
from penstock.sql.window_start import WindowStart

GAP = "INTERVAL 5 SECONDS"
VIEWS = {
    "tumbling": "SELECT window(at, '10 seconds') AS w, COUNT(*) AS n, SUM(v) AS s FROM t "
    "GROUP BY window(at, '10 seconds')",
    "fields": "SELECT k, window.start, window.end AS till, MIN(v) AS low FROM t GROUP BY k, window(at, '10 seconds') "
    "HAVING window.start > TIMESTAMP '1970-01-01 00:00:05'",
    "sliding": "SELECT window, MAX(v) AS high FROM t GROUP BY window(at, '10 seconds', '4 seconds')",
    "another": "SELECT MAX(v) AS window, k FROM t GROUP BY window(at, '1 hour'), k ORDER BY window, k LIMIT 3",
    "listed": "SELECT window.start, COLLECT_LIST(v) AS v FROM t GROUP BY window(at, '9 seconds')",
    "shifted": "SELECT window(at, '8 seconds', '4 seconds', '1 second').start AS s, k, COUNT(v) AS n FROM t "
    "GROUP BY 1, k",
    "sessions": "SELECT k, session_window.start, session_window.end, COUNT(*) AS n, COUNT(DISTINCT v) AS d, "
    "AVG(v) AS a FROM t GROUP BY k, session_window(at, '5 seconds')",
    "alone": "SELECT session_window(at, '2 seconds') AS w, COUNT(*) AS n FROM t GROUP BY w",
    "spoken": f"SELECT SESSION_START(at, {GAP}) AS b, SESSION_END(at, {GAP}) AS e, UPPER(k) AS u, FIRST_VALUE(v) AS f, "
    f"LAST_VALUE(v) AS l FROM t GROUP BY SESSION(at, {GAP}), UPPER(k) HAVING COUNT(*) > 1",
    "joined": "SELECT n.name, session_window(t.at, '5 seconds').start AS b, SUM(t.v) AS s FROM t JOIN n ON n.k = t.k "
    "WHERE t.v IS NOT NULL GROUP BY n.name, session_window(t.at, '5 seconds')",
}  # fmt: skip


@pytest.fixture
def windows(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (id INT, k STRING, at TIMESTAMP, v INT)")
    db.sql("CREATE TABLE n (k STRING, name STRING)")
    db.sql("INSERT INTO n VALUES ('a', 'x'), ('b', 'x'), ('c', 'y'), (NULL, 'z')")
    return db


def test_the_windows_of_spark(windows: penstock.Database) -> None:
    random_ = random.Random(5)

    def row(number: int) -> str:
        key = random_.choice(["'a'", "'b'", "'c'", "'A'", "NULL"])
        time = random_.choice([f"TIMESTAMP_MILLIS({500 * random_.randrange(120)})"] * 9 + ["NULL"])
        return f"({number}, {key}, {time}, {random_.choice(['NULL', '1', '2', '3'])})"

    for name, query in VIEWS.items():
        windows.create_view(name, query, policy="INCREMENTAL STRICT", initialize=False)
    # Spark marks the column of a session and joins sessions again that are grouped by it; what is stored has no marks.
    windows.create_view("ends", "SELECT w, MAX(n) AS n FROM alone GROUP BY w", initialize=False)
    windows.create_view("per_key", "SELECT k, SUM(n) AS n FROM sessions GROUP BY k", initialize=False)
    after(windows, f"INSERT INTO t VALUES {', '.join(row(i) for i in range(40))}", action="FULL")
    actions = ("INCREMENTAL", "NO_DATA")
    changes = [
        # Sessions grow together and fall apart.
        [f"INSERT INTO t VALUES {', '.join(row(i) for i in range(40, 46))}", "DELETE FROM t WHERE id % 5 = 1"],
        ["UPDATE t SET at = at + INTERVAL 3 SECONDS WHERE id % 4 = 0", "UPDATE n SET name = 'y' WHERE k = 'a'"],
        ["INSERT INTO t VALUES (90, 'd', TIMESTAMP_MILLIS(-7500), 1)", "UPDATE t SET k = 'b' WHERE k = 'c'"],
        ["DELETE FROM t WHERE k = 'b' OR k IS NULL OR id > 9"],
    ]
    for statements in changes:
        after(windows, *statements, action=actions)


def test_sessions_that_have_ended(windows: penstock.Database) -> None:
    """A session ends when the watermark has passed its last row by more than the gap."""
    windows.sql("ALTER TABLE t SET WATERMARK FOR at AS at")
    windows.sql(
        f"CREATE MATERIALIZED VIEW visits AS SELECT k, SESSION_START(at, {GAP}) AS b, COUNT(*) AS n FROM t "
        f"GROUP BY k, SESSION(at, {GAP}) EMIT AFTER WATERMARK"
    )
    windows.sql(
        "CREATE MATERIALIZED VIEW tens AS SELECT window.start, COUNT(*) AS n FROM t GROUP BY window(at, '10 seconds') "
        "EMIT AFTER WATERMARK"
    )
    seen = []
    for second, key in ((0, "a"), (4, "a"), (5, "b"), (9, "b"), (10, "c"), (15, "c"), (30, "d")):
        windows.sql(f"INSERT INTO t VALUES (1, '{key}', TIMESTAMP_SECONDS({second}), 1)")
        assert windows.refresh()["visits"].rows_deleted == 0
        assert_fresh(windows, "visits")
        assert_fresh(windows, "tens")
        seen.append(sorted((row.k, row.n) for row in windows.table("visits").collect()))
    assert seen == [[], [], [], [], [("a", 2)], [("a", 2), ("b", 2)], [("a", 2), ("b", 2), ("c", 2)]]


LEFT_TO_SPARK = [
    "SELECT window(at, '1 hour').start AS s, COUNT(window) AS n FROM w WHERE window > 1 GROUP BY window(at, '1 hour')",
    "SELECT window, k, COUNT(*) AS n FROM t GROUP BY window(at, '1 hour'), k WITH ROLLUP",
    "SELECT COUNT(*) AS n FROM t WHERE window(at, '9 seconds', '3 seconds').start > TIMESTAMP_SECONDS(1) "
    "GROUP BY window(at, '9 seconds', '3 seconds')",
    "SELECT window(local, '1 day') AS w, COUNT(*) AS n FROM w GROUP BY window(local, '1 day')",
    "SELECT window.start, MAX(v) AS v FROM t GROUP BY window(at, '1 day', '1 minute')",
    "SELECT window.start, FIRST(v, true) AS v FROM t WHERE v = 1 GROUP BY window(at, '1 day')",
]


def test_windows_whose_meaning_is_left_to_spark(windows: penstock.Database) -> None:
    windows.sql("CREATE TABLE w (at TIMESTAMP, window INT, local TIMESTAMP_NTZ)")
    windows.sql("INSERT INTO w VALUES (TIMESTAMP_SECONDS(1), 1, TIMESTAMP_NTZ'2024-01-01 00:00:01')")
    windows.sql("INSERT INTO t VALUES (1, 'a', TIMESTAMP_SECONDS(5), 1), (2, 'b', TIMESTAMP_SECONDS(9), 1)")
    for number, query in enumerate(LEFT_TO_SPARK):
        windows.create_view(f"v{number}", query, initialize=False)
        assert windows.explain(f"v{number}").reason_code is not None, query
    windows.refresh()
    assert_all_fresh(windows, "FULL")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT SESSION_START(at, INTERVAL 1 SECOND) AS s FROM t", "goes with GROUP BY SESSION"),
        ("SELECT COUNT(*) AS n FROM t GROUP BY SESSION(at)", "takes a timestamp and an interval"),
        ("SELECT COUNT(*) AS n FROM t GROUP BY SESSION(at, INTERVAL 1 MONTH)", "an interval of fixed length"),
    ],
)
def test_sessions_that_make_no_sense(windows: penstock.Database, query: str, problem: str) -> None:
    with pytest.raises(SqlError, match=problem):
        windows.sql(f"CREATE MATERIALIZED VIEW v AS {query}")


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("SELECT TUMBLE_START(att, INTERVAL '1 second') AS b FROM {} GROUP BY TUMBLE(att, INTERVAL '1 second')", "att"),
        ("SELECT MAX(nothing) AS m FROM {} GROUP BY HOP(at, INTERVAL '1 second', INTERVAL '2 seconds')", "nothing"),
        ("SELECT MAX(nothing) AS m FROM {} GROUP BY SESSION(at, INTERVAL '1 second')", "nothing"),
    ],
)
def test_a_misspelled_column_beside_our_windows_is_named(windows: penstock.Database, query: str, wrong: str) -> None:
    with pytest.raises(penstock.QueryError, match=f"with name `{wrong}` cannot be resolved"):
        windows.sql(f"CREATE MATERIALIZED VIEW misspelled AS {query.format('t')}")


LENGTHS = [
    "'10 seconds'", "'1 week'", "'10 seconds', '4 seconds'", "'1 hour', '1 hour', '15 minutes'", "5000001",
    "'1 day', '7 hours', '90 minutes'",
]  # fmt: skip


@pytest.mark.parametrize("lengths", LENGTHS)
def test_windows_are_compared_with_those_of_spark(
    windows: penstock.Database, lengths: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that we spelled wrongly, by a microsecond or at its end, would recompute, and not be wrong."""
    query = f"SELECT window(at, {lengths}) AS w, window(at, {lengths}).end AS e, COUNT(*) AS n FROM t GROUP BY 1, 2"
    schemas = {"t": relation_schema(windows._catalog.world(), "t")}
    assert is_faithful(windows.spark, query, schemas)
    start, later = WindowStart.of, event_time._later
    with monkeypatch.context() as wrong:
        wrong.setattr(WindowStart, "of", lambda at, width, offset=0: start(at, width, offset + 1))
        assert not is_faithful(windows.spark, query, schemas)
    with monkeypatch.context() as wrong:
        wrong.setattr(event_time, "_later", lambda time, micros: later(time, micros + (micros > 0)))
        assert not is_faithful(windows.spark, query, schemas)
    assert is_faithful(windows.spark, query, schemas)


def test_the_rest_of_a_query_with_windows_is_compared_by_plan(
    windows: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = {"t": relation_schema(windows._catalog.world(), "t")}
    query = "SELECT window.start AS s, MAX(v) AS m FROM t WHERE v > 1 AND k = 'a' GROUP BY window(at, '5 seconds')"
    rewritten = event_time._as_structs

    def without_where(select: exp.Select, found: list[exp.Anonymous]) -> None:
        select.set("where", None)
        rewritten(select, found)

    assert is_faithful(windows.spark, query, schemas)
    monkeypatch.setattr(event_time, "_as_structs", without_where)
    assert not is_faithful(windows.spark, query, schemas)
