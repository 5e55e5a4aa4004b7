"""The catalog for one who reads it many times a second: it is read again only when somebody may have written to it."""

from __future__ import annotations

from threading import Lock

from penstock.catalog.catalog import Catalog
from penstock.catalog.world import World


class Watched:
    def __init__(self, catalog: Catalog):
        self._catalog, self._pulse, self._lock = catalog, catalog.pulse(), Lock()
        self._beat: object = None
        self._world: World | None = None

    def world(self) -> World:
        """As the catalog is now; in any thread."""
        with self._lock:
            beat = self._pulse.beat()  # before the look: what is written meanwhile is noticed the next time
            if self._world is None or beat != self._beat:
                self._world, self._beat = self._catalog.world(), beat
            return self._world

    def close(self) -> None:
        with self._lock:
            self._pulse.close()
