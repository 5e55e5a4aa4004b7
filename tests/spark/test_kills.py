"""``kill -9`` at every point of what changes a warehouse: processes are really killed, and the next one goes on.

Whatever the point: readers see the epoch before or the one after, nobody is stuck, what was broken off is told as
FAILED, the next refresh brings every view to its query, nothing is taken twice, and maintenance leaves no file that
nobody needs. ``make test-faults`` walks through all points; ``make test`` through some of them.

CREATE and REPLACE need Spark: they are walked through where the tests run over a Spark Connect server, which outlives
those who are killed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from by_delta_rs import Rows, shown, wanted
from connect_server import OVER_CONNECT, without_connect
from longer import LONG
from nursery import Death, Nursery
from penstock.storage.delta_log import Snapshot, check_files
from penstock.vocabulary import Action, Reason, Status

EAGER = "import penstock.engine.vacuum as v; from datetime import timedelta; v._LEAST = v._FORGOTTEN = timedelta(0)"  # what nobody needs may go at once
SMALL = "from penstock.frames import limits; limits.SMALL_TABLE_ROWS = limits.LOCAL_TABLE_ROWS = -1"
MAKE = "CREATE MATERIALIZED VIEW new AS SELECT g.k, g.n, t.x FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) g JOIN t ON t.k = g.k"  # noqa: E501
REPLACE = "CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT k, MAX(x) AS s FROM t GROUP BY k"


@dataclass(frozen=True)
class Work:
    """Something to be killed in, and how many points it has at least."""

    do: str
    points: int
    more: str = ""
    needs_spark: bool = False
    stride: int = 8
    """Every how many points ``make test`` kills."""


WORKS = {
    "refresh": Work("db.refresh()", 25, stride=4),
    "patch": Work("db.refresh('totals')", 20, more=SMALL, stride=7),
    "full": Work("db.refresh('totals', 'counts', full=True)", 20),
    "checkpoint": Work("db.checkpoint('another')", 3, stride=1),
    "restore": Work("db.restore('then')", 20),
    "vacuum": Work("db.vacuum()", 20, more=EAGER),
    "insert": Work('db.sql("INSERT INTO t VALUES (4, 4), (1, 9)")', 5, stride=3),
    "update": Work("db.sql('UPDATE t SET x = x + 1 WHERE k = 1')", 5, stride=3),
    "delete": Work("db.sql('DELETE FROM t WHERE k = 1')", 4, stride=3),
    "create table": Work("db.sql('CREATE TABLE u (k INT)')", 9, stride=4),
    "drop table": Work("db.sql('DROP TABLE t CASCADE')", 12, stride=5),
    "drop view": Work("db.sql('DROP MATERIALIZED VIEW totals CASCADE')", 9, stride=5),
    "create": Work(f"db.sql({MAKE!r})", 20, needs_spark=True, stride=6),
    "replace": Work(f"db.sql({REPLACE!r})", 20, needs_spark=True, stride=6),
}
CHOSEN = [name for name, work in WORKS.items() if work.needs_spark == OVER_CONNECT]


@dataclass
class Walk:
    """One place to copy warehouses to, and what was seen."""

    base: Path
    nursery: Nursery
    address: str | None
    seen: dict[str, int] = field(default_factory=dict)

    def copied(self, name: str) -> Path:
        place = self.base.parent / name
        shutil.copytree(self.base, place)
        return place

    def let(self, work: Work, place: Path, die_at: int = 0) -> Death:
        return self.nursery.let(work.do, place, die_at=die_at, spark=self.address, more=work.more)


@pytest.fixture(scope="module")
def walk(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    base = tmp_path_factory.mktemp("kills") / "base"
    with penstock.connect(base, spark=spark if OVER_CONNECT else None) as db:
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
    address = os.environ.get("PENSTOCK_TEST_CONNECT_ADDRESS") if OVER_CONNECT else None
    with Nursery(without_connect()) as nursery:
        yield Walk(base, nursery, address)


@pytest.mark.parametrize("every", ["some", pytest.param("all", marks=LONG)])
@pytest.mark.parametrize("name", CHOSEN)
def test_killed_at_every_point(walk: Walk, name: str, every: str) -> None:
    work = WORKS[name]
    undisturbed = walk.copied(f"{name} {every}")
    before = published(undisturbed)
    points = walk.let(work, undisturbed).points
    after = published(undisturbed)
    assert len(points) >= work.points, f"{len(points)}: {points}"
    for number in range(1, len(points) + 1, 1 if every == "all" else work.stride):
        place = walk.copied(f"{name} {every} {number}")
        death = walk.let(work, place, number)
        assert death.killed, death
        try:
            went_on(place, work, before, after)
        except BaseException as problem:
            where = f"{name} was killed at point {number}, which is {death.points[-1]!r}, of {' '.join(points)}"
            raise AssertionError(f"{where}: {problem}") from problem
        shutil.rmtree(place)
    print(f"{name}: {len(points)} points")


def published(place: Path) -> dict[str, Rows]:
    with penstock.connect(place) as db:
        return shown(db)


def went_on(place: Path, work: Work, before: dict[str, Rows], after: dict[str, Rows]) -> None:
    with pytest.MonkeyPatch.context() as patch, penstock.connect(place) as db:
        seen = shown(db)
        assert seen in (before, after), f"readers see neither the epoch before nor the one after: {seen}"
        history = db.history()
        assert not [r for r in history if r.status == Status.RUNNING]
        broken_off = {r.view for r in history if r.reason == Reason.INTERRUPTED}
        assert not broken_off or seen == before, f"{broken_off} failed, and can be seen"
        stale = {view.name for view in db.status() if view.stale}
        assert not [view.name for view in db.status() if view.building]
        if "refresh()" in work.do and seen == before:
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
    folders = [Path(db.path) / name for name in ("views", "nodes", "tables")]
    found = {str(table) for folder in folders if folder.exists() for table in folder.iterdir()} - places
    for node in world.nodes.values():
        snapshot = Snapshot(node.path, node.version)
        files = {str(Path(node.path) / file.path) for file in snapshot.files}
        found |= {str(f) for f in Path(node.path).rglob("*.parquet") if "_delta_log" not in f.parts} - files
        found |= {str(f) for end in ("draft", "tmp") for f in Path(node.path).rglob(f"*.{end}")}
    return found
