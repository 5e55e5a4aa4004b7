"""Sources whose files are gone: those of old versions make a view begin anew, those of the current one are an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import penstock
from longer import varied
from oracle import assert_fresh, rows
from penstock.storage import changes

FEED = "'delta.enableChangeDataFeed' = 'true'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"
MAPPED = "'delta.columnMapping.mode' = 'name'"
KINDS = {
    "feed and vectors": f"TBLPROPERTIES ({FEED}, {VECTORS})",
    "vectors": f"TBLPROPERTIES ({VECTORS})",
    "neither": "",
    "partitioned": f"PARTITIONED BY (p) TBLPROPERTIES ({FEED}, {VECTORS})",
    "mapped": f"TBLPROPERTIES ({FEED}, {VECTORS}, {MAPPED})",
}


@pytest.fixture
def source(request: pytest.FixtureRequest, db: penstock.Database, tmp_path: Path) -> Path:
    path = tmp_path / "source"
    db.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    db.sql(f"CREATE TABLE t (k INT, p INT) LOCATION '{path}' {KINDS[request.param]}")
    db.sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id, id % 2 FROM range(3000)")
    db.sql("DELETE FROM t WHERE k % 3 = 1")
    db.create_view("v", "SELECT k, p FROM t")
    db.create_view("sums", "SELECT p, COUNT(*) AS n FROM v GROUP BY p")
    return path


def change(db: penstock.Database) -> None:
    db.sql("DELETE FROM t WHERE k % 3 = 2 AND k > 9")
    db.sql("UPDATE t SET k = -k WHERE k % 7 = 0")


def vacuum(db: penstock.Database) -> None:
    db.sql("OPTIMIZE t")
    db.sql("VACUUM t RETAIN 0 HOURS")


def assert_went_on(db: penstock.Database) -> None:
    """The view was computed anew, once, and is maintained again."""
    query = "SELECT k, p FROM t"
    assert rows(db.table("v")) == rows(db.sql(query))  # type: ignore[arg-type]
    assert_fresh(db, "sums", ("REINITIALIZE", "INCREMENTAL", "NO_DATA", "FULL"))
    db.sql("INSERT INTO t VALUES (10001, 1)")
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")
    assert_fresh(db, "sums", "INCREMENTAL")


@pytest.mark.parametrize(
    ("source", "on_driver"),
    varied(
        [
            ("feed and vectors", True),
            ("feed and vectors", False),
            ("vectors", True),
            ("partitioned", True),
            ("mapped", False),
        ],
        often=[("feed and vectors", True), ("mapped", False)],
    ),
    indirect=["source"],
)
def test_a_vacuumed_history_begins_anew(
    db: penstock.Database, source: Path, monkeypatch: pytest.MonkeyPatch, on_driver: bool
) -> None:
    if not on_driver:
        monkeypatch.setattr(changes, "read_locally", lambda *_: None)
    change(db)
    vacuum(db)
    report = db.refresh()
    assert (report["v"].action, report["v"].reason) == ("REINITIALIZE", "HISTORY_GONE")
    assert_went_on(db)


@pytest.mark.parametrize("source", varied(["feed and vectors", "neither", "mapped"], often=["neither"]), indirect=True)
def test_a_vacuum_while_a_change_is_read(db: penstock.Database, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes after the files were looked for: Spark says late that one is gone."""
    monkeypatch.setattr(changes, "read_locally", lambda *_: None)
    looked_for = changes.files_exist

    def vacuumed(path: str, actions: Sequence[Mapping[str, Any]]) -> bool:
        found = looked_for(path, actions)
        if path == str(source):
            db.sql("VACUUM t RETAIN 0 HOURS")
        return found

    change(db)
    monkeypatch.setattr(changes, "files_exist", vacuumed)
    report = db.refresh()
    monkeypatch.setattr(changes, "files_exist", looked_for)
    assert (report["v"].action, report["v"].reason) == ("REINITIALIZE", "HISTORY_GONE")
    assert_went_on(db)


@pytest.mark.parametrize("source", varied(["feed and vectors", "partitioned"], often=["partitioned"]), indirect=True)
def test_a_missing_file_of_the_current_version_is_an_error_with_a_next_step(
    db: penstock.Database, source: Path
) -> None:
    db.sql("OPTIMIZE t")
    db.sql("INSERT INTO t VALUES (20001, 1)")
    newest = max(
        source.rglob("*.parquet"), key=lambda file: (("_delta_log" not in file.parts), file.stat().st_mtime_ns)
    )
    for file in [f for f in source.rglob("part-*.parquet") if f.stat().st_mtime_ns >= newest.stat().st_mtime_ns]:
        file.unlink()
    for _ in range(2):
        with pytest.raises(
            penstock.RefreshError, match=r"table 't': a file of its current version is gone.*RESTORE TABLE t"
        ):
            db.refresh()
    db.sql("RESTORE TABLE t TO VERSION AS OF 2")
    db.refresh()
    assert rows(db.table("v")) == rows(db.sql("SELECT k, p FROM t"))  # type: ignore[arg-type]


def test_a_missing_file_of_a_view_that_is_read(db: penstock.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k INT)")
    db.sql("INSERT INTO t VALUES (1), (2)")
    db.create_view("v", "SELECT k FROM t")
    db.create_view("w", "SELECT k FROM v")
    for file in Path(db._catalog.world().nodes["v"].path).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(penstock.RefreshError, match=r"view 'v'.*is gone.*REFRESH MATERIALIZED VIEW v FULL"):
        db.refresh("w", full=True)
    db.refresh("v", full=True)
    db.refresh("w", full=True)
    assert_fresh(db, "w", "FULL")
