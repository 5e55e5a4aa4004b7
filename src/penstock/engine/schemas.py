"""Creating schemas, and dropping them: with CASCADE all that is in one goes, and what reads that, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

from penstock.catalog import Schema, World
from penstock.catalog.leases import Leases
from penstock.catalog.schema_records import Dropped, SchemaRecords, in_schema
from penstock.catalog.schemas import known_schema
from penstock.engine.spark_names import SparkNames
from penstock.engine.workplace import Outdated, Workplace, attempts
from penstock.engine.writing_out import shown_graph
from penstock.errors import DependencyError, NotFoundError, NotSupportedError
from penstock.sql.names import DEFAULT, OF_SPARK, SYSTEM, part
from penstock.storage.vacuum import leave
from penstock.storage.view_table import delete_table


@dataclass(frozen=True)
class Schemas:
    work: Workplace
    names: SparkNames

    def create(self, name: str, *, if_not_exists: bool = False) -> bool:
        """Make a schema; False if it is there, and may be."""
        key, world = name.lower(), self.work.catalog.world()
        if key == SYSTEM or key in OF_SPARK:
            known_schema(world.schemas, name)
        if if_not_exists and key in world.schemas:
            return False
        SchemaRecords(self.work.catalog).add(Schema(key=key, name=name, created_at=datetime.now(timezone.utc)))
        return True

    def drop(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> list[str] | None:
        """Drop a schema, with ``cascade`` all that is in it; gives what went with it, or None if it is not there."""
        gone = attempts(lambda also: self._dropped(name, if_exists, cascade), f"the tables and views of {name!r}")
        self.names.settle()
        return gone

    def _dropped(self, name: str, if_exists: bool, cascade: bool) -> list[str] | None:
        world = self.work.catalog.world()
        try:
            schema = world.schema(name)
        except NotFoundError:
            if if_exists:
                return None
            raise
        if schema.key == DEFAULT:
            raise NotSupportedError(
                f"the schema {DEFAULT!r} is always there. Drop the tables and views that are in it."
            )
        inside = in_schema(world, schema.key)
        if inside and not cascade:
            raise DependencyError(
                f"schema {schema.name!r} cannot be dropped: it has {_named(world, inside)}. Drop what is in it first, "
                f"or use DROP SCHEMA {part(schema.name)} CASCADE."
            )
        gone = _closure(world, inside, schema)
        nodes = [node for key in gone.views for node in world.views[key].nodes]
        patience = self.work.patience(world, f"dropping schema {schema.name}")
        leases = Leases(self.work.catalog, [*gone.tables, *nodes], patience)
        with leases:
            current = self.work.catalog.world()
            if not world.same_definitions(current, nodes) or in_schema(current, schema.key) != inside:
                raise Outdated
            paths = [world.tables[key].path for key in gone.tables if not world.tables[key].external]
            for path in paths:  # who is killed between here and their deletion leaves that to be done
                leave(path)
            SchemaRecords(self.work.catalog).drop(schema, gone, leases.fence)
            for path in paths:
                delete_table(path)
        self.work.leave_unused(world)
        return [world.display_name(key) for key in gone.order]


def _closure(world: World, inside: Iterable[str], schema: Schema) -> Dropped:
    """What is in a schema and what reads it, readers first. A plain view of another schema stays, and so all does."""
    shown, graph = shown_graph(world), world.views_graph()
    found = {_maintained(world, key) for key in inside}
    known = found & set(shown.order())
    found |= shown.descendants(known) | graph.descendants(found & set(graph.order()))
    outside = [key for key in found if key in world.plain and key not in inside]
    if outside:
        raise DependencyError(
            f"schema {schema.name!r} cannot be dropped: {_named(world, outside)}, outside of it, "
            f"{'reads' if len(outside) == 1 else 'read'} what is in it. Use "
            f"{', '.join(f'DROP VIEW {world.display_name(key)}' for key in outside)} first."
        )
    order = [key for key in reversed(shown.order(found)) if key in found]
    return Dropped(
        tables=[key for key in order if key in world.tables], views=[key for key in order if key in world.views],
        plain=[key for key in order if key in world.plain], order=order,
    )  # fmt: skip


def _maintained(world: World, key: str) -> str:
    """The plain view of a read model goes with that."""
    return next((model.key for model in world.models.values() if model.plain_view == key), key)


_MOST_NAMED = 10


def _named(world: World, keys: Iterable[str]) -> str:
    names = sorted(repr(world.display_name(key)) for key in keys)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
