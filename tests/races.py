"""Letting something happen at just the wrong moment: another process comes between, a lease runs out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy import update

import penstock
from penstock import points
from penstock.catalog import tables as t
from penstock.catalog.catalog import now


@contextmanager
def between(point: str, number: int, do: Callable[[], object]) -> Iterator[list[object]]:
    """When this thread reaches a point for the ``number``th time, ``do`` something first; gives what came of it."""
    thread, seen, came = threading.get_ident(), [0], list[object]()

    def listen(reached: str) -> None:
        if threading.get_ident() == thread and reached == point and not came:
            seen[0] += 1
            if seen[0] == number:
                points.listener = None
                came.append(do())

    points.listener = listen
    try:
        yield came
    finally:
        points.listener = None
    assert came, f"{point} {number} was never reached"


def let_leases_run_out(db: penstock.Database) -> None:
    """What a pause of more than a minute does."""
    with db._catalog.transaction(writes=True) as connection:
        connection.execute(update(t.leases).values(expires_at=now() - timedelta(seconds=1)))
