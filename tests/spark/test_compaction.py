"""Appends leave small files; they are merged on the way, and nobody who reads the table notices."""

from __future__ import annotations

import pytest

import penstock
from oracle import assert_all_fresh
from penstock.frames import limits
from penstock.storage.compact import FILES_OF_A_TIER
from penstock.storage.delta_log import Snapshot


def _files(db: penstock.Database, view: str) -> int:
    return len(Snapshot(f"{db.path}/views/{view}").files)


@pytest.fixture
def chain(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (k INT, x INT)")
    db.create_view("copy", "SELECT k, x FROM t WHERE x >= 0")
    db.create_view("sums", "SELECT k, SUM(x) AS total FROM copy GROUP BY k")
    return db


@pytest.mark.parametrize("local", [True, False], ids=["on the driver", "by Spark"])
def test_small_files_are_merged(chain: penstock.Database, local: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not local:
        monkeypatch.setattr(limits, "LOCAL_TABLE_ROWS", 0)
    most = 0
    for i in range(FILES_OF_A_TIER + 2):
        chain.sql(f"INSERT INTO t VALUES ({i % 3}, {i}), (NULL, {i})")
        report = chain.refresh()
        assert (report["copy"].action, report["copy"].strategy) == ("INCREMENTAL", "APPEND")
        most = max(most, _files(chain, "copy"))
    assert_all_fresh(chain, "INCREMENTAL")
    assert most < FILES_OF_A_TIER
    assert _files(chain, "copy") == 3


def test_a_reader_that_is_behind_sees_the_rows_once(chain: penstock.Database) -> None:
    for i in range(FILES_OF_A_TIER + 1):
        chain.sql(f"INSERT INTO t VALUES (1, {i})")
        chain.refresh("copy")
    chain.sql("DELETE FROM t WHERE x < 4")
    chain.refresh("copy")
    report = chain.refresh()
    assert report["sums"].action == "INCREMENTAL"
    assert_all_fresh(chain)


def test_files_that_merging_would_not_make_fewer_stay(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, x INT)")
    db.sql(f"INSERT INTO t SELECT id, id FROM range({FILES_OF_A_TIER + 1})")
    db.create_view("parts", "SELECT k, x FROM t", partitioned_by=["k"])
    before = {file.path for file in Snapshot(f"{db.path}/views/parts").files}
    db.sql("INSERT INTO t VALUES (0, 100)")
    assert db.refresh()["parts"].strategy == "APPEND"
    assert before < {file.path for file in Snapshot(f"{db.path}/views/parts").files}
    assert_all_fresh(db, "INCREMENTAL")
