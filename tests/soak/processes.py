"""The processes of the soak test, and what befalls them: they are killed and started again, stopped and continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from bank import Bank

LEASE = 60.0
"""Seconds after which others take over from who has stopped."""
_BEGINS = 30.0
_AT_ONCE = 2
"""Processes that are stopped at a time."""


@dataclass
class Member:
    """A process that is to run, and runs again after it was killed."""

    name: str
    role: str
    command: list[str]
    logs: Path
    writes: Path
    """What it writes to when it works."""
    process: subprocess.Popen[bytes] | None = None
    stopped_until: float | None = None
    start_at: float = 0.0
    started: float = 0.0
    began: float = 0.0
    """The same by the clock of files."""
    killed: bool = False

    def start(self) -> None:
        nowhere = {"PATH": str(self.logs), "JAVA_HOME": str(self.logs / "none")}  # nobody needs Java
        with (self.logs / f"{self.name}.out").open("ab") as out, (self.logs / f"{self.name}.err").open("ab") as err:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=err, env={**os.environ, **nowhere})
        self.killed, self.started, self.began = False, time.monotonic(), time.time()

    def send(self, what: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(what)

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def at_work(self) -> bool:
        """Whether it has written something since it was started: on a busy machine that takes a while."""
        return self.runs and self.writes.exists() and self.writes.stat().st_mtime > self.began


@dataclass
class Company:
    """All processes. ``tend`` is called a few times a second; between them the fates decide what happens next."""

    members: list[Member]
    random: Random
    between: tuple[float, float] | None
    """Seconds between two blows of fate; None for a calm run."""
    longest: float
    """Seconds for which a process is stopped at most."""
    blows: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """Processes that ended by themselves."""
    last_blow: float = 0.0
    _next: float = 0.0

    def start(self) -> None:
        for member in self.members:
            member.start()
        self._plan()

    def _plan(self) -> None:
        if self.between is not None:
            self._next = time.monotonic() + self.random.uniform(*self.between)

    def tend(self) -> None:
        now = time.monotonic()
        for member in self.members:
            if member.stopped_until is not None and now >= member.stopped_until:
                member.send(signal.SIGCONT)
                member.stopped_until, self.last_blow = None, now
            if not member.runs:
                self._restart(member, now)
        if self.between is not None and now >= self._next:
            self._strike(now)
            self._plan()

    def _restart(self, member: Member, now: float) -> None:
        if member.process is not None:
            if not member.killed:
                self.faults.append(f"{member.name} ended by itself with {member.process.returncode}")
            member.process, member.start_at = None, now + self.random.uniform(0, 4)
        elif now >= member.start_at:
            member.start()

    def _strike(self, now: float) -> None:
        """Kill one of those that run, or stop it: for a moment, or for so long that its leases run out."""
        there = [member for member in self.members if member.at_work and member.stopped_until is None]
        stopped = sum(member.stopped_until is not None for member in self.members)
        if not there:
            return
        member, fate = self.random.choice(there), self.random.random()
        self.last_blow = now
        if fate < 0.6 or stopped >= _AT_ONCE:
            member.killed = True
            member.send(signal.SIGKILL)
            self.blows[f"{member.role} killed"] += 1
            return
        long = fate < 0.8 and self.longest > LEASE
        length = (
            self.random.uniform(LEASE + 5, self.longest) if long else self.random.uniform(0.2, min(8, self.longest))
        )
        member.send(signal.SIGSTOP)
        member.stopped_until = now + length
        self.blows[f"{member.role} stopped{' for longer than a lease' if long else ''}"] += 1

    def calm(self, now: float) -> bool:
        """Whether nobody was struck for a while."""
        return all(m.runs and m.stopped_until is None for m in self.members) and now - self.last_blow > 10

    def end(self, roles: Sequence[str], how: signal.Signals) -> None:
        """End some for good; of schedulers it is expected that they end by themselves when they are told to."""
        ending, now = [member for member in self.members if member.role in roles], time.monotonic()
        self.members = [member for member in self.members if member.role not in roles]
        for member in ending:
            if member.stopped_until is not None:
                member.send(signal.SIGCONT)
            if member.runs:
                member.send(how)
        for member in ending:
            if member.process is not None:
                code = member.process.wait(180)
                begins = now - member.started < _BEGINS and code == -how  # before it could listen to signals
                if how == signal.SIGTERM and not member.killed and code != 0 and not begins:
                    self.faults.append(f"{member.name} ended with {code} when it was told to")


def worker(role: str, number: int, bank: Bank, journals: Path, logs: Path) -> Member:
    name = f"{role}{number}"
    script = str(Path(__file__).with_name("workers.py"))
    journal = journals / f"{name}.jsonl"
    command = [sys.executable, script, role, str(number), json.dumps(asdict(bank)), str(journal)]
    return Member(name, role, command, logs, journal)


def scheduler(number: int, bank: Bank, logs: Path) -> Member:
    catalog = [] if bank.catalog is None else ["--catalog", bank.catalog]
    run = [sys.executable, "-c", "from penstock.cli import run; run()", "run"]
    name = f"scheduler{number}"
    return Member(name, "scheduler", [*run, "-w", bank.warehouse, *catalog, "--json"], logs, logs / f"{name}.out")
