"""``penstock checkpoint`` and ``penstock restore``."""

from __future__ import annotations

from pathlib import Path

from command import Run

import penstock


def test_name_an_epoch_and_go_back_to_it(run: Run, tmp_path: Path, db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("INSERT INTO t VALUES (1)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
    at = ("-w", db.path)
    assert "There are no checkpoints yet" in run("checkpoint", *at).output
    assert "checkpoint first is epoch 1" in run("checkpoint", "first", *at).output
    assert "first" in run("checkpoint", *at).output
    db.sql("INSERT INTO t VALUES (2)")
    db.refresh()
    assert "restored as epoch 3" in run("restore", "first", *at).output
    assert db.table("v").collect()[0].n == 1
    again = run("checkpoint", "first", *at)
    assert again.exit_code == 1
    assert "a checkpoint 'first' already" in again.output
    assert "dropped" in run("checkpoint", "first", "--drop", *at).output
    assert run("restore", "first", *at).exit_code == 1
