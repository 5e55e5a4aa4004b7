"""INSERT .. VALUES without Spark: the same rows as Spark inserts, in a table that Spark and its change feed read."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from oracle import assert_fresh
from penstock.storage.appending import can_append
from penstock.storage.delta_log import Snapshot

COLUMNS = (
    "i INT, l BIGINT, s SMALLINT, d DECIMAL(10,2), f DOUBLE, x STRING, b BOOLEAN, day DATE, at TIMESTAMP, "
    "local TIMESTAMP_NTZ"
)
HERE = [
    "VALUES (1, 2, 3, 4.5, 6.5D, 'it''s é', true, DATE'2024-02-29', TIMESTAMP'2024-01-01 10:00:00.5', NULL)",
    "VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "VALUES (-1, 9223372036854775807L, 7, -2, 1, '', false, '2024-01-31', '2024-03-31 02:30:00', NULL), "
    "(2147483647, -5, -7, 0.005, -0.0D, 'b', NULL, NULL, NULL, NULL)",
    "(x, i) VALUES ('named', 1 + 2), (UPPER('b'), 4)",
    "(L, X) VALUES (7, 'case of names')",
    "(i) SELECT 5",
    "(i, d) VALUES (1, 2), (2, 0.125), (2.7, 99999999L)",
]
LEFT_TO_SPARK = [
    "VALUES ('1', 2, 3, 4.5, 6.5D, 'x', true, NULL, NULL, NULL)",
    "(l) VALUES (9007199254740993L), (1.0D)",
    "(i) SELECT 5 ORDER BY 1",
    "(x) VALUES (SOUNDEX('seven'))",
    "(at) VALUES (TIMESTAMP_NTZ'2024-01-01 00:00:00')",
]
REFUSED = [
    "(i) VALUES (1, 2)",
    "(nothing) VALUES (1)",
    "(i, i) VALUES (1, 2)",
    "(s) VALUES (100000)",
    "(i) VALUES (1/0)",
    "(l) VALUES (1.5L)",
    "(s) VALUES (2.0S)",
    "(f) VALUES (1e400)",
    "(f) VALUES (1e400D)",
]


@pytest.fixture
def tables(db: penstock.Database, tmp_path: Path) -> penstock.Database:
    """Two tables alike; rows of the external one are always inserted by Spark."""
    db.sql(f"CREATE TABLE mine ({COLUMNS})")
    db.sql(f"CREATE TABLE theirs ({COLUMNS}) LOCATION '{tmp_path / 'theirs'}'")
    return db


def inserted(db: penstock.Database, text: str) -> list[bool]:
    """Insert into both; gives what was done without Spark."""
    done = [db.sql(f"INSERT INTO {table} {text}") for table in ("mine", "theirs")]
    return [isinstance(one, penstock.Done) and one.by_spark is None for one in done]


@pytest.mark.parametrize("text", [*HERE, *LEFT_TO_SPARK])
def test_rows_are_those_that_spark_inserts(tables: penstock.Database, text: str) -> None:
    assert inserted(tables, text) == [text in HERE, False]
    mine, theirs = (tables.spark.read.format("delta").load(path) for path in _paths(tables))
    assert mine.exceptAll(theirs).isEmpty()
    assert theirs.exceptAll(mine).isEmpty()
    assert mine.count() > 0


@pytest.mark.parametrize("text", REFUSED)
def test_what_spark_refuses_is_refused_and_nothing_is_inserted(tables: penstock.Database, text: str) -> None:
    for table in ("mine", "theirs"):
        with pytest.raises(penstock.PenstockError):
            tables.sql(f"INSERT INTO {table} {text}")
        assert tables.table(table).count() == 0


def test_a_view_and_the_change_feed_follow(tables: penstock.Database) -> None:
    tables.sql("CREATE MATERIALIZED VIEW sums AS SELECT x, SUM(d) AS d, COUNT(*) AS n FROM mine GROUP BY x")
    for text in HERE[:3]:
        tables.sql(f"INSERT INTO mine {text}")
        tables.refresh()
        assert_fresh(tables, "sums", action="INCREMENTAL")
    path = _paths(tables)[0]
    feed = tables.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    assert {row["_change_type"] for row in feed.collect()} == {"insert"}
    assert feed.count() == 4


def test_a_column_that_may_not_be_null_is_checked(db: penstock.Database) -> None:
    db.sql("CREATE TABLE strict (i INT NOT NULL, x STRING)")
    db.sql("INSERT INTO strict VALUES (1, 'a')")
    for text in ("VALUES (NULL, 'b')", "(x) VALUES ('b')"):
        with pytest.raises(penstock.PenstockError):
            db.sql(f"INSERT INTO strict {text}")
    assert [tuple(row) for row in db.table("strict").collect()] == [(1, "a")]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE special (i INT, x STRING) PARTITIONED BY (x)",
        "CREATE TABLE special (i INT, x STRING DEFAULT 'given') "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "CREATE TABLE special (i INT, x STRING GENERATED ALWAYS AS (CAST(i AS STRING)))",
    ],
)
def test_what_a_table_asks_of_its_writers_is_done(db: penstock.Database, made: str) -> None:
    db.sql(made)
    db.sql("INSERT INTO special (i) VALUES (7)") if "PARTITIONED" not in made else db.sql(
        "INSERT INTO special VALUES (7, NULL)"
    )
    table = db._catalog.world().tables["special"]
    assert can_append(Snapshot(table.path)) == ("DEFAULT" in made), "defaults are known on the driver"
    (row,) = db.table("special").collect()
    assert row["i"] == 7
    assert row["x"] == ("given" if "DEFAULT" in made else "7" if "GENERATED" in made else None)


def _paths(db: penstock.Database) -> list[str]:
    tables = db._catalog.world().tables
    return [tables[name].path for name in ("mine", "theirs")]
