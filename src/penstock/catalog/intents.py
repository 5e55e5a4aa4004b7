"""What transactions are about to do to tables, in the transaction of whoever calls.

An intent says that a table is read at its ``base`` though a newer version may be there. It goes when the transaction is
published, or undone; the version that the table has then is kept, so that whoever has looked at the newest versions of
tables can tell whether one of them was published, or undone, meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, TypedDict

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from penstock.catalog import tables as t
from penstock.catalog.records import Intent


class Read(TypedDict):
    intents: Mapping[str, Intent]
    published: Mapping[str, int]


def read_intents(connection: Connection) -> Read:
    columns = [t.intents.c[name] for name in ("source", "run", "base", "owner")]
    rows = connection.execute(select(*columns)).mappings()
    tables = t.tables.c
    known = connection.execute(select(tables.key, tables.published).where(tables.published.is_not(None)))
    return {"intents": {row["source"]: Intent(**row) for row in rows}, "published": {row[0]: row[1] for row in known}}


def open_intents(connection: Connection, intents: Iterable[Intent]) -> None:
    """One table has one intent at most: the lease on it is its owner's."""
    opened: list[dict[str, Any]] = [{**vars(intent), "created_at": datetime.now(timezone.utc)} for intent in intents]
    if opened:
        connection.execute(insert(t.intents), opened)


def publish_tables(connection: Connection, versions: Mapping[str, int]) -> None:
    if not versions:
        return
    connection.execute(delete(t.intents).where(t.intents.c.source.in_(versions)))
    reached = update(t.tables).where(t.tables.c.key == bindparam("source")).values(published=bindparam("version"))
    connection.execute(reached, [{"source": key, "version": version} for key, version in versions.items()])
