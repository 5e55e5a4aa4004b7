"""verify: what it prints, for people and for machines, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

from command import Run
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from sqlalchemy import update

import penstock
from penstock.catalog import tables as t


def test_verify_says_what_differs(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "w"
    with penstock.connect(place) as db:
        db.sql("CREATE TABLE orders (id INT, region STRING)")
        db.sql("INSERT INTO orders VALUES (1, 'eu'), (2, 'us')")
        db.create_view("copied", "SELECT id, region FROM orders")
        db.create_view("counts", "SELECT region, COUNT(*) AS n FROM orders GROUP BY region")
    fine = run("verify", "-w", place)
    assert (fine.exit_code, [line.split()[:2] for line in fine.stdout.splitlines()[1:]]) == (
        0, [["copied", "EQUAL"], ["counts", "EQUAL"]],
    )  # fmt: skip
    with penstock.connect(place) as db:
        path = db._catalog.world().nodes["copied"].path
        DeltaTable(path).delete("id = 1")
        with db._catalog.transaction(writes=True) as connection:
            version = DeltaTable(path).version()
            connection.execute(update(t.nodes).where(t.nodes.c.name == "copied").values(version=version))
    shown = run("verify", "-w", place)
    assert shown.exit_code == 1
    assert "copied: missing, 1 x (id = 1, region = eu)" in shown.stdout
    assert "penstock refresh --full copied" in shown.stdout
    assert run("verify", "counts", "-w", place).exit_code == 0
    machine = json.loads(run("verify", "copied", "--sample", "1", "--json", "-w", place).stdout)
    assert [(one["outcome"], one["missing"], one["superfluous"]) for one in machine] == [("DIFFERENT", 1, 0)]
    assert run("verify", "nothing", "-w", place).exit_code == 1
