"""UPDATE and DELETE of a few rows without Spark: the same rows, count and feed as with Spark, or Spark does it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from oracle import after, multiset
from penstock import points
from penstock.frames import limits
from penstock.storage.delta_log import Snapshot
from races import between
from sessions import having

COLUMNS = "id INT, k STRING, x INT, y DECIMAL(10,2), d DOUBLE, at TIMESTAMP, day DATE, b BOOLEAN"
ROWS = (
    "(1, 'a', 1, 1.50, 0.5, TIMESTAMP'2026-01-01 10:00:00', DATE'2026-01-01', true), "
    "(1, 'a', 1, 1.50, 0.5, NULL, NULL, true), "
    "(2, NULL, 5, NULL, DOUBLE('NaN'), TIMESTAMP'2026-03-29 02:30:00', DATE'2024-02-29', false), "
    "(NULL, 'b', NULL, -2.25, -0.0D, NULL, DATE'2026-01-03', NULL), (4, 'é', 7, 0, 1e10D, NULL, NULL, true)"
)
STATEMENTS = (
    "UPDATE t SET x = x + 1 WHERE id = 1",
    "UPDATE t SET x = x + 1, k = UPPER(k) WHERE x > 2 OR k IS NULL",
    "UPDATE t SET k = CASE WHEN x > 3 THEN 'big' ELSE k END",
    "UPDATE t AS u SET u.y = u.y * 2, d = d / 2 WHERE u.b",
    "UPDATE t SET x = id, id = x WHERE id < 5",
    "UPDATE t SET at = NULL, day = day + INTERVAL 1 DAY WHERE day >= DATE'2026-01-01'",
    "UPDATE t SET d = x WHERE k LIKE 'a%' AND NOT b <=> false",
    "UPDATE t SET y = 3 WHERE id IN (1, 2, 99)",
    "UPDATE t SET x = 0 WHERE id = 12345",
    "UPDATE t SET x = 2147483647 + x WHERE x IS NULL",
    "DELETE FROM t WHERE id = 1",
    "DELETE FROM t WHERE d > 1 OR x IS NULL",
    "DELETE FROM t WHERE at < TIMESTAMP'2026-02-01 00:00:00'",
    "DELETE FROM t t2 WHERE t2.k = 'b'",
    "DELETE FROM t WHERE id = 12345",
    "DELETE FROM t WHERE CAST(NULL AS BOOLEAN)",
    "DELETE FROM t",
)
BY_SPARK = (
    "UPDATE t SET x = (SELECT MAX(id) FROM s ORDER BY 1 LIMIT 1)",
    "DELETE FROM t WHERE FORMAT_NUMBER(x, 2) = '1.00'",
)
REFUSED = (
    "UPDATE t SET x = 'abc' WHERE id = 12345",
    "UPDATE t SET x = x + 2147483647",
    "UPDATE t SET nothing = 1",
    "UPDATE t SET x = 1, x = 2",
    "DELETE FROM t WHERE nothing = 1",
    "DELETE FROM t WHERE k",
    "DELETE FROM t WHERE NULL",
    "UPDATE t SET x = 1 / 0 WHERE id = 1",
)


@pytest.fixture
def both(db: penstock.Database, tmp_path: Path) -> penstock.Database:
    """A managed table, and an external one with the same rows, which Spark writes."""
    described = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
    db.sql(f"CREATE TABLE t ({COLUMNS})")
    db.sql(f"CREATE TABLE u ({COLUMNS}) USING delta {described} LOCATION '{tmp_path / 'u'}'")
    db.sql("CREATE TABLE s (id INT)")
    db.sql("INSERT INTO s VALUES (1)")
    for name in "tu":
        db.sql(f"INSERT INTO {name} VALUES {ROWS}")
        db.sql(f"INSERT INTO {name} SELECT id + 10, k, x, y, d, at, day, b FROM {name}")
    return db


def _feed(db: penstock.Database, name: str, since: int) -> Counter[Any]:
    path = db._catalog.world().tables[name].path
    frame = db.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", since).load(path)
    return multiset(frame.drop("_commit_version", "_commit_timestamp"))


def _read(db: penstock.Database, name: str) -> Counter[Any]:
    """As Delta's own reader sees it."""
    return multiset(db.spark.read.format("delta").load(db._catalog.world().tables[name].path))


def _jobs(db: penstock.Database) -> int:
    """All jobs so far, of whatever group: another test may have left one for this thread."""
    context: Any = db.spark.sparkContext
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.parametrize("seed", [2])
def test_the_same_rows_and_feed_as_by_spark(both: penstock.Database, seed: int) -> None:
    random = Random(seed)
    versions = {name: Snapshot(both._catalog.world().tables[name].path).version for name in "tu"}
    for statement in [*random.sample(STATEMENTS[:-1], 7), STATEMENTS[-1]]:
        jobs = _jobs(both)
        here = both.sql(statement)
        assert _jobs(both) == jobs, f"{statement} ran a Spark job"
        there = both.sql(statement.replace(" t", " u", 1))
        assert isinstance(here, penstock.Done)
        assert isinstance(there, penstock.Done)
        assert here.rows == there.rows, statement
        assert _read(both, "t") == _read(both, "u"), statement
    assert _feed(both, "t", versions["t"] + 1) == _feed(both, "u", versions["u"] + 1)


SOURCES = (
    "s", "(SELECT id, k, x, y, d FROM s WHERE id > 1 OR id IS NULL)", "(SELECT * FROM s UNION ALL SELECT * FROM s)",
    "(SELECT * FROM VALUES (1, 'v', 2147483647, 1.25, 2.5D), (77, NULL, NULL, 3.5, -0.0D) AS v(id, k, x, y, d))",
    "(SELECT id, MAX(k) AS k, SUM(x) AS x, SUM(y) AS y, MIN(d) AS d FROM s GROUP BY id)",
)  # fmt: skip
CONDITIONS = ("m.id = n.id", "m.id <=> n.id", "m.d = n.d AND m.id = n.id", "m.k = n.k AND n.id < 9", "m.id = n.id + 10")
MATCHED = ("", "AND n.x > 3", "AND m.d > 0.1 OR n.k IS NULL", "AND m.k LIKE 'a%'")
CHANGES = ("DELETE", "UPDATE SET m.k = n.k, y = n.y", "UPDATE SET x = m.x + n.id, d = n.x", "UPDATE SET b = m.id > 1")
ABSENT = (
    "INSERT (k, ID, d) VALUES (n.k, n.id, n.d)", "AND n.id > 1 THEN INSERT (id, x, y) VALUES (n.id, n.x, n.y)",
    "AND n.k IS NULL THEN INSERT (id, day) VALUES (n.id, DATE'2024-02-29')",
)  # fmt: skip
LEFT = ("DELETE", "AND m.x > 4 THEN UPDATE SET k = 'left', d = m.d + m.x", "AND m.id IS NULL THEN DELETE")


def merge(random: Random) -> str:
    source = random.choice(SOURCES)
    text = f"MERGE INTO t AS m USING {source} AS n ON {random.choice(CONDITIONS)}"
    for condition in random.sample(MATCHED[1:], random.randint(0, 1)) + [""] * random.randint(0, 1):
        text += f" WHEN MATCHED {condition} THEN {random.choice(CHANGES)}"
    for some, kind in ((ABSENT, "NOT MATCHED"), (LEFT, "NOT MATCHED BY SOURCE")):
        if random.random() < 0.5 or (" WHEN" not in text and some is LEFT):
            clause = random.choice(some)
            text += f" WHEN {kind} " + (clause if " THEN " in clause else f"THEN {clause}")
    return text


INSERTED = (
    "INSERT INTO t (id, x, k, d) SELECT id + 1, id, UPPER(k), d FROM s", "INSERT INTO t BY NAME SELECT d, k, id FROM s",
    "INSERT INTO t (id, k) SELECT COUNT(*), k FROM s GROUP BY k", "INSERT INTO t (x, y) SELECT y, x FROM s",
    "INSERT INTO t (id, d) SELECT s.id, t.d FROM t JOIN s ON t.id = s.id", "INSERT INTO t (d) SELECT d + 0.5D FROM s",
    "INSERT INTO t (id) SELECT id FROM s WHERE id NOT IN (SELECT id FROM s WHERE id IS NOT NULL)",
    "UPDATE t SET y = (SELECT SUM(y) FROM s), x = 2.7 WHERE k = 'a'", "UPDATE t SET x = DEFAULT, y = 1 WHERE id = 4",
)  # fmt: skip


def outcome(db: penstock.Database, text: str) -> tuple[bool, bool]:
    """Whether a statement was done, and whether it was done here. Without Spark, nothing is told of it."""
    try:
        done = db.sql(text)
    except penstock.PenstockError:
        return False, False
    assert isinstance(done, penstock.Done)
    return True, done.by_spark is None


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_merges_and_queries_mean_what_they_mean_to_spark(
    both: penstock.Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Random ones; a table that is written here, and one by Spark, which now and then writes the first one too."""
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 10 * (seed % 2))
    both.sql("DROP TABLE s")
    both.sql("CREATE TABLE s (id INT, k STRING, x INT, y DECIMAL(10,2), d DOUBLE)")
    both.sql("INSERT INTO s VALUES (1, 'ab', 3, 9.75, -0.0D), (NULL, 'b', 4, NULL, 0.5D), (4, NULL, 5, 1, 1e10D)")
    both.sql("INSERT INTO s VALUES (12, 'm', NULL, 0.01, DOUBLE('NaN')), (90, 'n', 6, -2.5, 0.0D)")
    random, here = Random(seed), 0
    versions = {name: Snapshot(both._catalog.world().tables[name].path).version for name in "tu"}
    statements = [*random.sample(INSERTED, 4), *(merge(random) for _ in range(8))]
    random.shuffle(statements)
    for number, text in enumerate(statements):
        if number == 6:
            for name in "tu":
                path = both._catalog.world().tables[name].path
                both.spark.sql(f"UPDATE delta.`{path}` SET x = coalesce(x, 0) % 9 WHERE id > 2 OR k = 'left'")
        done, without = outcome(both, text)
        other = text.replace("INTO t", "INTO u").replace("UPDATE t", "UPDATE u").replace("FROM t", "FROM u")
        assert done == outcome(both, other.replace(" t.", " u."))[0], text
        assert _read(both, "t") == _read(both, "u"), text
        here += without
    assert here >= len(statements) // 2
    assert _feed(both, "t", versions["t"] + 1) == _feed(both, "u", versions["u"] + 1)


def test_views_follow(db: penstock.Database) -> None:
    db.sql(f"CREATE TABLE t ({COLUMNS})")
    db.sql(f"INSERT INTO t VALUES {ROWS}")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY k")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT * FROM t WHERE x > 1")
    after(db, *STATEMENTS[:3])
    after(db, "DELETE FROM t WHERE id = 1", "INSERT INTO t (id, x) VALUES (9, 9)", "UPDATE t SET x = 10 WHERE id = 9")
    after(db, "DELETE FROM t", action=("INCREMENTAL", "FULL"))


def test_what_the_driver_does_not_do_spark_does(both: penstock.Database) -> None:
    for statement in BY_SPARK:
        jobs = _jobs(both)
        here = both.sql(statement)
        assert _jobs(both) > jobs, f"{statement} ran no Spark job"
        there = both.sql(statement.replace(" t", " u", 1))
        assert isinstance(here, penstock.Done)
        assert isinstance(there, penstock.Done)
        assert here.rows == there.rows, statement
        assert _read(both, "t") == _read(both, "u"), statement


def test_what_spark_refuses_is_refused_and_nothing_changes(both: penstock.Database) -> None:
    version = Snapshot(both._catalog.world().tables["t"].path).version
    for statement in REFUSED:
        with pytest.raises(penstock.PenstockError):
            both.sql(statement)
        assert Snapshot(both._catalog.world().tables["t"].path).version == version, statement


def test_tables_that_ask_more_are_left_to_spark(db: penstock.Database, spark: SparkSession) -> None:
    db.sql("CREATE TABLE p (id INT NOT NULL, g INT) PARTITIONED BY (g)")
    db.sql("CREATE TABLE n (id INT NOT NULL, g INT)")
    for name in "pn":
        db.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
        with pytest.raises(penstock.PenstockError):
            db.sql(f"UPDATE {name} SET id = NULL WHERE g = 1")
        assert str(db.sql(f"UPDATE {name} SET g = g + 1 WHERE id = 2")) == "UPDATE: 1 row"
        assert {tuple(row) for row in db.table(name).collect()} == {(1, 1), (2, 3)}
    db.sql("CREATE TABLE a (id INT) TBLPROPERTIES ('delta.appendOnly' = 'true')")
    db.sql("INSERT INTO a VALUES (1)")
    with pytest.raises(penstock.PenstockError):
        db.sql("DELETE FROM a WHERE id = 1")


def test_files_that_nobody_counted_are_left_to_spark(db: penstock.Database, spark: SparkSession) -> None:
    db.sql("CREATE TABLE t (id INT, x INT)")
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        db.sql("INSERT INTO t SELECT id, id FROM range(5)")
        assert str(db.sql("UPDATE t SET x = 7 WHERE id = 2")) == "UPDATE: 1 row"
    finally:
        spark.conf.unset("spark.databricks.delta.stats.collect")
    assert str(db.sql("DELETE FROM t WHERE id > 2")) == "DELETE: 2 rows"
    assert {tuple(row) for row in db.table("t").collect()} == {(0, 0), (1, 1), (2, 7)}


def test_files_that_a_checkpoint_of_spark_tells(db: penstock.Database) -> None:
    """It says the bounds of files twice, once in types that no commit knows."""
    db.sql("CREATE TABLE t (id INT, y DECIMAL(10,2)) TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    db.sql("INSERT INTO t SELECT id, id FROM range(5)")
    assert list(Path(db._catalog.world().tables["t"].path, "_delta_log").glob("*.checkpoint.parquet"))
    assert str(db.sql("UPDATE t SET y = 7.5 WHERE id = 2")) == "UPDATE: 1 row"
    assert str(db.sql("DELETE FROM t WHERE id > 2")) == "DELETE: 2 rows"
    assert sorted(tuple(map(float, row)) for row in db.table("t").collect()) == [(0, 0), (1, 1), (2, 7.5)]
    newest = sorted(Path(db._catalog.world().tables["t"].path, "_delta_log").glob("*.json"))[-1]
    assert "_parsed" not in newest.read_text()


def test_another_writer_between(both: penstock.Database) -> None:
    """The rows are read again, so that the statement means what is there when it is committed."""
    with between(points.COMMIT, 1, lambda: both.sql("INSERT INTO t (id, x) VALUES (1, 100)")):
        assert str(both.sql("UPDATE t SET x = 0 WHERE id = 1")) == "UPDATE: 3 rows"
    assert {row["x"] for row in both.table("t").where("id = 1").collect()} == {0}


TOO_LARGE = {
    "tiny": "300",
    "small": "70000",
    "i": "3000000000",
    "l": "1e30D",
    "day": "'abc'",
    "at": "'xyz'",
    "d": "123456.7",
}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_value_that_does_not_fit_is_refused_whatever_the_session_says(db: penstock.Database, ansi: str) -> None:
    """How values are stored is a setting of its own, which is strict; arithmetic alone is lax without ANSI."""
    db.sql("CREATE TABLE t (tiny TINYINT, small SMALLINT, i INT, l BIGINT, day DATE, at TIMESTAMP, d DECIMAL(5,2))")
    db.sql("INSERT INTO t (i) VALUES (1)")
    before = db.table("t").collect()
    with having(db.spark, {"spark.sql.ansi.enabled": ansi}):
        for column, value in TOO_LARGE.items():
            with pytest.raises(penstock.PenstockError):
                db.sql(f"UPDATE t SET {column} = {value}")
        for column in ("i", "day", "d"):
            with pytest.raises(penstock.PenstockError):
                db.sql(f"INSERT INTO t ({column}) VALUES ({TOO_LARGE[column]})")
    assert db.table("t").collect() == before


def test_columns_that_are_called_like_ours(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (a__file STRING, a INT)")
    db.spark.sql(f"ALTER TABLE delta.`{db._catalog.world().tables['t'].path}` ADD COLUMNS (__file STRING, __place INT)")
    db.sql("INSERT INTO t VALUES ('x', 1, 'f', 2)")
    db.sql("UPDATE t SET a = 5 WHERE __place = 2")
    assert [tuple(row) for row in db.table("t").collect()] == [("x", 5, "f", 2)]
