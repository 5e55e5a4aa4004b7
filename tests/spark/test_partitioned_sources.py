"""Sources with partitions and mapped columns: a small change of them is read on the driver, as of any other table."""

from __future__ import annotations

from random import Random

import pytest

import penstock
from longer import varied
from oracle import assert_all_fresh, assert_fresh, rows
from penstock.frames import limits

DAYS = "PARTITIONED BY (day)"
PROPERTIES = "'delta.enableChangeDataFeed' = '{feed}', 'delta.enableDeletionVectors' = '{vectors}'"
NAMES, NUMBERS = (f", 'delta.columnMapping.mode' = '{mode}'" for mode in ("name", "id"))


def options(partition: str, *, feed: bool, vectors: bool, mapping: str = "") -> str:
    said = PROPERTIES.format(feed=str(feed).lower(), vectors=str(vectors).lower())
    return f"{partition} TBLPROPERTIES ({said}{mapping})"


KINDS = {
    "by day": options(DAYS, feed=True, vectors=True),
    "by day, no feed, no vectors": options(DAYS, feed=False, vectors=False),
    "mapped by name": options("", feed=False, vectors=True, mapping=NAMES),
    "by day, mapped by name": options(DAYS, feed=True, vectors=True, mapping=NAMES),
    "by day, mapped by number": options(DAYS, feed=False, vectors=True, mapping=NUMBERS),
    "by all kinds": options("PARTITIONED BY (region, day, n, at, local, price)", feed=True, vectors=True),
}


def by_spark(db: penstock.Database) -> list[tuple[str, int, list[str]]]:
    """The views for which a refresh asks Spark for anything."""
    report = db.refresh()
    return [(name, report[name].jobs, report[name].by_spark) for name in report if report[name].jobs]


@pytest.fixture
def sales(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE regions (region STRING, name STRING)")
    db.sql("INSERT INTO regions VALUES ('eu', 'Europe'), ('a b/c=d%', 'elsewhere'), (NULL, 'nowhere')")
    return db


def create(db: penstock.Database, kind: str) -> None:
    db.sql(
        "CREATE TABLE sales (id INT, day DATE, region STRING, n INT, at TIMESTAMP, local TIMESTAMP_NTZ, "
        f"price DECIMAL(8,2)) {KINDS[kind]}"
    )
    db.sql(f"INSERT INTO sales VALUES {', '.join(row(number) for number in range(20))}")
    db.create_view("by_day", "SELECT day, region, SUM(price) AS total, MAX(at) AS last FROM sales GROUP BY day, region")
    db.create_view("named", "SELECT s.id, s.day, r.name FROM sales s JOIN regions r ON r.region = s.region")
    db.create_view("late", "SELECT local, n, price FROM sales WHERE day >= DATE'2024-05-02' OR day IS NULL")


def row(number: int) -> str:
    region = ("'eu'", "'a b/c=d%'", "NULL", "'us'", "'ü'")[number % 5]
    day = "NULL" if number % 7 == 6 else f"DATE'2024-05-0{number % 3 + 1}'"
    at = f"TIMESTAMP'2024-05-0{number % 2 + 1} 10:00:00.12345{number % 2}'"
    local = f"TIMESTAMP_NTZ'2024-01-01 00:00:0{number % 2}'"
    return f"({number}, {day}, {region}, {number % 2}, {at}, {local}, {number % 2}.5)"


@pytest.mark.parametrize("kind", varied(KINDS, often=["by day", "by day, mapped by name", "by all kinds"]))
def test_a_small_change_costs_no_job(sales: penstock.Database, kind: str) -> None:
    create(sales, kind)
    chance = Random(kind)
    changes = [
        [f"INSERT INTO sales VALUES {row(20)}, {row(27)}", f"DELETE FROM sales WHERE id = {chance.randrange(20)}"],
        [f"UPDATE sales SET price = price + 1 WHERE id % 5 = {chance.randrange(5)}", "DELETE FROM sales WHERE id = 27"],
        [f"UPDATE sales SET day = DATE'2024-06-01', region = 'eu' WHERE id = {chance.randrange(20)}",
         "INSERT INTO regions VALUES ('us', 'America')"],
    ]  # fmt: skip
    for statements in changes:
        for statement in statements:
            sales.sql(statement)
        assert by_spark(sales) == []
        assert_all_fresh(sales, ("INCREMENTAL", "NO_DATA"))


def test_rows_of_a_large_table_are_looked_up_in_their_partitions(
    sales: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(sales, "by day, mapped by name")
    sales.sql(f"INSERT INTO sales VALUES {', '.join(row(number) for number in range(30, 330))}")
    sales.refresh()
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 0)
    monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 0)
    monkeypatch.setattr(limits, "READ_ROWS", 100)  # what is not looked up would be read by Spark
    sales.sql("INSERT INTO regions VALUES ('us', 'America'), (NULL, 'somewhere')")
    assert by_spark(sales) == []
    assert_fresh(sales, "named", "INCREMENTAL")
    sales.sql("DELETE FROM sales WHERE day = DATE'2024-05-01' AND n = 1")
    assert by_spark(sales) == []
    assert_all_fresh(sales, ("INCREMENTAL", "NO_DATA"))


def test_columns_that_are_renamed_dropped_and_added_again(sales: penstock.Database) -> None:
    """Names of columns and of what is stored change places: each is read where it lies."""
    sales.sql("CREATE TABLE t (a INT, b INT, c INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    sales.sql("INSERT INTO t VALUES (1, 100, 5), (2, 200, 6)")
    sales.sql("ALTER TABLE t RENAME COLUMN a TO x")
    sales.sql("ALTER TABLE t RENAME COLUMN b TO a")
    sales.sql("ALTER TABLE t RENAME COLUMN x TO b")
    sales.create_view("v", "SELECT a, b FROM t WHERE a >= 100")
    sales.sql("INSERT INTO t VALUES (3, 300, 7)")
    sales.sql("DELETE FROM t WHERE b = 2")
    assert by_spark(sales) == []
    assert_fresh(sales, "v", "INCREMENTAL")
    assert rows(sales.table("v")) == [(100, 1), (300, 3)]


def test_a_table_that_is_partitioned_anew(sales: penstock.Database) -> None:
    sales.sql("CREATE TABLE t (k INT, day DATE, region STRING) PARTITIONED BY (day)")
    sales.sql("INSERT INTO t VALUES (1, DATE'2024-05-01', 'eu'), (2, DATE'2024-05-02', NULL)")
    sales.create_view("v", "SELECT k, day, region FROM t")
    path = sales._catalog.world().tables["t"].path
    frame = sales.spark.read.format("delta").load(path).where("k = 1").localCheckpoint()
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("region").save(path)
    sales.sql("INSERT INTO t VALUES (3, DATE'2024-05-03', 'us')")
    sales.refresh()
    assert_fresh(sales, "v", "INCREMENTAL")
