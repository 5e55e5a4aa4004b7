"""A table that nobody wrote to is not read again. No Spark: the tables are written by delta-rs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.errors import PenstockError, SourceError
from penstock.sql.statements import ANYWHERE
from penstock.storage import delta_log, log_replay, view_table
from penstock.storage.delta_log import HistoryGone, Snapshot, snapshot_of
from penstock.storage.file_cache import FILES
from penstock.storage.runs import Run
from penstock.storage.view_table import Shape, commit, create_table, write_table


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    most = FILES.most
    FILES.clear()
    FILES.allow(10**9)
    yield
    FILES.clear()
    FILES.allow(most)


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The versions that are opened, as they are."""
    seen: list[int | None] = []

    class Counted(DeltaTable):
        def __init__(self, uri: Any, version: int | None = None):
            seen.append(version)
            super().__init__(uri, version=version)

    monkeypatch.setattr(delta_log, "DeltaTable", Counted)
    return seen


def write(path: Path, *numbers: int) -> None:
    write_deltalake(str(path), pa.table({"n": pa.array(numbers, pa.int64())}), mode="append")


def test_a_version_is_read_once(tmp_path: Path, opens: list[int | None]) -> None:
    write(tmp_path, 1, 2)
    first = snapshot_of(str(tmp_path))
    assert (first.version, first.rows, opens) == (0, 2, [None])
    assert snapshot_of(str(tmp_path)) is first
    assert snapshot_of(str(tmp_path), 0) is first
    write(tmp_path, 3)
    assert (snapshot_of(str(tmp_path)).version, snapshot_of(str(tmp_path)).rows) == (1, 3)
    assert snapshot_of(str(tmp_path), 0) is first
    assert opens == [None, None]


def test_a_version_that_is_there_is_opened_when_it_is_asked_for_something(
    tmp_path: Path, opens: list[int | None]
) -> None:
    write(tmp_path, 1)
    write(tmp_path, 2)
    found = snapshot_of(str(tmp_path), 0)
    assert (found.version, opens) == (0, [])
    assert found.fingerprint() is not None
    assert opens == []
    assert (found.rows, found.partition_columns, opens) == (1, [], []), "a short log is read here"
    assert found.bounds.column("min.n").to_pylist() == [1]
    assert opens == [0]


def test_a_table_that_was_made_again_is_another(tmp_path: Path) -> None:
    table, backup = tmp_path / "t", tmp_path / "backup"
    write(table, 1)
    first = snapshot_of(str(table))
    assert first.fingerprint() is not None
    shutil.copytree(table, backup)
    shutil.rmtree(table)
    with pytest.raises(SourceError, match="there is no Delta table"):
        snapshot_of(str(table))
    with pytest.raises((SourceError, HistoryGone)):
        snapshot_of(str(table), 0)
    write(table, 1)
    second = snapshot_of(str(table))
    assert second.version == first.version == 0
    assert second.table_id != first.table_id
    assert second.fingerprint() != first.fingerprint()
    shutil.rmtree(table)
    shutil.copytree(backup, table)
    assert snapshot_of(str(table)).table_id == first.table_id


def test_versions_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path, 1)
    with pytest.raises(HistoryGone):
        snapshot_of(str(tmp_path), 7)
    with pytest.raises(SourceError, match="there is no Delta table"):
        snapshot_of(str(tmp_path / "nothing"))


def test_without_a_commit_of_its_own_a_version_is_read_each_time(tmp_path: Path) -> None:
    """Delta deletes old commits that a checkpoint covers."""
    write(tmp_path, 1)
    DeltaTable(str(tmp_path)).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert snapshot_of(str(tmp_path)).rows == 1
    assert snapshot_of(str(tmp_path)) is not snapshot_of(str(tmp_path))


def test_nothing_is_kept_where_there_is_no_room(tmp_path: Path) -> None:
    write(tmp_path, 1)
    FILES.allow(0)
    assert snapshot_of(str(tmp_path)) is not snapshot_of(str(tmp_path))


def test_the_id_of_a_table_of_ours_is_told_without_opening_it(tmp_path: Path, opens: list[int | None]) -> None:
    path, schema = str(tmp_path / "t"), '{"type":"struct","fields":[]}'
    one, two = (schema.replace("[]", f'[{{"name":"{n}","type":"long","nullable":true,"metadata":{{}}}}]') for n in "ab")
    create_table(path, one, "t", ANYWHERE)
    made = DeltaTable(path).metadata().id
    assert (snapshot_of(path, 0).first_id, opens) == (made, [])
    commit(snapshot_of(path), [], [], {}, node="t", run=Run("r"), shape=Shape.of(two, ANYWHERE))
    assert DeltaTable(path).metadata().id == snapshot_of(path, 1).first_id == made
    DeltaTable(path).create_checkpoint()
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").unlink()
    assert snapshot_of(path, 1).first_id == made, "the first commit is gone, and the log is read"


def test_a_commit_of_files_opens_nothing_and_fails_if_another_was_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    create_table(
        path, '{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}}]}', "t", ANYWHERE
    )
    before = snapshot_of(path)
    assert before.files == ()
    refused: Any = None
    monkeypatch.setattr(view_table, "DeltaTable", refused)
    first = commit(before, write_table(pa.table({"n": [1, 2]}), path, "a"), [], {}, node="t", run=Run("a"))
    filled = snapshot_of(path, first)
    adds = write_table(pa.table({"n": [3]}), path, "b")
    second = commit(filled, adds, filled.files, {}, node="t", run=Run("b"))
    assert DeltaTable(path).to_pyarrow_table().to_pydict() == {"n": [3]}
    assert DeltaTable(path, version=first).to_pyarrow_table().to_pydict() == {"n": [1, 2]}
    assert second == DeltaTable(path).version() == 2
    assert DeltaTable(path).history(1)[0]["penstock.run"] == "b"
    with pytest.raises(PenstockError, match="changed by another writer"):
        commit(filled, adds, filled.files, {}, node="t", run=Run("c"))


def test_a_short_log_says_what_delta_rs_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version, with partitions, properties, deleted rows, a checkpoint in the midst, and names to be quoted."""
    table = str(tmp_path / "a b%")
    columns = {"n": pa.array([1, 2, 3], pa.int64()), "p": ["x=1/y", "ü %25", None]}
    write_deltalake(
        delta_log.table_uri(table), pa.table(columns), partition_by=["p"], description="d",
        configuration={"delta.enableDeletionVectors": "true", "delta.appendOnly": "false"},
    )  # fmt: skip
    for number in range(4, 8):
        write_deltalake(delta_log.table_uri(table), pa.table({"n": [number], "p": ["x=1/y"]}), mode="append")
        if number == 5:
            DeltaTable(delta_log.table_uri(table)).create_checkpoint()
    DeltaTable(delta_log.table_uri(table)).delete("n = 2")
    for version in range(6):
        told = []
        for most in (0, 10**9):
            monkeypatch.setattr(delta_log, "_LONG_LOG", most)
            found = Snapshot(table, version, there=True)
            assert (found.short is None) == (most == 0)
            ordered = found.bounds.sort_by("path")
            told.append((found.head, sorted(found.files, key=lambda file: file.path), found.rows, found.size,
                         found.partition_texts, found.deleted, ordered.to_pylist()))  # fmt: skip
            assert found.bounds.column("path").to_pylist() == [file.path for file in found.files]
        assert told[0] == told[1]


def test_one_more_commit_is_all_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        write(tmp_path, number)
    assert snapshot_of(str(tmp_path), 2).files
    write(tmp_path, 3)
    read: list[int] = []
    once = log_replay._read_commits
    monkeypatch.setattr(log_replay, "_read_commits", lambda files, some: read.extend(some) or once(files, some))
    assert snapshot_of(str(tmp_path), 3).rows == 4
    assert read == [3]


def test_a_log_that_cannot_be_read_is_told_by_delta_rs(tmp_path: Path) -> None:
    write(tmp_path, 1)
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text('{"metaData": ')
    with pytest.raises(HistoryGone, match="cannot be read"):
        _ = Snapshot(str(tmp_path), 0, there=True).rows
