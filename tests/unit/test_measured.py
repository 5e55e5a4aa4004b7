"""What AUTO learns from its own refreshes: stories of a machine and a view, told without either."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise

import pytest

from penstock.engine.cost import Estimate, Retry, Work, estimate
from penstock.engine.measured import FURTHEST, REMEMBERED, STEP, Belief, Measured, Measurement
from penstock.engine.report import ViewReport, combine
from penstock.engine.standing_in_line import standing_in_line

WORK = Work(kinds=("aggregate",), changed=5_000, rows=5_000_000, stored=100_000)
RAW = estimate(WORK).raw
INCREMENTAL, FULL = "INCREMENTAL", "FULL"

Truth = Callable[[str, int], float]
"""Seconds that an action takes at a moment."""


def usual(action: str, moment: int) -> float:
    """As estimated: maintaining is ten times as fast."""
    return RAW[action]


def close(action: str, moment: int) -> float:
    """Maintaining is only a little faster, so that little turns the choice."""
    return {INCREMENTAL: 1.5, FULL: 2.0}[action]


def story(truth: Truth, refreshes: int) -> list[Estimate]:
    """What AUTO expects, refresh after refresh, each measured as it truly went."""
    past: list[tuple[str, float, dict[str, object]]] = []
    told = []
    for moment in range(refreshes):
        told.append(estimate(WORK, Measured.of(past[:REMEMBERED])))
        action = told[-1].choice
        past.insert(0, (action, truth(action, moment), {"estimate": {"raw": RAW}}))
    return told


def choices(truth: Truth, refreshes: int) -> list[str]:
    return [told.choice for told in story(truth, refreshes)]


def slowed(truth: Truth, times: float, *moments: int, only: str | None = None) -> Truth:
    """The same on a machine that is slow at some moments."""
    return lambda action, moment: truth(action, moment) * (times if moment in moments and only in (None, action) else 1)


@pytest.mark.parametrize("first", [0, 1, 5])
def test_one_refresh_that_takes_500_times_as_long_changes_nothing(first: int) -> None:
    assert set(choices(slowed(usual, 500, first), 30)) == {INCREMENTAL}
    expected = story(slowed(usual, 500, first), 30)[first + 1].incremental
    assert expected <= STEP * RAW[INCREMENTAL], "seen as an estimate of 486 seconds for a step that takes less than one"


def test_where_one_refresh_does_turn_the_choice_maintaining_is_soon_tried_again() -> None:
    told = story(slowed(close, 500, 10), 60)
    taken = [estimate.choice for estimate in told]
    assert taken[11] == FULL
    back = taken.index(INCREMENTAL, 11)
    assert back <= 25
    assert set(taken[back:]) == {INCREMENTAL}, "it is found to be fast, and stays"
    retry = told[back].retry
    assert retry is not None, "which is told"
    assert (retry.action, retry.since) == (INCREMENTAL, back - 11)
    assert [at for at, estimate in enumerate(told) if estimate.retry] == [back]


def test_a_machine_that_was_slow_for_an_hour_is_forgotten() -> None:
    hour = range(20, 50)
    for truth in (usual, close):
        taken = choices(slowed(truth, 10, *hour), 150)
        assert set(taken[:20]) == {INCREMENTAL}
        assert taken[90:].count(INCREMENTAL) >= 58, "at most a try of the other way"


def test_a_machine_that_is_slow_only_for_maintaining_is_forgotten_too() -> None:
    taken = choices(slowed(usual, 100, *range(20, 50), only=INCREMENTAL), 200)
    assert FULL in taken[20:50]
    assert taken[140:].count(INCREMENTAL) >= 58


def test_a_view_that_truly_got_slower_is_recomputed_and_tried_ever_more_seldom() -> None:
    def slower(action: str, moment: int) -> float:
        return usual(action, moment) * (60 if action == INCREMENTAL and moment >= 10 else 1)

    told = story(slower, 110)
    taken = [estimate.choice for estimate in told]
    tries = [at for at in range(20, 110) if taken[at] == INCREMENTAL]
    assert taken[10:20].count(INCREMENTAL) <= 3, "twice is believed"
    assert 1 <= len(tries) <= 5
    assert all(told[at].retry for at in tries)
    waits = [later - sooner for sooner, later in pairwise(tries)]
    assert waits == sorted(waits)


def test_a_view_that_got_fast_again_is_maintained_again() -> None:
    def mended(action: str, moment: int) -> float:
        return usual(action, moment) * (60 if action == INCREMENTAL and 10 <= moment < 60 else 1)

    taken = choices(mended, 200)
    assert FULL in taken[10:60]
    assert set(taken[160:]) == {INCREMENTAL}


def test_noise_does_not_turn_what_is_twice_as_fast() -> None:
    chance = random.Random(7)

    def noisy(action: str, moment: int) -> float:
        return {INCREMENTAL: 1.0, FULL: 2.0}[action] * chance.lognormvariate(0, 0.3)

    assert choices(noisy, 300).count(INCREMENTAL) >= 285


def test_recomputing_that_was_slow_once_is_tried_again_too() -> None:
    def heavy(action: str, moment: int) -> float:
        return {INCREMENTAL: 9.0, FULL: 2.5}[action]

    taken = choices(slowed(heavy, 500, 15, only=FULL), 100)
    assert FULL in taken[:15]
    assert taken[40:].count(FULL) >= 50


def test_corrections_are_bounded_however_many_refreshes_agree() -> None:
    for seconds, furthest in ((1e6, FURTHEST), (1e-6, 1 / FURTHEST)):
        measured = Measured()
        for _ in range(20):
            measured = measured.after(Measurement(FULL, seconds, 1.0))
        assert measured.factor(FULL) == pytest.approx(furthest)


def test_what_is_believed_fades_towards_the_estimate_and_slower_once_confirmed() -> None:
    fresh, old, confirmed = (
        Belief(seconds=16.0, expected=1.0),
        Belief(seconds=16.0, expected=1.0, since=40),
        Belief(seconds=16.0, expected=1.0, since=40, confirmed=4),
    )
    assert fresh.faded().seconds == 16.0
    assert old.faded().seconds == pytest.approx(1.0, abs=0.01)
    assert confirmed.faded().seconds > 5


def test_what_a_refresh_stood_in_line_for_is_not_its_own() -> None:
    details = {"estimate": {"raw": RAW}, "in_line": 480.0}
    busy = Measured.of([(INCREMENTAL, 480.0 + RAW[INCREMENTAL], details)])
    assert busy.factor(INCREMENTAL) == pytest.approx(1.0)


def test_a_retry_of_a_hidden_node_is_told_of_the_view() -> None:
    own = ViewReport(name="v", action=INCREMENTAL, reason="CHANGED")
    hidden = ViewReport(
        name="n",
        action=INCREMENTAL,
        reason="TRIED_AGAIN",
        estimate=Estimate(incremental=1, full=2, retry=Retry(INCREMENTAL, 7, 3.0)),
    )
    told = combine("v", own, [hidden])
    assert (told.action, told.reason) == (INCREMENTAL, "TRIED_AGAIN")
    assert told.details()["estimate"]["retry"] == {"action": INCREMENTAL, "since": 7, "believed": 3.0}
    recomputed = ViewReport(name="v", action=FULL, reason="CHEAPER")
    assert combine("v", recomputed, [hidden]).reason == "CHEAPER"


@pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="this system does not say")
def test_a_thread_that_shares_its_processor_stands_in_line() -> None:
    processors = os.sched_getaffinity(0)
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for process in (0, other.pid):
            os.sched_setaffinity(process, {min(processors)})
        with standing_in_line() as in_line:
            while in_line() == 0.0:
                with standing_in_line() as inner:
                    sum(range(1_000_000))
                if inner() > 0:
                    break
        assert in_line() >= inner() > 0
    finally:
        other.kill()
        other.wait()
        os.sched_setaffinity(0, processors)
