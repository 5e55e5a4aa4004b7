"""Writers that are processes, and can be killed: one process that knows Penstock forks a writer for each order.

A line of JSON is an order: where the warehouse is, how many transfers to make, and at which point to die. The answer is
a line with how the writer ended: 0, or the signal below zero.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from typing import Any

import penstock
import penstock.engine.engine
import penstock.engine.source_tables
import penstock.transacting  # all that a writer needs is imported before it is forked
from penstock import points


class Writers:
    """The process that forks, seen from the test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def ended(self) -> int:
        """How the first writer ended that has not been asked for yet."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def run(self, **order: Any) -> int:
        self.begin(**order)
        return self.ended()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def transfer(db: penstock.Database, amount: int) -> None:
    """From one table to the other, in one transaction."""
    with db.transaction() as tx:
        tx.sql(f"UPDATE a SET amount = amount - {amount} WHERE id = 1")
        tx.sql(f"UPDATE b SET amount = amount + {amount} WHERE id = 1")


def _work(warehouse: str, times: int, seed: int, die_at: int | None = None, catalog: str | None = None) -> None:
    reached = 0

    def listen(point: str) -> None:
        nonlocal reached
        reached += 1
        if reached == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    chance = random.Random(seed)
    with penstock.connect(warehouse, catalog=catalog) as db:
        points.listener = listen
        for _ in range(times):
            while True:
                try:
                    transfer(db, chance.randint(1, 9))
                    break
                except penstock.ConflictError:
                    continue
        points.listener = None
        assert not db._at.spark.started, "a transfer needs no Spark"


def _main() -> None:
    running: list[int] = []
    for line in sys.stdin:
        order = json.loads(line)
        several = order.pop("writers", 1)
        for number in range(several):
            child = os.fork()
            if child == 0:
                try:
                    _work(**{**order, "seed": order["seed"] + number})
                except BaseException:
                    import traceback

                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            running.append(child)
        while running:
            _, status = os.waitpid(running.pop(0), 0)
            print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _main()
