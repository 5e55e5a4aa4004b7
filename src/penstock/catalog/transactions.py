"""What transactions say in the catalog: that tables are about to be written, and that they are, or are as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from penstock.catalog.catalog import Catalog, read_world
from penstock.catalog.intents import open_intents, publish_tables, read_intents
from penstock.catalog.publishing import check_fence, give_back
from penstock.catalog.records import Fence, Intent
from penstock.catalog.world import World


@dataclass(frozen=True)
class Intents:
    catalog: Catalog

    @staticmethod
    def beginning(decide: Callable[[World, Fence], Iterable[Intent]]) -> Callable[[Connection, Fence], None]:
        """For ``Leases``: in the transaction that takes them, look at the catalog, and say what is to be written."""

        def begin(connection: Connection, fence: Fence) -> None:
            open_intents(connection, decide(read_world(connection), fence))

        return begin

    def close(self, versions: Mapping[str, int], fence: Fence, *, last: bool = False) -> None:
        """Say that these tables are read at these versions, or newer ones, from now on.

        ``last``: the leases are given back with it.
        """
        with self.catalog.transaction(writes=True) as connection:
            check_fence(connection, fence)
            publish_tables(connection, versions)
            if last:
                give_back(connection, fence)

    def all(self) -> Mapping[str, Intent]:
        """What is being written, and not published yet, by table."""
        with self.catalog.transaction(writes=False) as connection:
            return read_intents(connection)["intents"]

    def unchanged(self, world: World, keys: Iterable[str]) -> bool:
        """Whether nothing of these tables was begun or published since the catalog was read.

        Who has looked at the newest versions of several tables in between has seen one moment then.
        """
        wanted = list(keys)
        if not wanted:
            return True
        with self.catalog.transaction(writes=False) as connection:
            now = read_intents(connection)
        begun = all(now["intents"].get(key) == world.intents.get(key) for key in wanted)
        return begun and all(now["published"].get(key) == world.published.get(key) for key in wanted)
