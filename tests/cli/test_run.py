"""``penstock run`` as a process of its own, which is ended by signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock

COMMAND = [sys.executable, "-c", "from penstock.cli import run; run()"]


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Path:
    with penstock.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE orders (id INT, amount INT)")
        db.sql("INSERT INTO orders VALUES (1, 10)")
        db.sql("CREATE MATERIALIZED VIEW totals AS SELECT SUM(amount) AS total FROM orders REFRESH ON COMMIT")
        db.sql("CREATE MATERIALIZED VIEW by_hand AS SELECT COUNT(*) AS n FROM orders")
        db.set("poll_interval", "100 milliseconds")
    return tmp_path / "w"


@contextmanager
def running(warehouse: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, "run", "-w", str(warehouse), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PATH": str(warehouse), "JAVA_HOME": str(warehouse / "none")},  # small work needs no Java
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def once(warehouse: Path) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "run", "-w", str(warehouse), "--once"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def insert(warehouse: Path, number: int) -> None:
    with penstock.connect(warehouse) as db:
        db.sql(f"INSERT INTO orders VALUES ({number}, 1)")


def stale(warehouse: Path) -> list[str]:
    with penstock.connect(warehouse) as db:
        return [view.name for view in db.status() if view.stale]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_follows_commits_until_it_is_told_to_stop(warehouse: Path, how: signal.Signals) -> None:
    with running(warehouse, "--json") as process:
        insert(warehouse, 2)
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert [(one["view"], one["why"]) for one in told["due"]] == [("totals", "a commit to a source")]
        assert [(view["name"], view["action"]) for view in told["views"]] == [("totals", "INCREMENTAL")]
        for what in (signal.SIGSTOP, signal.SIGCONT, how):
            process.send_signal(what)
        assert process.wait(30) == 0
    assert stale(warehouse) == ["by_hand"]


def test_a_second_signal_abandons_what_cannot_be_finished(warehouse: Path) -> None:
    """The catalog is locked by another process, which a refresh waits for; the first signal is heard nevertheless."""
    insert(warehouse, 2)
    lock = sqlite3.connect(warehouse / "catalog.sqlite", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    for seconds in (1, 2, 4, 8, 16):
        with running(warehouse) as process:
            assert process.stderr is not None
            process.stderr.readline()
            time.sleep(seconds)  # until it has begun, which nobody can tell
            process.send_signal(signal.SIGTERM)
            if "finishing totals" in process.stderr.readline():
                process.send_signal(signal.SIGTERM)
                assert process.stderr.readline() == "abandoned\n"
                assert process.wait(30) == 128 + signal.SIGTERM
                break
    else:
        pytest.fail("it never began")
    lock.execute("ROLLBACK")
    lock.close()
    assert (once(warehouse).returncode, stale(warehouse)) == (0, ["by_hand"])


def test_once_says_by_its_exit_code_that_a_view_failed(warehouse: Path) -> None:
    insert(warehouse, 2)
    shutil.move(warehouse / "tables" / "orders", warehouse / "away")
    done = once(warehouse)
    assert (done.returncode, "totals FAILED" in done.stdout) == (1, True), done.stderr


def test_lines_for_people_and_a_look_at_sighup(warehouse: Path) -> None:
    with penstock.connect(warehouse) as db:
        db.set("poll_interval", "1 hour")
    with running(warehouse) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert "keeping 1 view of" in process.stderr.readline()
        time.sleep(1)
        insert(warehouse, 2)
        process.send_signal(signal.SIGHUP)
        line = process.stdout.readline()
        assert "totals INCREMENTAL +1 -1 in " in line
        process.terminate()
        assert process.wait(30) == 0


def asleep(process: subprocess.Popen[str]) -> bool:
    """Waits until a scheduler sleeps; that it had time enough is told by whoever gives up."""
    for _ in range(600):
        if b"asleep.py" in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            return True
        time.sleep(0.1)
    return False


def resident(process: subprocess.Popen[str]) -> int:
    """The memory of a process in MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]) // 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="what a process holds is read from /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_after_a_while_without_work_it_is_a_few_megabytes_that_wait(warehouse: Path, how: signal.Signals) -> None:
    with penstock.connect(warehouse) as db:
        db.set("sleep_after", "1 second")
    with running(warehouse, "--json") as process:
        assert process.stdout is not None
        for number in (2, 3):
            assert asleep(process)
            assert resident(process) < 16
            insert(warehouse, number)
            told = json.loads(process.stdout.readline())
            assert [(view["name"], view["action"]) for view in told["views"]] == [("totals", "INCREMENTAL")]
        assert asleep(process)
        process.send_signal(how)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == "stopped\n"
    assert stale(warehouse) == ["by_hand"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="what a process holds is read from /proc")
def test_a_sleeper_wakes_when_a_moment_comes_and_at_sighup(warehouse: Path) -> None:
    with penstock.connect(warehouse) as db:
        db.sql("ALTER MATERIALIZED VIEW by_hand REFRESH EVERY 5 SECONDS")
        db.set("sleep_after", "1 second")
    with running(warehouse, "--json") as process:
        assert process.stdout is not None
        for _ in range(2):
            assert "by_hand" in process.stdout.readline()
            assert asleep(process)
        process.send_signal(signal.SIGHUP)
        assert asleep(process)
        process.terminate()
        assert process.wait(30) == 0


def test_what_is_due_now(warehouse: Path) -> None:
    insert(warehouse, 2)
    done = once(warehouse)
    assert (done.returncode, stale(warehouse)) == (0, ["by_hand"]), done.stderr
    assert "totals INCREMENTAL" in done.stdout


def test_a_killed_scheduler_leaves_nothing_undone_for_long(warehouse: Path) -> None:
    for number in range(3):
        with running(warehouse) as process:
            insert(warehouse, 2 + number)
            time.sleep(0.3 * number)
            process.kill()
    insert(warehouse, 9)
    done = once(warehouse)
    assert (done.returncode, stale(warehouse)) == (0, ["by_hand"]), done.stderr


def test_nothing_to_do_says_how_to_begin(tmp_path: Path) -> None:
    with penstock.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE t (id INT)")
    done = subprocess.run(
        [*COMMAND, "run", "-w", str(tmp_path / "w"), "--once"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "ALTER MATERIALIZED VIEW totals REFRESH ON COMMIT" in done.stderr
