"""Tables that Spark's catalog knows and Penstock does not: finding them, and taking Delta tables as sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock.catalog import Schema, TableRecord, World
from penstock.catalog.schema_records import SchemaRecords
from penstock.engine.workplace import Workplace
from penstock.errors import DefinitionError, NotFoundError, PenstockError
from penstock.frames.spark.problems import spark_errors
from penstock.sql.names import DEFAULT, OWN, QualifiedName, is_path, parts_of, quoted_parts
from penstock.sql.query import parse_query, table_names
from penstock.storage.delta_log import is_table
from penstock.storage.locations import location as location_of


@dataclass(frozen=True)
class Listed:
    """A table of Spark's catalog; ``parts`` are its catalog, its schemas and its name."""

    parts: tuple[str, ...]
    temporary: bool
    view: bool

    @property
    def sql(self) -> str:
        return quoted_parts(self.parts)

    @property
    def shown(self) -> str:
        return ".".join(self.parts)

    @property
    def name(self) -> QualifiedName:
        """What it is called here: the last two parts."""
        return QualifiedName.of(list(self.parts[-2:]), self.shown)


@dataclass(frozen=True)
class Imported:
    """What became of a table: its name here, or why it was left."""

    source: str
    name: str | None
    why_not: str | None = None


class SparkCatalog:
    def __init__(self, work: Workplace):
        self._work = work

    def adopt(self, world: World, query: str) -> World:
        """Take the tables of a view's query that only Spark's catalog knows; gives the world with them."""
        names = [QualifiedName.read(text) for text in table_names(parse_query(query)) if not _is_known(world, text)]
        found = [(name, one) for name in names if (one := find_named(self._work.session(), name)) is not None]
        for name, one in found:
            self._take(one, name)
        return self._work.catalog.world() if found else world

    def imported(self, text: str) -> list[Imported]:
        """Take a table of Spark's catalog, or all Delta tables of one of its schemas."""
        parts, session = parts_of(text), self._work.session()
        single = find(session, parts) if len(parts) > 1 else None
        if single is not None:
            name = self._take(single, single.name)
            return [Imported(single.shown, str(name))]
        found = listed(session, parts)
        if not found:
            raise NotFoundError(
                f"Spark's catalog has no table {text!r}, and no schema of that name with tables in it. Write "
                "catalog.schema.table, or catalog.schema for all of its tables."
            )
        return [self._tried(one) for one in found]

    def _tried(self, found: Listed) -> Imported:
        try:
            return Imported(found.shown, str(self._take(found, found.name)))
        except PenstockError as problem:
            return Imported(found.shown, None, str(problem))

    def _take(self, found: Listed, name: QualifiedName) -> QualifiedName:
        """Register a Delta table under a name, in a schema that is made if there is none."""
        path = location(self._work.session(), found)
        catalog, now = self._work.catalog, datetime.now(timezone.utc)
        world = catalog.world()
        known = world.tables.get(name.key)
        if known is not None and known.path == path:
            return name
        if name.schema_key not in world.schemas:
            SchemaRecords(catalog).add(Schema(key=name.schema_key, name=name.schema, created_at=now))
        else:
            world.check_can_be(str(name))
        catalog.add_table(
            TableRecord(
                key=name.key, name=str(name), path=path, external=True, created_at=now, catalog_name=found.shown
            )
        )
        self._work.tell(f"{found.shown} of Spark's catalog is the external table {name} now")
        return name


def _is_known(world: World, text: str) -> bool:
    key = QualifiedName.read(text).key
    kinds = (world.tables, world.views, world.plain)
    return (
        key.startswith(OWN) or is_path(text) or any(key in kind for kind in kinds) or world.late_node(key) is not None
    )


def find_named(session: SparkSession, name: QualifiedName) -> Listed | None:
    """What a name means to Spark; without a schema, it may be a temporary view."""
    found = find(session, (name.schema, name.name))
    if found is None and name.schema == DEFAULT:
        passing = find(session, (name.name,))
        return passing if passing is not None and passing.temporary else None
    return found


def find(session: SparkSession, parts: Sequence[str]) -> Listed | None:
    """The table of Spark's catalog that has this name."""
    name = quoted_parts(parts)
    try:
        table = session.catalog.getTable(name) if session.catalog.tableExists(name) else None
    except AnalysisException:  # no name that it could have, or no catalog
        return None
    return None if table is None else _listed(table, tuple(parts))


def listed(session: SparkSession, schema: Sequence[str]) -> list[Listed]:
    """The tables of a schema of Spark's catalog; none if there is no such schema."""
    try:
        rows = session.sql(f"SHOW TABLES IN {quoted_parts(schema)}").collect()
    except AnalysisException:
        return []
    found = [find(session, (*schema, row["tableName"])) for row in rows if not row["isTemporary"]]
    return [one for one in found if one is not None]


def _listed(table: object, asked: tuple[str, ...]) -> Listed:
    catalog, namespace = getattr(table, "catalog", None), getattr(table, "namespace", None) or []
    parts = (*([catalog] if catalog else []), *namespace, str(getattr(table, "name", "")))
    kind = str(getattr(table, "tableType", ""))
    return Listed(
        parts if len(parts) > 1 else asked or parts, bool(getattr(table, "isTemporary", False)), kind == "VIEW"
    )


def location(session: SparkSession, found: Listed) -> str:
    """Where a Delta table lies. What follows changes needs Delta's log, so nothing else will do."""
    if found.temporary:
        raise DefinitionError(
            f"{found.shown!r} is a temporary view of the Spark session, and is gone with it. Write its rows into a "
            "table: CREATE TABLE .. AS SELECT .."
        )
    if found.view:
        raise DefinitionError(
            f"{found.shown!r} is a view of Spark's catalog, whose definition Penstock does not follow. Create it here: "
            f"CREATE VIEW {found.name} AS and its query."
        )
    with spark_errors(f"{found.shown!r} of Spark's catalog cannot be looked at"):
        told = session.sql(f"DESCRIBE DETAIL {found.sql}").collect()[0].asDict()
    if told["format"] != "delta" or not told.get("location"):
        raise DefinitionError(
            f"{found.shown!r} is a table of the format {told['format']} in Spark's catalog, and only of a Delta table "
            f"can be told what changed. Convert it in Spark, CONVERT TO DELTA {found.shown}, or copy its rows into a "
            "table of Penstock."
        )
    path = location_of(str(told["location"]), f"table {found.shown!r}")
    if not is_table(path):
        raise DefinitionError(f"{found.shown!r} of Spark's catalog has no Delta table at {path!r} any more.")
    return path
