"""Schemas and names of two parts, in tables that the driver makes: Spark never comes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.errors import (
    AlreadyExistsError,
    DefinitionError,
    DependencyError,
    NotFoundError,
    NotSupportedError,
    PenstockError,
    SqlError,
)
from penstock.ivm.in_memory import NeedsSpark


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[penstock.Database]:
    with penstock.connect(tmp_path / "warehouse") as database:

        def never() -> Any:
            raise NeedsSpark

        monkeypatch.setattr(database._at.spark, "session", never)
        monkeypatch.setattr(type(database._at.spark), "started", False)  # whatever other tests have started
        yield database


def rows(db: penstock.Database, text: str, schema: str | None = None) -> list[tuple[Any, ...]]:
    found = db.read_here(text, schema=schema)
    assert found is not None, text
    return sorted(tuple(row.values()) for row in found.rows.table.to_pylist())


def names(db: penstock.Database, text: str) -> list[str]:
    return [row[0] for row in rows(db, text)]


@pytest.fixture
def twice(db: penstock.Database) -> penstock.Database:
    """A table ``t`` in two schemas."""
    for text in (
        "CREATE SCHEMA gold", "CREATE TABLE t (id INT, x STRING)", "CREATE TABLE gold.t (id INT, x STRING)",
        "INSERT INTO t VALUES (1, 'default')", "INSERT INTO gold.t VALUES (1, 'gold'), (2, 'gold')",
    ):  # fmt: skip
        db.sql(text)
    return db


def test_equal_names_in_two_schemas_are_two_tables(twice: penstock.Database) -> None:
    assert rows(twice, "SELECT * FROM t") == rows(twice, "SELECT * FROM DEFAULT.T") == [(1, "default")]
    assert rows(twice, "SELECT x, id FROM GOLD.`T`") == [("gold", 1), ("gold", 2)]
    assert names(twice, "SHOW TABLES") == ["gold.t", "t"]
    assert names(twice, "SHOW TABLES IN gold") == ["gold.t"]
    assert names(twice, "SHOW TABLES FROM Default") == ["t"]
    assert [row[:2] for row in rows(twice, "SHOW SCHEMAS")] == [("default", 1), ("gold", 1)]
    assert [node.name for node in twice.graph().nodes] == ["t", "gold.t"]
    assert os.path.isdir(os.path.join(twice.path, "tables", "t"))
    assert os.path.isdir(os.path.join(twice.path, "tables", "gold.t"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT gold.t.id, gold.t.x FROM gold.t WHERE gold.t.id > 0",
        "SELECT t.id, t.x FROM gold.t",
        "SELECT gold.t.* FROM gold.t",
        "SELECT u.* FROM gold.t AS u",
        "SELECT `Gold`.`T`.id, T.x FROM gold.t ORDER BY gold.t.id",
    ],
)
def test_columns_are_told_by_schema_and_table(twice: penstock.Database, query: str) -> None:
    assert rows(twice, query) == [(1, "gold"), (2, "gold")]


def test_a_cte_shadows_a_name_of_one_part_alone(twice: penstock.Database) -> None:
    twice.sql("CREATE TABLE found (x STRING)")
    twice.sql("INSERT INTO found WITH t AS (SELECT id, x FROM gold.t WHERE id = 2) SELECT x FROM t")
    twice.sql("INSERT INTO found WITH t AS (SELECT id FROM gold.t) SELECT u.x FROM t JOIN default.t u ON u.id = t.id")
    assert rows(twice, "SELECT x FROM found") == [("default",), ("gold",)]


def test_statements_that_write(twice: penstock.Database) -> None:
    twice.sql("INSERT INTO gold.t SELECT id + 10, x FROM t")
    twice.sql("UPDATE gold.t SET x = 'new' WHERE gold.t.id = 2")
    twice.sql("DELETE FROM gold.t WHERE id = 1")
    merged = twice.sql(
        "MERGE INTO gold.t USING default.t ON gold.t.id = default.t.id + 10 "
        "WHEN MATCHED THEN UPDATE SET gold.t.x = concat(default.t.x, '!') WHEN NOT MATCHED THEN INSERT *"
    )
    assert isinstance(merged, penstock.database.Done)
    assert rows(twice, "SELECT * FROM gold.t") == [(2, "new"), (11, "default!")]
    assert rows(twice, "SELECT * FROM t") == [(1, "default")]


def test_use(twice: penstock.Database) -> None:
    assert str(twice.sql("USE gold")) == "names without a schema are in gold from now on"
    assert rows(twice, "SELECT x FROM t WHERE t.id = 2") == [("gold",)]
    assert rows(twice, "SELECT x FROM default.t") == [("default",)]
    assert rows(twice, "SELECT x FROM t", schema="default") == [("default",)]
    assert rows(twice, "SELECT name FROM penstock.views") == []
    twice.sql("CREATE TABLE u (id INT)")
    twice.sql("INSERT INTO u SELECT id FROM t")
    twice.sql("CREATE TABLE v (id INT)", schema="default")
    assert names(twice, "SHOW TABLES") == ["gold.t", "gold.u", "t", "v"]
    assert rows(twice, "SELECT * FROM u") == [(1,), (2,)]
    with pytest.raises(NotFoundError, match=r"no table or view 'gold\.w'"):
        twice.table("w")
    assert twice.stored("u") is not None
    with pytest.raises(NotFoundError, match=r"no schema 'silver'.*CREATE SCHEMA silver makes it"):
        twice.sql("USE silver")
    twice.sql("USE SCHEMA default")
    assert rows(twice, "SELECT x FROM t") == [("default",)]


def test_use_is_of_one_database_object(twice: penstock.Database) -> None:
    twice.sql("USE gold")
    with penstock.connect(twice.path) as other:
        assert rows(other, "SELECT x FROM t") == [("default",)]


def test_names_of_any_characters(db: penstock.Database) -> None:
    db.sql("CREATE SCHEMA `we ird`")
    db.sql("CREATE TABLE `we ird`.`näme.1` (id INT)")
    db.sql("CREATE TABLE `näme.1` (id INT)")
    db.sql("CREATE TABLE `we ird`.`tick``s / and` (id INT)")
    db.sql("INSERT INTO `We Ird`.`NÄME.1` VALUES (1)")
    db.sql("INSERT INTO `we ird`.`tick``s / and` SELECT `we ird`.`näme.1`.id + 1 FROM `we ird`.`näme.1`")
    assert rows(db, "SELECT `näme.1`.id FROM `we ird`.`näme.1`") == [(1,)]
    assert rows(db, "SELECT `tick``s / and`.id FROM `we ird`.`tick``s / and`") == [(2,)]
    assert rows(db, "SELECT * FROM `näme.1`") == []
    assert rows(db, "SELECT id FROM `we ird`.`tick``s / and` AS a WHERE a.id = 2") == [(2,)]
    assert names(db, "SHOW TABLES") == ["`näme.1`", "`we ird`.`näme.1`", "`we ird`.`tick``s / and`"]
    assert rows(db, "SHOW CREATE TABLE `we ird`.`näme.1`")[0][0].startswith("CREATE TABLE `we ird`.`näme.1` (")
    assert db.stored("`WE IRD`.`näme.1`") is not None
    assert str(db.sql("DROP TABLE `we ird`.`näme.1`")) == "table `we ird`.`näme.1` dropped"


def test_what_is_not_there_is_told_with_what_is_near(twice: penstock.Database) -> None:
    def refused(text: str, words: str, kind: type[PenstockError] = NotFoundError) -> None:
        with pytest.raises(kind, match=words):
            twice.read_here(text) if text.startswith("SHOW") else twice.sql(text)

    refused("DROP TABLE glod.t", r"no schema 'glod'\. Did you mean 'gold'\? CREATE SCHEMA glod makes it\.")
    refused("DESCRIBE DETAIL silver.t", r"What only Spark's catalog has .*: spark_catalog\.silver\.t\.")
    refused("SHOW CREATE TABLE gold.tt", r"no table or view 'gold\.tt'\. Did you mean 'gold\.t'\?")
    refused("CREATE TABLE silver.t (id INT)", r"^there is no schema 'silver'\. CREATE SCHEMA silver makes it\.$")
    refused("CREATE TABLE penstock.t (id INT)", "tells of Penstock itself", NotSupportedError)
    refused("CREATE SCHEMA penstock", "tells of Penstock itself", NotSupportedError)
    refused("CREATE SCHEMA delta", "'delta' cannot be a schema", NotSupportedError)
    refused("DROP TABLE global_temp.t", "'global_temp' cannot be a schema", NotSupportedError)
    refused("CREATE SCHEMA GOLD", "schema 'GOLD' exists already", AlreadyExistsError)
    refused("CREATE TABLE Gold.T (id INT)", "table 'Gold.T' exists already", AlreadyExistsError)
    refused("DROP TABLE a.b.c.d", "line 1, column 12.*catalog of the Spark session", SqlError)
    refused("DROP TABLE a.b.c", "'a.b.c' of Spark's catalog is not known here.*penstock import a.b.c")
    for what in ("TABLE a.b.c (id INT)", "VIEW a.b.c AS SELECT 1", "MATERIALIZED VIEW a.b.c AS SELECT 1"):
        refused(f"CREATE {what}", "three parts means what is in a catalog of the Spark session", NotSupportedError)
    refused("DROP TABLE gold.", "expected the name of the table", SqlError)
    refused("SHOW TABLES IN silver", "no schema 'silver'")
    with pytest.raises(DefinitionError, match="cannot be a name"):
        twice.register_table("gold.t t", "/nowhere")
    assert str(twice.sql("CREATE SCHEMA IF NOT EXISTS gold")) == "schema gold exists already"


def test_a_schema_is_dropped_with_what_is_in_it(twice: penstock.Database) -> None:
    folder = os.path.join(twice.path, "tables", "gold.t")
    with pytest.raises(DependencyError, match=r"it has 'gold\.t'\. .* DROP SCHEMA gold CASCADE"):
        twice.sql("DROP SCHEMA gold RESTRICT")
    assert str(twice.sql("DROP SCHEMA gold CASCADE")) == "schema gold dropped, and with it gold.t"
    assert not os.path.exists(folder)
    assert names(twice, "SHOW SCHEMAS") == ["default"]
    assert rows(twice, "SELECT * FROM t") == [(1, "default")]
    with pytest.raises(NotFoundError, match="no schema 'gold'"):
        twice.sql("DROP SCHEMA gold")
    assert str(twice.sql("DROP SCHEMA IF EXISTS gold")) == "schema gold does not exist"
    with pytest.raises(NotSupportedError, match="always there"):
        twice.sql("DROP SCHEMA default CASCADE")


def test_the_schema_that_is_used_is_dropped(twice: penstock.Database) -> None:
    twice.sql("USE gold")
    twice.sql("DROP SCHEMA gold CASCADE")
    assert rows(twice, "SELECT x FROM t") == [("default",)]


def test_a_transaction_over_two_schemas(twice: penstock.Database) -> None:
    with twice.transaction() as tx:
        tx.sql("INSERT INTO gold.t VALUES (3, 'tx')")
        tx.sql("UPDATE t SET x = 'tx'")
        tx.sql("USE gold")
        tx.sql("DELETE FROM t WHERE id < 3")
    assert rows(twice, "SELECT * FROM default.t") == [(1, "tx")]
    assert rows(twice, "SELECT * FROM gold.t") == [(3, "tx")]
