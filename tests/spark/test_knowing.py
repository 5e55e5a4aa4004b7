"""What others hear of refreshes: lineage, logs and the metadata of commits; and that no row or secret is in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from catalogs import connected
from connect_server import opened
from oracle import assert_fresh
from penstock.cli.run import _json_line, _line
from penstock.logs import JsonFormatter
from receivers import Receiver

_HIDDEN = ("M4RK3R", "987654321", "s3cret")
"""Values of rows, and a secret."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


class Written(logging.Handler):
    """What is logged, as JSON lines."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(JsonFormatter().format(record))


@pytest.fixture
def written() -> Iterator[Written]:
    """All that any logger says while a test runs."""
    handler, root = Written(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    for noisy in ("py4j", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


def commits(db: penstock.Database, view: str) -> list[dict[str, Any]]:
    """What the commits to a view's table say of themselves, newest first."""
    path = db._catalog.world().nodes[view].path
    logs = sorted(Path(path, "_delta_log").glob("*.json"), reverse=True)
    infos = [json.loads(line)["commitInfo"] for log in logs for line in log.open() if "commitInfo" in line]
    return [json.loads(info["userMetadata"])["penstock"] for info in infos if "userMetadata" in info]


def test_commits_say_which_source_versions_they_stand_for(db: penstock.Database) -> None:
    db.sql("CREATE TABLE Orders (id INT, region STRING, amount INT)")
    db.sql("CREATE TABLE regions (region STRING)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    db.sql("INSERT INTO regions VALUES ('eu')")
    db.create_view("totals", "SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
    db.create_view("ours", "SELECT t.* FROM totals t JOIN regions r ON r.region = t.region")
    db.create_view("by_region", "SELECT * FROM orders", partitioned_by=["region"])
    db.sql("INSERT INTO orders VALUES (3, 'eu', 5)")
    report = db.refresh()
    runs = {view: commits(db, view) for view in ("totals", "ours", "by_region")}
    assert [told["sources"] for told in runs["totals"]] == [{"Orders": 2}, {"Orders": 1}]
    assert [told["sources"] for told in runs["ours"]] == [{"Orders": 2, "regions": 1}, {"Orders": 1, "regions": 1}]
    assert runs["by_region"][0]["sources"] == {"Orders": 2}, "which delta-rs has committed"
    assert {view[0]["run"] for view in runs.values()} == {db._catalog.epochs()[0].run}
    assert db._catalog.epochs()[0].id == report.epoch
    path = db._catalog.world().nodes["totals"].path
    shown = db.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").select("userMetadata").first()
    assert shown is not None
    assert json.loads(shown[0])["penstock"]["sources"] == {"Orders": 2}


def test_lineage(spark: SparkSession, warehouse: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", receiver.url.removesuffix("/alerts"))
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    with opened(warehouse, spark) as db:
        db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
        db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
        db.sql(
            "CREATE MATERIALIZED VIEW totals (place, total) AS "
            "SELECT region, SUM(amount) FROM orders WHERE id > 0 GROUP BY region"
        )
        db.create_view("shares", "SELECT place, 100 DIV total AS share FROM totals")
        db.sql("INSERT INTO orders VALUES (3, 'eu', 5)")
        db.refresh()
        db.refresh()
        db.sql("INSERT INTO orders VALUES (4, 'asia', 0)")
        with pytest.raises(penstock.RefreshError):
            db.refresh()
        places = {name: db._catalog.world().nodes[name].path for name in ("totals", "shares")}
        orders = db._catalog.world().tables["orders"].path
    events = receiver.documents()
    runs: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        runs.setdefault(event["run"]["runId"], []).append(event)
    told = [(run[0]["job"]["name"], [event["eventType"] for event in run]) for run in runs.values()]
    assert told == [
        ("warehouse.totals", ["START", "COMPLETE"]), ("warehouse.shares", ["START", "COMPLETE"]),
        ("warehouse.totals", ["START", "COMPLETE"]), ("warehouse.shares", ["START", "COMPLETE"]),
        ("warehouse.totals", ["START", "COMPLETE"]), ("warehouse.shares", ["START", "FAIL"]),
    ], "nothing of the refresh that found nothing to do"  # fmt: skip
    completed = list(runs.values())[2][1]
    assert completed["job"]["namespace"] == "shop"
    (read,), (wrote,) = completed["inputs"], completed["outputs"]
    assert (read["namespace"], read["name"]) == ("file", orders)
    assert read["facets"]["version"]["datasetVersion"] == "2"
    assert wrote["name"] == places["totals"]
    assert wrote["facets"]["version"]["datasetVersion"] == "2"
    assert [field["name"] for field in wrote["facets"]["schema"]["fields"]] == ["place", "total"]
    assert wrote["outputFacets"]["outputStatistics"]["rowCount"] == 1
    columns = wrote["facets"]["columnLineage"]
    origins = {
        name: [(each["name"], each["field"], each["transformations"][0]["subtype"]) for each in known["inputFields"]]
        for name, known in columns["fields"].items()
    }
    assert origins == {"place": [(orders, "region", "IDENTITY")], "total": [(orders, "amount", "AGGREGATION")]}
    decided = {(each["field"], step["subtype"]) for each in columns["dataset"] for step in each["transformations"]}
    assert decided == {("id", "FILTER"), ("region", "GROUP_BY")}
    did = completed["run"]["facets"]["penstock_refresh"]
    assert (did["action"], did["rowsInserted"], did["rowsDeleted"]) == ("INCREMENTAL", 1, 1)
    failed = list(runs.values())[5][1]
    assert "DIVIDE_BY_ZERO" in failed["run"]["facets"]["errorMessage"]["message"]
    assert failed["inputs"][0]["name"] == places["totals"]


def test_nobody_hears_of_rows_or_secrets(
    spark: SparkSession, warehouse: Path, receiver: Receiver, written: Written, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("PENSTOCK_ALERT_WEBHOOK", receiver.url + "?token=s3cret")
    monkeypatch.setenv("PENSTOCK_ALERT_SECRET", "s3cret")
    monkeypatch.setenv("OPENLINEAGE_URL", receiver.url.removesuffix("/alerts"))
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "s3cret")
    with opened(warehouse, spark) as db:
        db.sql("CREATE TABLE notes (id INT, note STRING)")
        db.sql("INSERT INTO notes VALUES (1, '7')")
        db.create_view("numbers", "SELECT id, CAST(note AS INT) AS number FROM notes", refresh="ON COMMIT")
        db.create_view("small", "SELECT CAST(number * 1000 AS DECIMAL(8, 2)) AS n FROM numbers", refresh="ON COMMIT")
        db.sql("INSERT INTO notes VALUES (2, '987654321')")
        with suppress(penstock.RefreshError):
            db.refresh()
        db.sql("INSERT INTO notes VALUES (3, 'M4RK3R')")
        for _ in range(3):
            with suppress(penstock.RefreshError):
                db.refresh()
        db.sql("ALTER MATERIALIZED VIEW numbers RESUME")
        with db.runner(_line) as runner:
            runner.run(until_idle=True)
        db.sql("INSERT INTO notes VALUES (4, 'M4RK3R')")
        with db.runner(_json_line) as runner:
            runner.run(until_idle=True)
        errors = " ".join(record.error or "" for record in db.history())
        assert "M4RK3R" in errors, "the person who may read the table is told"
        assert {alert.kind for alert in db.alerts()} >= {"auto_suspended", "upstream_failed"}
        assert not any(hidden in alert.message for alert in db.alerts() for hidden in _HIDDEN)
    said = capfd.readouterr()
    heard = {
        "the log": "\n".join(written.lines), "the receiver": str(receiver.documents()),
        "the output": said.out, "the errors": said.err,
    }  # fmt: skip
    assert "auto_suspended" in heard["the log"]
    assert "auto_suspended" in heard["the receiver"]
    assert "CAST_INVALID_INPUT" in heard["the output"]
    for place, text in heard.items():
        assert not [hidden for hidden in _HIDDEN if hidden in text], place
    assert {json.loads(line)["event"] for line in written.lines if '"event"' in line} >= {"refreshed", "raised"}


def test_a_secret_in_the_place_of_a_catalog_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(penstock.WarehouseError) as problem:
        penstock.connect(tmp_path / "w", catalog="postgresql://me:s3cret@127.0.0.1:1/none")
    assert "s3cret" not in str(problem.value)


@pytest.mark.catalogs
def test_what_is_known_is_the_same_on_every_catalog(db: penstock.Database, warehouse: Path) -> None:
    db.sql("CREATE TABLE t (k INT)")
    db.sql("INSERT INTO t VALUES (1), (2)")
    db.create_view("v", "SELECT COUNT(*) AS n FROM t", target_lag="5 minutes")
    db.sql("INSERT INTO t VALUES (3)")
    with connected(warehouse) as other:
        other.refresh()
        (view,) = other.status()
        assert (view.stale, view.too_old, view.last_action) == (False, False, "INCREMENTAL")
        assert other.statistics()["v"].refreshes == 2
        assert [record.action for record in other.history()] == ["INCREMENTAL", "FULL"]
        for table in ("views", "history", "epochs", "dependencies", "alerts", "columns"):
            assert other.read_here(f"SELECT * FROM penstock.{table}") is not None
    assert_fresh(db, "v", "INCREMENTAL")
