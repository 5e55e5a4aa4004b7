"""What the processes of the soak test do, each until it is killed: ``workers.py ROLE NUMBER BANK JOURNAL``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from typing import Any

import pyarrow as pa
from bank import ACCOUNTS, EVENTS, REGIONS, VIEWS, Bank, Rows, by_query, digest, rows_of, wrong_sums
from deltalake import DeltaTable, write_deltalake
from journal import BEGUN, DONE, REFUSED, Journal, read_journal, statements

import penstock

WRITERS = 2
_KEPT = 300
"""Transfers of one writer that are there at a time; the oldest go."""
_STEP = 10**9
"""What numbers of transfers of two writers differ in at least."""
_REMEMBERED = 480.0
"""Seconds for which an epoch is read again: less than what epochs are kept."""

random = SystemRandom()


class Statements:
    """Writes down that a statement begins, and what became of it."""

    def __init__(self, path: Path):
        self._journal = Journal(path)
        self.told = statements(path)

    def run(self, do: Callable[[], object], **facts: Any) -> bool:
        number = len(self.told)
        self.told.append(facts)
        self._journal.write(number=number, state=BEGUN, **facts)
        try:
            do()
        except penstock.PenstockError as problem:
            facts["state"] = REFUSED
            self._journal.write(number=number, state=REFUSED, error=type(problem).__name__, message=str(problem)[:300])
            return False
        facts["state"] = DONE
        self._journal.write(number=number, state=DONE, at=time.time())
        return True


class Transfers:
    """The numbers of a writer's transfers: which are new, which are there."""

    def __init__(self, told: list[dict[str, Any]], writer: int):
        self._next = writer * _STEP + sum(len(one["transfers"]) for one in told if one["kind"] == "insert")
        gone = {number for one in told if one["kind"] == "delete" for number in one["transfers"]}
        added = [n for one in told if one["kind"] == "insert" and one["state"] == DONE for n in one["transfers"]]
        self._there = [number for number in added if number not in gone]

    def new(self) -> list[int]:
        count = random.choice((1, 1, 2, 10))
        self._next += count
        return list(range(self._next - count, self._next))

    def added(self, numbers: list[int]) -> None:
        self._there += numbers

    def to_delete(self) -> list[int]:
        """Some of them, of which nothing more is asked: the oldest if there are many."""
        count = 50 if len(self._there) > _KEPT else min(len(self._there), random.choice((1, 3)))
        found, self._there = self._there[:count], self._there[count:]
        return found


def write(number: int, bank: Bank, journal: Path) -> None:
    """Move money and owners, and enter and take back transfers, by statements that need no Spark."""
    told = Statements(journal)
    transfers = Transfers(told.told, number)
    with bank.opened() as db:
        while True:
            fate = random.random()
            if fate < 0.45:
                _move_money(db, told)
            elif fate < 0.6:
                _move_owner(db, told, number)
            elif fate < 0.85:
                _enter(db, told, transfers)
            elif gone := transfers.to_delete():
                text = f"DELETE FROM entries WHERE transfer IN ({', '.join(map(str, gone))})"
                told.run(lambda text=text: db.sql(text), kind="delete", transfers=gone)
            time.sleep(random.uniform(0.1, 1.5))


def _move_money(db: penstock.Database, told: Statements) -> None:
    (giver, taker), amount = random.sample(range(ACCOUNTS), 2), random.randint(1, 300)
    text = (
        f"UPDATE accounts SET balance = balance + CASE WHEN id = {giver} THEN -{amount} ELSE {amount} END "
        f"WHERE id IN ({giver}, {taker})"
    )
    told.run(lambda: db.sql(text), kind="move", giver=giver, taker=taker, amount=amount)


def _move_owner(db: penstock.Database, told: Statements, writer: int) -> None:
    owner, region = random.randrange(writer, ACCOUNTS, WRITERS), random.randrange(REGIONS)
    text = f"UPDATE owners SET region = {region} WHERE id = {owner}"
    told.run(lambda: db.sql(text), kind="owner", owner=owner, region=region)


def _enter(db: penstock.Database, told: Statements, transfers: Transfers) -> None:
    numbers, rows = transfers.new(), []
    for number in numbers:
        (giver, taker), amount = random.sample(range(ACCOUNTS), 2), random.randint(1, 300)
        rows += [f"({number}, {giver}, -{amount})", f"({number}, {taker}, {amount})"]
    text = f"INSERT INTO entries VALUES {', '.join(rows)}"
    if told.run(lambda: db.sql(text), kind="insert", transfers=numbers):
        transfers.added(numbers)


def record(number: int, bank: Bank, journal: Path) -> None:
    """Write into a table that is not Penstock's, with delta-rs: appends, deletions, and files that are merged."""
    told = Statements(journal)
    transfers = Transfers(told.told, number)
    place = bank.events
    while True:
        fate = random.random()
        if fate < 0.7:
            numbers = transfers.new()
            rows = [(n, random.randrange(3), random.randint(1, 300)) for n in numbers]
            pairs = [(n, (kind + side) % 3, (1 - 2 * side) * amount) for n, kind, amount in rows for side in (0, 1)]
            table = pa.table([list(column) for column in zip(*pairs, strict=True)], schema=EVENTS)
            if told.run(lambda t=table: write_deltalake(place, t, mode="append"), kind="insert", transfers=numbers):
                transfers.added(numbers)
        elif fate < 0.95:
            if gone := transfers.to_delete():
                where = f"transfer IN ({', '.join(map(str, gone))})"
                told.run(lambda w=where: DeltaTable(place).delete(w), kind="delete", transfers=gone)
        else:
            DeltaTable(place).optimize.compact()
        time.sleep(random.uniform(0.3, 2.5))


def refresh(number: int, bank: Bank, journal: Path) -> None:
    """What people do beside schedulers: refresh by hand, change when views refresh, name epochs, delete old files."""
    told = Statements(journal)
    with bank.opened() as db:
        while True:
            text, do = _by_hand(db)
            told.run(do, kind="by hand", text=text)
            time.sleep(random.uniform(0.5, 6))


def _by_hand(db: penstock.Database) -> tuple[str, Callable[[], object]]:
    view = random.choice(list(VIEWS))
    alter = random.choice(
        (f"ALTER MATERIALIZED VIEW {view} PRIORITY {random.randint(-3, 9)}",
         f"ALTER MATERIALIZED VIEW moved {random.choice(('ALTER SCHEDULE EVERY 20 SECONDS', VIEWS['moved'][1]))}",
         f"ALTER MATERIALIZED VIEW by_hand {random.choice(('ADD TRIGGER ON UPDATE', 'DROP SCHEDULE'))}")
    )  # fmt: skip
    steps: list[tuple[int, str, Callable[[], object]]] = [
        (4, "refresh", db.refresh),
        (4, f"refresh {view}", lambda: db.refresh(view)),
        (2, f"refresh {view} and wait", lambda: db.refresh(view, wait="10 seconds")),
        (1, "vacuum", db.vacuum),
        (1, "checkpoint", lambda: db.checkpoint("mark")),
        (1, alter, lambda: db.sql(alter)),
    ]
    _, text, do = random.choices(steps, [weight for weight, _, _ in steps])[0]
    return text, do


def read(number: int, bank: Bank, journal: Path) -> None:
    """Read all views of one epoch, again and again; see that they add up, and that what was read before is the same."""
    seen: dict[int, tuple[float, dict[str, str]]] = {}
    for line in read_journal(journal):
        if "digests" in line:
            seen[line["epoch"]] = line["at"], line["digests"]
    told = Journal(journal)
    with bank.opened() as db:
        while True:
            _look(db, seen, told)
            if random.random() < 0.5:
                _look_again(db, seen, told)
            time.sleep(random.uniform(0.3, 1.5))


def _look(db: penstock.Database, seen: dict[int, tuple[float, dict[str, str]]], told: Journal) -> None:
    with db.snapshot() as moment:
        rows = {view: rows_of(db, moment, view) for view in VIEWS}
        found = {view: digest(each) for view, each in rows.items()}
        wrong = wrong_sums(rows)
        known = moment.epoch in seen
        if known and seen[moment.epoch][1] != found:
            wrong.append(f"the epoch has changed: {_differing(seen[moment.epoch][1], found)}")
        if random.random() < 0.15:
            view = random.choice(list(VIEWS))
            expected = by_query(moment.moment.world, view)
            told.write(judged=view, epoch=moment.epoch)
            if expected != rows[view]:
                wrong.append(f"{view} is not its query: {_difference(rows[view], expected)}")
        if known:
            told.write(read=moment.epoch, wrong=wrong)
        else:
            seen[moment.epoch] = time.time(), found
            told.write(read=moment.epoch, epoch=moment.epoch, at=time.time(), digests=found, wrong=wrong)


def _look_again(db: penstock.Database, seen: dict[int, tuple[float, dict[str, str]]], told: Journal) -> None:
    """Read an epoch of some minutes ago."""
    recent = [epoch for epoch, (at, _) in seen.items() if time.time() - at < _REMEMBERED]
    if recent:
        epoch = random.choice(recent)
        moment = db.snapshot(epoch)
        found = {view: digest(rows_of(db, moment, view)) for view in VIEWS}
        before = seen[epoch][1]
        wrong = [] if found == before else [f"the epoch has changed: {_differing(before, found)}"]
        told.write(read=epoch, again=True, wrong=wrong)


def _differing(before: dict[str, str], now: dict[str, str]) -> str:
    return ", ".join(view for view in before if before[view] != now[view])


def _difference(found: Rows, expected: Rows) -> str:
    return f"unexpected {dict(found - expected)}, missing {dict(expected - found)}"[:1000]


ROLES = {"writer": write, "recorder": record, "refresher": refresh, "reader": read}

if __name__ == "__main__":
    role, given, where, book = sys.argv[1:]
    ROLES[role](int(given), Bank(**json.loads(where)), Path(book))
