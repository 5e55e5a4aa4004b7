"""A warehouse that was moved or copied: the paths in its catalog follow it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select, update

from penstock.catalog import tables as t


def move_paths(connection: Connection, old: str, new: str) -> None:
    """Whatever lies in the warehouse lies there now; tables elsewhere stay where they are."""

    def moved(path: str) -> str:
        return f"{new}{path[len(old) :]}" if path.startswith(f"{old.rstrip('/')}/") else path

    for table, key in ((t.tables, t.tables.c.key), (t.nodes, t.nodes.c.name)):
        for name, path in connection.execute(select(key, table.c.path)).all():
            connection.execute(update(table).where(key == name).values(path=moved(path)))
    for name, state in connection.execute(select(t.checkpoints.c.name, t.checkpoints.c.state)).all():
        kept: dict[str, Any] = dict(state)
        for kind in ("tables", "nodes"):
            kept[kind] = [{**row, "path": moved(row["path"])} for row in kept.get(kind, [])]
        connection.execute(update(t.checkpoints).where(t.checkpoints.c.name == name).values(state=kept))
