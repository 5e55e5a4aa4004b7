"""The load test: ``load.py --minutes 5``. Fifty readers of documents by key and five writers on one server that also
keeps views fresh, over this machine's loopback. Every answer is checked; the server's memory is watched.

``docs/reliability.md`` has the figures of a run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any

from clients import Seen, readers, shares, writers
from ledger import TOTAL, found_ledger, wrong_bank

import penstock

sys.path.insert(0, str(Path(__file__).parent.parent / "serve"))
from http_server import Server

_LOOKS = 2.0
"""Seconds between two looks at the server's memory."""


@dataclass
class Load:
    """One run over a ledger that was founded in a directory."""

    warehouse: Path
    seconds: float
    seed: int
    readers: int = 50
    writers: int = 5
    processes: int = 2
    """That the readers are spread over: one could not ask enough."""
    seen: Seen = field(default_factory=Seen)
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Seconds, and MiB that the server had then."""
    lines: list[str] = field(default_factory=list)
    """What the server said, but for who did what."""

    def run(self) -> None:
        server = Server("-w", f"shop={self.warehouse}", "--schedule", "--rate", 1_000_000, "--audit", os.devnull)
        try:
            self._ask(server)
        finally:
            code = server.stop()
            self.lines = server.lines
        if code != 0:
            self.seen.problems.append(f"the server ended with {code}")
        if any(line.startswith("Traceback") for line in self.lines):
            self.seen.problems.append("the server's log has a traceback")

    def _ask(self, server: Server) -> None:
        began = time.time()
        until = began + self.seconds
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.processes + 1, spawn) as pool:
            parts = enumerate(shares(self.readers, self.processes))
            asked = [pool.submit(readers, server.url, self.seed + 1000 * n, until, count) for n, count in parts]
            asked.append(pool.submit(writers, server.url, self.seed + 500_000, until, self.writers))
            while time.time() < until:
                self.memory.append((time.time() - began, resident(server.pid)))
                time.sleep(min(_LOOKS, max(0.0, until - time.time())))
            for each in asked:
                self.seen.add(each.result())

    def judge(self, db: penstock.Database) -> None:
        """What is there at the end against what writers were told, and every view against its query."""
        db.refresh(wait=True)
        wrong = self.seen.problems
        stored = {row["pk_account"]: row["data"]["amount"] for row in db.find("tv_account")}
        for account, expected in self.seen.balances.items():
            if stored.get(account) != expected:
                wrong.append(f"account {account} has {stored.get(account)} at the end, and must have {expected}")
        if sum(stored.values()) != TOTAL:
            wrong.append(f"{sum(stored.values())} in all at the end")
        bank = db.get("tv_bank", pk_bank=1)
        problem = "the bank is gone" if bank is None else wrong_bank(bank["data"]["branches"])
        wrong += [problem] if problem else []
        wrong += [f"{one.view} is not its query" for one in db.verify() if one.outcome != "EQUAL"]
        failed = Counter(str(record.reason) for record in db.history() if record.status == "FAILED")
        wrong += [f"{count} refreshes failed with {reason}" for reason, count in failed.items()]

    def figures(self) -> dict[str, Any]:
        """Of each kind of request, how many and how fast; and the memory."""
        kinds = {
            kind: {"a second": round(len(took) / self.seconds, 1), **_quantiles(took)}
            for kind, took in sorted(self.seen.seconds.items())
        }
        statuses: Counter[str] = Counter()
        for (kind, status), count in sorted(self.seen.statuses.items()):
            statuses[f"{kind} {status}"] += count
        return {"requests": kinds, "statuses": dict(statuses), "memory": self._memory(), "wrong": self.seen.problems}

    def _memory(self) -> dict[str, float]:
        """The slope is of the second half: by then what is kept is there."""
        half = self.memory[len(self.memory) // 2 :]
        slope = statistics.linear_regression(*zip(*half, strict=True)).slope if len(half) > 1 else 0.0
        return {
            "MiB at the start": round(self.memory[0][1], 1), "MiB at half time": round(half[0][1], 1),
            "MiB at the end": round(self.memory[-1][1], 1), "most MiB": round(max(m for _, m in self.memory), 1),
            "MiB a minute in the second half": round(slope * 60, 2),
        }  # fmt: skip


def _quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"p{part} ms": round(ordered[min(len(ordered) - 1, len(ordered) * part // 100)] * 1000, 1)
        for part in (50, 99, 100)
    }


def resident(pid: int) -> float:
    """MiB of a process that are in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--writers", type=int, default=5)
    parser.add_argument("--keep", metavar="PATH", help="keep the warehouse here")
    given = parser.parse_args(arguments)
    seed = SystemRandom().randrange(1_000_000)
    with tempfile.TemporaryDirectory(prefix="penstock-load-") as scratch:
        warehouse = Path(given.keep or scratch) / "warehouse"
        print("founding the bank", flush=True)
        with penstock.connect(warehouse) as db:
            found_ledger(db)
        load = Load(warehouse, given.minutes * 60, seed, given.readers, given.writers)
        print(f"{load.readers} readers, {load.writers} writers, {given.minutes:g} minutes, seed {seed}", flush=True)
        load.run()
        print("judging", flush=True)
        with penstock.connect(warehouse) as db:
            load.judge(db)
    print(json.dumps(load.figures(), indent=1))
    return 1 if load.seen.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
