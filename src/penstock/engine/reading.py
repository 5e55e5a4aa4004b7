"""What a reader sees: the catalog at one moment, and each table at the version that it had then.

A table is read at its newest version, except while a transaction that has written it is not published: then at the
version before. Looking at the catalog and at the logs of several tables takes time; so the catalog is asked afterwards
whether anything of these tables was begun or published meanwhile, and if so all is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock.catalog import Catalog, World
from penstock.catalog.transactions import Intents
from penstock.engine.readable import readable
from penstock.errors import BusyError
from penstock.storage.delta_log import Snapshot, snapshot_of
from penstock.storage.log_listing import newest_versions

_TRIES = 200


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A version of a table, and where it lies; without a version, it cannot be told by listing."""

    path: str
    version: int | None

    def snapshot(self) -> Snapshot:
        return snapshot_of(self.path, self.version)


class Pins(Mapping[str, Snapshot]):
    """The tables of a world, as they are when they are first asked for."""

    def __init__(self, world: World):
        self._world = world
        self._found: dict[str, Snapshot] = {}

    def __getitem__(self, key: str) -> Snapshot:
        if key not in self._found:
            if key not in self._world.tables:
                raise KeyError(key)
            self._found[key] = pin(self._world, key).snapshot()
        return self._found[key]

    def __iter__(self) -> Iterator[str]:
        """Those that were asked for."""
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The catalog, and tables, at one moment."""

    world: World
    tables: Mapping[str, Snapshot]


Keys = Callable[[World], Collection[str]]
"""Says what is to be read."""


def reading(catalog: Catalog, keys: Keys) -> Reading:
    """One moment, with what of these keys are tables."""
    return at_one_moment(catalog, lambda seen: [seen.tables.get(key) for key in keys(seen.world)])


def at_one_moment(catalog: Catalog, look: Callable[[Reading], object], keys: Keys | None = None) -> Reading:
    """A moment that was the same while somebody looked at tables: those of the reading, or these."""
    for _ in range(_TRIES):
        world = catalog.world()
        seen = Reading(world=world, tables=Pins(world))
        look(seen)
        if Intents(catalog).unchanged(world, seen.tables if keys is None else keys(world)):
            return seen
    raise BusyError("the tables are being written over and over. Try again.")


def pin(world: World, key: str, run: str | None = None) -> Pin:
    """The version at which a table is read; by whoever makes the ``run``, with what that has committed."""
    return pins(world, [key], run)[key]


def pins(world: World, keys: Iterable[str], run: str | None = None) -> dict[str, Pin]:
    """The same of several tables."""
    paths = {key: world.tables[key].path for key in keys}
    newest = newest_versions(paths.values())
    return {key: Pin(path=path, version=readable(world, key, newest[path], run)) for key, path in paths.items()}
