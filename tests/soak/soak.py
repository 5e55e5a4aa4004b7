"""The soak test: ``soak.py --minutes 60``. Writers, schedulers, refreshers and readers on one warehouse, in processes
of their own that are killed and stopped at random; at the end the judge, and Spark as another one.

No process but the first and the last has a JVM. ``docs/reliability.md`` has the figures of a long run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

from bank import VIEWS, Bank, found_bank
from judge import Verdict, judge
from processes import Company, Member, scheduler, worker
from workers import WRITERS

import penstock
from penstock.bench.store_server import BUCKET, far_store
from penstock.storage.log_listing import newest_version

_TESTS = Path(__file__).parent.parent


@dataclass
class Soak:
    """One run over a bank that was founded; journals and logs are in a directory."""

    bank: Bank
    place: Path
    seconds: float
    random: Random
    between: tuple[float, float] | None = (4.0, 14.0)
    longest: float = 75.0
    least: int = 0
    """Blows that there are at least: then it takes as long as it takes."""
    schedulers: int = 2
    readers: int = 2
    lags: dict[str, list[tuple[float, bool]]] = field(default_factory=dict)
    """By view: the lag against its target at each moment that was looked at, and whether all was calm then."""
    targets: dict[str, float] = field(default_factory=dict)

    @property
    def journals(self) -> Path:
        return self.place / "journals"

    def run(self) -> Company:
        """All processes at work; then writers end, schedulers catch up, and end when they are told to."""
        for name in ("journals", "logs"):
            (self.place / name).mkdir(exist_ok=True)
        company = Company(list(self._members()), self.random, self.between, self.longest)
        with self.bank.opened() as db:
            company.start()
            try:
                self._watch(db, company)
                company.end(("writer", "recorder", "refresher"), signal.SIGKILL)
                company.between = None
                self._catch_up(db, company)
                company.end(("scheduler",), signal.SIGTERM)
            finally:
                company.end(("writer", "recorder", "refresher", "reader", "scheduler"), signal.SIGKILL)
        return company

    def _members(self) -> Iterable[Member]:
        logs = self.place / "logs"
        for role, count in (("writer", WRITERS), ("recorder", 1), ("refresher", 1), ("reader", self.readers)):
            yield from (worker(role, number, self.bank, self.journals, logs) for number in range(count))
        yield from (scheduler(number, self.bank, logs) for number in range(self.schedulers))

    def _watch(self, db: penstock.Database, company: Company) -> None:
        began = told = looked = time.monotonic()
        while (now := time.monotonic()) < began + self.seconds or company.blows.total() < self.least:
            company.tend()
            if now - looked >= 1:
                looked = now
                self._look(db, company.calm(now))
            if now - told >= 60:
                told = now
                say(f"{(now - began) / 60:.0f} min: epoch {db._catalog.world().epoch:,}, {company.blows.total()} blows")
            time.sleep(0.2)

    def _look(self, db: penstock.Database, calm: bool) -> None:
        for view in db.status():
            if view.target_lag is None or view.lag is None:
                continue
            if view.name in self.lags or not view.too_old:  # at the beginning it is as old as the warehouse
                self.targets[view.name] = view.target_lag.total_seconds()
                self.lags.setdefault(view.name, []).append((view.lag / view.target_lag, calm))

    def _catch_up(self, db: penstock.Database, company: Company) -> None:
        """Nobody writes any more: what is scheduled is fresh soon, by itself."""
        until = time.monotonic() + 300
        while any(view.stale and view.refreshes_itself for view in db.status()):
            company.tend()
            if time.monotonic() > until:
                late = [view.name for view in db.status() if view.stale and view.refreshes_itself]
                company.faults.append(f"nobody refreshes {', '.join(late)}")
                return
            time.sleep(0.5)

    def figures(self, db: penstock.Database) -> dict[str, Any]:
        """How much was done."""
        world, history = db._catalog.world(), db.history()
        versions = {name: newest_version(table.path) for name, table in world.tables.items()}
        done = Counter(f"{one.action} {one.reason}" for one in history if one.status == "SUCCEEDED")
        failed = Counter(f"{one.reason}: {(one.error or '')[:160]}" for one in history if one.status == "FAILED")
        return {
            "commits to tables": versions,
            "commits to views": {name: world.nodes[name].version for name in VIEWS},
            "epochs": world.epoch,
            "refreshes of views": dict(done.most_common()),
            "refreshes that failed": dict(failed.most_common(20)),
            "refused statements": dict(Counter(_refused(self.journals)).most_common(20)),
            "lags": {name: self._percentiles(name) for name in self.lags},
        }

    def _percentiles(self, view: str) -> dict[str, float]:
        seen = self.lags[view]
        calm = [lag for lag, quiet in seen if quiet]
        return {
            "target": self.targets[view], "moments": len(seen), "p50": _at(seen_lags(seen), 0.5),
            "p95": _at(seen_lags(seen), 0.95), "p99": _at(seen_lags(seen), 0.99), "largest": _at(seen_lags(seen), 1),
            "within": _within(seen_lags(seen)), "calm moments": len(calm), "within when calm": _within(calm),
        }  # fmt: skip


def seen_lags(seen: Iterable[tuple[float, bool]]) -> list[float]:
    return sorted(lag for lag, _ in seen)


def _at(lags: Sequence[float], share: float) -> float:
    return round(sorted(lags)[min(len(lags) - 1, int(share * len(lags)))], 2)


def _within(lags: Sequence[float]) -> float:
    return round(sum(lag <= 1 for lag in lags) / len(lags), 4) if lags else 1.0


def _refused(journals: Path) -> Iterable[str]:
    for path in journals.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            told = json.loads(line)
            if told.get("state") == "refused":
                yield f"{path.stem.rstrip('0123456789')}: {told['error']}: {told['message'][:120]}"


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


# -- from the command line --------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(2**32))
    parser.add_argument("--place", type=Path)
    parser.add_argument("--calm", action="store_true", help="strike nobody: what lags are when nothing goes wrong")
    parser.add_argument("--store", action="store_true", help="the bank lies in an S3 server, its catalog on PostgreSQL")
    parser.add_argument("--part", choices=("found", "judge"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part is not None:
        bank = Bank(**json.loads((given.place / _BANK).read_text()))
        with bank.opened() as db:
            return {"found": _found, "judge": _judge_by_spark}[given.part](db, bank)
    place = given.place or Path(tempfile.mkdtemp(prefix="soak-"))
    place.mkdir(exist_ok=True)
    say(f"seed {given.seed}, in {place}")
    with _in_store() if given.store else nullcontext(Bank(str(place / "warehouse"), str(place / "events"))) as bank:
        if given.store or not (place / _BANK).exists():
            (place / _BANK).write_text(json.dumps(asdict(bank)))
            _with_spark("found", place)
        soak = Soak(bank, place, given.minutes * 60, Random(given.seed), between=None if given.calm else (4.0, 14.0))
        say("all processes start")
        company = soak.run()
        return _told(soak, company)


_BANK = "bank.json"


@contextmanager
def _in_store() -> Iterator[Bank]:
    """A store and a server for the catalog, as long as the run. All processes find the store in their environment."""
    sys.path.insert(0, str(_TESTS))
    from postgres import new_database, running_server

    with far_store(0) as store, running_server() as server:
        os.environ.update(store.options | {"AWS_ALLOW_HTTP": "true"})
        yield Bank(f"{BUCKET}/warehouse", f"{BUCKET}/events", new_database(server))


def _told(soak: Soak, company: Company) -> int:
    with soak.bank.opened() as db:
        figures = soak.figures(db)
        db.refresh()
        verdict = judge(db, soak.journals)
    by_spark = _with_spark("judge", soak.place)
    say(json.dumps(figures | {"blows": dict(company.blows), "looked at": dict(verdict.looked)}, indent=1))
    for problem in _problems(verdict, company, by_spark):
        say(f"WRONG: {problem}")
    say(f"lost rows: {len(verdict.lost)}, wrong reads: {len(verdict.wrong)}, other faults: {len(company.faults)}")
    return 0 if verdict.good and not company.faults and by_spark == 0 else 1


def _problems(verdict: Verdict, company: Company, by_spark: int) -> list[str]:
    spark = ["Spark finds a view that is not its query"] if by_spark else []
    return [*verdict.lost, *verdict.wrong, *company.faults, *spark]


def _with_spark(part: str, place: Path) -> int:
    """In a process of its own, so that no JVM stays."""
    return subprocess.run([sys.executable, __file__, "--part", part, "--place", str(place)], check=False).returncode


def _found(db: penstock.Database, bank: Bank) -> int:
    found_bank(db, bank.events)
    return 0


def _judge_by_spark(db: penstock.Database, bank: Bank) -> int:
    sys.path.insert(0, str(_TESTS))
    from oracle import assert_fresh

    for view in VIEWS:
        assert_fresh(db, view)
    return 0


if __name__ == "__main__":
    sys.exit(main())
