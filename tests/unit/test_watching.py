"""Commits of other writers, noticed without listing logs that nobody writes to."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from penstock.schedule.watching import Watch


def write(path: Path) -> None:
    write_deltalake(str(path), pa.table({"n": [1]}), mode="append")


def settled(path: Path) -> None:
    """As if its last commit were a minute old."""
    log = path / "_delta_log"
    then = time.time() - 60
    os.utime(log, (then, then))


def test_a_commit_is_noticed_and_an_idle_table_costs_no_listing(tmp_path: Path) -> None:
    paths = {}
    for number in range(5):
        write(tmp_path / f"t{number}")
        settled(tmp_path / f"t{number}")
        paths[f"t{number}"] = str(tmp_path / f"t{number}")
    watch = Watch()
    assert watch.look(paths) == dict.fromkeys(paths, 0)
    assert watch.listed == 5
    for _ in range(10):
        assert watch.look(paths) == dict.fromkeys(paths, 0)
    assert watch.listed == 5
    write(tmp_path / "t3")
    assert watch.look(paths) == {**dict.fromkeys(paths, 0), "t3": 1}
    assert watch.listed == 6


def test_commits_within_one_tick_of_the_clock_are_noticed(tmp_path: Path) -> None:
    """A directory whose time is that of a moment ago may get another file without showing it."""
    write(tmp_path)
    watch = Watch()
    assert watch.look({"t": str(tmp_path)}) == {"t": 0}
    moment = os.stat(tmp_path / "_delta_log").st_mtime_ns
    write(tmp_path)
    os.utime(tmp_path / "_delta_log", ns=(moment, moment))
    assert watch.look({"t": str(tmp_path)}) == {"t": 1}


def test_a_table_that_is_gone_made_again_or_no_longer_asked_for(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(table)
    write(table)
    settled(table)
    watch = Watch()
    assert watch.look({"t": str(table), "never": str(tmp_path / "never")}) == {"t": 1, "never": None}
    shutil.rmtree(table)
    assert watch.look({"t": str(table)}) == {"t": None}
    write(table)
    settled(table)
    assert watch.look({"t": str(table)}) == {"t": 0}
    assert watch.look({}) == {}
    assert watch.look({"t": str(table)}) == {"t": 0}
