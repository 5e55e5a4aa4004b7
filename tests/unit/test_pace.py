"""Limits on bytes and estimates follow from how fast files are read and how many cores Spark has; without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.engine.cost import Work, estimate
from penstock.engine.settings import checked, read_rate
from penstock.errors import DefinitionError
from penstock.frames import limits, pace
from penstock.frames.memory import memory
from penstock.frames.pace import FASTEST, NOMINAL, PACE, SLOWEST, STARTING, Pace
from penstock.storage import table_rows
from penstock.storage.delta_log import DataFile

MB = 1024**2


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(pace, "time", found)
    return found


@pytest.fixture
def unmeasured() -> Iterator[None]:
    yield
    PACE.assume(None)
    PACE.spark_has(None)


def test_what_was_read_tells_how_fast_a_place_is(clock: Clock) -> None:
    seen = Pace()
    assert seen.rate("s3://far") is None
    assert seen.factor("s3://far") == 1.0, "what nobody knows is as it was"
    with seen.reading("s3://far", 10 * MB):
        clock.now += 0.2
    assert seen.rate("s3://far") == 50 * MB
    assert seen.factor("s3://far") == 50 * MB / NOMINAL
    assert seen.factor("") == 1.0, "of one place"
    with seen.reading("s3://far", 1000):
        clock.now += 5
    assert seen.rate("s3://far") == 50 * MB, "a small read tells how long an answer takes"


def test_reads_at_the_same_time_share_the_time(clock: Clock) -> None:
    seen = Pace()
    with seen.reading("s3://far", 10 * MB), seen.reading("s3://far", 30 * MB):
        clock.now += 0.2
    assert seen.rate("s3://far") == 200 * MB


def test_what_was_seen_last_counts_most(clock: Clock) -> None:
    seen = Pace()
    for seconds in [1.0] * 20 + [10.0] * 20:
        with seen.reading("s3://far", 100 * MB):
            clock.now += seconds
    assert seen.rate("s3://far") == pytest.approx(10 * MB, rel=0.05)


def test_a_read_that_fails_brings_nothing(clock: Clock) -> None:
    seen = Pace()

    def fails() -> None:
        with seen.reading("s3://far", 10 * MB):
            clock.now += 30
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fails()
    assert seen.rate("s3://far") is None


def test_limits_follow_within_bounds() -> None:
    here = Pace(own_cores=4)
    for limit in (0, 5 * MB, limits.READ_BYTES, limits.CHANGE_BYTES_READ):
        assert here.within(limit, "") == limit, "on a laptop they are what they are"
    here.assume(1)
    assert here.within(limits.READ_BYTES, "") == limits.READ_BYTES * SLOWEST
    here.assume(1000 * NOMINAL)
    grown = here.within(limits.READ_BYTES, "")
    assert grown == min(limits.READ_BYTES * FASTEST, max(memory() // 16, limits.READ_BYTES))
    assert here.within(limits.CHANGE_BYTES_READ, "") <= max(limits.CHANGE_BYTES_READ, memory() // 16)
    here.assume(None)
    here.spark_has(2)
    assert here.speedup == 1.0, "fewer cores than ours make nothing dearer"
    here.spark_has(64)
    assert here.within(limits.CHANGE_BYTES_READ, "") == limits.CHANGE_BYTES_READ // 16
    assert here.within(limits.READ_BYTES, "") == STARTING, "what is read while Spark begins is never left to it"


@pytest.mark.usefixtures("unmeasured")
def test_a_table_in_a_slow_place_is_not_written_again_on_the_driver(tmp_path: Path) -> None:
    file = DataFile(path="a.parquet", size=30 * MB, rows=1000)
    assert table_rows.fit_here(str(tmp_path), [file], limits.LOCAL_TABLE_ROWS)
    PACE.assume(50 * MB)
    assert not table_rows.fit_here(str(tmp_path), [file], limits.LOCAL_TABLE_ROWS)


def test_a_cluster_makes_recomputing_cheaper_and_a_slow_place_looking_through_dearer() -> None:
    def work(**more: float) -> Work:
        return Work(kinds=("aggregate",), changed=1_200_000, rows=50_000_000, stored=1_000, **more)  # type: ignore[arg-type]

    alone, cluster = estimate(work()), estimate(work(speedup=16.0))
    assert (alone.choice, cluster.choice) == ("INCREMENTAL", "FULL")
    assert alone.incremental == cluster.incremental, "which the driver does"
    assert estimate(work(rate=0.25)).incremental > alone.incremental
    small = Work(kinds=("rows",), changed=1_000, rows=200_000, stored=1_000)
    assert estimate(small).full == estimate(Work(**{**vars(small), "speedup": 64.0})).full, "one task is one task"


def test_the_setting() -> None:
    assert read_rate({}) is None
    assert read_rate(dict([checked("read_rate", "50 MB")])) == 50 * MB
    assert read_rate(dict([checked("READ_RATE", "Measured")])) is None
    for wrong in ("fast", "0", "10%"):
        with pytest.raises(DefinitionError, match="bytes a second"):
            checked("read_rate", wrong)
