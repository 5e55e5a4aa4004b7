"""Named epochs: what the catalog held of views, their nodes and frontiers, kept to go back to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, DateTime, Table, delete, func, insert, select, update

from penstock.catalog import tables as t
from penstock.catalog.catalog import Catalog, now, read_world, utc
from penstock.catalog.publishing import check_fence, next_epoch
from penstock.catalog.records import Fence
from penstock.catalog.schemas import restore_schemas
from penstock.errors import AlreadyExistsError, NotFoundError, nearest

_KEPT = (t.views, t.nodes, t.dependencies, t.view_nodes, t.frontiers)
"""In the order in which they can be filled."""
_SHOWN = (t.plain_views, t.read_models)
"""What views are called and told by, besides."""

_BY_EPOCH: tuple[tuple[Table, Column[str]], ...] = (
    (t.source_versions, t.source_versions.c.source),
    (t.watermarks, t.watermarks.c.relation),
)
"""What is kept by epoch, and by the name of a relation. The newest of each is a part of the checkpoint: the rows of its
epoch go when a view is dropped, and when an earlier checkpoint is restored."""

Dump = list[dict[str, Any]]


@dataclass(frozen=True)
class Checkpoint:
    name: str
    epoch: int
    created_at: datetime
    state: Mapping[str, Dump]
    """The catalog's rows of then, by table."""

    @property
    def nodes(self) -> dict[str, tuple[str, int | None]]:
        """Path and version of every node."""
        return {node["name"]: (node["path"], node["version"]) for node in self.state["nodes"]}

    def consumed(self, node: str) -> set[int]:
        """The versions of a node that its readers had come to."""
        return {row["version"] for row in self.state["frontiers"] if row["relation"] == node}

    def sources_of(self, node: str) -> dict[str, int]:
        """The versions of the tables, by name, that a node stood for."""
        names = {table["key"]: table["name"] for table in self.tables}
        frontier = [row for row in self.state["frontiers"] if row["node"] == node and row["relation"] in names]
        return {names[row["relation"]]: row["version"] for row in frontier}

    @property
    def tables(self) -> Dump:
        """The source tables of then."""
        return self.state["tables"]

    @property
    def views(self) -> dict[str, str]:
        """The names of the materialized views of then, by their keys."""
        return {row["key"]: row["name"] for row in self.state["views"]}

    @property
    def plain_views(self) -> Dump:
        """The plain views of then; a checkpoint that was made by an older Penstock does not know."""
        return self.state.get(t.plain_views.name, [])


class Checkpoints:
    def __init__(self, catalog: Catalog):
        self._catalog = catalog

    def add(self, name: str) -> Checkpoint:
        """Name the newest epoch."""
        with self._catalog.transaction(writes=True) as connection:
            if connection.execute(select(t.checkpoints.c.name).where(t.checkpoints.c.name == name)).scalar():
                raise AlreadyExistsError(f"there is a checkpoint {name!r} already. Drop it, or choose another name.")
            epoch = read_world(connection).epoch
            state = {table.name: _dump(connection, table) for table in (t.tables, *_KEPT, *_SHOWN)}
            state |= {table.name: _dump_newest(connection, table, name) for table, name in _BY_EPOCH}
            made = Checkpoint(name, epoch, now(), state)
            connection.execute(
                insert(t.checkpoints).values(name=name, epoch=epoch, created_at=made.created_at, state=state)
            )
            return made

    def all(self) -> list[Checkpoint]:
        with self._catalog.transaction(writes=False) as connection:
            rows = connection.execute(select(t.checkpoints).order_by(t.checkpoints.c.created_at)).mappings()
            return [Checkpoint(r["name"], r["epoch"], utc(r["created_at"]), r["state"]) for r in rows]

    def get(self, name: str) -> Checkpoint:
        found = {checkpoint.name: checkpoint for checkpoint in self.all()}
        if name not in found:
            raise NotFoundError(f"there is no checkpoint {name!r}. {nearest(name, found)}")
        return found[name]

    def drop(self, name: str) -> None:
        self.get(name)
        with self._catalog.transaction(writes=True) as connection:
            connection.execute(delete(t.checkpoints).where(t.checkpoints.c.name == name))

    def restore(
        self, checkpoint: Checkpoint, versions: Mapping[str, int], missing: Iterable[str], fence: Fence | None = None
    ) -> int:
        """Put the catalog back, in one transaction, as a new epoch. The epochs in between can still be read.

        ``versions`` are those that the nodes' tables have now, with the content of then; ``missing`` are the source
        tables of then that the catalog no longer knows.
        """
        then = {name: version for name, (_, version) in checkpoint.nodes.items()}
        with self._catalog.transaction(writes=True) as connection:
            check_fence(connection, fence)
            self._check_there(connection, checkpoint)
            before = read_world(connection).nodes
            models = _dump(connection, t.read_models)  # which go with the views, as do their states
            suspended = [row for row in _dump(connection, t.states) if row["suspended"]]
            connection.execute(delete(t.views))
            connection.execute(delete(t.nodes))
            rows = [*checkpoint.tables, *checkpoint.state["views"], *checkpoint.plain_views]
            restore_schemas(connection, [row["name"] for row in rows], now())
            wanted = set(missing)
            _fill(connection, t.tables, [row for row in checkpoint.tables if row["key"] in wanted])
            for table in _KEPT:
                _fill(connection, table, checkpoint.state[table.name])
            _fill_shown(connection, checkpoint, models)
            _fill(connection, t.states, [row for row in suspended if row["view"] in checkpoint.views])
            for node, version in versions.items():
                connection.execute(update(t.nodes).where(t.nodes.c.name == node).values(version=version))
                consumed = (t.frontiers.c.relation == node, t.frontiers.c.version == then[node])
                connection.execute(update(t.frontiers).where(*consumed).values(version=version))
            places = {name: node.path for name, node in before.items()}
            same = [name for name, (path, _) in checkpoint.nodes.items() if places.get(name) == path]
            epoch = self._publish(connection, checkpoint.epoch, versions, same)
            known = checkpoint.nodes.keys() | _same_tables(connection, checkpoint)
            for table, name in _BY_EPOCH:
                rows = checkpoint.state.get(table.name, [])  # one that was made by an older Penstock has none
                _fill(connection, table, [{**row, "epoch": epoch} for row in rows if row[name.name] in known])
            return epoch

    @staticmethod
    def _check_there(connection: Connection, checkpoint: Checkpoint) -> None:
        """A checkpoint that is dropped in this moment keeps its files no longer."""
        made = select(t.checkpoints.c.created_at).where(t.checkpoints.c.name == checkpoint.name)
        found = connection.execute(made).scalar()
        if found is None or utc(found) != checkpoint.created_at:
            raise NotFoundError(f"checkpoint {checkpoint.name!r} was dropped in this moment.")

    @staticmethod
    def _publish(connection: Connection, then: int, versions: Mapping[str, int], same: Iterable[str]) -> int:
        """``same`` are the nodes whose tables lie where they lay before: what earlier epochs say of them is true."""
        connection.execute(delete(t.node_versions).where(t.node_versions.c.node.not_in(list(same))))
        epoch = next_epoch(connection, restored=then)
        for node, version in {**dict.fromkeys(same, t.NO_ROWS), **versions}.items():
            connection.execute(insert(t.node_versions).values(epoch=epoch, node=node, version=version))
        return epoch


def _same_tables(connection: Connection, checkpoint: Checkpoint) -> set[str]:
    """The source tables that are those of then. One that was dropped and created again is another."""
    made = {row["key"]: row["created_at"] for row in _dump(connection, t.tables)}
    return {row["key"] for row in checkpoint.tables if made.get(row["key"]) == row["created_at"]}


def _fill_shown(connection: Connection, checkpoint: Checkpoint, before: Dump) -> None:
    """Plain views and read models as they were. Plain views that came since stay, but for those of read models.

    ``before`` are the read models that there were just now: what an older checkpoint can tell.
    """
    still = [row for row in before if row["key"] in checkpoint.views]
    models = checkpoint.state.get(t.read_models.name, still)
    gone = {row["plain_view"] for row in before} - {row["plain_view"] for row in models}
    gone |= {row["key"] for row in checkpoint.plain_views}
    connection.execute(delete(t.plain_views).where(t.plain_views.c.key.in_(gone)))
    _fill(connection, t.plain_views, checkpoint.plain_views)
    _fill(connection, t.read_models, models)


def _dump(connection: Connection, table: Table) -> Dump:
    rows = connection.execute(select(table)).mappings()
    return [{k: v.isoformat() if isinstance(v, datetime) else v for k, v in row.items()} for row in rows]


def _dump_newest(connection: Connection, table: Table, name: Column[str]) -> Dump:
    last = select(name, func.max(table.c.epoch).label("epoch")).group_by(name).subquery()
    same = (name == last.c[name.name]) & (table.c.epoch == last.c.epoch)
    return [dict(row) for row in connection.execute(select(table).join(last, same)).mappings()]


def _fill(connection: Connection, table: Table, rows: Dump) -> None:
    times = [column.name for column in table.columns if isinstance(column.type, DateTime)]
    known = {column.name for column in table.columns}
    for row in rows:
        values = {k: datetime.fromisoformat(v) if k in times and v else v for k, v in row.items() if k in known}
        connection.execute(insert(table).values(**values))
