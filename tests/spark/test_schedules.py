"""Random work by several workers at once, with every order of their steps, with deaths and pauses among them.

Whatever the story: every view equals its query, an epoch that was read reads the same again, changes add up, and no
file that is referred to is gone. ``make test-fuzz MINUTES=30`` tells new stories for that long.

In one story of eight Spark reads the views and runs their queries. In the others it is asked only where Penstock asks
it: rows are read on the driver, and delta-rs runs the queries over the sources, so that ten stories take the time of
three.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from sqlalchemy import update

import penstock
from by_delta_rs import counted, expected
from oracle import assert_all_fresh, multiset
from penstock.catalog import tables as t
from penstock.catalog.catalog import now
from penstock.engine.relations import visible_columns
from penstock.engine.snapshots import Reader, changed
from penstock.storage.delta_log import Snapshot, check_files
from penstock.storage.pinned import Pinned
from schedules import Scheduler, Seen

MINUTES = float(os.environ.get("PENSTOCK_FUZZ_MINUTES", "0"))

QUERIES = (
    "SELECT k, SUM(a) AS a FROM t GROUP BY k",
    "SELECT k, MAX(a) AS a FROM t GROUP BY k",
    "SELECT k, a FROM t WHERE a > 2",
    "SELECT g.k, g.s AS a FROM (SELECT k, SUM(a) AS s FROM t GROUP BY k) g JOIN s ON s.k = g.k",
    "SELECT g.k, COUNT(*) AS a FROM (SELECT k, SUM(a) AS s FROM t GROUP BY k) g JOIN t ON t.k = g.k GROUP BY g.k",
    "SELECT k, COUNT(*) AS a FROM v GROUP BY k",
    "SELECT v.k, w.a FROM v JOIN w ON v.k = w.k",
)
"""Some of them share hidden nodes, some read other views; all have the same columns, so that any can replace any."""

EXPECTED = (
    penstock.BusyError, penstock.LeaseLostError, penstock.NotFoundError, penstock.AlreadyExistsError,
    penstock.DependencyError, penstock.RetentionError,
)  # fmt: skip
"""What a statement may say that met another one. Nothing else may be raised."""


class Story:
    def __init__(self, path: Path, seed: int):
        self.path, self.random, self.seen = path, Random(seed), Seen()
        self.sources = {name: str(path / f"source_{name}") for name in "ts"}
        self.vacuums = self.random.random() < 0.3
        self.by_spark = seed % 8 == 0
        self.said: list[str] = []

    def tell(self) -> None:
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            if self.vacuums:  # then what is old may be gone at once, but never what is not
                patch.setattr("penstock.engine.vacuum._LEAST", timedelta(0))
            first = stack.enter_context(penstock.connect(self.path / "warehouse"))
            self._begin(first)
            several = range(self.random.randint(2, 4))
            workers = [stack.enter_context(penstock.connect(self.path / "warehouse")) for _ in several]
            scheduler = Scheduler(self.random, lambda pid: _run_out(first, pid), kills=1, pauses=2)
            tasks = {f"worker {i}": self._task(db, f"worker {i}") for i, db in enumerate(workers)}
            scheduler.run(tasks)
            self.said += scheduler.log
            self._end(first)

    def _begin(self, db: penstock.Database) -> None:
        for name, place in self.sources.items():
            self._write(name)
            db.register_table(name, place)
        db.set("lock_timeout", "2 seconds")
        if self.vacuums:
            db.set("retention", "0 seconds")
        for name in ("v", "w"):
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {self.random.choice(QUERIES[:5])}")

    def _task(self, db: penstock.Database, name: str) -> Callable[[], None]:
        steps = [self._step(db) for _ in range(self.random.randint(3, 5))]

        def do() -> None:
            for text, step in steps:
                self.said.append(f"{name}: {text}")
                try:
                    step()
                except EXPECTED as problem:
                    self.said.append(f"{name}: {text}: {type(problem).__name__}")
                except penstock.RefreshError as problem:
                    lost = {view.reason for view in problem.report.values() if view.status == "FAILED"}
                    if lost != {"LEASE_LOST"} and not _has(problem, "another writer", "taken over"):
                        raise
                except penstock.DefinitionError as problem:
                    if not _has(problem, "has no rows yet", "was replaced since"):
                        raise

        return do

    def _step(self, db: penstock.Database) -> tuple[str, Callable[[], object]]:
        name, query = self.random.choice("vwx"), self.random.choice(QUERIES)
        how = self.random.choice(("CREATE", "CREATE OR REPLACE", "CREATE OR REPLACE"))
        exists = " IF NOT EXISTS" if how == "CREATE" else ""
        empty = " WITH NO DATA" if self.random.random() < 0.2 else ""
        create = f"{how} MATERIALIZED VIEW{exists} {name} AS {query}{empty}"
        drop = f"DROP MATERIALIZED VIEW {name}{self.random.choice(('', ' CASCADE'))}"
        source = self.random.choice("ts")
        steps: list[tuple[int, str, Callable[[], object]]] = [
            (4, "refresh", db.refresh),
            (2, f"refresh {name}", lambda: db.refresh(name)),
            (3, create, lambda: db.sql(create)),
            (1, drop, lambda: db.sql(drop)),
            (4, f"write {source}", lambda: self._write(source)),
            (3, "read", lambda: self._read(db)),
            (1, "checkpoint", lambda: db.checkpoint("c")),
            (1, "restore", lambda: db.restore("c")),
            (2 if self.vacuums else 0, "vacuum", db.vacuum),
        ]
        _, text, do = self.random.choices(steps, [weight for weight, _, _ in steps])[0]
        return text, do

    def _write(self, name: str) -> None:
        place, count = self.sources[name], self.random.randint(1, 4)
        column = [[self.random.randint(0, 4) for _ in range(count)] for _ in "ka"]
        rows = pa.table({"k": pa.array(column[0], pa.int32()), "a": pa.array(column[1], pa.int32())})
        write_deltalake(place, rows, mode="append")
        fate = self.random.random()
        if fate < 0.2:
            DeltaTable(place).delete(f"k = {self.random.randint(0, 4)}")
        elif fate < 0.4:
            DeltaTable(place).update({"a": "a + 1"}, predicate=f"k = {self.random.randint(0, 4)}")

    def _read(self, db: penstock.Database) -> None:
        """All views of one moment; of an epoch that has expired, files may be gone."""
        with db.snapshot() as moment:
            for name in moment.moment.world.views:
                try:
                    self.seen.note(moment.epoch, name, self._rows(db, moment, name))
                except penstock.NotFoundError:
                    continue
                except Exception as problem:
                    if not (self.vacuums and _is_gone(problem)):
                        raise

    def _rows(self, db: penstock.Database, moment: Reader, view: str) -> Counter[Any]:
        if self.by_spark:
            return multiset(moment.table(view))
        world = moment.moment.world
        moment._check_there(world.views[view], world.nodes[view])
        snapshot = Snapshot(world.nodes[view].path, world.nodes[view].version)
        columns = tuple(visible_columns(snapshot))
        return counted(Pinned(spark=db._at.spark, snapshot=snapshot, columns=columns).read().arrow())

    def _check_fresh(self, db: penstock.Database) -> None:
        if self.by_spark:
            assert_all_fresh(db)
            return
        world, moment = db._catalog.world(), db.snapshot()
        for name in world.views_graph().order(world.views):
            wanted = expected(world, name)
            found = self._rows(db, moment, name)
            assert found == wanted, f"{name}: {found}, expected {wanted}"

    def _end(self, db: penstock.Database) -> None:
        """Nobody works any more: first what is published is looked at, then all is brought up to date."""
        world = db._catalog.world()
        for node in world.nodes.values():
            if node.version is not None:
                check_files(Snapshot(node.path, node.version))
        self._check_seen(db)
        db.refresh()
        self._check_fresh(db)
        for name in self.sources:
            self._write(name)
        report = db.refresh()
        assert not report.failed
        self._check_fresh(db)
        self._check_seen(db)

    def _check_seen(self, db: penstock.Database) -> None:
        places = {name: node.path for name, node in db._catalog.world().nodes.items()}
        by_view: dict[str, list[int]] = {}
        for (epoch, view), rows in self.seen.rows.items():
            if view not in places:
                continue
            try:
                again = self._rows(db, db.snapshot(epoch), view)
            except (penstock.NotFoundError, penstock.RetentionError):  # dropped and created again, or expired
                continue
            except Exception as problem:
                if not (self.vacuums and _is_gone(problem)):
                    raise
                continue
            assert again == rows, f"epoch {epoch} of {view} showed {rows}, and now {again}"
            by_view.setdefault(view, []).append(epoch)
        if self.vacuums:
            return
        for view, epochs in by_view.items():
            for since, until in zip(sorted(epochs), sorted(epochs)[1:], strict=False):
                change: Counter[object] = Counter()
                for row, count in self._changes(db, view, since, until).items():
                    change[row[:-1]] += row[-1] * count
                before, after = Counter(self.seen.rows[since, view]), self.seen.rows[until, view]
                before.update(change)
                assert +before == +Counter(after), f"changes of {view} from {since} to {until} do not add up"

    def _changes(self, db: penstock.Database, view: str, since: int, until: int) -> Counter[Any]:
        if self.by_spark:
            return multiset(db.changes(view, since, until))
        return counted(changed(db._at.spark, db._catalog, view, since, until).arrow())


def _is_gone(problem: Exception) -> bool:
    return _has(problem, "exist", "No such file")


def _has(problem: Exception, *words: str) -> bool:
    return any(word in str(problem) for word in words)


def _run_out(db: penstock.Database, pid: int) -> None:
    with db._catalog._engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.execute(
            update(t.leases).where(t.leases.c.pid == pid).values(expires_at=now() - timedelta(seconds=1))
        )


def seeds() -> Iterator[int]:
    """A few that are always told; with minutes, new ones until they are over."""
    yield from (1, 2, 3, 4, 168145231)
    until = time.monotonic() + 60 * MINUTES
    while time.monotonic() < until:
        yield SystemRandom().randrange(2**32)


def test_whoever_comes_first(spark: SparkSession, tmp_path: Path) -> None:
    told = 0
    for seed in seeds():
        story = Story(tmp_path / str(seed), seed)
        try:
            story.tell()
        except BaseException as problem:
            problem.add_note(f"seed {seed}:\n" + "\n".join(story.said)) if hasattr(problem, "add_note") else None
            raise
        told += 1
    print(f"{told} stories")
