"""A small warehouse to be hurt, and what must hold of it afterwards, without Spark."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest

import penstock
from by_delta_rs import Rows, shown, wanted
from penstock.storage.delta_log import Snapshot, check_files
from penstock.storage.files import files_of
from penstock.vocabulary import Action, Reason, Status


def stock(db: penstock.Database) -> None:
    """Views over a table and over each other, one with a hidden node, and changes that they have not seen."""
    db.set("retention", "0 seconds")
    db.sql("CREATE TABLE t (k INT, x INT)")
    db.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT k, SUM(x) AS s FROM t GROUP BY k")
    joined = "SELECT g.k, g.m, t.x FROM (SELECT k, MAX(x) AS m FROM t GROUP BY k) g JOIN t ON t.k = g.k"
    db.sql(f"CREATE MATERIALIZED VIEW counts AS {joined}")
    db.sql("CREATE MATERIALIZED VIEW large AS SELECT k, s FROM totals WHERE s > 1")
    db.checkpoint("then")
    db.sql("INSERT INTO t VALUES (1, 5)")
    db.refresh()
    db.sql("CREATE MATERIALIZED VIEW gone AS SELECT k FROM t")
    db.sql("DROP MATERIALIZED VIEW gone")  # its table is left for VACUUM
    db.sql("INSERT INTO t VALUES (3, 5)")
    db.sql("UPDATE t SET x = 7 WHERE k = 2")


def published(place: Path | str, catalog: str | None = None) -> dict[str, Rows]:
    with penstock.connect(place, catalog=catalog) as db:
        return shown(db)


def went_on(
    place: Path | str,
    before: dict[str, Rows],
    after: dict[str, Rows],
    *,
    refreshes: bool = True,
    catalog: str | None = None,
) -> None:
    """After whatever happened: readers see one of two epochs, and all goes on from there, with nothing left over."""
    with pytest.MonkeyPatch.context() as patch, penstock.connect(place, catalog=catalog) as db:
        seen = shown(db)
        assert seen in (before, after), f"readers see neither the epoch before nor the one after: {seen}"
        history = db.history()
        assert not [r for r in history if r.status == Status.RUNNING]
        broken_off = {r.view for r in history if r.reason == Reason.INTERRUPTED}
        assert not broken_off or seen == before, f"{broken_off} failed, and can be seen"
        stale = {view.name for view in db.status() if view.stale}
        assert not [view.name for view in db.status() if view.building]
        if refreshes and seen == before:
            assert stale == {"totals", "counts", "large"}
        check_all_files(db)
        db.refresh()
        assert shown(db) == wanted(db), "after the next refresh"
        if "t" in db._catalog.world().tables:
            db.sql("INSERT INTO t VALUES (1, 100), (9, 9)")
            report = db.refresh()
            assert {view.action for view in report.values()} <= {Action.INCREMENTAL}, str(report)
            assert shown(db) == wanted(db), "after one more change"
        for checkpoint in db.checkpoints():
            db.drop_checkpoint(checkpoint.name)
        for name in ("_LEAST", "_FORGOTTEN"):
            patch.setattr(f"penstock.engine.vacuum.{name}", timedelta(0))
        db.vacuum()
        assert orphans(db) == set()
        check_all_files(db)
        assert shown(db) == wanted(db), "after maintenance"


def check_all_files(db: penstock.Database) -> None:
    for node in db._catalog.world().nodes.values():
        if node.version is not None:
            check_files(Snapshot(node.path, node.version))


def orphans(db: penstock.Database) -> set[str]:
    """The tables and the data files under the warehouse that nobody needs."""
    world = db._catalog.world()
    places = {n.path for n in world.nodes.values()} | {table.path for table in world.tables.values()}
    folders = [f"{db.path}/{name}" for name in ("views", "nodes", "tables")]
    found = {f"{folder}/{table.name}" for folder in folders for table in files_of(folder).folders()} - places
    for node in world.nodes.values():
        needed = {unquote(file.path) for file in Snapshot(node.path, node.version).files}
        names = {info.name for info in files_of(node.path).listing()}
        data = {name for name in names if name.endswith(".parquet") and not name.startswith("_delta_log/")}
        drafts = {name for name in names if name.endswith((".draft", ".tmp"))}
        found |= {f"{node.path}/{name}" for name in (data - needed) | drafts}
    return found
