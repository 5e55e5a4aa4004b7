"""At which version a table is read, as the catalog and the names of files in its log tell: no table is opened."""

from __future__ import annotations

from penstock.catalog import World
from penstock.storage.log_listing import newest_versions


def readable(world: World, key: str, newest: int | None, run: str | None = None) -> int | None:
    """The version at which a table is read whose newest version is known; by whoever makes the ``run``, with what that
    has committed.

    What another has committed in the place of the transaction, which was too late for it, is read.
    """
    intent = world.intents.get(key)
    if intent is None or intent.run == run or newest is None or newest <= intent.base:
        return newest
    from penstock.storage.branch import run_of  # seldom needed, and loads Arrow and delta-rs

    of_intent = run_of(world.tables[key].path, intent.base + 1) == intent.run
    return intent.base if of_intent else newest


def versions_now(world: World) -> dict[str, int | None]:
    """The versions at which all tables are read."""
    newest = newest_versions(table.path for table in world.tables.values())
    return {key: readable(world, key, newest[table.path]) for key, table in world.tables.items()}
