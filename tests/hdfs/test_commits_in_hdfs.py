"""Commits to a log in HDFS, where a file is seen before it is whole: who dies over one has not made it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinds_of_stores import Kind, running
from penstock.storage.files import Files, files_of
from penstock.storage.log_listing import LOG, commit_name, newest_version

_DYING = """
import os, signal, sys
import hdfs_native
from penstock.storage.files import files_of

setattr(getattr(hdfs_native, sys.argv[1]), sys.argv[2], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
with files_of(sys.argv[3]).hold("_delta_log") as log:
    log.put_if_absent(sys.argv[4], b"dead" * 100_000)
"""


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Kind]:
    with running("hdfs") as found:
        yield found


@pytest.fixture
def table(hdfs: Kind, tmp_path: Path) -> Files:
    found = files_of(f"{hdfs.place}/{tmp_path.name}")
    found.begin(LOG)
    return found


def name(version: int) -> str:
    return commit_name(version).removeprefix(f"{LOG}/")


@pytest.mark.parametrize(("kind", "step"), [("FileWriter", "close"), ("Client", "rename")])
def test_who_dies_over_a_commit_has_not_made_it(table: Files, kind: str, step: str) -> None:
    with table.hold(LOG) as log:
        log.put_if_absent(name(0), b"first")
    command = [sys.executable, "-c", _DYING, kind, step, table.root, name(1)]
    assert subprocess.run(command, env=os.environ, check=False).returncode == -signal.SIGKILL
    left = [found for found in table.names(LOG) if found != name(0)]
    assert [found.endswith(".draft") for found in left] == [True], "which vacuum deletes"
    assert newest_version(table.root) == 0
    with table.hold(LOG) as log:
        log.put_if_absent(name(1), b"second")
    assert table.read(commit_name(1)) == b"second"


def test_a_commit_to_a_table_that_was_dropped_makes_none(table: Files) -> None:
    with table.hold(LOG) as log:
        log.put_if_absent(name(0), b"first")
        table.delete_folder()
        assert not log.is_there
        with pytest.raises(FileNotFoundError):
            log.put_if_absent(name(1), b"late")
    with pytest.raises(FileNotFoundError), table.hold(LOG):
        pass
    assert table.listing() == []


def test_a_rename_that_was_sent_twice_is_known(table: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first answer was lost."""
    import hdfs_native

    rename = hdfs_native.Client.rename

    def again(client: hdfs_native.Client, src: str, dst: str, overwrite: bool = False) -> None:
        rename(client, src, dst, overwrite)
        rename(client, src, dst, overwrite)

    monkeypatch.setattr(hdfs_native.Client, "rename", again)
    with table.hold(LOG) as log:
        log.put_if_absent(name(0), b"first")
    monkeypatch.undo()
    assert table.read(commit_name(0)) == b"first"
    with table.hold(LOG) as log, pytest.raises(FileExistsError):
        log.put_if_absent(name(0), b"other")
    assert table.names(LOG) == [name(0)]
