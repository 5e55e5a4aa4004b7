"""A warehouse that is served: its database, its scheduler, and a thread that follows what happens in it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.database import Database, connect
from penstock.engine.events import Began, Ended, Worked
from penstock.errors import PenstockError
from penstock.observe.news import Event
from penstock.serve.options import Place
from penstock.serve.problems import dumped

if TYPE_CHECKING:
    from penstock.catalog import HistoryRecord
    from penstock.running import Runner

_log = logging.getLogger("penstock.serve")
_LOOKS = 0.5
"""Seconds between two looks at the catalog; one that finds nothing new reads nothing."""
KEPT = 1_000
"""Events that are kept for who comes back."""
_FALLEN_BEHIND = 2_000
"""Events that wait for one reader; one who is slower is cut off, and comes back with the last id it had."""


@dataclass(frozen=True)
class Told:
    """An event as it is sent."""

    id: str
    kind: str
    epoch: int
    data: dict[str, Any]

    def sent(self) -> bytes:
        """As a server-sent event."""
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (self.id.encode(), self.kind.encode(), dumped(self.data))


class Listener:
    """One who is told of events, in its own event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Told | None] = asyncio.Queue()
        self.over = False

    def tell(self, told: Told | None) -> None:
        """From any thread. None ends it."""
        if self._loop.is_closed():
            return
        if self._queue.qsize() > _FALLEN_BEHIND:
            told, self.over = None, True
        self._loop.call_soon_threadsafe(self._queue.put_nowait, told)

    async def next(self, seconds: float) -> Told | None:
        """The next event; raises ``TimeoutError`` if there is none for so long."""
        return await asyncio.wait_for(self._queue.get(), seconds)


class Hosted:
    def __init__(self, place: Place, count: Callable[[str, HistoryRecord], None]):
        self.name = place.name
        self.db: Database = connect(place.path, catalog=place.catalog)
        self._count = count
        self._boot = secrets.token_hex(3)
        self._number = 0
        self._lock = threading.Lock()
        self._kept: deque[Told] = deque(maxlen=KEPT)
        self._listeners: set[Listener] = set()
        self._hung_up = False
        self._wake, self._stopped = threading.Event(), False
        self._follower = self.db.follow()
        self.epoch = self._follower.epoch
        """The newest that was told of."""
        self._forget = self.db.on_refresh(self._happened)
        self._runner: Runner | None = None
        self._thread = threading.Thread(target=self._follow, name=f"penstock-follow-{self.name}", daemon=True)
        self._thread.start()

    def schedule(self) -> None:
        self._runner = self.db.runner()
        self._runner.start()

    def stop_scheduling(self) -> None:
        """What is being refreshed is finished first."""
        if self._runner is not None:
            self._runner.stop()

    def close(self) -> None:
        self._stopped = True
        self._wake.set()
        self._thread.join()
        self._forget()
        self.hang_up()
        self._follower.close()
        self.db.close()

    @property
    def newest(self) -> int:
        """The newest epoch, as the catalog has it now."""
        return self.db.snapshot().epoch

    def leases(self) -> int:
        return self._follower.leases()

    # -- events -------------------------------------------------------------------------------------------------------

    def listen(self, listener: Listener, after: str | None) -> list[Told]:
        """Tell somebody what comes from now on; gives what came since an event that they know."""
        with self._lock:
            self._listeners.add(listener)
            if self._hung_up:
                listener.tell(None)
            return self._since(after)

    def leave(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.discard(listener)

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def hang_up(self) -> None:
        """End all streams, and those that begin in this moment."""
        with self._lock:
            self._hung_up = True
            for listener in self._listeners:
                listener.tell(None)

    def _since(self, after: str | None) -> list[Told]:
        """From memory; of what is not there any more, the epochs, which the catalog has."""
        kept = list(self._kept)
        for place, told in enumerate(kept):
            if told.id == after:
                return kept[place + 1 :]
        epoch = (after or "").partition("-")[0]
        if not (epoch.isascii() and epoch.isdigit()):
            return []
        missed = self._follower.missed(int(epoch[:9]))
        gap = Told(f"{epoch[:9]}-{self._boot}-gap", "gap", int(epoch[:9]), {"since_epoch": int(epoch[:9])})
        return [gap, *(Told(f"{e.epoch}-{self._boot}-missed", e.kind, e.epoch, e.data) for e in missed)]

    def _publish(self, events: Iterable[Event]) -> None:
        with self._lock:
            for event in events:
                self._number += 1
                self.epoch = max(self.epoch, event.epoch)
                told = Told(f"{self.epoch}-{self._boot}-{self._number}", event.kind, event.epoch, event.data)
                self._kept.append(told)
                for listener in self._listeners:
                    listener.tell(told)

    def _happened(self, happening: Began | Worked | Ended) -> None:
        """A refresh of this process has begun, or come a step further. What came of it is read from the catalog."""
        if isinstance(happening, Began):
            self._publish([Event("refresh", self.epoch, {"view": happening.world.display_name(happening.view)})])
        elif isinstance(happening, Worked):
            r = happening.report
            data = {
                "node": r.name, "views": list(happening.views), "status": r.status, "action": r.action,
                "reason": r.reason, "strategy": r.strategy, "rows_inserted": r.rows_inserted,
                "rows_deleted": r.rows_deleted, "seconds": round(r.seconds, 4),
            }  # fmt: skip
            self._publish([Event("node", self.epoch, data)])
        else:
            self._wake.set()

    def _follow(self) -> None:
        while not self._stopped:
            self._wake.wait(_LOOKS)
            self._wake.clear()
            try:
                events, history = self._follower.look()
            except Exception as problem:  # the catalog is away, say: it may be there again in a moment
                known = isinstance(problem, PenstockError)
                _log.warning("the catalog of %r cannot be followed: %s", self.name, problem, exc_info=not known)
                continue
            for record in history:
                self._count(self.name, record)
            self._publish(events)


class Warehouses:
    """Those that are served, by name."""

    def __init__(self, places: Iterable[Place], count: Callable[[str, HistoryRecord], None]):
        self._known: dict[str, Hosted] = {}
        try:
            for place in places:
                self._known[place.name] = Hosted(place, count)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Any:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def get(self, name: str) -> Hosted | None:
        return self._known.get(name)

    def close(self) -> None:
        for hosted in self._known.values():
            hosted.close()
