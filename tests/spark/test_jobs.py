"""Fixed cost: the number of Spark jobs of a small refresh is small and known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import penstock
from oracle import assert_all_fresh, assert_fresh


def jobs_of_refresh(db: penstock.Database) -> int:
    """How many Spark jobs one refresh runs."""
    context = db.spark.sparkContext
    group = f"refresh-{db.path}-{len(db.history())}"
    context.setJobGroup(group, "counted by a test")
    try:
        db.refresh()
    finally:
        context.setJobGroup("", "")
    return len(context.statusTracker().getJobIdsForGroup(group))


@pytest.fixture
def chain(db: penstock.Database) -> penstock.Database:
    """A filter over an aggregate over a table."""
    db.sql("CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10,2))")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
    db.sql("CREATE MATERIALIZED VIEW large AS SELECT region, total FROM totals WHERE total > 15")
    return db


def test_a_refresh_with_nothing_to_do_runs_no_job(chain: penstock.Database) -> None:
    assert jobs_of_refresh(chain) == 0
    assert [r.action for r in chain.history(limit=2)] == ["NO_DATA", "NO_DATA"]


def test_a_small_change_of_two_views_costs_no_job(chain: penstock.Database) -> None:
    """It is read, merged into the aggregate, filtered and written where it is: on the driver."""
    chain.sql("INSERT INTO orders VALUES (3, 'eu', 30)")
    assert jobs_of_refresh(chain) == 0
    assert_all_fresh(chain, "INCREMENTAL")
    assert [record.details["jobs"] for record in chain.history(limit=2) if record.details] == [0, 0]
    chain.sql("UPDATE orders SET amount = 31 WHERE id = 3")
    assert jobs_of_refresh(chain) == 0
    assert_all_fresh(chain, "INCREMENTAL")


def test_what_only_spark_computes_is_one_job_and_named(chain: penstock.Database) -> None:
    chain.sql("CREATE MATERIALIZED VIEW shouted AS SELECT SOUNDEX(region) AS region, total FROM large")
    chain.sql("INSERT INTO orders VALUES (3, 'eu', 30)")
    assert jobs_of_refresh(chain) == 1
    assert_all_fresh(chain, "INCREMENTAL")
    asked = {r.view: (r.details or {}).get("by_spark", []) for r in chain.history(limit=3)}
    assert asked == {"totals": [], "large": [], "shouted": ["SOUNDEX(region)"]}
    assert "by Spark  SOUNDEX(region)" in str(chain.explain("shouted"))


def test_what_the_driver_does_not_read_is_named(db: penstock.Database) -> None:
    db.sql("CREATE TABLE logs (id INT, tags VARIANT)")
    db.sql("CREATE MATERIALIZED VIEW tagged AS SELECT id, TRY_VARIANT_GET(tags, '$.a', 'INT') AS tag FROM logs")
    db.sql("INSERT INTO logs VALUES (1, PARSE_JSON('{\"a\": 1}'))")
    report = db.refresh()
    assert_fresh(db, "tagged", "INCREMENTAL")
    only_spark = "a table with features of Delta that only Spark reads"
    assert report["tagged"].by_spark[0] == f"reading the change of id, tags: {only_spark}"


def test_optimize_is_no_change_and_no_job(chain: penstock.Database) -> None:
    chain.sql("INSERT INTO orders VALUES (3, 'eu', 30)")
    chain.refresh()
    chain.sql("OPTIMIZE orders")
    assert jobs_of_refresh(chain) == 0
    assert_all_fresh(chain, "NO_DATA")


def test_text_as_other_writers_store_it_costs_no_job(db: penstock.Database, tmp_path: Path) -> None:
    """delta-rs and polars leave text as views or with long offsets, for which Arrow has few functions."""
    path = str(tmp_path / "outside")
    rows = pa.table({"k": list(range(300_000)), "a": ["x", "y", None] * 100_000, "b": ["p", "q"] * 150_000})
    for number, kind in enumerate((pa.string_view(), pa.large_string())):
        part = rows.slice(number * 150_000, 150_000)
        write_deltalake(path, part.cast(pa.schema([("k", pa.int64()), ("a", kind), ("b", kind)])), mode="append")
    db.register_table("outside", path)
    db.sql("CREATE TABLE names (a STRING, name STRING)")
    db.sql("INSERT INTO names VALUES ('x', 'first'), ('y', 'second')")
    db.create_view("named", "SELECT o.k, n.name FROM outside o JOIN names n ON n.a = o.a WHERE o.b = 'q'")
    db.create_view("copied", "SELECT k, a, b FROM outside WHERE b LIKE 'q%'")
    changed = rows.slice(0, 10).cast(pa.schema([("k", pa.int64()), ("a", pa.string_view()), ("b", pa.large_string())]))
    write_deltalake(path, changed, mode="append")
    assert jobs_of_refresh(db) == 0
    assert_all_fresh(db, "INCREMENTAL")
    db.sql("INSERT INTO names VALUES ('x', 'again')")
    assert jobs_of_refresh(db) == 0
    assert_fresh(db, "named", "INCREMENTAL")


def test_why_spark_was_asked_is_named_and_remembered(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (g INT, a VARIANT)")
    db.sql("INSERT INTO t VALUES (1, PARSE_JSON('1')), (2, PARSE_JSON('2'))")
    db.sql("CREATE MATERIALIZED VIEW mx AS SELECT g, MAX(TRY_VARIANT_GET(a, '$', 'INT')) AS top FROM t GROUP BY g")
    db.sql("INSERT INTO t VALUES (1, PARSE_JSON('3'))")
    report = db.refresh()["mx"]
    assert_fresh(db, "mx", "INCREMENTAL")
    assert report.jobs > 0
    assert any(note.endswith("that only Spark reads") for note in report.by_spark)
    assert db.refresh()["mx"].action == "NO_DATA"
    assert "by Spark" in str(db.explain("mx")), "the last refresh that did something is explained"
