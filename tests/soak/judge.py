"""What the soak test comes to: what writers wrote down against what is there, and every view against its query.

The judge reads tables and runs queries with delta-rs. A statement that was begun and of which its writer did not live
to tell may have been done or not, but not in part; one that was done is done once, one that was refused is not done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from bank import ACCOUNTS, EACH, REGIONS, VIEWS, Rows, by_query, counted, digest, rows_of, wrong_sums
from deltalake import DeltaTable, QueryBuilder
from journal import DONE, REFUSED, read_journal, statements

import penstock

_READ_AGAIN = 300
"""Epochs that the judge reads again."""


@dataclass
class Verdict:
    """What is wrong, in words; and how much was looked at."""

    lost: list[str] = field(default_factory=list)
    """Rows that were written and are not there, or there though they should not be."""
    wrong: list[str] = field(default_factory=list)
    """Reads and views that are not what they must be."""
    looked: Counter[str] = field(default_factory=Counter)

    @property
    def good(self) -> bool:
        return not self.lost and not self.wrong


def judge(db: penstock.Database, journals: Path) -> Verdict:
    """The warehouse at rest, after a last refresh."""
    verdict = Verdict()
    _judge_transfers(db, verdict, "entries", _all(journals, "writer"))
    _judge_transfers(db, verdict, "events", _all(journals, "recorder"))
    _judge_balances(db, verdict, [one for one in _all(journals, "writer") if one["kind"] == "move"])
    _judge_owners(db, verdict, [one for one in _all(journals, "writer") if one["kind"] == "owner"])
    _judge_views(db, verdict)
    _judge_reads(db, verdict, journals)
    return verdict


def _all(journals: Path, role: str) -> list[dict[str, Any]]:
    return [one for path in sorted(journals.glob(f"{role}*.jsonl")) for one in statements(path)]


def table_rows(db: penstock.Database, name: str) -> Rows:
    table = DeltaTable(db._catalog.world().tables[name].path)
    return counted(pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t")))


# -- what was written -------------------------------------------------------------------------------------------------


def _judge_transfers(db: penstock.Database, verdict: Verdict, table: str, told: Iterable[dict[str, Any]]) -> None:
    """Each transfer has two rows that add up to nothing, or none."""
    pairs: dict[int, list[int]] = {}
    for row, count in table_rows(db, table).items():
        pairs.setdefault(row[0], []).extend([row[2]] * count)
    must: dict[int, bool | None] = {}
    for one in told:
        if one["kind"] not in ("insert", "delete"):
            continue
        there = [number in pairs for number in one["transfers"]]
        if one["kind"] == "insert" and one["state"] not in (DONE, REFUSED) and len(set(there)) > 1:
            verdict.lost.append(f"{table}: an INSERT was done in part: {one['transfers']}")
        for number in one["transfers"]:
            must[number] = _after(must.get(number), one)
    for number, expected in must.items():
        rows = pairs.pop(number, [])
        whole = len(rows) == 2 and sum(rows) == 0
        verdict.looked["transfers"] += 1
        if rows and not whole:
            verdict.lost.append(f"{table}: transfer {number} has the amounts {rows}")
        elif expected is not None and bool(rows) is not expected:
            verdict.lost.append(f"{table}: transfer {number} {'is lost' if expected else 'is there again'}")
    verdict.lost += [f"{table}: nobody wrote transfer {number}" for number in pairs]


def _after(before: bool | None, one: dict[str, Any]) -> bool | None:
    """Whether a transfer is there after a statement; None: it may be."""
    there = one["kind"] == "insert"
    if one["state"] == DONE:
        return there
    if one["state"] == REFUSED:
        return False if there else before
    return None if there or before is not False else before


def _judge_balances(db: penstock.Database, verdict: Verdict, moves: Sequence[dict[str, Any]]) -> None:
    """Balances are what the moves come to that were done, and some of those of which nobody lived to tell."""
    found = {number: balance - EACH for number, _, balance in table_rows(db, "accounts")}
    if len(found) != ACCOUNTS:
        verdict.lost.append(f"accounts: there are {len(found)}, expected {ACCOUNTS}")
        return
    for one in moves:
        verdict.looked["moves"] += 1
        if one["state"] == DONE:
            _undo(found, one)
    unknown = [one for one in moves if one["state"] not in (DONE, REFUSED)]
    verdict.looked["moves of which nobody lived to tell"] += len(unknown)
    if not _explained(found, unknown):
        off = {number: rest for number, rest in found.items() if rest}
        verdict.lost.append(f"accounts: these amounts are not explained by what was written: {off}")


def _undo(balances: dict[int, int], move: dict[str, Any]) -> None:
    balances[move["giver"]] += move["amount"]
    balances[move["taker"]] -= move["amount"]


def _explained(rest: dict[int, int], unknown: Sequence[dict[str, Any]]) -> bool:
    """Whether some of the moves come to what is left: an account that only one of them touches tells of that one."""
    touched = Counter(number for one in unknown for number in (one["giver"], one["taker"]))
    if any(amount and not touched[number] for number, amount in rest.items()):
        return False
    if not unknown:
        return True
    alone = next((one for one in unknown if 1 in (touched[one["giver"]], touched[one["taker"]])), unknown[0])
    others, done = [one for one in unknown if one is not alone], dict(rest)
    _undo(done, alone)
    return _explained(rest, others) or _explained(done, others)


def _judge_owners(db: penstock.Database, verdict: Verdict, moves: Iterable[dict[str, Any]]) -> None:
    """The owner is where the last statement has put it: only one writer moves it."""
    may = {number: {number % REGIONS} for number in range(ACCOUNTS)}
    for one in moves:
        if one["state"] == DONE:
            may[one["owner"]] = {one["region"]}
        elif one["state"] != REFUSED:
            may[one["owner"]] = may[one["owner"]] | {one["region"]}
        verdict.looked["owners moved"] += 1
    found = table_rows(db, "owners")
    for number, regions in may.items():
        seen = [region for owner, region in found.elements() if owner == number]
        if len(seen) != 1 or seen[0] not in regions:
            verdict.lost.append(f"owners: {number} is in {seen}, expected one of {regions}")


# -- what was read ----------------------------------------------------------------------------------------------------


def _judge_views(db: penstock.Database, verdict: Verdict) -> None:
    with db.snapshot() as moment:
        rows = {view: rows_of(db, moment, view) for view in VIEWS}
        verdict.wrong += wrong_sums(rows)
        for view, found in rows.items():
            expected = by_query(moment.moment.world, view)
            verdict.looked["views compared at the end"] += 1
            if found != expected:
                verdict.wrong.append(f"{view} is not its query: {found - expected} more, {expected - found} less")
    verdict.wrong += [f"{view.name} is {view.state_in_words()}" for view in db.status() if view.stale or view.errors]


def _judge_reads(db: penstock.Database, verdict: Verdict, journals: Path) -> None:
    """What readers found wrong; whether they saw the same of an epoch; and whether it is the same still."""
    seen: dict[int, tuple[float, dict[str, str]]] = {}
    for line in _lines(journals, "reader"):
        if "read" in line:
            verdict.looked["reads of an epoch"] += 1
            verdict.looked["reads of an earlier epoch"] += "again" in line
            verdict.wrong += [f"a read of epoch {line['read']}: {problem}" for problem in line["wrong"]]
        if "digests" in line:
            _, before = seen.setdefault(line["epoch"], (line["at"], line["digests"]))
            if before != line["digests"]:
                verdict.wrong.append(f"two readers saw different rows at epoch {line['epoch']}")
        verdict.looked["views compared with their queries meanwhile"] += "judged" in line
    verdict.looked["epochs that were read"] = len(seen)
    for epoch in sorted(seen)[-_READ_AGAIN:]:
        _judge_epoch(db, verdict, epoch, seen[epoch][1])


def _judge_epoch(db: penstock.Database, verdict: Verdict, epoch: int, before: dict[str, str]) -> None:
    try:
        moment = db.snapshot(epoch)
        now = {view: digest(rows_of(db, moment, view)) for view in VIEWS}
    except penstock.RetentionError:
        return
    verdict.looked["epochs read again at the end"] += 1
    if now != before:
        verdict.wrong.append(f"epoch {epoch} has changed since it was read")


def _lines(journals: Path, role: str) -> Iterator[dict[str, Any]]:
    for path in sorted(journals.glob(f"{role}*.jsonl")):
        yield from read_journal(path)
