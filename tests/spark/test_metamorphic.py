"""The same facts told in another way give the same views.

One commit or many, UPDATE or DELETE and INSERT, a view over a view or one query, one refresh or one for each view.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from oracle import multiset
from penstock.bench.constructs import ROUNDS, ROWS, TABLES

VIEWS = {
    "totals": "SELECT k, COUNT(*) AS n, SUM(y) AS s, MAX(x) AS m, COUNT(DISTINCT g) AS d FROM t GROUP BY k",
    "pairs": "SELECT t.id, t.g, u.v FROM t LEFT JOIN u ON t.k = u.k",
    "missing": "SELECT id, k FROM t WHERE x NOT IN (SELECT v FROM u WHERE v > 3) "
    "AND NOT EXISTS (SELECT 1 FROM r WHERE r.g = t.g)",
    "ranked": "SELECT k, n, RANK() OVER (ORDER BY n DESC) AS place FROM totals",
    "first": "SELECT id, v FROM pairs ORDER BY v DESC NULLS LAST, id LIMIT 4",
}
INLINED = {
    "ranked": f"SELECT k, n, RANK() OVER (ORDER BY n DESC) AS place FROM ({VIEWS['totals']})",
    "first": f"SELECT id, v FROM ({VIEWS['pairs']}) ORDER BY v DESC NULLS LAST, id LIMIT 4",
}  # fmt: skip


@pytest.fixture
def twins(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[penstock.Database, penstock.Database]]:
    """Two warehouses with the same tables and views."""
    with penstock.connect(tmp_path / "one") as one, penstock.connect(tmp_path / "two") as two:
        for db in (one, two):
            for name, statement in TABLES.items():
                db.sql(statement)
                db.sql(f"INSERT INTO {name} VALUES {', '.join(ROWS[name])}")
            for name, query in VIEWS.items():
                db.create_view(name, query, policy="INCREMENTAL STRICT")
        yield one, two


def same(one: penstock.Database, two: penstock.Database) -> None:
    for view in VIEWS:
        assert multiset(one.table(view)) == multiset(two.table(view)), view


def test_the_same_changes_in_other_portions(twins: tuple[penstock.Database, penstock.Database]) -> None:
    """One refresh for all commits, one for each, and the views of a chain one by one, in any legal order."""
    one, two = twins
    for statement in ROUNDS[0][:4]:
        one.sql(statement)
        two.sql(statement)
        for view in ("pairs", "first", "totals", "missing", "ranked"):
            two.refresh(view)
    one.refresh()
    same(one, two)


def test_an_update_is_a_delete_and_an_insert(twins: tuple[penstock.Database, penstock.Database]) -> None:
    one, two = twins
    one.sql("UPDATE u SET k = 'c', v = 7 WHERE id = 3 AND k IS NOT NULL")
    two.sql("CREATE TABLE moved (id INT, k STRING, v INT, w DECIMAL(8,3))")
    two.sql("INSERT INTO moved SELECT id, 'c', 7, w FROM u WHERE id = 3 AND k IS NOT NULL")
    two.sql("DELETE FROM u WHERE id = 3 AND k IS NOT NULL")
    two.sql("INSERT INTO u SELECT * FROM moved")
    for db in twins:
        assert db.refresh()["pairs"].action == "INCREMENTAL"
    same(one, two)


def test_a_view_over_a_view_is_the_inlined_query(twins: tuple[penstock.Database, penstock.Database]) -> None:
    one, _ = twins
    for view, query in INLINED.items():
        one.create_view(f"{view}_inlined", query, policy="INCREMENTAL STRICT")
    for batch in ROUNDS[1:]:
        for statement in batch:
            one.sql(statement)
        one.refresh()
        for view in INLINED:
            assert multiset(one.table(view)) == multiset(one.table(f"{view}_inlined")), view


def test_an_update_of_what_a_view_does_not_read_is_no_change(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, x INT, other STRING)")
    db.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')")
    db.create_view("v", "SELECT k, SUM(x) AS s FROM t GROUP BY k")
    db.create_view("w", "SELECT k, other FROM t")
    db.sql("UPDATE t SET other = 'c' WHERE k = 1")
    report = db.refresh()
    assert (report["v"].action, report["w"].action) == ("NO_DATA", "INCREMENTAL")
