"""A warehouse that cannot be written: it can be looked at, and what would change it says so in one sentence."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock

LOOKING = """if True:
    import sys
    from penstock.cli.main import app
    for command in (["status"], ["graph"], ["history"], ["explain", "totals"]):
        app(["-w", sys.argv[1], *command], standalone_mode=False)
    import penstock
    with penstock.connect(sys.argv[1]) as db:
        print("checkpoints:", [checkpoint.name for checkpoint in db.checkpoints()])
        for change in (lambda: db.refresh(), lambda: db.checkpoint("x"), lambda: db.drop_view("large"),
                       lambda: db.vacuum(), lambda: db.set("retention", "1 day"), lambda: db.restore("named")):
            try:
                print("changed", change())
            except penstock.WarehouseError as problem:
                print(problem)
"""
WITH_SPARK = """if True:
    import sys
    import penstock
    with penstock.connect(sys.argv[1]) as db:
        for statement in ("SELECT region, total FROM totals WHERE region = 'eu'", "SELECT COUNT(*) FROM orders",
                          "SHOW MATERIALIZED VIEWS", "DESCRIBE totals", "DESCRIBE HISTORY orders",
                          "SHOW CREATE TABLE totals",
                          "EXPLAIN MATERIALIZED VIEW totals", "SELECT region FROM totals AS OF EPOCH 1"):
            print(statement, "->", db.sql(statement).collect()[0])
        for statement in ("INSERT INTO orders VALUES (9, 'eu', 1)", "CREATE TABLE t (a INT)", "DROP TABLE orders",
                          "CREATE MATERIALIZED VIEW v AS SELECT id FROM orders", "REFRESH MATERIALIZED VIEW totals",
                          "ALTER TABLE orders ADD COLUMN b INT", "VACUUM", "OPTIMIZE orders"):
            try:
                print("changed", statement, db.sql(statement))
            except penstock.WarehouseError as problem:
                print(problem)
"""


def obey_permissions() -> None:
    """Root writes anywhere, unless it gives up the right to."""
    if os.geteuid() == 0:
        drop, overriding = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
        if ctypes.CDLL(None).prctl(drop, overriding, 0, 0, 0) != 0:
            raise OSError("the right to override permissions cannot be given up")


def lock(path: Path, *, writable: bool) -> None:
    for folder, _, files in os.walk(path):
        for entry in (folder, *(os.path.join(folder, file) for file in files)):
            os.chmod(entry, 0o755 if writable else 0o555)


def looked_at(warehouse: Path, code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, str(warehouse)], capture_output=True, text=True, check=False,
        preexec_fn=obey_permissions,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(params=["closed", "crashed", "open elsewhere"])
def locked(request: pytest.FixtureRequest, stocked: Path, tmp_path: Path) -> Iterator[Path]:
    """A read-only warehouse: after its last user left it, after a crash, and while another process has it open."""
    first, path = tmp_path / "first", tmp_path / "it's 100% locked"
    shutil.copytree(stocked, first)
    with penstock.connect(first) as db:
        db.checkpoint("named")
        if request.param == "crashed":
            shutil.copytree(first, path)
            (path / "catalog.sqlite-shm").unlink()
            assert (path / "catalog.sqlite-wal").stat().st_size > 0
    if request.param != "crashed":
        first.rename(path)
    if request.param == "open elsewhere":
        with penstock.connect(path) as db:
            db.checkpoint("later")
            lock(path, writable=False)
            yield path
            lock(path, writable=True)
    else:
        lock(path, writable=False)
        yield path
        lock(path, writable=True)


def test_a_read_only_warehouse_can_be_looked_at(locked: Path) -> None:
    shown = looked_at(locked, LOOKING)
    assert any("totals" in line for line in shown)
    checkpoints, *refused = shown[next(n for n, line in enumerate(shown) if line.startswith("checkpoints")) :]
    assert "'named'" in checkpoints, "what is only in SQLite's log is seen"
    assert len(refused) == 6
    assert all(line.startswith(f"the warehouse {str(locked)!r} is read-only: ") for line in refused), refused


def test_it_can_be_queried_and_not_changed(db: penstock.Database, warehouse: Path) -> None:
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    db.create_view("totals", "SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
    db.close()
    lock(warehouse, writable=False)
    shown = looked_at(warehouse, WITH_SPARK)
    lock(warehouse, writable=True)
    assert "Row(region='eu', total=10)" in shown[0]
    assert "=2)" in shown[1]
    assert all("->" in line for line in shown[:8])
    assert len(shown) == 16
    assert all("is read-only: " in line for line in shown[8:]), shown[8:]


def test_a_new_warehouse_cannot_be_made_there(tmp_path: Path) -> None:
    (place := tmp_path / "w").mkdir()
    lock(place, writable=False)
    code = """if True:
        import sys, penstock
        try:
            penstock.connect(sys.argv[1])
        except penstock.WarehouseError as problem:
            print(problem)
    """
    assert looked_at(place, code) == [
        f"the warehouse {str(place)!r} cannot be created: it is read-only. Choose another directory."
    ]


def test_a_read_only_copy_reads_its_own_files(tmp_path: Path) -> None:
    """A backup, or a snapshot of a volume: what became of the original since does not show."""
    first, copy = tmp_path / "first", tmp_path / "copy"
    with penstock.connect(first) as db:
        db.sql("CREATE TABLE orders (id INT)")
        db.sql("INSERT INTO orders VALUES (1), (2)")
    shutil.copytree(first, copy)
    with penstock.connect(first) as db:
        db.sql("INSERT INTO orders VALUES (3)")
    lock(copy, writable=False)
    code = f"""if True:
        import shutil, sys, penstock
        for _ in range(2):
            with penstock.connect(sys.argv[1]) as db:
                print(sorted(row[0] for row in db.sql("SELECT id FROM orders").collect()))
                print([row.location for row in db.sql("SHOW TABLES").collect()])
            shutil.rmtree({str(first)!r}, ignore_errors=True)
    """
    looked = looked_at(copy, code)
    lock(copy, writable=True)
    assert not first.exists()
    assert looked[:2] == looked[2:] == ["[1, 2]", str([str(copy / "tables" / "orders")])]
