"""Work in bounds: so much at once, so much waiting, none while the server drains; and jobs, which nobody waits for."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from penstock.serve.problems import Refused, document, status_of

_T = TypeVar("_T")
_RUNNING_JOBS = _KEPT_JOBS = 100
"""Jobs at once, and jobs that are over and can be asked for."""


class Gate:
    """Lets statements run, a few side by side. Those that change something have places of their own, half as many: they
    wait for each other, and whoever only reads need not wait with them."""

    def __init__(self, running: int, waiting: int):
        self._most_waiting = waiting
        self._reading, self._changing = anyio.CapacityLimiter(running), anyio.CapacityLimiter((running + 1) // 2)
        self.draining = False

    async def run(self, work: Callable[[], _T], *, changes: bool = False) -> _T:
        """Do it in a thread. Once begun it is finished, whatever becomes of who asked."""
        self.check()
        if self.waiting >= self._most_waiting:
            raise Refused(
                429,
                "too many statements wait for their turn.",
                help="Send it again later.",
                headers={"Retry-After": "2"},
            )
        return await anyio.to_thread.run_sync(work, limiter=self._changing if changes else self._reading)

    def check(self) -> None:
        if self.draining:
            raise Refused(
                503, "the server is going down: it finishes what it has begun and takes nothing new.",
                help="Send it again in a moment.", headers={"Retry-After": "5"},
            )  # fmt: skip

    @property
    def running(self) -> int:
        return self._reading.borrowed_tokens + self._changing.borrowed_tokens

    @property
    def waiting(self) -> int:
        return self._reading.statistics().tasks_waiting + self._changing.statistics().tasks_waiting


@dataclass(kw_only=True)
class Job:
    """A statement that was handed over."""

    id: str
    user: str
    database: str
    begun_at: datetime
    ended_at: datetime | None = None
    status: int | None = None
    answer: dict[str, Any] | None = None

    @property
    def state(self) -> str:
        if self.ended_at is None:
            return "running"
        return "succeeded" if self.status == 200 else "failed"

    def told(self) -> dict[str, Any]:
        return {
            "job": self.id, "database": self.database, "state": self.state, "begun_at": self.begun_at,
            "ended_at": self.ended_at, "status": self.status, "answer": self.answer,
        }  # fmt: skip


class Jobs:
    """The last jobs. They are known as long as the process lives."""

    def __init__(self, gate: Gate):
        self._gate = gate
        self._known: OrderedDict[str, Job] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()

    @property
    def running(self) -> int:
        return len(self._tasks)

    def begin(self, user: str, database: str, work: Callable[[], dict[str, Any]], *, changes: bool) -> Job:
        self._gate.check()
        with self._lock:
            if self.running >= _RUNNING_JOBS:
                raise Refused(429, "too many jobs are running.", help="Wait for some.", headers={"Retry-After": "5"})
            job = Job(id=secrets.token_hex(12), user=user, database=database, begun_at=datetime.now(timezone.utc))
            self._known[job.id] = job
            for old in [one for one in self._known.values() if one.ended_at is not None][:-_KEPT_JOBS]:
                del self._known[old.id]
        task = asyncio.get_running_loop().create_task(self._run(job, work, changes))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def _run(self, job: Job, work: Callable[[], dict[str, Any]], changes: bool) -> None:
        try:
            job.answer = await self._gate.run(work, changes=changes)
            job.status = 200
        except Exception as problem:
            job.status, job.answer = status_of(problem), document(problem)
        job.ended_at = datetime.now(timezone.utc)

    def get(self, id: str) -> Job | None:
        return self._known.get(id)
