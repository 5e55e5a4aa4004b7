"""Adding schemas, and dropping them with all that is in them. Each method is a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, insert

from penstock.catalog import tables as t
from penstock.catalog.catalog import Catalog, read_world
from penstock.catalog.publishing import check_fence, drop_views
from penstock.catalog.records import Fence
from penstock.catalog.schemas import Schema, read_schemas
from penstock.catalog.world import World
from penstock.errors import AlreadyExistsError, BusyError
from penstock.sql.names import QualifiedName


def in_schema(world: World, key: str) -> set[str]:
    """The keys of the tables and views that are in a schema."""
    kinds = (world.tables, world.views, world.plain)
    return {one for kind in kinds for one in kind if QualifiedName.read(one).schema_key == key}


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """What goes with a schema, by kind, and all of it in the order in which it goes."""

    tables: Collection[str]
    views: Collection[str]
    plain: Collection[str]
    order: Sequence[str]


@dataclass(frozen=True)
class SchemaRecords:
    catalog: Catalog

    def add(self, schema: Schema) -> None:
        with self.catalog.transaction(writes=True) as connection:
            if schema.key in read_schemas(connection)["schemas"]:
                raise AlreadyExistsError(f"schema {schema.name!r} exists already. Use IF NOT EXISTS or another name.")
            connection.execute(insert(t.schemas).values(**vars(schema)))

    def drop(self, schema: Schema, gone: Dropped, fence: Fence) -> None:
        """Drop a schema and all that goes with it, unless something else has come to be there meanwhile."""
        with self.catalog.transaction(writes=True) as connection:
            check_fence(connection, fence)
            world = read_world(connection)
            keys = {*gone.tables, *gone.views, *gone.plain}
            keys |= {model.plain_view for model in world.models.values() if model.key in keys}
            read = {reader for key in gone.order for reader in _readers(world, key)}
            if not (in_schema(world, schema.key) | read) <= keys:
                raise BusyError(f"schema {schema.name!r} was not dropped: something was created in it. Try again.")
            drop_views(connection, gone.views)
            connection.execute(delete(t.plain_views).where(t.plain_views.c.key.in_(gone.plain)))
            for column in (t.tables.c.key, t.intents.c.source, t.watermarks.c.relation):
                connection.execute(delete(column.table).where(column.in_(gone.tables)))
            connection.execute(delete(t.schemas).where(t.schemas.c.key == schema.key))


def _readers(world: World, key: str) -> Iterable[str]:
    return [] if key in world.plain else world.views_graph().readers(key)
