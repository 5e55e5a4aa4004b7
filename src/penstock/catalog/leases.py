"""Who is working on which node. A lease keeps two of them off one node; a dead owner's lease is free at once.

A lease can be lost: its owner was paused for longer than its term, or could not reach the catalog, and another took
over. Clocks do not settle who is right then: whoever publishes shows a ``Fence``, and the publishing transaction looks
whether every lease behind it is still the publisher's own.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from penstock import points
from penstock.catalog import tables as t
from penstock.catalog.catalog import Catalog, now
from penstock.catalog.publishing import check_fence
from penstock.catalog.records import Fence
from penstock.catalog.tables import utc
from penstock.catalog.working import TERM, is_dead, is_over, owners, take_away
from penstock.errors import BusyError, PenstockError, WarehouseError, without_values

_HEARTBEAT = 15.0
_RETRY = 1.0
"""Seconds until a heartbeat that failed is tried again."""
_LOOK_AGAIN = 0.005, 0.1
"""Seconds between two looks at a lease that is waited for: at first, and after a while."""

_log = logging.getLogger("penstock")

_callers: ContextVar[frozenset[str]] = ContextVar("callers", default=frozenset())
"""The owners that what runs here is called from. A callback that waited for one of them would wait for itself."""


@dataclass(frozen=True)
class Patience:
    """How a statement waits that needs all its leases or none: for how long, and whom it tells that it waits."""

    longest: timedelta
    waiting: Callable[[str], None]
    """Called once, with a word on who has the lease."""
    names: Callable[[str], str] = str
    """What users call a node."""


def identity() -> tuple[str, int]:
    """What tells whether an owner still runs: its host and its process there."""
    return socket.gethostname(), os.getpid()


class Leases:
    """The leases of one piece of work: taken together, prolonged in the background, given back at the end.

    ``with Leases(catalog, nodes) as held`` takes a lease on each node that nobody holds; ``held`` are the others. With
    ``patience`` it takes all of them or waits. Without ``expired``, a lease is taken over only from an owner that is
    known to be dead, not from one whose time has run out. ``began``: when the refresh began that they are for.
    """

    def __init__(
        self,
        catalog: Catalog,
        nodes: Iterable[str],
        patience: Patience | None = None,
        *,
        expired: bool = True,
        began: datetime | None = None,
        then: Callable[[Connection, Fence], None] | None = None,
    ):
        """``then`` is called in the transaction that takes all of them."""
        self._catalog = catalog
        self._nodes = list(dict.fromkeys(nodes))
        self._patience = patience
        self._expired = expired
        self._then = then
        self._given_back = False
        self._began = began
        self._owner = uuid.uuid4().hex
        self._host, self._pid = identity()
        self._taken: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def fence(self) -> Fence:
        """What must still hold for whoever publishes under these leases."""
        return Fence(self._owner, frozenset(self._taken))

    def check(self) -> None:
        """Raise an error if a lease is lost. What is right in this moment need not be in the next: see ``publish``."""
        with self._catalog.transaction(writes=False) as connection:
            check_fence(connection, self.fence)

    def given_back(self) -> None:
        """Whoever published has given them back, in the same transaction."""
        self._given_back = True

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Around a commit to what is leased: none is made without the leases, and a clash says that they are lost."""
        self.check()
        try:
            yield
        except PenstockError:
            self.check()
            raise

    def __enter__(self) -> set[str]:
        owners.add(self._owner)
        try:
            held = self._take()
            if held and self._patience is not None:
                self._wait(self._patience, held)
                held = {}
        except BaseException:
            owners.discard(self._owner)
            raise
        self._thread = threading.Thread(target=self._prolong, name="penstock-leases", daemon=True)
        self._thread.start()
        _callers.set(_callers.get() | {self._owner})
        return set(held)

    def __exit__(self, *problem: object) -> None:
        _callers.set(_callers.get() - {self._owner})
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self._given_back:
            owners.discard(self._owner)
            return
        try:
            with self._catalog.transaction(writes=True) as connection:
                connection.execute(delete(t.leases).where(t.leases.c.owner == self._owner))
        except (WarehouseError, SQLAlchemyError) as problem:  # the work is done, or has failed for a better reason
            _log.warning(
                "the leases of this process could not be given back, and will run out: %s", without_values(problem)
            )
        finally:
            owners.discard(self._owner)

    # -- taking -------------------------------------------------------------------------------------------------------

    def _take(self) -> dict[str, RowMapping]:
        """Take what is free, in one transaction; with patience all or nothing. Gives what others hold."""
        with self._catalog.transaction(writes=True) as connection:
            known = connection.execute(select(t.leases)).mappings().all()
            take_away(connection, [lease for lease in known if is_dead(lease)])
            wanted = {lease["node"]: lease for lease in known if lease["node"] in set(self._nodes)}
            held = {node: lease for node, lease in wanted.items() if self._is_held(lease)}
            free = [node for node in self._nodes if node not in held]
            if held and self._patience is not None:
                return held
            self._take_over(connection, free, [wanted[node] for node in free if node in wanted])
            if self._then is not None and not held:
                self._then(connection, Fence(self._owner, frozenset(free)))
        self._taken = set(free)
        return held

    def _take_over(self, connection: Connection, free: list[str], before: list[RowMapping]) -> None:
        """What another host has not been heard of for too long failed there; one of this host tells that itself."""
        take_away(connection, [lease for lease in before if not is_dead(lease) and is_over(lease, now())])
        connection.execute(delete(t.leases).where(t.leases.c.node.in_(free)))
        mine = {"owner": self._owner, "host": self._host, "pid": self._pid, "expires_at": now() + TERM}
        if free:
            connection.execute(insert(t.leases), [{"node": node, "began": self._began, **mine} for node in free])

    def _is_held(self, lease: RowMapping) -> bool:
        return not is_dead(lease) and (not self._expired or utc(lease["expires_at"]) > now())

    def _wait(self, patience: Patience, held: dict[str, RowMapping]) -> None:
        until = time.monotonic() + patience.longest.total_seconds()
        told, (pause, longest) = False, _LOOK_AGAIN
        while held:
            node, row = next(iter(held.items()))
            if row["owner"] in _callers.get():
                raise BusyError(
                    f"{patience.names(node)!r} is being changed or refreshed by the call that this one was made from, "
                    "so it cannot wait for it. Make this call when that one has returned."
                )
            who = f"process {row['pid']} on {row['host']}"
            if time.monotonic() >= until:
                raise BusyError(
                    f"{patience.names(node)!r} is being changed or refreshed by {who}. Try again when that is done, or "
                    "SET lock_timeout to wait for longer."
                )
            if not told:
                told = True
                patience.waiting(who)
            points.reached(points.WAIT)
            time.sleep(min(pause, max(until - time.monotonic(), 0.0)))
            pause = min(pause * 1.5, longest)
            held = self._take()

    # -- keeping ------------------------------------------------------------------------------------------------------

    def _prolong(self) -> None:
        """Prolong the leases until they are given back. A catalog that does not answer is asked again."""
        pause = _HEARTBEAT
        while not self._stop.wait(pause):
            try:
                with self._catalog.transaction(writes=True) as connection:
                    mine = update(t.leases).where(t.leases.c.owner == self._owner)
                    connection.execute(mine.values(expires_at=now() + TERM))
                pause = _HEARTBEAT
            except (WarehouseError, SQLAlchemyError) as problem:
                told = without_values(problem)
                _log.warning("the leases of this process could not be prolonged, and will be tried again: %s", told)
                pause = min(_RETRY, _HEARTBEAT)
