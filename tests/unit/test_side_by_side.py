"""Nodes in graph order, side by side where none waits for another."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from penstock.engine.side_by_side import in_order

DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": []}


def lane(work: Callable[[], None]) -> Callable[[], None]:
    return work


def test_inputs_come_before_readers_and_every_node_once() -> None:
    done: list[str] = []

    def begin(name: str) -> Callable[[], None] | None:
        assert set(DIAMOND[name]) <= set(done)
        return lambda: done.append(name)

    in_order(DIAMOND, begin, lane)
    assert sorted(done) == sorted(DIAMOND)


def test_two_that_do_not_wait_for_each_other_run_at_once() -> None:
    meeting = threading.Barrier(2, timeout=10)

    def work() -> None:
        meeting.wait()

    in_order({"b": [], "c": []}, lambda name: work, lane)


def test_a_chain_stays_in_the_callers_thread() -> None:
    threads = set()
    in_order({"a": [], "b": ["a"], "c": ["b"]}, lambda name: lambda: threads.add(threading.current_thread()), lane)
    assert threads == {threading.current_thread()}


def test_nodes_without_work_need_no_thread() -> None:
    seen: list[str] = []
    in_order(DIAMOND, lambda name: seen.append(name), lane)
    assert sorted(seen) == sorted(DIAMOND)


def test_what_is_raised_in_a_lane_is_raised_here_and_nothing_is_begun_after_it() -> None:
    begun: list[str] = []

    def begin(name: str) -> Callable[[], None]:
        begun.append(name)

        def work() -> None:
            raise KeyboardInterrupt

        return work

    with pytest.raises(KeyboardInterrupt):
        in_order({"a": [], "b": [], "c": ["a", "b"]}, begin, lane)
    assert "c" not in begun
