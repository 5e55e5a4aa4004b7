"""Stored rows that do not fit their inputs: whoever finds it out recomputes, says so, and nobody sees a wrong row.

The tables of views are broken for real: rows are taken out, doubled or changed behind Penstock's back, and the catalog
is made to believe in that version.
"""

from __future__ import annotations

import logging
from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock
from longer import varied
from oracle import assert_all_fresh, multiset
from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.names import WEIGHT
from penstock.frames.spark.session import Running
from penstock.storage import apply
from penstock.storage.delta_log import Snapshot
from penstock.storage.reader import read_snapshot
from tampering import created, filled, nothing, tamper, without


def mismatched(db: penstock.Database, *views: str) -> None:
    """The views were recomputed for that reason, equal their queries again, and there are alerts."""
    for view in views or ("v",):
        last = db.history(view, 1)[0]
        assert (last.action, last.reason) == ("REINITIALIZE", "STATE_MISMATCH"), view
        alert = db.alerts(view)[0]
        assert (alert.kind, alert.view, alert.cleared_at) == ("state_mismatch", view, None)
        assert alert.epoch <= last.epoch
    assert_all_fresh(db)


SIZES = ("driver", "spark_writes", "rewrite", "rewrite_by_spark", "many", "patch", "patch_by_spark", "spark")


@pytest.fixture(params=varied(SIZES, often=("driver", "patch", "spark")))
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    made_so(request.param, monkeypatch)
    return str(request.param)


def made_so(size: str, patch: pytest.MonkeyPatch) -> None:
    """Who computes and writes, and how: small tables are taken for large ones."""
    if "rewrite" in size or "patch" in size or size == "many":
        patch.setattr(limits, "SMALL_TABLE_ROWS", 0)
        patch.setattr(apply, "cheaper", lambda **_: "PATCH" if "patch" in size else "REWRITE")
    if size == "many":
        patch.setattr(limits, "LOCATED_ROWS", 0)
    if "spark" in size:
        patch.setattr(limits, "LOCAL_TABLE_ROWS", -1)
    if size.endswith("_by_spark") or size == "spark":
        patch.setattr(limits, "READ_ROWS", -1)
        patch.setattr(limits, "SMALL_CHANGE_BYTES", 0)
        patch.setattr(limits, "CHANGE_ROWS", -1)
        patch.setattr(limits, "LOCAL_ROWS", 0)


@pytest.fixture
def rows(db: penstock.Database) -> penstock.Database:
    return filled(db)


WITHOUT_KEYS = {
    "doubles": "SELECT k, d > 1 AS large FROM t",
    "joined": "SELECT t.id, u.name FROM t JOIN u ON t.k = u.k",
    "outer_join": "SELECT t.id, u.name FROM t LEFT JOIN u ON t.k = u.k",
    "semi": "SELECT id, x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "both": "SELECT id, k FROM t UNION ALL SELECT k, k FROM u",
}


def test_a_removal_that_finds_no_row(rows: penstock.Database, size: str) -> None:
    """None at all, fewer copies than there should be, or as many rows as are removed, but others."""
    copies = "SELECT k, 'same' AS s FROM t"
    names = created(
        rows, {"lists": "SELECT id, ARRAY(k) AS l FROM t", "copies": copies, "few": "SELECT id, k FROM t WHERE id < 2"}
    )
    known = rows._catalog.world().nodes["copies"]
    stored = read_snapshot(rows.spark, Snapshot(known.path, known.version)).toArrow().column("k").to_pylist()
    tamper(rows, "lists", nothing)
    tamper(rows, "copies", without(*[i for i, k in enumerate(stored) if k == 1][:5]))
    tamper(rows, "few", lambda known: known.set_column(1, "k", pa.array([5, 6], pa.int32())))
    rows.sql("DELETE FROM t WHERE id < 2 OR id = 5")
    rows.refresh()
    mismatched(rows, *names)


def test_the_rules_without_keys(rows: penstock.Database) -> None:
    names = created(rows, WITHOUT_KEYS)
    rows.create_view("reader", "SELECT COUNT(*) AS n FROM joined")
    for name in names:
        tamper(rows, name, nothing)
    rows.sql("DELETE FROM t WHERE id IN (5, 6)")
    rows.refresh()
    mismatched(rows, *names)
    rows.sql("DELETE FROM t WHERE id = 9")
    rows.refresh()
    assert_all_fresh(rows, "INCREMENTAL")
    assert all(alert.cleared_at is not None for alert in rows.alerts()), "they are over"
    assert len(rows.alerts()) == len(names)


def test_another_row_with_the_number_is_not_taken_for_the_lost_one(
    rows: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_so("patch", monkeypatch)
    rows.create_view("v", "SELECT t.id, u.name FROM t JOIN u ON t.k = u.k")
    known = read_snapshot(rows.spark, Snapshot(rows._catalog.world().nodes["v"].path)).toArrow().to_pylist()
    tamper(rows, "v", without(known.index({"id": 5, "name": "one"})))
    rows.sql("DELETE FROM u WHERE name = 'one'")
    rows.refresh()
    mismatched(rows)


GROUPS = {
    "sums_of_t": "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY k",
    "extremes_of_t": "SELECT k, MIN(x) AS low, MAX(x) AS high FROM t GROUP BY k",
    "counts_of_t": "SELECT k, COUNT(x) AS n, COUNT_IF(id > 3) AS m, BOOL_OR(id > 4) AS b FROM t GROUP BY k",
    "first_of_t": "SELECT k, FIRST_VALUE(x) AS f FROM t GROUP BY k, TUMBLE(ts, INTERVAL '1 day')",
    "distinct_of_t": "SELECT DISTINCT k FROM t",
    "total_of_t": "SELECT COUNT(*) AS n, SUM(x) AS s FROM t",
    "intersect_of_t": "SELECT k FROM t INTERSECT SELECT k FROM u",
    "except_of_t": "SELECT id AS k FROM t EXCEPT ALL SELECT k FROM u",
    "count_distinct": "SELECT k, COUNT(DISTINCT x) AS n FROM t GROUP BY k",
    "having_of_t": "SELECT k, s FROM (SELECT k, SUM(x) AS s FROM t GROUP BY k) WHERE s > 0",
}


@pytest.mark.parametrize("size", varied(["driver", "patch_by_spark"], often=["driver"]))
def test_a_group_that_must_be_there(rows: penstock.Database, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made_so(size, monkeypatch)
    names = created(rows, GROUPS)
    for gone, broken in ((1, nothing), (5, lambda known: pa.concat_tables([known, known]))):
        world = rows._catalog.world()
        for node in {world.views[name].nodes[0] for name in names}:  # those that read the table
            tamper(rows, node, broken)
        rows.sql(f"DELETE FROM t WHERE id = {gone}")
        rows.refresh()
        mismatched(rows, *names)


ANEW = {
    "float_sums": "SELECT k, SUM(d) AS s FROM t GROUP BY k",
    "windows": "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM t",
    "one_window": "SELECT id, SUM(x) OVER (ORDER BY id) AS s FROM t",
    "median": "SELECT MEDIAN(x) AS m FROM t",
    "first_rows": "SELECT id, x FROM t ORDER BY x LIMIT 100",
}


@pytest.mark.parametrize("size", ["driver", "spark"])
def test_groups_that_are_made_anew_must_be_there_too(
    rows: penstock.Database, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_so(size, monkeypatch)
    names = created(rows, ANEW)
    for name in names:
        tamper(rows, name, nothing)
    rows.sql("DELETE FROM t WHERE id = 5")
    rows.refresh()
    mismatched(rows, *names)


def test_sessions_of_rows_without_a_time_are_not_missed(rows: penstock.Database) -> None:
    rows.sql("INSERT INTO t (id, k) VALUES (100, 50)")
    rows.create_view("v", "SELECT k, COUNT(*) AS n FROM t GROUP BY k, SESSION(ts, INTERVAL '3 seconds')")
    rows.sql("DELETE FROM t WHERE k = 50")
    rows.refresh()
    assert_all_fresh(rows, ("INCREMENTAL", "NO_DATA"))


def test_a_number_below_zero(rows: penstock.Database) -> None:
    rows.create_view("v", "SELECT k, COUNT(x) AS n FROM t GROUP BY k")

    def fewer(known: pa.Table) -> pa.Table:
        return known.set_column(known.column_names.index("n"), "n", pa.array([0] * known.num_rows, pa.int64()))

    tamper(rows, "v", fewer)
    rows.sql("DELETE FROM t WHERE id = 5")
    rows.refresh()
    mismatched(rows)


def test_a_removed_value_beyond_the_extreme(rows: penstock.Database) -> None:
    rows.create_view("v", "SELECT k, MAX(id) AS high FROM t GROUP BY k")

    def lower(known: pa.Table) -> pa.Table:
        return known.set_column(known.column_names.index("high"), "high", pa.array([1] * known.num_rows, pa.int32()))

    tamper(rows, "v", lower)
    rows.sql("DELETE FROM t WHERE id = 5")
    rows.refresh()
    mismatched(rows)


@pytest.mark.parametrize("size", ["driver", "spark"])
def test_the_node_below_may_be_to_blame(
    rows: penstock.Database, size: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The counts are wrong, but only who shows them finds that out; another view below is not asked to."""
    made_so(size, monkeypatch)
    rows.create_view("counts", "SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    rows.create_view("v", "SELECT k, n + 1 AS m FROM counts WHERE k >= 0")
    rows.create_view("reader", "SELECT SUM(m) AS s FROM v")
    rows.create_view("other", "SELECT id FROM t")

    def more(known: pa.Table) -> pa.Table:
        for name in ("n", "__rows"):
            if name in known.column_names:
                place = known.column_names.index(name)
                known = known.set_column(place, name, pa.array([90] * known.num_rows, pa.int64()))
        return known

    tamper(rows, "counts", more)
    rows.sql("DELETE FROM t WHERE id IN (5, 6)")
    with caplog.at_level(logging.WARNING, "penstock"):
        report = rows.refresh()
    mismatched(rows)
    assert (report["counts"].action, report["counts"].reason) == ("REINITIALIZE", "STATE_MISMATCH")
    assert (report["reader"].action, report["other"].action) == ("REINITIALIZE", "INCREMENTAL")
    assert [alert.view for alert in rows.alerts()] == ["v"]
    assert "the stored rows of 'v' do not fit its inputs" in caplog.text


def test_alerts_are_shown_and_go_with_the_view(rows: penstock.Database) -> None:
    rows.create_view("v", "SELECT id FROM t")
    assert rows.sql("SHOW ALERTS").collect() == []
    for number in (5, 6):
        tamper(rows, "v", nothing)
        rows.sql(f"DELETE FROM t WHERE id = {number}")
        rows.refresh()
        mismatched(rows)
    (shown,) = rows.sql("SHOW ALERTS").collect()  # one episode
    assert (shown.kind, shown.view, shown.cleared_at) == ("state_mismatch", "v", None)
    assert "rows to be removed: 1, rows found: 0" in shown.message
    assert "penstock verify" in shown.suggestion
    assert (rows.refresh()["v"].alerts, rows.alerts("v")[0].cleared_at is None) == ({}, False)
    rows.drop_view("v")
    assert rows.alerts() == []


def test_nothing_of_a_broken_step_is_seen(rows: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """If recomputing fails too, readers have what they had, and the next refresh finds it out again."""
    rows.create_view("v", "SELECT id, k FROM t")
    rows.create_view("reader", "SELECT COUNT(*) AS n FROM v")
    tamper(rows, "v", without(0, 1, 2))
    before = multiset(rows.table("v")), multiset(rows.table("reader"))
    rows.sql("DELETE FROM t WHERE id < 20")

    def fails(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as full:
        full.setattr("penstock.engine.epoch.replace_all", fails)
        with pytest.raises(penstock.RefreshError, match="disk is full"):
            rows.refresh()
    assert (multiset(rows.table("v")), multiset(rows.table("reader"))) == before
    assert rows.alerts()[0].cleared_at is None
    rows.refresh()
    mismatched(rows)


def test_a_row_of_weight_below_zero_is_not_there_whoever_says_so(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2), (2, -1), (3, 0)], f"a INT, {WEIGHT} LONG")
    local = ArrowFrame.of(Running(spark), frame.toArrow())
    for rows in (local, local.by_spark):
        assert rows.copies().arrow().column("a").to_pylist() == [1, 1]


def test_creating_over_a_broken_view_mends_it(rows: penstock.Database) -> None:
    rows.create_view("v", "SELECT id, k FROM t")
    tamper(rows, "v", nothing)
    rows.sql("DELETE FROM t WHERE id = 3")
    rows.create_view("reader", "SELECT COUNT(*) AS n FROM v")
    mismatched(rows)


VIEWS = [*WITHOUT_KEYS.values(), *GROUPS.values(), *ANEW.values()]


@settings(
    deadline=None, max_examples=6, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(random=st.randoms(use_true_random=True))
def test_any_loss_is_found_or_not_touched(
    random: Random, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random rows of a random node are lost, then rows go from the table: the view equals its query, or what it lacks
    was lost."""
    size, query = random.choice(SIZES), random.choice(VIEWS)
    with pytest.MonkeyPatch.context() as patch, penstock.connect(tmp_path_factory.mktemp("lost") / "w") as db:
        made_so(size, patch)
        filled(db)
        db.create_view("v", query)
        node = random.choice(db._catalog.world().views["v"].nodes)
        lost, gone = (random.sample(range(24), random.randint(1, 8)) for _ in range(2))
        tamper(db, node, without(*lost))
        db.sql(f"DELETE FROM t WHERE id IN ({', '.join(map(str, gone))})")
        db.refresh()
        found, reason = multiset(db.table("v")), db.history("v", 1)[0].reason
        db.refresh(full=True)
        assert_all_fresh(db, "FULL")
        wrong = multiset(db.table("v")) != found
        assert not wrong or (reason != "STATE_MISMATCH" and multiset(db.table("v")) > found), (
            f"{size}: {query}, {node} without {lost}, then without {gone}: {reason}"
        )
