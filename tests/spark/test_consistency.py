"""Diamonds: views that advance together, and what becomes of them when one of them fails."""

from __future__ import annotations

import pytest

import penstock
from oracle import after, assert_fresh
from penstock import RefreshError

TOTALS = "SELECT region, SUM(amount) AS total FROM orders GROUP BY region"
COUNTS = "SELECT region, COUNT(CAST(note AS INT)) AS n FROM orders GROUP BY region"
AVERAGES = "SELECT t.region, t.total / c.n AS average FROM totals t JOIN counts c ON t.region = c.region"
NAMES = ("totals", "counts", "averages")


@pytest.fixture
def sales(db: penstock.Database) -> penstock.Database:
    """Totals and counts of one table, and an average that joins them; a note that is no number makes counts fail."""
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT, note STRING)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10, '1'), (2, 'eu', 20, '1'), (3, 'us', 30, '1')")
    return db


def create(db: penstock.Database, clause: str = "", *, only: str = "") -> None:
    for name, query in zip(NAMES, (TOTALS, COUNTS, AVERAGES), strict=True):
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query} {clause if only in ('', name) else ''}")


def rows(db: penstock.Database, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in db.table(name).collect())


def fail(db: penstock.Database) -> RefreshError:
    db.sql("INSERT INTO orders VALUES (4, 'us', 50, 'not a number')")
    with pytest.raises(RefreshError) as failure:
        db.refresh()
    return failure.value


def test_a_diamond_is_published_whole_or_not_at_all(sales: penstock.Database) -> None:
    create(sales)
    sales.sql("CREATE MATERIALIZED VIEW biggest AS SELECT MAX(average) AS most FROM averages")
    sales.sql("CREATE MATERIALIZED VIEW large AS SELECT id FROM orders WHERE amount > 25")
    before = {name: rows(sales, name) for name in NAMES}
    failure = fail(sales)

    report = failure.report
    assert {name: (report[name].status, report[name].reason) for name in report} == {
        "totals": ("SKIPPED", "GROUP_FAILED"),
        "counts": ("FAILED", "ERROR"),
        "averages": ("SKIPPED", "UPSTREAM_FAILED"),
        "biggest": ("SKIPPED", "UPSTREAM_FAILED"),
        "large": ("SUCCEEDED", "CHANGED"),
    }
    assert "'totals' must advance together with it" in str(failure)
    assert {name: rows(sales, name) for name in NAMES} == before
    assert rows(sales, "large") == [(3,), (4,)]

    sales.sql("UPDATE orders SET note = '7' WHERE id = 4")
    again = sales.refresh()
    assert {again[name].action for name in NAMES} == {"INCREMENTAL"}
    for name in (*NAMES, "biggest", "large"):
        assert_fresh(sales, name)
    assert rows(sales, "averages") == [("eu", 15.0), ("us", 40.0)]


def frontiers(db: penstock.Database) -> dict[str, dict[str, int]]:
    return {status.name: status.frontier for status in db.status() if status.name in NAMES}


def test_a_member_of_a_diamond_is_never_refreshed_alone(sales: penstock.Database) -> None:
    create(sales)
    before = {name: rows(sales, name) for name in NAMES}
    fail(sales)
    for full in (False, True):
        with pytest.raises(RefreshError, match="'counts' failed to refresh") as failure:
            sales.refresh("totals", full=full)
        assert failure.value.report["totals"].reason == "GROUP_FAILED"
    with pytest.raises(
        penstock.PenstockError, match="view 'sums' was not created: view 'counts', which it reads or must"
    ):
        sales.sql("CREATE MATERIALIZED VIEW sums AS SELECT SUM(total) AS s FROM totals")
    assert {name: rows(sales, name) for name in NAMES} == before

    sales.sql("UPDATE orders SET note = '7' WHERE id = 4")
    report = sales.refresh("totals", full=True)
    assert {name: report[name].action for name in report} == {
        "totals": "FULL", "counts": "INCREMENTAL", "averages": "INCREMENTAL",
    }  # fmt: skip
    sales.sql("INSERT INTO orders VALUES (5, 'us', 40, '1')")
    created = sales.sql("CREATE MATERIALIZED VIEW sums AS SELECT SUM(total) AS s FROM totals")
    assert isinstance(created, penstock.Done)
    for name in (*NAMES, "sums"):
        assert_fresh(sales, name)
    assert len({tuple(versions.items()) for versions in frontiers(sales).values()}) == 1


def test_replacing_a_member_of_a_diamond_brings_the_others_along(sales: penstock.Database) -> None:
    create(sales)
    fail(sales)
    sales.sql("CREATE OR REPLACE MATERIALIZED VIEW counts AS SELECT region, COUNT(*) AS n FROM orders GROUP BY region")
    for name in NAMES:
        assert_fresh(sales, name)
    assert rows(sales, "averages") == [("eu", 15.0), ("us", 40.0)]
    assert len({tuple(versions.items()) for versions in frontiers(sales).values()}) == 1


@pytest.mark.parametrize("how", ["of the convergence", "of one", "as a setting"])
def test_without_consistency_views_are_published_one_by_one(sales: penstock.Database, how: str) -> None:
    create(
        sales,
        "" if how == "as a setting" else "CONSISTENCY NONE",
        only={"of the convergence": "averages", "of one": "totals"}.get(how, ""),
    )
    if how == "as a setting":
        sales.sql("SET consistency = NONE")
    report = fail(sales).report
    assert report["totals"].status == "SUCCEEDED"
    assert rows(sales, "totals") == [("eu", 30), ("us", 80)]
    assert report["averages"].reason == "UPSTREAM_FAILED"
    assert rows(sales, "averages") == [("eu", 15.0), ("us", 30.0)]
    sales.sql("DELETE FROM orders WHERE id = 4")
    sales.refresh()
    for name in NAMES:
        assert_fresh(sales, name)


def test_consistency_can_be_altered(sales: penstock.Database) -> None:
    create(sales)
    sales.sql("ALTER MATERIALIZED VIEW averages CONSISTENCY NONE")
    assert fail(sales).report["totals"].status == "SUCCEEDED"
    sales.alter_view("averages", consistency="atomic")
    assert sales.settings()["consistency"] == "ATOMIC"
    sales.sql("INSERT INTO orders VALUES (5, 'eu', 60, 'neither')")
    with pytest.raises(RefreshError) as failure:
        sales.refresh()
    assert failure.value.report["totals"].reason == "GROUP_FAILED"
    sales.sql("DELETE FROM orders WHERE id > 3")
    sales.refresh()
    for name in NAMES:
        assert_fresh(sales, name)


def test_groups_are_shown(sales: penstock.Database) -> None:
    create(sales)
    sales.sql("CREATE MATERIALIZED VIEW large AS SELECT id FROM orders WHERE amount > 25")
    done = sales.sql("ALTER MATERIALIZED VIEW totals SCHEDULE POLICY SLOWEST")
    assert "no effect on 'totals'" in str(done)
    assert "no effect" not in str(sales.sql("ALTER MATERIALIZED VIEW averages SCHEDULE POLICY SLOWEST"))
    shown = [tuple(row) for row in sales.sql("SHOW CONSISTENCY GROUPS").collect()]
    assert [(members, convergence, policy) for _, members, convergence, _, policy in shown] == [
        (["totals", "counts", "averages"], ["averages"], "SLOWEST"),
        (["large"], [], None),
    ]
    assert [epoch for *_, epoch, _ in shown] == [3, 4]


def test_settings_that_are_none(sales: penstock.Database) -> None:
    with pytest.raises(penstock.DefinitionError, match="there is no setting 'colour'"):
        sales.sql("SET colour = blue")
    with pytest.raises(
        penstock.DefinitionError, match="'poll_interval' is a length of time such as '1 second', and never 0"
    ):
        sales.sql("SET poll_interval = '0 seconds'")
    with pytest.raises(penstock.DefinitionError, match="is ATOMIC or NONE, not 'maybe'"):
        sales.set("consistency", "maybe")
    with pytest.raises(penstock.DefinitionError, match="is FASTEST or SLOWEST"):
        sales.create_view("v", TOTALS, schedule_policy="sometimes")


def test_a_group_is_due_with_its_fastest_or_with_its_slowest_member(sales: penstock.Database) -> None:
    sales.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS} EMIT PERIODICALLY INTERVAL 1 HOUR")
    sales.sql(f"CREATE MATERIALIZED VIEW counts AS {COUNTS} EMIT PERIODICALLY INTERVAL 1 MILLISECOND")
    sales.sql(f"CREATE MATERIALIZED VIEW averages AS {AVERAGES}")
    after(sales, "INSERT INTO orders VALUES (7, 'eu', 70, '1')")
    sales.sql("ALTER MATERIALIZED VIEW averages SCHEDULE POLICY SLOWEST")
    sales.sql("INSERT INTO orders VALUES (8, 'eu', 80, '1')")
    report = sales.refresh()
    assert {(report[name].action, report[name].reason) for name in NAMES} == {("SKIP", "NOT_DUE")}
    sales.sql("ALTER MATERIALIZED VIEW averages SCHEDULE POLICY FASTEST")
    after(sales)
