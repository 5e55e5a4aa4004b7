"""Settings are part of a view: whichever session refreshes it, it stays what its query meant where it was created."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import penstock
from connect_server import OVER_CONNECT
from oracle import assert_fresh, rows
from penstock.cli.main import app
from penstock.errors import DefinitionError
from penstock.frames import limits
from penstock.frames.settings import DEFAULTS, Settings, own, under
from sessions import having

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
PRECISION = "spark.sql.decimalOperations.allowPrecisionLoss"


def story(db: penstock.Database, settings: dict[str, str], views: dict[str, str], changes: Sequence[str]) -> None:
    """Views are created under settings, and refreshed without them; they are checked under them again."""
    with having(db.spark, settings):
        for name, query in views.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for change in changes:
        db.sql(change)
        here = {name: db.spark.conf.get(name) for name in settings}
        db.refresh()
        assert {name: db.spark.conf.get(name) for name in settings} == here
        with having(db.spark, settings):
            for name in views:
                assert_fresh(db, name, ("INCREMENTAL", "NO_DATA"))
    db.refresh(full=True)
    with having(db.spark, settings):
        for name in views:
            assert_fresh(db, name, "FULL")


TIMES = (
    "(1, TIMESTAMP '2026-03-28T22:30:00Z', TIMESTAMP_NTZ '2026-03-29 01:30:00', DATE '2026-03-29', '2026-03-29 00:10')",
    "(2, TIMESTAMP '2026-03-28T23:30:00Z', TIMESTAMP_NTZ '2026-03-29 02:30:00', DATE '2026-03-28', '2026-10-25 02:30')",
    "(3, TIMESTAMP '2026-10-25T00:30:00Z', TIMESTAMP_NTZ '2026-10-25 02:30:00', DATE '2026-10-25', '2026-10-25 03:30')",
    "(4, TIMESTAMP '2026-10-25T01:30:00Z', NULL, NULL, NULL)",
    "(5, TIMESTAMP '2026-12-31T23:00:00Z', TIMESTAMP_NTZ '2027-01-01 00:00:00', DATE '2027-01-01', '2027-01-01')",
)


def test_days_of_berlin_are_not_those_of_whoever_refreshes(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, ts TIMESTAMP, local TIMESTAMP_NTZ, day DATE, text STRING)")
    db.sql(f"INSERT INTO t VALUES {TIMES[0]}, {TIMES[2]}")
    views = {
        "cut": "SELECT DATE_TRUNC('DAY', ts) AS d, DATE_TRUNC('HOUR', ts) AS h, COUNT(*) AS n FROM t GROUP BY 1, 2",
        "cast_day": "SELECT CAST(ts AS DATE) AS d, COUNT(*) AS n, MAX(id) AS id FROM t GROUP BY 1",
        "parts": "SELECT id, HOUR(ts) AS h, CAST(ts AS STRING) AS s, DAYOFWEEK(ts) AS w, DATE(ts) AS d FROM t",
        "parsed": "SELECT id, CAST(text AS TIMESTAMP) AS t, CAST(local AS TIMESTAMP) AS l, CAST(day AS TIMESTAMP) AS d "
        "FROM t",
        "compared": "SELECT id FROM t WHERE day <= ts AND local < ts",
        "later": "SELECT a.id, b.id AS other FROM t AS a JOIN t AS b ON a.day = CAST(b.ts AS DATE)",
        "twice": "SELECT n, COUNT(*) AS days FROM (SELECT CAST(ts AS DATE) AS d, COUNT(*) AS n FROM t GROUP BY 1) "
        "GROUP BY n",
    }
    changes = [
        f"INSERT INTO t VALUES {TIMES[1]}, {TIMES[3]}, {TIMES[4]}",
        "UPDATE t SET ts = TIMESTAMP '2026-03-29T22:00:00Z' WHERE id = 2", "DELETE FROM t WHERE id = 1",
    ]  # fmt: skip
    story(db, {ZONE: "Europe/Berlin"}, views, changes)


def test_views_of_several_zones_in_one_epoch(db: penstock.Database) -> None:
    """They read one change and one another, some in one thread and some side by side, and share no hidden node."""
    db.sql("CREATE TABLE t (id INT, ts TIMESTAMP, local TIMESTAMP_NTZ, day DATE, text STRING)")
    db.sql(f"INSERT INTO t VALUES {TIMES[0]}")
    days = "SELECT n, COUNT(*) AS days FROM (SELECT CAST(ts AS DATE) AS d, COUNT(*) AS n FROM t GROUP BY 1) GROUP BY n"
    zones = {"berlin": "Europe/Berlin", "utc": "UTC", "kathmandu": "Asia/Kathmandu"}
    for name, zone in zones.items():
        with having(db.spark, {ZONE: zone}):
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {days}")
            db.sql(f"CREATE MATERIALIZED VIEW {name}_rows AS SELECT id, HOUR(ts) AS h FROM t")
    with having(db.spark, {ZONE: "Europe/Berlin"}):
        db.sql(
            "CREATE MATERIALIZED VIEW above AS SELECT id, h, DATE_TRUNC('DAY', ts) AS d FROM utc_rows JOIN t USING (id)"
        )
    world = db._catalog.world()
    hidden = [node for name in zones for node in world.views[name].nodes if node != name]
    assert len(set(hidden)) == 3
    for change in (f"INSERT INTO t VALUES {TIMES[1]}, {TIMES[2]}, {TIMES[4]}", "DELETE FROM t WHERE id = 1"):
        db.sql(change)
        report = db.refresh()
        for name, zone in zones.items():
            with having(db.spark, {ZONE: zone}):
                assert_fresh(db, name, "INCREMENTAL")
                assert_fresh(db, f"{name}_rows", "INCREMENTAL")
        expected = db.sql(
            "SELECT id, HOUR(ts) AS h, TO_UTC_TIMESTAMP(DATE_TRUNC('DAY', FROM_UTC_TIMESTAMP(ts, 'Europe/Berlin')), "
            "'Europe/Berlin') AS d FROM t"
        )
        assert rows(db.table("above")) == rows(expected)
        assert report["berlin"].unlike == [f"{ZONE} = Europe/Berlin (this session: UTC)"]
        assert report["utc"].unlike == []


def test_without_ansi_what_would_be_an_error_is_a_value(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, i INT, l BIGINT, x STRING, d DECIMAL(10,2))")
    db.sql("INSERT INTO t VALUES (1, 5, 5, '7', 1.50), (1, 2147483647, 9223372036854775807, 'seven', 0)")
    views = {
        "rows_of": "SELECT k, i + 1 AS a, l + 1 AS b, CAST(x AS INT) AS c, CAST(x AS TIMESTAMP) AS t, 10 / d AS q, "
        "CAST(l AS INT) AS n, k / (i - 5) AS z, ELEMENT_AT(ARRAY(1), k) AS e FROM t",
        "sums": "SELECT k, SUM(i) AS i, SUM(l) AS l, AVG(l) AS a, SUM(CAST(x AS INT)) AS x, COUNT(x) AS n FROM t "
        "GROUP BY k",
        "total": "SELECT SUM(l) AS l, SUM(l + i) AS s, AVG(d) AS a FROM t",
        "chosen": "SELECT k FROM t WHERE x > 3",
    }
    changes = [
        "INSERT INTO t VALUES (1, 1, 9223372036854775807, '', 0.01), "
        "(2, -2147483648, -9223372036854775808, NULL, NULL)",
        "INSERT INTO t VALUES (2, -1, -1, '2', 99999999.99)",
        "DELETE FROM t WHERE l = 9223372036854775807",
        "DELETE FROM t WHERE k = 2",
    ]  # fmt: skip
    story(db, {ANSI: "false"}, views, changes)


def test_a_sum_that_overflowed_is_not_nothing(db: penstock.Database) -> None:
    """Without ANSI it is NULL. The next change may bring it back into range, or not."""
    most = "9" * 38
    db.sql("CREATE TABLE t (k INT, v DECIMAL(38,0), w DECIMAL(38,4), a DECIMAL(27,0))")
    db.sql(f"INSERT INTO t VALUES (1, {most}, {most[4:]}.9, 5), (2, {most}, 1, {most[11:]}), (1, NULL, NULL, NULL)")
    views = {
        "total": "SELECT SUM(v) AS s FROM t",
        "by_k": "SELECT k, SUM(v) AS s, SUM(w) AS w, AVG(a) AS a, AVG(v) AS v FROM t GROUP BY k",
        "above": "SELECT k FROM t GROUP BY k HAVING SUM(v) > 0",
        "tried": "SELECT k, TRY_SUM(v) AS s, TRY_AVG(w) AS w FROM t GROUP BY k",
    }
    changes = [
        "INSERT INTO t VALUES (1, 5, 5, 5)",
        f"INSERT INTO t VALUES (1, {most}, {most[4:]}.9, {most[11:]})",
        "INSERT INTO t VALUES (1, 5, 5, 5), (2, 7, 7, 7)",
        "DELETE FROM t WHERE v = 7",
        f"DELETE FROM t WHERE k = 1 AND v = {most}",
        "UPDATE t SET v = NULL, w = NULL WHERE k = 2",
    ]
    with having(db.spark, {ANSI: "false"}):
        story(db, {ANSI: "false"}, views, changes)


def test_a_sum_that_overflows_is_an_error_until_the_rows_are_gone(db: penstock.Database) -> None:
    most = "9" * 38
    db.sql("CREATE TABLE t (k INT, v DECIMAL(38,0), l BIGINT)")
    db.sql(f"INSERT INTO t VALUES (1, {most}, {2**63 - 1}), (2, 3, 3)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(v) AS s FROM t GROUP BY k")
    db.sql("CREATE MATERIALIZED VIEW l AS SELECT k, SUM(l) AS s FROM t GROUP BY k")
    db.sql("INSERT INTO t VALUES (1, 5, 5), (2, 4, 4)")
    with pytest.raises(penstock.RefreshError, match=r"(?i)overflow"):
        db.refresh()
    db.sql("DELETE FROM t WHERE v = 5")
    db.refresh()
    for view in ("v", "l"):
        assert_fresh(db, view, "INCREMENTAL")


def test_decimals_without_loss_of_precision(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, d DECIMAL(10,2), e DECIMAL(20,6), q DECIMAL(38,10), s DECIMAL(25,12))")
    db.sql("INSERT INTO t VALUES (1, 1.5, 2, 3, 4), (2, 7, 3, 1, 2)")
    views = {
        "asked": "SELECT k FROM t WHERE q / e > 0.333333",
        "values_of": "SELECT k, q / e AS a, e / d AS b, d / 3 AS c, e * d AS f, q - e AS g, e % d AS h FROM t",
        "averages": "SELECT k, AVG(d) AS d, AVG(e) AS e, AVG(s) AS s, SUM(d) / COUNT(*) AS r, SUM(e) / SUM(d) AS p "
        "FROM t GROUP BY k",
    }
    changes = [
        "INSERT INTO t VALUES (1, 3, 3, 1, 0.000000000001), (3, 0.01, 99999999999999.999999, 0.0000000001, 1)",
        "INSERT INTO t VALUES (1, -99999999.99, -0.000001, 2, 9999999999999.999999999999), (2, 7, 7, 7, -7.5)",
        "DELETE FROM t WHERE k = 1 AND d = 1.5",
    ]
    story(db, {PRECISION: "false"}, views, changes)


ELSEWHERE = """
import sys
import penstock
from penstock.errors import SparkError

keeper = penstock.connect(sys.argv[1] + "/keeper")
spark = keeper.spark
spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
spark.udf.register("twice", lambda n: 2 * n, "int")
db = penstock.connect(sys.argv[1] + "/warehouse", spark=spark)
db.sql("CREATE TABLE t (id INT, ts TIMESTAMP)")
db.sql("INSERT INTO t VALUES (1, TIMESTAMP '2026-03-29T22:30:00Z'), (2, TIMESTAMP '2026-10-25T00:30:00Z')")
db.sql("CREATE MATERIALIZED VIEW days AS SELECT CAST(ts AS DATE) AS d, COUNT(*) AS n FROM t GROUP BY 1")
db.sql("CREATE MATERIALIZED VIEW hours AS SELECT id, HOUR(ts) AS h, CAST(ts AS STRING) AS s FROM t")
db.sql("CREATE MATERIALIZED VIEW doubled AS SELECT id, twice(HOUR(ts)) AS h FROM t")
spark.stop()
for entry in (
    lambda: db.sql("SELECT 1"), lambda: db.sql("INSERT INTO t VALUES (3, NULL)"), lambda: db.table("days"),
    lambda: db.refresh(full=True), lambda: db.create_view("x", "SELECT id FROM t"), lambda: db.snapshot().table("t"),
    lambda: db.changes("days", 1), lambda: db.spark, lambda: keeper.sql("SELECT 1"),
    lambda: db.explain("CREATE MATERIALIZED VIEW z AS SELECT id FROM t"), lambda: db.sql("DESCRIBE t"),
):
    try:
        entry()
        print("no error")
    except SparkError as problem:
        print(problem)
db.close()
with penstock.connect(sys.argv[1] + "/warehouse") as again:  # a database that is opened again has a Spark that runs
    keeper.close()
    print(again.sql("SELECT COUNT(*) AS n FROM hours").first()["n"])
"""


@pytest.mark.skipif(OVER_CONNECT, reason="the command has an embedded Spark of its own")
def test_a_view_of_berlin_is_refreshed_by_the_command(spark: SparkSession, tmp_path: Path) -> None:
    """Two processes. The session of the first has another zone and a function that the command does not know."""
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    *stopped, counted = done.stdout.splitlines()
    assert counted == "2"
    assert len(stopped) == 11
    for said in stopped:
        assert re.fullmatch(
            r"the Spark session (given to|of) this database was stopped\. Close the database, .*\)\.", said
        )
    warehouse = tmp_path / "warehouse"
    with penstock.connect(warehouse) as db:
        db.sql("INSERT INTO t VALUES (3, TIMESTAMP '2026-03-28T23:30:00Z'), (4, TIMESTAMP '2026-10-25T01:30:00Z')")
        db.sql("DELETE FROM t WHERE id = 1")
        command = ["refresh", "-w", str(warehouse)]
        shown = CliRunner().invoke(app, command)
        assert shown.exit_code == 1
        said = " ".join(shown.stdout.split())
        assert f"computed under the views' own settings: {ZONE} = Europe/Berlin (this session: UTC)" in said
        told = " ".join(shown.stderr.split())
        assert "view 'doubled' failed to refresh: the function `twice` is not known to this Spark session." in told
        assert "penstock.connect(path, spark=your_session)" in told
        for _ in range(2):
            assert rows(db.sql("SELECT CAST(d AS STRING), n FROM days")) == [("2026-03-29", 1), ("2026-10-25", 2)]
            assert rows(db.table("hours").select("id", "h", "s")) == [
                (2, 2, "2026-10-25 02:30:00"), (3, 0, "2026-03-29 00:30:00"), (4, 2, "2026-10-25 02:30:00"),
            ]  # fmt: skip
            with having(spark, {ZONE: "Europe/Berlin"}):
                assert_fresh(db, "days")
            CliRunner().invoke(app, [*command, "days", "hours", "--full"])
        assert db.history("days", 1)[0].action == "FULL"


def test_functions_of_the_session_are_there_under_other_settings(db: penstock.Database) -> None:
    db.spark.udf.register("twice", lambda n: 2 * n, "int")
    try:
        db.sql("CREATE TABLE t (id INT, ts TIMESTAMP, local TIMESTAMP_NTZ, day DATE, text STRING)")
        db.sql(f"INSERT INTO t VALUES {TIMES[0]}")
        with having(db.spark, {ZONE: "Asia/Kathmandu"}):
            db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, twice(HOUR(ts)) AS h FROM t")
        db.sql(f"INSERT INTO t VALUES {TIMES[1]}")
        db.refresh()
        with having(db.spark, {ZONE: "Asia/Kathmandu"}):
            assert_fresh(db, "v", "FULL")
    finally:
        db.sql("DROP MATERIALIZED VIEW v")
        db.spark.sql("DROP TEMPORARY FUNCTION twice")


def test_what_is_recorded_and_shown(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, ts TIMESTAMP)")
    db.sql("CREATE MATERIALIZED VIEW usual AS SELECT id FROM t")
    with having(db.spark, {ZONE: "Europe/Berlin", "spark.sql.mapKeyDedupPolicy": "last_win"}):
        db.sql("CREATE MATERIALIZED VIEW other AS SELECT id, MAP(id, ts, id, NULL) AS m FROM t")
        db.sql("CREATE MATERIALIZED VIEW hours AS SELECT HOUR(ts) AS h, COUNT(*) AS n FROM t GROUP BY 1")

    def described(view: str) -> dict[str, str]:
        found = db.sql(f"DESCRIBE MATERIALIZED VIEW {view}").collect()
        return {row[0]: row[1] for row in found if "Setting" in row[0] or "Other" in row[0]}

    assert described("usual") == {f"# Setting {ZONE}": "UTC", f"# Setting {ANSI}": "true"}
    assert described("other") == {
        f"# Setting {ZONE}": "Europe/Berlin",
        f"# Setting {ANSI}": "true",
        "# Setting spark.sql.mapKeyDedupPolicy": "LAST_WIN",
        "# Other here": f"{ZONE} = Europe/Berlin (this session: UTC), "
        "spark.sql.mapKeyDedupPolicy = LAST_WIN (this session: EXCEPTION)",
    }
    db.sql("INSERT INTO t VALUES (1, TIMESTAMP '2026-10-25T00:30:00Z')")
    db.refresh()
    assert db.sql("SELECT m[1] AS found FROM other").first()["found"] is None
    db.alter_view("hours", policy="FULL")  # which plans it anew, under its own settings
    assert described("hours")[f"# Setting {ZONE}"] == "Europe/Berlin"
    assert db.sql("SELECT h FROM hours").first()["h"] == 2
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW hours AS SELECT HOUR(ts) AS h FROM t")
    assert described("hours")[f"# Setting {ZONE}"] == "UTC"


def test_what_changes_how_every_query_is_read_is_refused(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT)")
    for name in ("spark.sql.parser.quotedRegexColumnNames", "spark.sql.parser.escapedStringLiterals"):
        with having(db.spark, {name: "true"}), pytest.raises(DefinitionError, match=f"while {name} is true"):
            db.sql("CREATE MATERIALIZED VIEW v AS SELECT `i.` FROM t")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, '\\\\' AS x FROM t")
    db.sql("INSERT INTO t VALUES (1)")
    with having(db.spark, {"spark.sql.parser.escapedStringLiterals": "true"}):
        db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")


def test_the_session_is_left_as_it_was(db: penstock.Database) -> None:
    """Also after an error, and also of what is set for files."""
    files = "spark.sql.parquet.outputTimestampType"
    db.sql("CREATE TABLE t (id INT, ts TIMESTAMP)")
    db.sql("INSERT INTO t VALUES (1, TIMESTAMP '2026-10-25T00:30:00.123456Z')")
    with having(db.spark, {ZONE: "Europe/Berlin"}):
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, ts, 10 / (id - 3) AS q FROM t WHERE HOUR(ts) = 2")
    explicit = {name: db.spark.conf.get(name, None) for name in DEFAULTS}
    with having(db.spark, {files: "TIMESTAMP_MILLIS"}):
        db.sql("INSERT INTO t VALUES (3, TIMESTAMP '2026-10-25T00:30:00Z')")
        with pytest.raises(penstock.RefreshError, match=r"(?i)zero"):
            db.refresh()
        assert db.spark.conf.get(files) == "TIMESTAMP_MILLIS"
        db.sql("DELETE FROM t WHERE id = 3")
        db.refresh("v", full=True)
    assert {name: db.spark.conf.get(name, None) for name in DEFAULTS} == explicit
    with having(db.spark, {ZONE: "Europe/Berlin"}):
        assert_fresh(db, "v", "FULL")


def test_settings_take_turns(spark: SparkSession) -> None:
    """Whoever computes under settings has them all the while, and the session's own are told right meanwhile."""
    mine, problems = own(spark), []
    zones = ["Europe/Berlin", "UTC", "Asia/Kathmandu", "America/New_York"]

    def compute(number: int) -> None:
        wanted = Settings.of({ZONE: zones[number % len(zones)]})
        for _ in range(20):
            with under(spark, wanted):
                if spark.conf.get(ZONE) != wanted[ZONE]:
                    problems.append(number)
            if own(spark) != mine:
                problems.append(-1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(compute, range(8)))
    assert problems == []
    assert own(spark) == mine


def test_names_that_differ_in_case(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (Id INT, p STRUCT<Value: INT>)")
    db.sql("INSERT INTO t VALUES (1, STRUCT(5))")
    views = {
        "v": "SELECT Id, p.Value AS x FROM t WHERE Id < 10",
        "g": "SELECT p.Value + 1 AS x, COUNT(*) AS n, SUM(Id) AS s FROM t GROUP BY 1",
    }
    story(db, {"spark.sql.caseSensitive": "true"}, views, ["INSERT INTO t VALUES (2, NULL), (3, STRUCT(5))"])


def test_times_without_a_zone_by_default(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, ts TIMESTAMP, x STRING)")
    db.sql("INSERT INTO t VALUES (1, TIMESTAMP '2026-10-25T00:30:00Z', '2026-10-25 02:30:00')")
    views = {"v": "SELECT id, CAST(x AS TIMESTAMP) AS t FROM t WHERE ts > TIMESTAMP '2026-01-01 00:00:00'"}
    settings = {"spark.sql.timestampType": "TIMESTAMP_NTZ", ZONE: "Asia/Tokyo"}
    story(db, settings, views, ["INSERT INTO t VALUES (2, TIMESTAMP '2025-12-31T16:00:00Z', '2026-10-25 02:30:00')"])


def test_a_watermark_without_a_zone_is_of_the_zone_of_each_view(db: penstock.Database) -> None:
    """Views of two zones, refreshed by a session of a third: a window ends when its own hour is over."""
    db.sql("CREATE TABLE visits (at TIMESTAMP_NTZ, n INT, WATERMARK FOR at AS at)")
    zones = {"tokyo": "Asia/Tokyo", "shifted": "+03:30"}
    for name, zone in zones.items():
        with having(db.spark, {ZONE: zone}):
            db.sql(
                f"CREATE MATERIALIZED VIEW {name} AS SELECT DATE_TRUNC('hour', at) AS hour, SUM(n) AS n "
                "FROM visits GROUP BY 1 EMIT AFTER WATERMARK"
            )
    for minute, shown in (("10:10", []), ("10:59", []), ("11:00", [2]), ("11:59", [2]), ("12:01", [2, 2])):
        db.sql(f"INSERT INTO visits VALUES (TIMESTAMP_NTZ '2026-03-07 {minute}:00', 1)")
        db.refresh()
        for name, zone in zones.items():
            assert [row["n"] for row in db.table(name).collect()] == shown, minute
            with having(db.spark, {ZONE: zone}):
                assert_fresh(db, name)


def test_local_times_are_looked_up_in_the_windows_of_their_zone(
    db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hours of Kathmandu begin at a quarter past those of UTC, also for times that say no zone."""
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 1)
    monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 0)
    db.sql("CREATE TABLE t (id INT, local TIMESTAMP_NTZ, at TIMESTAMP)")
    db.sql(
        "INSERT INTO t SELECT id, TIMESTAMP_NTZ '2026-01-01 00:00:00' + MAKE_INTERVAL(0, 0, 0, 0, 0, id * 7), "
        "TIMESTAMP_MICROS(id * 420000000) FROM RANGE(300)"
    )
    views = {
        name: f"SELECT TUMBLE_START({column}, INTERVAL 1 HOUR) AS h, MIN(id) AS low, MAX(id) AS high, COUNT(*) AS n "
        f"FROM t GROUP BY TUMBLE({column}, INTERVAL 1 HOUR)"
        for name, column in (("by_local", "local"), ("by_at", "at"))
    }
    views["days"] = "SELECT DATE_TRUNC('DAY', at) AS d, MIN(id) AS low, MAX(id) AS high FROM t GROUP BY 1"
    views["dates"] = "SELECT CAST(at AS DATE) AS d, MIN(id) AS low, MAX(id) AS high FROM t GROUP BY 1"
    changes = ["DELETE FROM t WHERE id IN (0, 7, 8, 9, 100, 101, 102, 299)", "UPDATE t SET id = -id WHERE id % 37 = 1"]
    story(db, {ZONE: "Asia/Kathmandu"}, views, changes)


def test_what_looks_like_a_variable_is_text_for_everyone(db: penstock.Database) -> None:
    """Spark replaces ``${name}`` by a setting before it reads a text: one of ours never."""
    replaced = "spark.sql.variable.substitute"
    with having(db.spark, {"my.name": "alpha", replaced: "false"}):
        db.sql("CREATE TABLE t (s STRING, n INT)")
        db.sql("INSERT INTO t VALUES ('${my.name}', 1), ('alpha', 2)")
        db.create_view("chosen", "SELECT s, '${my.name}' AS told FROM t WHERE s = '${my.name}'")
        db.create_view("counts", "SELECT s, COUNT(*) AS n FROM t GROUP BY s")
        with having(db.spark, {replaced: "true"}):
            with pytest.raises(penstock.DefinitionError, match=r"Spark would replace \$\{\.\.\} in its query"):
                db.create_view("refused", "SELECT '${my.name}' AS s FROM t")
            db.sql("INSERT INTO t VALUES ('${my.name}', 3)")  # which Spark reads as alpha, wherever it is done
        db.sql("INSERT INTO t VALUES ('${my.name}', 4)")
        with having(db.spark, {replaced: "true"}):
            db.refresh()
            assert db.spark.conf.get(replaced) == "true"
            db.refresh("chosen", full=True)
        assert sorted(row.n for row in db.sql("SELECT n FROM t WHERE s = '${my.name}'").collect()) == [1, 4]
        assert [tuple(row) for row in db.table("chosen").collect()] == [("${my.name}", "${my.name}")] * 2
        assert sorted(map(tuple, db.table("counts").collect())) == [("${my.name}", 2), ("alpha", 2)]
