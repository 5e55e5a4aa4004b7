"""Who asks the server under load: readers and writers, each with a connection of its own that stays open.

Each answer is timed and looked at. A process has several of them in threads; what they have seen is put together.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from random import Random
from typing import Any
from urllib.parse import quote, urlsplit

from ledger import ACCOUNTS, BRANCHES, EACH, QUERIES, move, wrong_bank, wrong_branch, wrong_sum

_MOST_PROBLEMS = 20


@dataclass
class Seen:
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """How long each kind of request took."""
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    balances: dict[int, int] = field(default_factory=dict)
    """What writers know of accounts that nobody else writes."""

    def add(self, other: Seen) -> None:
        for kind, several in other.seconds.items():
            self.seconds[kind] += several
        self.statuses += other.statuses
        self.problems += other.problems
        self.balances |= other.balances


class Asker:
    def __init__(self, url: str, seed: int, until: float):
        self.seen, self.random, self._until = Seen(), Random(seed), until
        place = urlsplit(url)
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=60)
        self._epochs: dict[str, int] = {}

    def run(self) -> Seen:
        try:
            while time.time() < self._until and len(self.seen.problems) < _MOST_PROBLEMS:
                self.step()
        except Exception as problem:
            self.wrong(f"{type(self).__name__} ended: {problem!r}")
        self._connection.close()
        return self.seen

    def step(self) -> None:
        raise NotImplementedError

    def wrong(self, what: str | None) -> None:
        if what is not None:
            self.seen.problems.append(what)

    def ask(
        self, kind: str, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            given["Content-Type"] = "application/json"
        began = time.perf_counter()
        self._connection.request(method, f"/api/v1/{path}", None if body is None else json.dumps(body), given)
        answer = self._connection.getresponse()
        text = answer.read()
        self.seen.seconds[kind].append(time.perf_counter() - began)
        self.seen.statuses[kind, answer.status] += 1
        return answer.status, json.loads(text) if text else None, {k.lower(): v for k, v in answer.getheaders()}


class Reader(Asker):
    """Mostly documents by their key, half of them only if they have changed; sometimes a list, a query, the bank."""

    def __init__(self, url: str, seed: int, until: float):
        super().__init__(url, seed, until)
        self._tags: dict[str, tuple[str, Any]] = {}

    def step(self) -> None:
        kind = self.random.choices(["account", "branch", "bank", "all branches", "query"], [40, 40, 5, 5, 10])[0]
        if kind == "account":
            number = self.random.randrange(ACCOUNTS)
            found = self._document("read by key", f"tv_account/{number}")
            if found is not None and (found["id"], found["data"]["id"]) != (f"a-{number}",) * 2:
                self.wrong(f"account {number} is {found}")
        elif kind == "branch":
            found = self._document("read by key", f"tv_branch/{self.random.randrange(BRANCHES)}")
            self.wrong(None if found is None else wrong_branch(found["data"]))
        elif kind == "bank":
            found = self._document("read of the bank", "tv_bank/1")
            self.wrong(None if found is None else wrong_bank(found["data"]["branches"]))
        elif kind == "all branches":
            found = self._document("read of a list", "tv_branch?limit=1000")
            self.wrong(None if found is None else wrong_bank([row["data"] for row in found["result"]]))
        else:
            text, column = self.random.choice(list(QUERIES.items()))
            status, told, _ = self.ask("query", "POST", "query/shop", {"command": text})
            self.wrong(wrong_sum(told["result"], column, text) if status == 200 else f"{text}: {status} {told}")

    def _document(self, kind: str, path: str) -> Any:
        """The document; the one that is known if it has not changed. An epoch that was seen does not go away."""
        known = self._tags.get(path) if self.random.random() < 0.5 else None
        headers = {} if known is None else {"If_None_Match": known[0]}
        status, told, answered = self.ask(kind, "GET", f"read/{path}", **headers)
        if status not in (200, 304):
            self.wrong(f"{path}: {status} {told}")
            return None
        epoch, model = int(answered["x-penstock-epoch"]), path[:6]
        if epoch < self._epochs.get(model, 0):
            self.wrong(f"{path}: epoch {epoch} after {self._epochs[model]}")
        self._epochs[model] = epoch
        if status == 200:
            self._tags[path] = answered["etag"], told
        return self._tags[path][1]


class Writer(Asker):
    """Moves money between accounts that are its own, and reads what it wrote."""

    def __init__(self, url: str, seed: int, until: float, number: int, writers: int):
        super().__init__(url, seed, until)
        self._own = [account for account in range(ACCOUNTS) if account % writers == number]
        self.seen.balances = dict.fromkeys(self._own, EACH)
        self._ids = (f"w{number}-{seed}-{each}" for each in range(10**9))

    def step(self) -> None:
        taken, given = self.random.sample(self._own, 2)
        amount = self.random.randint(1, 50)
        statement = {"command": move(taken, given, amount)}
        status, told, _ = self.ask("write", "POST", "command/shop", statement, X_Request_Id=next(self._ids))
        if status == 409:  # another was faster, and nothing was done
            return
        if status != 200:
            self.wrong(f"write: {status} {told}")
            return
        self.seen.balances[taken] -= amount
        self.seen.balances[given] += amount
        for account in (taken, given):
            _, found, _ = self.ask("read of one's own write", "GET", f"read/tv_account/{quote(str(account))}")
            if found is None or found.get("data", {}).get("amount") != self.seen.balances[account]:
                self.wrong(f"account {account} must have {self.seen.balances[account]} after its UPDATE: {found}")


def all_of(askers: list[Asker]) -> Seen:
    """Let them ask side by side; what all of them have seen."""
    together, threads = Seen(), [threading.Thread(target=asker.run) for asker in askers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for asker in askers:
        together.add(asker.seen)
    together.seconds = dict(together.seconds)
    return together


def readers(url: str, seed: int, until: float, count: int) -> Seen:
    return all_of([Reader(url, seed + number, until) for number in range(count)])


def writers(url: str, seed: int, until: float, count: int) -> Seen:
    return all_of([Writer(url, seed + number, until, number, count) for number in range(count)])


def shares(count: int, parts: int) -> Iterator[int]:
    """A number in parts that are about the same."""
    yield from (count // parts + (part < count % parts) for part in range(parts))
