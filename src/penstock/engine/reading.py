"""What a reader sees: the catalog at one moment, and each table at the version that it had then.

A table is read at its newest version, except while a transaction that has written it is not published: then at the
version before. Looking at the catalog and at the logs of several tables takes time; so the catalog is asked afterwards
whether anything of these tables was begun or published meanwhile, and if so all is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from penstock.catalog import Catalog, World
from penstock.catalog.transactions import Intents
from penstock.errors import BusyError
from penstock.storage.delta_log import Snapshot, snapshot_of
from penstock.storage.log_listing import newest_version

_TRIES = 200


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A version of a table, and where it lies; without a version, it cannot be told by listing."""

    path: str
    version: int | None

    def snapshot(self) -> Snapshot:
        return snapshot_of(self.path, self.version)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The catalog, and some tables, at one moment."""

    world: World
    pins: Mapping[str, Pin]

    def table(self, key: str) -> Snapshot:
        return self.pins[key].snapshot()


def reading(catalog: Catalog, keys: Callable[[World], Collection[str]]) -> Reading:
    """One moment, with what of these keys are tables."""
    for _ in range(_TRIES):
        world = catalog.world()
        pins = {key: pin(world, key) for key in keys(world) if key in world.tables}
        if Intents(catalog).unchanged(world, pins):
            return Reading(world=world, pins=pins)
    raise BusyError("the tables are being written over and over. Try again.")


def pin(world: World, key: str, run: str | None = None) -> Pin:
    """The version at which a table is read; by whoever makes the ``run``, with what that has committed."""
    table, intent = world.tables[key], world.intents.get(key)
    if intent is None or intent.run == run:
        return Pin(path=table.path, version=newest_version(table.path))
    return Pin(path=table.path, version=intent.base)
