"""Schemas in the catalog: what tables and views are in. ``schema_records`` adds and drops them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from penstock.catalog import tables as t
from penstock.catalog.tables import utc
from penstock.errors import NotFoundError, NotSupportedError, nearest
from penstock.sql.names import DEFAULT, OF_SPARK, SYSTEM, QualifiedName, part


@dataclass(frozen=True, kw_only=True)
class Schema:
    key: str
    name: str
    created_at: datetime | None = None
    """None for the one that is always there."""


def read_schemas(connection: Connection) -> dict[str, Any]:
    """What a world has of them."""
    rows = connection.execute(select(t.schemas).order_by(t.schemas.c.created_at)).mappings()
    made = {row["key"]: Schema(**{**row, "created_at": utc(row["created_at"])}) for row in rows}
    return {"schemas": {DEFAULT: Schema(key=DEFAULT, name=DEFAULT), **made}}


def known_schema(schemas: Mapping[str, Schema], name: str) -> Schema:
    """The schema of a name; an error that says what to do if there is none."""
    found = schemas.get(name.lower())
    if found is not None:
        return found
    if name.lower() == SYSTEM:
        raise NotSupportedError(
            f"the schema {SYSTEM!r} tells of Penstock itself: queries can read it, and nothing else can be in it. "
            "Choose another name."
        )
    if name.lower() in OF_SPARK:
        raise NotSupportedError(
            f"{name!r} cannot be a schema: before a name it means something of Spark's own, such as a file or a "
            "temporary view. Choose another name, and register files of Delta's: CREATE TABLE .. LOCATION 'path'."
        )
    near = nearest(name, [schema.name for schema in schemas.values()])
    meant = f"{near} " if near.startswith("Did") else ""
    raise NotFoundError(f"there is no schema {name!r}. {meant}CREATE SCHEMA {part(name)} makes it.")


def claim_schema(connection: Connection, name: str) -> None:
    """What is to be in a schema needs it to be there when that is published."""
    meant = QualifiedName.read(name)
    if not meant.catalog:
        known_schema(read_schemas(connection)["schemas"], meant.schema)


def restore_schemas(connection: Connection, names: Collection[str], at: datetime) -> None:
    """Make the schemas again that these names are in."""
    known = read_schemas(connection)["schemas"]
    wanted = {name.schema_key: name.schema for name in map(QualifiedName.read, names) if not name.catalog}
    for key in wanted.keys() - known.keys():
        connection.execute(insert(t.schemas).values(key=key, name=wanted[key], created_at=at))
