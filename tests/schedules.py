"""Stories of several workers on one warehouse, and the scheduler that decides who goes on at each point.

One worker runs at a time. At every point (a transaction, a commit, a deletion, a wait) it hands over to whom the
story's seed says, is paused until its leases have run out, or dies. So a story can be told again.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from penstock import points
from penstock.catalog import leases

_STUCK = 20.0
"""Seconds after which a worker that reaches no point is taken to wait for another one, in a way not known here."""


class Killed(BaseException):
    """What a worker that dies sees, at this point and at every one after it: it cannot clean up."""


@dataclass
class Worker:
    name: str
    do: Callable[[], None]
    process: subprocess.Popen[bytes]
    """Stands for the worker's own process: it is dead when the worker is."""
    steps: int = 0
    paused: int = 0
    """Points of others for which it stays where it is."""
    dead: bool = False
    done: bool = False
    problem: BaseException | None = None


@dataclass
class Scheduler:
    """Runs workers in turns. ``run_out`` lets the leases of a process run out, as a long pause does."""

    random: Random
    run_out: Callable[[int], None]
    kills: int = 0
    pauses: int = 0
    log: list[str] = field(default_factory=list)
    _workers: dict[int, Worker] = field(default_factory=dict)
    _turn: Worker | None = None
    _ticks: int = 0
    _condition: threading.Condition = field(default_factory=threading.Condition)

    def run(self, tasks: dict[str, Callable[[], None]]) -> None:
        """Run all tasks to their end; what one raises, but for being killed, is raised here."""
        workers = [Worker(name, do, subprocess.Popen(["sleep", "3600"])) for name, do in tasks.items()]
        threads = [threading.Thread(target=self._work, args=(worker,), name=worker.name) for worker in workers]
        with self._listening():
            try:
                self._turn = workers[0]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            finally:
                for worker in workers:
                    worker.process.kill()
                    worker.process.wait()
        for worker in workers:
            if worker.problem is not None:
                raise worker.problem

    @contextmanager
    def _listening(self) -> Iterator[None]:
        own = leases.identity

        def identity() -> tuple[str, int]:
            worker = self._workers.get(threading.get_ident())
            return (own()[0], own()[1] if worker is None else worker.process.pid)

        leases.identity, points.listener = identity, self._reached
        try:
            yield
        finally:
            leases.identity, points.listener = own, None

    def _work(self, worker: Worker) -> None:
        with self._condition:
            self._workers[threading.get_ident()] = worker
            self._await_turn(worker)
        try:
            worker.do()
        except Killed:
            self.log.append(f"{worker.name} is dead")
        except BaseException as problem:
            worker.problem = problem
        finally:
            with self._condition:
                worker.done = True
                del self._workers[threading.get_ident()]  # another thread, of an epoch's lanes, may get the number
                self._hand_over()

    def _reached(self, point: str) -> None:
        worker = self._workers.get(threading.get_ident())
        if worker is None or point == points.WRITTEN:  # a heartbeat, or a lane of an epoch; nobody else could write
            return
        if worker.dead:
            raise Killed
        fate = self.random.random()
        if self.kills and fate < 0.01:
            self.kills -= 1
            worker.dead = True
            worker.process.kill()
            worker.process.wait()
            self.log.append(f"{worker.name} is killed at {point} {worker.steps}")
            raise Killed
        if self.pauses and fate > 0.99:
            self.pauses -= 1
            worker.paused = self.random.randint(3, 40)
            self.log.append(f"{worker.name} is paused at {point} {worker.steps}")
            self.run_out(worker.process.pid)
        worker.steps += 1
        with self._condition:
            self._hand_over()
            self._await_turn(worker)

    def _hand_over(self) -> None:
        self._ticks += 1
        waiting = [worker for worker in self._workers.values() if not worker.done]
        for worker in waiting:
            worker.paused = max(0, worker.paused - 1)
        ready = [worker for worker in waiting if not worker.paused] or waiting
        self._turn = self.random.choice(ready) if ready else None
        self._condition.notify_all()

    def _await_turn(self, worker: Worker) -> None:
        while self._turn is not worker:
            ticks = self._ticks
            if not self._condition.wait(_STUCK) and ticks == self._ticks:
                self._turn = worker  # whose turn it is waits for this one, say for a lock of Spark's


@dataclass
class Seen:
    """What readers saw of the views at an epoch; it must be what everybody sees there ever after."""

    rows: dict[tuple[int, str], Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, epoch: int, view: str, rows: Any) -> None:
        with self.lock:
            before = self.rows.setdefault((epoch, view), rows)
        assert before == rows, f"epoch {epoch} of {view} showed {before}, and now {rows}"
