"""CREATE TABLE without Spark: the same first commit as Delta Lake on Spark writes, or Spark writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.engine import source_tables
from sessions import having

HERE = [
    "id INT",
    "id BIGINT NOT NULL, name STRING",
    "`id` integer, B tinyint, c Byte, d SMALLINT, e short, f LONG, g FLOAT, h real, i DOUBLE, j BOOLEAN, k BINARY",
    "day DATE, at TIMESTAMP NOT NULL, a DECIMAL, b DEC(5), c NUMERIC(38, 38), d decimal ( 12 , 2 )",
    "date DATE, select INT, order STRING, table INT -- a comment",
]
LEFT_TO_SPARK = [
    "id INT COMMENT 'the number'",
    "id BIGINT GENERATED ALWAYS AS IDENTITY",
    "tags ARRAY<STRING>, s STRUCT<a: INT>",
    "`odd-name` INT",
    "_hidden INT",
    "at TIMESTAMP_NTZ",
    "name VARCHAR(10)",
]
REFUSED = [
    "id INT DEFAULT 1",
    "id INT, ID INT",
    "id DECIMAL(39, 2)",
    "id DECIMAL(2, 3)",
    "id NUMBER",
    "id INT,",
    "id INT NOT",
    "_change_type STRING",
]


def first_commit(path: Path) -> dict[str, Any]:
    lines = (path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    return {kind: action for line in lines for kind, action in json.loads(line).items()}


def told(path: Path) -> list[Any]:
    """What the first commit says of the table."""
    commit = first_commit(path)
    about, protocol = commit["metaData"], commit["protocol"]
    features = [sorted(protocol[kind]) for kind in ("readerFeatures", "writerFeatures")]
    described = [about[key] for key in ("format", "partitionColumns", "configuration")]
    return [json.loads(about["schemaString"]), *described, protocol["minReaderVersion"], *features]


@pytest.fixture
def made(db: penstock.Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Creates a table, once as it is done and once by Spark; says whether the first was done here."""

    def create(columns: str) -> bool:
        db.sql(f"CREATE TABLE mine ({columns}\n)")
        with monkeypatch.context() as patched:
            patched.setattr(source_tables, "create", lambda *_: False)
            db.sql(f"CREATE TABLE theirs ({columns}\n)")
        mine, theirs = (warehouse / "tables" / name for name in ("mine", "theirs"))
        assert told(mine) == told(theirs), columns
        here = first_commit(mine)["commitInfo"]["engineInfo"] == "penstock"
        assert first_commit(theirs)["commitInfo"]["engineInfo"] != "penstock"
        for name in ("mine", "theirs"):
            db.sql(f"DROP TABLE {name}")
        return here

    return create


def test_a_table_of_plain_columns_is_made_here_as_spark_makes_it(made: Any) -> None:
    assert {columns: made(columns) for columns in HERE} == dict.fromkeys(HERE, True)


def test_other_columns_are_left_to_spark(made: Any) -> None:
    assert {columns: made(columns) for columns in LEFT_TO_SPARK} == dict.fromkeys(LEFT_TO_SPARK, False)


def test_what_spark_refuses_is_refused_and_leaves_nothing(db: penstock.Database, warehouse: Path) -> None:
    for columns in REFUSED:
        with pytest.raises(penstock.PenstockError):
            db.sql(f"CREATE TABLE t ({columns})")
        assert not list((warehouse / "tables").iterdir()), columns


def test_spark_reads_and_writes_it(db: penstock.Database, warehouse: Path) -> None:
    db.sql("CREATE TABLE t (id INT NOT NULL, name STRING)")
    path = warehouse / "tables" / "t"
    db.spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a'), (2, 'b')")
    db.spark.sql(f"UPDATE delta.`{path}` SET name = 'c' WHERE id = 2")
    with pytest.raises(Exception, match=r"NOT NULL|NULL value|NOT_NULL"):
        db.spark.sql(f"INSERT INTO delta.`{path}` VALUES (NULL, 'x')")
    changes = (
        db.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(str(path))
    )
    assert changes.count() == 4
    assert sorted(map(tuple, db.spark.read.format("delta").load(str(path)).collect())) == [(1, "a"), (2, "c")]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("spark.databricks.delta.properties.defaults.columnMapping.mode", "name", "delta.columnMapping.physicalName"),
     ("spark.sql.timestampType", "TIMESTAMP_NTZ", "timestamp_ntz")],
)  # fmt: skip
def test_what_the_session_says_of_new_tables_holds(
    db: penstock.Database, warehouse: Path, name: str, value: str, told: str
) -> None:
    with having(db.spark, {name: value}):
        db.sql("CREATE TABLE t (at TIMESTAMP)")
    assert told in first_commit(warehouse / "tables" / "t")["metaData"]["schemaString"]
