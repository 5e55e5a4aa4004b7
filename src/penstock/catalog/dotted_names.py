"""Names of one part with a dot in it, from before there were schemas: their keys are written with backticks now.

Tables are looked up in the database, not in ``tables.py``: they are as the version was that is migrated.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, MetaData, delete, insert, select, update

from penstock.sql.names import DEFAULT, QualifiedName

_KEYS = {
    "tables": ("key",), "views": ("key",), "plain_views": ("key",), "read_models": ("key", "plain_view"),
    "nodes": ("name",), "dependencies": ("node", "input"), "view_nodes": ("view", "node"),
    "frontiers": ("node", "relation"), "node_versions": ("node",), "source_versions": ("source",),
    "watermarks": ("relation",), "history": ("view",), "alerts": ("view",), "states": ("view",),
    "intents": ("source",), "leases": ("node",),
}  # fmt: skip
"""Where keys stand."""
_DETAILS = ("schemas", "input_types", "lateness", "renamed")
"""What of a node's details has keys in it."""


def rename_dotted(connection: Connection) -> None:
    """Give names that would be read as two parts the keys by which they are found."""
    known = MetaData()
    known.reflect(connection, only=[*_KEYS, "checkpoints"])
    new: dict[str, str] = {}
    for kind in ("tables", "views", "plain_views"):
        for key, name in connection.execute(select(known.tables[kind].c.key, known.tables[kind].c.name)).all():
            made = QualifiedName(DEFAULT, name)
            if made.key != key:
                new[key] = made.key
                connection.execute(
                    update(known.tables[kind]).where(known.tables[kind].c.key == key).values(name=str(made))
                )
    if not new:
        return
    for row in connection.execute(select(known.tables["views"].c.key, known.tables["views"].c.reads)).all():
        _put(connection, known.tables["views"].c.key, row.key, reads=_renamed(row.reads, new))
    for row in connection.execute(select(known.tables["nodes"].c.name, known.tables["nodes"].c.details)).all():
        _put(connection, known.tables["nodes"].c.name, row.name, details=_details(row.details, new))
    kept = known.tables["checkpoints"].c
    for row in connection.execute(select(kept.name, kept.state)).all():
        _put(connection, kept.name, row.name, state=_state(row.state, new))
    for old, key in new.items():
        _move(connection, known, old, key)


def _move(connection: Connection, known: MetaData, old: str, new: str) -> None:
    """One key everywhere. What others refer to is there under both until they refer to the new one."""
    parents = [known.tables["views"].c.key, known.tables["nodes"].c.name]
    for column in parents:
        for row in connection.execute(select(column.table).where(column == old)).mappings().all():
            connection.execute(insert(column.table).values({**row, column.name: new}))
    for table, names in _KEYS.items():
        for name in names:
            if (column := known.tables[table].c[name]) not in parents:
                connection.execute(update(known.tables[table]).where(column == old).values({name: new}))
    for column in parents:
        connection.execute(delete(column.table).where(column == old))


def _put(connection: Connection, column: Column[Any], key: str, **values: Any) -> None:
    connection.execute(update(column.table).where(column == key).values(**values))


def _renamed(kept: Any, new: dict[str, str]) -> Any:
    if isinstance(kept, dict):
        return {_renamed(name, new): _renamed(value, new) for name, value in kept.items()}
    if isinstance(kept, list):
        return [_renamed(one, new) for one in kept]
    return new.get(kept, kept) if isinstance(kept, str) else kept


def _details(kept: dict[str, Any], new: dict[str, str]) -> dict[str, Any]:
    """The names of columns may be the same, and stay."""
    said = {name: value for name, value in kept.items() if name in _DETAILS}
    columns = {
        name: {_renamed(key, new): of for key, of in said.pop(name, {}).items()} for name in ("schemas", "input_types")
    }
    return {**kept, **_renamed(said, new), **{name: value for name, value in columns.items() if name in kept}}


def _state(kept: dict[str, list[dict[str, Any]]], new: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The rows that a checkpoint keeps."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table, rows in kept.items():
        found[table] = []
        for row in rows:
            moved = {name: _renamed(row[name], new) for name in _KEYS.get(table, ()) if name in row}
            if table in ("tables", "views") and row["key"] in new:
                moved["name"] = str(QualifiedName(DEFAULT, row["name"]))
            if table == "views":
                moved["reads"] = _renamed(row["reads"], new)
            if table == "nodes":
                moved["details"] = _details(row["details"], new)
            found[table].append({**row, **moved})
    return found
