"""What only Spark's catalogs know and a view's query names: taken in, so that it can be followed.

A Delta table becomes an external table, a view a plain view whose definition is watched. Anything else stays outside:
Spark reads it by its name, and it has no versions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.catalog import Schema, TableRecord, World
from penstock.catalog.catalog import now
from penstock.catalog.plain_views import PlainRecords
from penstock.catalog.schema_records import SchemaRecords
from penstock.engine.claims import check_not_ours
from penstock.engine.spark_catalog import (
    Listed,
    ViewText,
    definition,
    find,
    find_named,
    listed,
    location,
    no_changes_of,
)
from penstock.engine.workplace import Workplace
from penstock.errors import DefinitionError, NotFoundError, PenstockError, of_object
from penstock.sql.as_of import refuse_past
from penstock.sql.names import OWN, QualifiedName, is_outside, is_path, key_of, parts_of, path_of, sql_of
from penstock.sql.query import parse_query, substitute_tables, table_names


@dataclass(frozen=True)
class Imported:
    """What became of a table: its name here, and why it was left if it was."""

    source: str
    name: str | None
    why_not: str | None = None


@dataclass(frozen=True)
class Adopted:
    """The catalog with what a query names, and the query with the names that this has here."""

    world: World
    query: str


class Adopting:
    def __init__(self, work: Workplace, *, trial: bool = False):
        """``trial``: nothing is kept of what is found."""
        self._work = work
        self._trial = trial

    def adopt(self, world: World, query: str) -> Adopted:
        """Take in what a view's query names and only Spark's catalogs know."""
        renamed: dict[str, str] = {}
        for text in table_names(parse_query(query)):
            if _is_known(world, text):
                continue
            known = world.name_here(text)
            if known is None:
                world, known = self._found(world, text)
            if known is not None and known != text:
                renamed[key_of(text)] = sql_of(known)
        if not renamed:
            return Adopted(world, query)
        return Adopted(world, _renamed(query, renamed))

    def _found(self, world: World, text: str) -> tuple[World, str | None]:
        """What a name means in Spark's catalogs, and what that is called here; None if nothing has the name."""
        place = path_of(text)
        if place is not None:
            raise NotFoundError.of_path(place)
        name, session = QualifiedName.read(text), self._work.session()
        found = find_named(session, name)
        if found is None:
            if name.catalog:
                raise NotFoundError(f"there is no {text!r} in a catalog of the Spark session. Check its name.")
            return world, None
        if name.catalog:
            name = QualifiedName.of(list(found.parts), found.shown)
        known = _known_as(world, found)
        if known is not None:
            return world, known
        if found.view and not found.temporary:
            return self._taken_view(world, found, name)
        path = location(session, found)
        if path is None:
            return world, str(QualifiedName.of(list(found.parts), found.shown))
        lies = world.key_at(path)
        return (self._taken(world, found, name, path), str(name)) if lies is None else (world, world.display_name(lies))

    def _taken(self, world: World, found: Listed, name: QualifiedName, path: str) -> World:
        """The catalog with a Delta table under a name, in a schema that is made if there is none."""
        check_not_ours(world, str(name), path)
        world = self._with_schema(world, name)
        table = TableRecord(
            key=name.key, name=str(name), path=path, external=True, created_at=now(), catalog_name=found.shown
        )
        if not self._trial:
            self._work.catalog.add_table(table)
            self._work.tell(f"{found.shown} of Spark's catalog is the external table {name} now")
        return replace(world, tables={**world.tables, table.key: table})

    def _taken_view(self, world: World, found: Listed, name: QualifiedName) -> tuple[World, str]:
        """The same with a view, and what it reads."""
        session = self._work.session()
        told = definition(session, found.parts)
        if told is None:
            raise NotFoundError(f"there is no view {found.shown!r} in Spark's catalog any more.")
        adopted = self.followed(world, told)
        view, world = told.as_plain(session, str(name), adopted.query), self._with_schema(adopted.world, name)
        if not self._trial:
            PlainRecords(self._work.catalog).put(view, None)
            self._work.tell(f"{found.shown} of Spark's catalog is the view {name} now, whose definition is watched")
        return replace(world, plain={**world.plain, view.key: view}), view.name

    def followed(self, world: World, told: ViewText) -> Adopted:
        """The query of a view of Spark's with the names of here; what it reads is taken in."""
        with of_object(f"view {told.name!r} of Spark's catalog"):
            refuse_past(told.text, 0, len(told.text))
            return self.adopt(world, told.query)

    def _with_schema(self, world: World, name: QualifiedName) -> World:
        if name.catalog or name.schema_key in world.schemas:
            return world
        schema = Schema(key=name.schema_key, name=name.schema, created_at=now())
        if not self._trial:
            SchemaRecords(self._work.catalog).add(schema)
        return replace(world, schemas={**world.schemas, schema.key: schema})

    # -- import -------------------------------------------------------------------------------------------------------

    def imported(self, text: str) -> list[Imported]:
        """Take a table of Spark's catalog, or all Delta tables and views of one of its schemas."""
        parts, session = parts_of(text), self._work.session()
        single = find(session, parts) if len(parts) > 1 else None
        if single is not None:
            return [self._imported(single)]
        found = listed(session, parts)
        if not found:
            raise NotFoundError(
                f"Spark's catalog has no table {text!r}, and no schema of that name with tables in it. Write "
                "catalog.schema.table, or catalog.schema for all of its tables."
            )
        return [self._tried(one) for one in found]

    def _tried(self, found: Listed) -> Imported:
        try:
            return self._imported(found)
        except PenstockError as problem:
            return Imported(found.shown, None, str(problem))

    def _imported(self, found: Listed) -> Imported:
        world, name = self._work.catalog.world(), found.name
        published = world.from_spark.get(key_of(found.shown))
        if published is not None and published in world.views:
            return _left(found, world, published)
        if found.view and not found.temporary:
            known = _known_as(world, found)
            if known is not None:
                return Imported(found.shown, known)
            if name.schema_key in world.schemas:
                world.check_can_be(str(name))
            return Imported(found.shown, self._taken_view(world, found, name)[1])
        path = location(self._work.session(), found)
        if path is None:
            raise DefinitionError(no_changes_of(self._work.session(), found.shown))
        lies = world.key_at(path)
        if lies is not None and (lies in world.views or not world.tables[lies].external):
            return _left(found, world, lies)
        table = world.tables.get(name.key)
        known = str(name) if table is not None and table.path == path else lies and world.display_name(lies)
        if known is None:
            if name.schema_key in world.schemas:
                world.check_can_be(str(name))
            self._taken(world, found, name, path)
        return Imported(found.shown, known or str(name))


def _left(found: Listed, world: World, key: str) -> Imported:
    """What Spark's catalog has from here needs no import."""
    kind, name = "view" if key in world.views else "table", world.display_name(key)
    return Imported(found.shown, name, f"it is the {kind} {name} of this warehouse already")


def _is_known(world: World, text: str) -> bool:
    """Whether a name needs no looking for. What it would mean in Spark does not matter then."""
    if is_path(text) or key_of(text).startswith(OWN) or (is_outside(text) and not QualifiedName.read(text).catalog):
        return True
    key = key_of(text)
    return key in world.tables or key in world.views or key in world.plain or world.late_node(key) is not None


def _known_as(world: World, found: Listed) -> str | None:
    """What it is called here already: as it was taken, or as a view of here that others know by this name."""
    return world.name_here(found.shown) or (found.shown if _is_known(world, found.shown) else None)


def _renamed(query: str, new: dict[str, str]) -> str:
    return substitute_tables(query, lambda name: new.get(key_of(name)))
