"""Disks that are full or read-only, files that are cut, a catalog that is locked, processes side by side, odd clocks.

What cannot be done is told by a sentence, readers see what they saw, and when it is over all goes on as if nothing
had been. Only making the views takes Spark.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from by_delta_rs import shown, wanted
from going_on import published, stock, went_on
from nursery import Nursery
from penstock.catalog import connection
from penstock.schedule.scheduler import Finished, Scheduler
from penstock.vocabulary import State, Status


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("broken") / "base"
    with penstock.connect(place) as db:
        stock(db)
    return place


@pytest.fixture
def place(base: Path, tmp_path: Path) -> Path:
    shutil.copytree(base, tmp_path / "w")
    return tmp_path / "w"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as found:
        yield found


def test_a_disk_that_is_full(base: Path, tmp_path: Path, nursery: Nursery) -> None:
    """No file can grow beyond some bytes, which stops a data file, a commit, or the catalog."""
    before = published(base)
    shutil.copytree(base, tmp_path / "undisturbed")
    nursery.let("db.refresh()", tmp_path / "undisturbed")
    after = published(tmp_path / "undisturbed")
    for most in (100, 1_000, 60_000):
        place = tmp_path / str(most)
        shutil.copytree(base, place)
        limited = f"[r.setrlimit(r.RLIMIT_FSIZE, ({most}, {most})) for r in [__import__('resource')]]"
        said = nursery.let(f"[{limited}, db.refresh()][1]", place).said
        assert "Error: " in said, f"{most}: {said}"
        went_on(place, before, after)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody can write there. Permissions do not keep root out; a flag of the file system does."""
    if os.geteuid() == 0:
        if subprocess.run(["chattr", "-R", "+i", str(folder)], check=False, capture_output=True).returncode:
            pytest.skip("this file system keeps no flags, and root writes everywhere else")
    else:
        for each in [folder, *folder.rglob("*")]:
            each.chmod(0o555 if each.is_dir() else 0o444)
    try:
        yield
    finally:
        if os.geteuid() == 0:
            subprocess.run(["chattr", "-R", "-i", str(folder)], check=True)
        else:
            for each in [folder, *folder.rglob("*")]:
                each.chmod(0o755 if each.is_dir() else 0o644)


def test_a_directory_that_is_read_only(place: Path) -> None:
    before = published(place)
    with penstock.connect(place) as db:
        db.sql("ALTER MATERIALIZED VIEW totals REFRESH ON COMMIT")
        with read_only(place / "views" / "totals"):
            with pytest.raises(penstock.RefreshError, match="totals") as problem:
                db.refresh()
            assert problem.value.report["counts"].status == Status.SUCCEEDED, "the others go on"
            assert problem.value.report["totals"].fault == "SYSTEM"
            assert {name: shown(db)[name] for name in ("totals", "large")} == {
                name: before[name] for name in ("totals", "large")
            }
            assert {v.name: v.state for v in db.status()}["totals"] == State.ERROR
            with pytest.raises(penstock.PenstockError), read_only(place / "tables" / "t"):
                db.sql("INSERT INTO t VALUES (7, 7)")
        db.refresh()
        assert shown(db) == wanted(db)
        assert {v.state for v in db.status()} == {State.ACTIVE}


@pytest.mark.parametrize("keep", [0.5, 0.0], ids=["cut", "emptied"])
def test_a_commit_that_is_cut(place: Path, keep: float) -> None:
    with penstock.connect(place) as db:
        world = db._catalog.world()
        hidden = next(node.path for node in world.nodes.values() if node.hidden)
        own = {"totals": world.nodes["totals"].path, "counts": hidden}
        for view, path in own.items():
            db.sql("INSERT INTO t VALUES (1, 50)")
            commit = max(Path(path, "_delta_log").glob("*.json"))
            whole = commit.read_bytes()
            commit.write_bytes(whole[: int(len(whole) * keep)])
            for full in (False, True):
                told = rf"'{view}': what it has stored cannot be read \(.*\)\. Put its files back.*drop it and create"
                with pytest.raises(penstock.RefreshError, match=told) as problem:
                    db.refresh(*([view] if full else []), full=full)
                assert "\n" not in str(problem.value)
            if view == "totals":
                with pytest.raises(penstock.SourceError, match="cannot be read"):
                    shown(db)
            commit.write_bytes(whole)
            db.refresh()
            assert shown(db) == wanted(db)


def test_a_commit_of_a_source_that_is_cut(place: Path) -> None:
    before = published(place)
    with penstock.connect(place) as db:
        commit = max(Path(db._catalog.world().tables["t"].path, "_delta_log").glob("*.json"))
        whole = commit.read_bytes()
        commit.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(penstock.RefreshError, match=r"table 't': .*cannot be read.*'counts' failed too"):
            db.refresh()
        assert shown(db) == before
        assert {alert.kind for alert in db.alerts("totals")} == {"reinitialize_needed"}
        commit.write_bytes(whole)
        db.refresh()
        assert shown(db) == wanted(db)
        assert not [a for a in db.alerts() if a.cleared_at is None]


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(timezone.utc)

    def __call__(self) -> datetime:
        return self.now


def test_a_catalog_that_is_locked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another process, for longer than anybody waits. A scheduler tries again later, and later each time."""
    monkeypatch.setattr(connection, "PATIENCE", 50)
    clock, heard = Clock(), list[Finished]()
    with penstock.connect(place) as db:
        db.sql("ALTER MATERIALIZED VIEW totals REFRESH ON COMMIT")
        scheduler = Scheduler(db._catalog, lambda: db._at.engine, tell=heard.append, clock=clock)

        def step() -> list[tuple[str, ...]]:
            with ThreadPoolExecutor(2) as pool:
                return scheduler.tick(pool).begun

        another = sqlite3.connect(place / "catalog.sqlite", isolation_level=None)
        another.execute("BEGIN IMMEDIATE")
        before = shown(db)
        with pytest.raises(penstock.WarehouseError, match="database is locked"):
            db.refresh()
        assert step() == [("totals",)]
        assert "database is locked" in str(heard[-1].error)
        assert step() == [], "not in a tight loop"
        clock.now += timedelta(seconds=1.5)
        assert step() == [("totals",)]
        clock.now += timedelta(seconds=1.5)
        assert step() == [], "later each time"
        assert shown(db) == before
        another.execute("ROLLBACK")
        clock.now += timedelta(minutes=1)
        assert step() == [("totals",)]
        assert heard[-1].error is None
        db.refresh()
        assert shown(db) == wanted(db)
        another.close()


def test_two_processes_that_refresh_at_once(place: Path, nursery: Nursery) -> None:
    """None of them fails, no change is taken twice, and who finds a view held leaves one line in the history."""
    again = "[db.refresh(wait=False) for _ in range(8)] and None"
    with Nursery() as other, ThreadPoolExecutor(2) as pool:
        shutil.copytree(place, place.parent / "logs")  # each process has a log of its points, named after its place
        (place.parent / "same").symlink_to(place)
        both = [pool.submit(n.let, again, p) for n, p in ((nursery, place), (other, place.parent / "same"))]
        with penstock.connect(place) as db:
            for number in range(6):
                db.sql(f"INSERT INTO t VALUES ({number % 3}, {number})")
                with suppress(penstock.RefreshError):
                    db.refresh()
        assert [done.result().said for done in both] == ["None", "None"]
    with penstock.connect(place) as db:
        db.refresh()
        assert shown(db) == wanted(db)
        assert not [r for r in db.history() if r.status in (Status.FAILED, Status.RUNNING)]
        said = [record.status for record in db.history("totals")]
        assert (Status.SKIPPED, Status.SKIPPED) not in pairwise(said)


def test_a_clock_that_is_set_back(place: Path) -> None:
    """By three hours: what is due stays due, epochs do not go back, and nobody waits three hours."""
    clock, heard = Clock(), list[Finished]()
    with penstock.connect(place) as db:
        db.sql("ALTER MATERIALIZED VIEW totals REFRESH ON COMMIT")
        db.sql("ALTER MATERIALIZED VIEW counts REFRESH EVERY 5 MINUTES")
        db.sql("ALTER MATERIALIZED VIEW large TARGET LAG '10 minutes'")
        scheduler = Scheduler(db._catalog, lambda: db._at.engine, tell=heard.append, clock=clock)

        def step() -> set[str]:
            with ThreadPoolExecutor(2) as pool:
                return {key for group in scheduler.tick(pool).begun for key in group}

        clock.now += timedelta(minutes=11)
        assert step() == {"totals", "counts", "large"}
        clock.now -= timedelta(hours=3)
        db.sql("INSERT INTO t VALUES (8, 8)")
        assert "totals" in step()
        assert shown(db)["totals"] == wanted(db)["totals"]
        due = set[str]()
        for _ in range(12):
            clock.now += timedelta(minutes=1)
            db.sql("INSERT INTO t VALUES (8, 8)")
            due |= step()
        assert due == {"totals", "counts", "large"}
        assert [finished.error for finished in heard if finished.error] == []
        db.refresh()
        assert shown(db) == wanted(db)
