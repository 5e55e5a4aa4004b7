"""Ctrl-C while Spark works. PySpark's calls do not survive an interrupt in their midst, so they run beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.database import Database

_POLL = 0.2


def interruptible(database: Database, work: Callable[[], object]) -> None:
    """Do the work in a thread. Ctrl-C cancels its queries until it has ended; then KeyboardInterrupt goes on up."""
    failures: list[BaseException] = []
    ended = threading.Event()  # an interrupted Thread.join takes the thread for dead (Python before 3.12)

    def run() -> None:
        try:
            work()
        except BaseException as problem:
            failures.append(problem)
        finally:
            ended.set()

    worker = threading.Thread(target=run, daemon=True)
    try:
        worker.start()
        while not ended.wait(_POLL):
            pass
    except KeyboardInterrupt:
        while not ended.wait(_POLL) and worker.ident is not None:  # it may have come before the thread had begun
            database.interrupt()
        raise
    if failures:
        raise failures[0]
