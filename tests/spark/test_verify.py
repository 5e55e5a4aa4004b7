"""``db.verify``: a view is compared with its query, on what it was computed from, and what differs is told."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock
from oracle import rows as listed
from penstock.observe.verify import Example, Verification
from penstock.vocabulary import Outcome
from tampering import created, filled, tamper, without


@pytest.fixture
def rows(db: penstock.Database) -> penstock.Database:
    return filled(db)


def outcomes(db: penstock.Database, **how: float) -> dict[str, str]:
    return {one.view: one.outcome for one in db.verify(**how)}


VIEWS = {
    "copied": "SELECT id, k, x FROM t",
    "sums": "SELECT k, SUM(d) AS s, AVG(x) AS a FROM t GROUP BY k",
    "over_view": "SELECT k, s FROM sums WHERE s > 0",
    "nested": "SELECT k, MAP('k', k) AS m, STRUCT(d) AS st FROM t WHERE k IS NOT NULL",
    "joined": "SELECT t.id, u.name FROM t LEFT JOIN u ON t.k = u.k",
    "first_rows": "SELECT id, x FROM t ORDER BY x LIMIT 5",
    "ranked": "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM t",
}


def test_views_are_equal_whatever_came_after_their_refresh(rows: penstock.Database) -> None:
    names = created(rows, VIEWS)
    rows.sql("UPDATE t SET d = d * 3, x = x + 1 WHERE id % 3 = 0")
    rows.refresh("over_view")
    rows.sql("DELETE FROM t WHERE id > 9")
    assert outcomes(rows) == dict.fromkeys(names, Outcome.EQUAL)
    assert outcomes(rows, sample=0.5) == dict.fromkeys(names, Outcome.EQUAL)
    (one,) = rows.verify("over_view")
    assert one == Verification(
        view="over_view", outcome=Outcome.EQUAL, versions={"sums": rows._catalog.world().nodes["sums"].version or 0}
    )
    rows.sql("CREATE MATERIALIZED VIEW empty AS SELECT 1 AS one WITH NO DATA")
    (one,) = rows.verify("Empty")
    assert (one.outcome, one.reason) == (
        Outcome.NOT_VERIFIED,
        "it has no rows yet. Run REFRESH MATERIALIZED VIEW empty",
    )


def test_what_differs_is_counted_and_shown(rows: penstock.Database) -> None:
    rows.create_view("counts", "SELECT k, COUNT(*) AS n, AVG(d) AS a FROM t GROUP BY k")
    rows.create_view("bag", "SELECT k, 'x' AS v FROM t")
    rows.create_view("fine", "SELECT id FROM t")

    def wrong(known: pa.Table) -> pa.Table:
        place, groups = known.column_names.index("n"), known.column("k").to_pylist()
        return known.set_column(place, "n", pa.array([7 if k == 2 else 6 for k in groups], pa.int64()))

    tamper(rows, "counts", wrong)
    tamper(rows, "bag", without(0, 1))
    counts, bag, fine = rows.verify("counts", "bag", "fine")
    assert (counts.outcome, counts.missing, counts.superfluous) == (Outcome.DIFFERENT, 1, 1)
    average = str(listed(rows.table("counts").where("k = 2"))[0][2])
    assert sorted(counts.examples, key=lambda example: example.copies) == [
        Example(-1, {"k": "2", "n": "6", "a": average}), Example(1, {"k": "2", "n": "7", "a": average}),
    ]  # fmt: skip
    assert (bag.outcome, bag.missing, bag.superfluous) == (Outcome.DIFFERENT, 2, 0)
    assert fine.outcome == Outcome.EQUAL
    rows.refresh(full=True)
    assert set(outcomes(rows).values()) == {Outcome.EQUAL}


def test_a_sample_is_of_the_same_rows_and_finds_what_is_in_it(rows: penstock.Database) -> None:
    rows.create_view("v", "SELECT id, d FROM t")
    tamper(rows, "v", lambda known: known.slice(0, 0))
    (half,), (whole,) = rows.verify("v", sample=0.5), rows.verify("v", sample=1.0)
    assert 0 < half.missing < whole.missing == 24
    with pytest.raises(penstock.PenstockError, match="share of the rows"):
        rows.verify(sample=1.5)


def test_floats_may_differ_in_their_last_digits(rows: penstock.Database) -> None:
    rows.create_view("v", "SELECT id, d FROM t")

    def off(by: float) -> None:
        def other(known: pa.Table) -> pa.Table:
            return known.set_column(1, "d", pa.array([d * (1 + by) for d in known.column("d").to_pylist()]))

        tamper(rows, "v", other)

    off(1e-12)
    assert outcomes(rows) == {"v": Outcome.EQUAL}
    off(1e-6)
    (one,) = rows.verify("v")
    assert (one.missing, one.superfluous) == (23, 23), "all but zero"


def test_what_cannot_be_verified_says_why(rows: penstock.Database) -> None:
    rows.create_view("chance", "SELECT id, RAND() AS r FROM t", policy="FULL")
    rows.create_view("ties", "SELECT k, 'a' AS v FROM t ORDER BY v LIMIT 3")
    rows.create_view("old", "SELECT COUNT(*) AS n FROM u")
    reasons = {one.view: one.reason for one in rows.verify()}
    assert reasons["chance"] == "the function rand gives something else each time"
    rows.sql("INSERT INTO u VALUES (8, 'eight')")
    rows.sql("DELETE FROM u WHERE k = 0")
    rows.sql("OPTIMIZE u")
    rows.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        rows.sql("VACUUM u RETAIN 0 HOURS")
    finally:
        rows.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    (old,) = rows.verify("old")
    assert old.outcome == Outcome.NOT_VERIFIED
    assert "of 'u' is gone (VACUUM). Refresh the view first" in str(old.reason)
    tamper(rows, "ties", lambda known: known.set_column(0, "k", pa.array([9, 9, 9], pa.int32())))
    (ties,) = rows.verify("ties")
    assert "rows that tie" in str(ties.reason)
    tamper(rows, "ties", without(0))
    assert rows.verify("ties")[0].outcome == Outcome.DIFFERENT


def test_windows_that_wait_and_rows_that_came_late(db: penstock.Database) -> None:
    db.sql("CREATE TABLE e (ts TIMESTAMP, x INT, WATERMARK FOR ts AS ts - INTERVAL 1 MINUTE)")
    db.sql("INSERT INTO e VALUES (TIMESTAMP '2024-01-01 00:00:10', 1), (TIMESTAMP '2024-01-01 00:10:00', 2)")
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS m, SUM(x) AS s FROM e "
        "GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL 1 MINUTE"
    )
    db.sql("INSERT INTO e VALUES (TIMESTAMP '2024-01-01 00:00:20', 5), (TIMESTAMP '2024-01-01 00:20:00', 3)")
    db.refresh()
    assert db.table("v_late").count() == 1
    assert db.table("v").count() == 2
    assert outcomes(db) == {"v": Outcome.EQUAL}
