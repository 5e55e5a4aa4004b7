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
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from connect_server import OVER_CONNECT, without_connect
from going_on import published, stock, went_on
from longer import LONG, varied
from nursery import Death, Nursery

EAGER = "import penstock.engine.vacuum as v; from datetime import timedelta; v._LEAST = v._FORGOTTEN = timedelta(0)"
"""What nobody needs may go at once."""
SMALL = "from penstock.frames import limits; limits.SMALL_TABLE_ROWS = limits.LOCAL_TABLE_ROWS = -1"
MAKE = "CREATE MATERIALIZED VIEW new AS SELECT g.k, g.n, t.x FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) g JOIN t ON t.k = g.k"  # noqa: E501
REPLACE = "CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT k, MAX(x) + 0L AS s FROM t GROUP BY k"


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
    "insert": Work('db.sql("INSERT INTO t VALUES (4, 4), (1, 9)")', 4, stride=3),
    "update": Work("db.sql('UPDATE t SET x = x + 1 WHERE k = 1')", 4, stride=3),
    "delete": Work("db.sql('DELETE FROM t WHERE k = 1')", 3, stride=2),
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
        stock(db)
    address = os.environ.get("PENSTOCK_TEST_CONNECT_ADDRESS") if OVER_CONNECT else None
    with Nursery(without_connect()) as nursery:
        yield Walk(base, nursery, address)


@pytest.mark.parametrize("every", ["some", pytest.param("all", marks=LONG)])
@pytest.mark.parametrize("name", varied(CHOSEN, often=[name for name in CHOSEN if name != "patch"]))  # it takes Spark
def test_killed_at_every_point(walk: Walk, name: str, every: str) -> None:
    work = WORKS[name]
    undisturbed = walk.copied(f"{name} {every}")
    before = published(undisturbed)
    done = walk.let(work, undisturbed)
    points, after = done.points, published(undisturbed)
    assert len(points) >= work.points, f"{len(points)}: {points}. {done.said}"
    for number in range(1, len(points) + 1, 1 if every == "all" else work.stride):
        place = walk.copied(f"{name} {every} {number}")
        death = walk.let(work, place, number)
        if not death.killed:  # on a busy machine another strategy may be chosen, which has fewer points
            assert number > len(death.points), death
            break
        try:
            went_on(place, before, after, refreshes=work.do.startswith("db.refresh()"))
        except BaseException as problem:
            where = f"{name} was killed at point {number}, which is {death.points[-1]!r}, of {' '.join(points)}"
            raise AssertionError(f"{where}: {problem}") from problem
        shutil.rmtree(place)
    print(f"{name}: {len(points)} points")
