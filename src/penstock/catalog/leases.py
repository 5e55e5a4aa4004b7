"""Who is refreshing which node. A lease keeps two processes off one node; a dead owner's lease is free at once."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterable
from datetime import timedelta, timezone

from sqlalchemy import delete, insert, select, update

from penstock.catalog import tables as t
from penstock.catalog.catalog import Catalog, now

_TERM = timedelta(seconds=60)
_HEARTBEAT = 15.0


class Leases:
    """The leases of one refresh: taken together, prolonged in the background, given back at the end.

    ``with Leases(catalog, nodes) as held`` takes a lease on each node that nobody holds; ``held`` are the others.
    """

    def __init__(self, catalog: Catalog, nodes: Iterable[str]):
        self._catalog = catalog
        self._nodes = list(nodes)
        self._owner = uuid.uuid4().hex
        self._host = socket.gethostname()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> set[str]:
        held: set[str] = set()
        with self._catalog.transaction(writes=True) as connection:
            for node in self._nodes:
                row = connection.execute(select(t.leases).where(t.leases.c.node == node)).mappings().first()
                if row is not None:
                    expires = row["expires_at"]
                    expires = expires if expires.tzinfo else expires.replace(tzinfo=timezone.utc)
                    if expires > now() and self._alive(row["host"], row["pid"]):
                        held.add(node)
                        continue
                    connection.execute(delete(t.leases).where(t.leases.c.node == node))
                connection.execute(
                    insert(t.leases).values(
                        node=node, owner=self._owner, host=self._host, pid=os.getpid(), expires_at=now() + _TERM
                    )
                )
        self._thread = threading.Thread(target=self._prolong, name="penstock-leases", daemon=True)
        self._thread.start()
        return held

    def __exit__(self, *problem: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._catalog.transaction(writes=True) as connection:
            connection.execute(delete(t.leases).where(t.leases.c.owner == self._owner))

    def _prolong(self) -> None:
        while not self._stop.wait(_HEARTBEAT):
            with self._catalog.transaction(writes=True) as connection:
                mine = update(t.leases).where(t.leases.c.owner == self._owner)
                connection.execute(mine.values(expires_at=now() + _TERM))

    def _alive(self, host: str, pid: int) -> bool:
        """Whether the owner still runs. Of another host nothing is known until the lease expires."""
        if host != self._host:
            return True
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
