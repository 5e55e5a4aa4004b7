"""Numbers at their limits: averages round as Spark rounds them, sums do not overflow on the way, NaN is a value."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import penstock
from oracle import after, assert_fresh, rows

DECIMALS = [(1, 0), (1, 1), (5, 2), (9, 9), (10, 0), (18, 6), (20, 10), (27, 13), (27, 0), (28, 14), (38, 18), (38, 0)]


def decimal(chance: Random, precision: int, scale: int) -> str:
    digits = chance.choice([precision, precision, chance.randint(1, precision)])
    value = Decimal(chance.randint(0, 10**digits - 1)).scaleb(-scale) * chance.choice([1, 1, -1])
    if precision == 38:  # Spark itself would overflow when it adds several of these
        value = value / 10**8
    return f"CAST('{value:f}' AS DECIMAL({precision},{scale}))"


def test_averages_of_decimals_round_as_spark_rounds(db: penstock.Database) -> None:
    chance = Random(11)
    names = [f"d{p}_{s}" for p, s in DECIMALS]
    db.sql(
        f"CREATE TABLE t (k INT, {', '.join(f'{n} DECIMAL({p},{s})' for n, (p, s) in zip(names, DECIMALS, strict=True))})"  # noqa: E501
    )
    averages = ", ".join(f"AVG({n}) AS a_{n}" for n in names)
    small = ", ".join(f"AVG({n}) AS a_{n}" for n, (p, s) in zip(names, DECIMALS, strict=True) if p <= 27 and s <= 13)
    db.create_view("all_of_them", f"SELECT k, {averages} FROM t GROUP BY k")
    db.create_view("merged", f"SELECT k, {small} FROM t GROUP BY k")

    def insert(count: int) -> str:
        lines = [f"({k % 9}, {', '.join(decimal(chance, p, s) for p, s in DECIMALS)})" for k in range(count)]
        return f"INSERT INTO t VALUES {', '.join(lines)}"

    after(db, insert(30))
    after(db, insert(31))
    after(db, "DELETE FROM t WHERE d5_2 > 0 AND k % 2 = 0")
    after(db, f"UPDATE t SET d27_13 = -d27_13, {names[0]} = NULL WHERE k < 5")


def test_halves_are_rounded_away_from_zero_once(db: penstock.Database) -> None:
    # 0.00005 = 0.0001 / 2 in a column of scale 0 after four more digits: 1/20000 has to be rounded at the fifth.
    db.sql("CREATE TABLE t (k INT, x DECIMAL(5,0))")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY k")
    after(db, "INSERT INTO t SELECT 1, IF(id = 0, 1, 0) FROM range(20000) AS r(id)")
    assert rows(db.table("v")) == [(1, Decimal("0.0001"), 20000)]
    after(db, "UPDATE t SET x = -x", "INSERT INTO t VALUES (2, 2), (2, 0), (2, 0)")
    assert rows(db.table("v"))[0][1] == Decimal("-0.0001")


def test_sums_of_integers_near_the_limits(db: penstock.Database) -> None:
    most = 2**63 - 1
    db.sql("CREATE TABLE t (k BIGINT, x BIGINT, i INT, b TINYINT)")
    db.sql(f"INSERT INTO t VALUES (1, {most}, 2147483647, 127), ({most}, {most - 1}, -2147483648, -128), (-1, 1, 0, 0)")
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS s, SUM(i) AS si, SUM(b) AS sb, AVG(i) AS ai FROM t GROUP BY k"  # noqa: E501
    )
    after(db, f"UPDATE t SET x = -{most} WHERE k = 1")
    assert rows(db.table("v").where("k = 1").select("s")) == [(-most,)]
    # No order of adding these overflows: Spark itself fails where one does.
    after(db, f"INSERT INTO t VALUES (1, {most}, 1, 1), (1, 0, 1, 1), (-1, -2, -1, -1)")
    after(db, f"UPDATE t SET x = x - 1, b = -128, i = -2147483648 WHERE k = {most}")
    after(db, "DELETE FROM t WHERE x < 0")


def test_a_sum_that_overflows_fails_alone_and_catches_up(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, x BIGINT)")
    db.sql(f"INSERT INTO t VALUES (1, {2**63 - 1})")
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(x) AS s FROM t GROUP BY k")
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    db.sql("INSERT INTO t VALUES (1, 1)")
    try:
        db.refresh()
    except penstock.RefreshError as problem:
        report = problem.report
    assert report["sums"].status == "FAILED"
    assert "overflow" in report["sums"].error.lower()
    assert_fresh(db, "counts", "INCREMENTAL")
    assert rows(db.table("sums")) == [(1, 2**63 - 1)]
    db.sql("DELETE FROM t WHERE x = 1")
    db.refresh()
    assert_fresh(db, "sums", "NO_DATA")  # what came has gone again
    assert_fresh(db, "counts", "INCREMENTAL")


def test_sums_of_wide_decimals(db: penstock.Database) -> None:
    nines = "9" * 37
    db.sql("CREATE TABLE t (k INT, x DECIMAL(38,0))")
    db.sql(f"INSERT INTO t VALUES (1, {nines}BD)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS s, MAX(x) AS m FROM t GROUP BY k")
    after(db, f"UPDATE t SET x = -{nines}BD")
    after(db, f"INSERT INTO t VALUES (1, {nines}BD), (2, 1)", "DELETE FROM t WHERE x < 0")


def test_floats(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, k DOUBLE, x DOUBLE, f FLOAT)")
    db.sql(
        "INSERT INTO t VALUES (1, 0D, 0.1D, 0.1), (2, -0.0D, 0.2D, 0.2), (3, double('NaN'), 0.3D, 0.3), "
        "(4, double('NaN'), double('NaN'), 1), (5, NULL, double('Infinity'), float('-Infinity')), (6, 1D, -0.0D, -0.0)"
    )
    db.create_view("sums", "SELECT k, SUM(x) AS s, AVG(x) AS a, SUM(f) AS sf, COUNT(*) AS n FROM t GROUP BY k")
    db.create_view("extremes", "SELECT k, MIN(x) AS low, MAX(x) AS high, MIN(f) AS lf, MAX(f) AS hf FROM t GROUP BY k")
    db.create_view("once", "SELECT DISTINCT k, f FROM t")
    db.create_view("as_they_are", "SELECT k, x FROM t WHERE f IS NOT NULL")
    db.create_view("matched", "SELECT a.id, b.x FROM t AS a JOIN t AS b ON a.k = b.k")
    db.create_view("all_sums", "SELECT SUM(x) AS s, MAX(x) AS m FROM t")
    after(db, "INSERT INTO t VALUES (7, 0D, 0.7D, 0.7), (8, -0.0D, -1e300D, 1), (9, double('NaN'), 1D, float('NaN'))")
    after(db, "DELETE FROM t WHERE isnan(x)")
    after(db, "UPDATE t SET k = -k, x = -x WHERE k = 0 OR k = 1")
    after(db, "UPDATE t SET k = double('NaN') WHERE k IS NULL", "DELETE FROM t WHERE id = 3")
    after(db, "DELETE FROM t WHERE isnan(k)")


def test_sums_of_wide_decimals_are_merged_while_their_values_leave_room(db: penstock.Database) -> None:
    """A value with more than 28 digits is not added up: its group is recomputed, when it comes and when it goes."""
    db.sql("CREATE TABLE t (k INT, x DECIMAL(38,2), q DECIMAL(15,2))")
    db.sql("INSERT INTO t VALUES (1, 10, 0.5), (1, 20, 0.25), (2, NULL, 1), (3, 7, NULL)")
    db.create_view("groups", "SELECT k, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY k")
    db.create_view("overall", "SELECT SUM(x) AS s, SUM(q * (1 - q) * (1 + q)) AS p FROM t")
    large = "1" + "0" * 33
    for change in (
        "INSERT INTO t VALUES (1, 5, 0.1), (2, 3, 0.2), (2, 3, 0.2)",
        f"INSERT INTO t VALUES (1, {large}.00BD, 1), (3, 1, 1)",
        "UPDATE t SET x = x + 1 WHERE k = 3",
        f"INSERT INTO t VALUES (1, -{large}.50BD, 1)",
        f"DELETE FROM t WHERE x = {large}.00BD",
        f"DELETE FROM t WHERE x < -{large}.00BD",
        "DELETE FROM t WHERE k = 2",
        "UPDATE t SET x = NULL",
    ):
        after(db, change)


def test_spark_finds_nan_in_what_the_driver_wrote(db: penstock.Database) -> None:
    """NaN is above all numbers, but not within the bounds that Arrow writes into a file."""
    db.sql("CREATE TABLE measured (k INT, f DOUBLE)")
    db.create_view("shown", "SELECT k, f, NAMED_STRUCT('f', f) AS p FROM measured")
    db.sql("INSERT INTO measured VALUES (1, 1.0), (2, DOUBLE('NaN')), (3, 2.0)")
    db.refresh()
    for condition in ("f > 5", "f = DOUBLE('NaN')", "p.f > 5"):
        assert [row.k for row in db.table("shown").where(condition).collect()] == [2], condition
