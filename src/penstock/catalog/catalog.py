"""The transactions on the catalog. Each method is one transaction; what it returns are records, never rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Column, Connection, Table, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from penstock.catalog import tables as t
from penstock.catalog.connection import open_engine
from penstock.catalog.records import (
    Frontier,
    HistoryRecord,
    Identity,
    Mark,
    Moment,
    NodeRecord,
    Publication,
    Seen,
    TableRecord,
    ViewRecord,
    World,
)
from penstock.errors import AlreadyExistsError, DependencyError, WarehouseError
from penstock.sql.statements import Options, Watermark
from penstock.sql.times import in_utc


def now() -> datetime:
    return datetime.now(timezone.utc)


class Catalog:
    def __init__(self, url: str):
        self._engine = open_engine(url)
        self.url = self._engine.url.render_as_string(hide_password=True)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Connection]:
        """A transaction for this room's modules; a writer waits here for its turn."""
        try:
            with self._engine.connect().execution_options(writes=writes) as connection, connection.begin():
                yield connection
        except (OperationalError, ProgrammingError) as problem:
            raise WarehouseError(f"the catalog {self.url!r} cannot be used: {problem.orig}") from None

    # -- reading ------------------------------------------------------------------------------------------------------

    def world(self) -> World:
        """Everything that a plan needs, read at one moment."""
        with self.transaction(writes=False) as connection:
            return read_world(connection)

    def history(self, view: str | None = None, limit: int | None = None) -> list[HistoryRecord]:
        """What refreshes did, newest first."""
        query = select(t.history).order_by(t.history.c.id.desc())
        if view is not None:
            query = query.where(t.history.c.view == view)
        if limit is not None:
            query = query.limit(limit)
        with self.transaction(writes=False) as connection:
            return [_history(row) for row in connection.execute(query).mappings()]

    def last_refreshes(self) -> dict[str, HistoryRecord]:
        """The newest history record of each view."""
        newest = select(func.max(t.history.c.id)).group_by(t.history.c.view)
        with self.transaction(writes=False) as connection:
            rows = connection.execute(select(t.history).where(t.history.c.id.in_(newest))).mappings()
            return {row["view"]: _history(row) for row in rows}

    def published_epochs(self) -> dict[str, int]:
        """The epoch in which each node changed last."""
        query = select(t.node_versions.c.node, func.max(t.node_versions.c.epoch)).group_by(t.node_versions.c.node)
        with self.transaction(writes=False) as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def changed_at(self) -> dict[str, datetime]:
        """When each node changed last."""
        joined = select(t.node_versions.c.node, func.max(t.epochs.c.published_at)).join(
            t.epochs, t.epochs.c.id == t.node_versions.c.epoch
        )
        with self.transaction(writes=False) as connection:
            rows = connection.execute(joined.group_by(t.node_versions.c.node))
            return {row[0]: utc(row[1]) for row in rows if row[1] is not None}

    def epoch_at(self, time: datetime) -> int | None:
        """The epoch that was current at a time; None before the first."""
        query = select(func.max(t.epochs.c.id)).where(t.epochs.c.published_at <= in_utc(time))  # SQLite keeps no zone
        with self.transaction(writes=False) as connection:
            return connection.execute(query).scalar()

    def moment(self, epoch: int | None = None) -> Moment | None:
        """The catalog as of an epoch, without one the newest; None for an epoch that was never published."""
        with self.transaction(writes=False) as connection:
            world = read_world(connection)
            epoch = world.epoch if epoch is None else epoch
            shown = select(t.epochs.c.published_at).where(t.epochs.c.id == epoch, t.epochs.c.published_at.is_not(None))
            published = connection.execute(shown).scalar()
            if published is None and epoch != world.epoch:
                return None
            following = select(func.min(t.epochs.c.published_at)).where(t.epochs.c.id > epoch)
            replaced = connection.execute(following).scalar()
            named = select(t.checkpoints.c.name).where(t.checkpoints.c.epoch == epoch)
            kept = connection.execute(named).first() is not None
            versions = latest(connection, t.node_versions, t.node_versions.c.node, epoch)
            sources = latest(connection, t.source_versions, t.source_versions.c.source, epoch)
            identities = _identities(connection, epoch)
        nodes = {name: replace(node, version=versions.get(name)) for name, node in world.nodes.items()}
        sources = {key: version for key, version in sources.items() if key in world.tables}
        return Moment(
            epoch, replace(world, nodes=nodes, epoch=epoch), sources, utc(published or now()),
            None if replaced is None else utc(replaced), kept, identities,
        )  # fmt: skip

    # -- tables and views ---------------------------------------------------------------------------------------------

    def add_table(self, table: TableRecord) -> None:
        with self.transaction(writes=True) as connection:
            _claim_name(connection, table.key, table.name)
            connection.execute(
                insert(t.tables).values(
                    key=table.key,
                    name=table.name,
                    path=table.path,
                    external=table.external,
                    created_at=table.created_at,
                    watermark=asdict(table.watermark) if table.watermark else None,
                )
            )

    def drop_table(self, key: str) -> None:
        with self.transaction(writes=True) as connection:
            world = read_world(connection)
            readers = [world.views[r].name for r in world.views_graph().readers(key)]
            if readers:
                raise DependencyError(
                    f"table {world.display_name(key)!r} cannot be dropped: {_listed(readers)} {_read(readers)} it. "
                    f"Drop {'it' if len(readers) == 1 else 'them'} first."
                )
            connection.execute(delete(t.tables).where(t.tables.c.key == key))
            connection.execute(delete(t.watermarks).where(t.watermarks.c.relation == key))

    def put_view(
        self, view: ViewRecord, nodes: Iterable[NodeRecord], *, replacing: bool,
        epoch: int | None = None, publication: Publication | None = None,
    ) -> None:  # fmt: skip
        """Add a view with its nodes, or replace the view of that name, and publish the epoch that filled it."""
        with self.transaction(writes=True) as connection:
            if replacing:
                connection.execute(delete(t.views).where(t.views.c.key == view.key))
                connection.execute(delete(t.nodes).where(t.nodes.c.name == view.key))
                connection.execute(delete(t.node_versions).where(t.node_versions.c.node == view.key))
                connection.execute(delete(t.watermarks).where(t.watermarks.c.relation == view.key))
            _claim_name(connection, view.key, view.name)
            known = set(connection.execute(select(t.nodes.c.name)).scalars())
            for node in nodes:
                if node.name not in known:
                    _insert_node(connection, node)
            _insert_view(connection, view)
            if epoch is not None and publication is not None:
                _publish(connection, epoch, publication)
            _drop_unused_nodes(connection)

    def set_policy(self, key: str, policy: str) -> None:
        with self.transaction(writes=True) as connection:
            connection.execute(update(t.views).where(t.views.c.key == key).values(policy=policy))

    def set_options(self, key: str, options: Options) -> None:
        with self.transaction(writes=True) as connection:
            connection.execute(update(t.views).where(t.views.c.key == key).values(options=asdict(options)))

    def set_watermark(self, key: str, watermark: Watermark | None, floor: int | None) -> None:
        kept = None if watermark is None else {**asdict(watermark), "floor": floor}
        with self.transaction(writes=True) as connection:
            connection.execute(update(t.tables).where(t.tables.c.key == key).values(watermark=kept))

    def set_setting(self, name: str, value: str) -> None:
        with self.transaction(writes=True) as connection:
            connection.execute(delete(t.settings).where(t.settings.c.name == name))
            connection.execute(insert(t.settings).values(name=name, value=value))

    def drop_views(self, keys: Iterable[str]) -> None:
        with self.transaction(writes=True) as connection:
            wanted = list(keys)
            connection.execute(delete(t.views).where(t.views.c.key.in_(wanted)))
            connection.execute(delete(t.nodes).where(t.nodes.c.name.in_(wanted)))
            _drop_unused_nodes(connection)

    # -- epochs -------------------------------------------------------------------------------------------------------

    def begin_epoch(self) -> int:
        with self.transaction(writes=True) as connection:
            last = connection.execute(select(func.max(t.epochs.c.id))).scalar() or 0
            connection.execute(insert(t.epochs).values(id=last + 1, started_at=now()))
            return int(last) + 1

    def publish(self, epoch: int, publication: Publication) -> None:
        """Make an epoch visible: node versions, frontiers and history, all or nothing."""
        with self.transaction(writes=True) as connection:
            _publish(connection, epoch, publication)

    def record(self, history: Iterable[HistoryRecord]) -> None:
        """History of refreshes that had nothing to publish."""
        with self.transaction(writes=True) as connection:
            for record in history:
                connection.execute(insert(t.history).values(**vars(record)))


def read_world(connection: Connection) -> World:
    tables = {
        row["key"]: TableRecord(
            row["key"], row["name"], row["path"], row["external"], row["created_at"], *_watermark(row["watermark"])
        )
        for row in connection.execute(select(t.tables).order_by(t.tables.c.created_at)).mappings()
    }
    inputs: dict[str, list[str]] = {}
    for row in connection.execute(select(t.dependencies).order_by(t.dependencies.c.position)).mappings():
        inputs.setdefault(row["node"], []).append(row["input"])
    nodes = {
        row["name"]: NodeRecord(
            row["name"], row["hidden"], row["path"], row["fingerprint"], row["schema_json"],
            tuple(inputs.get(row["name"], ())), row["details"], row["version"],
        )
        for row in connection.execute(select(t.nodes)).mappings()
    }  # fmt: skip
    members: dict[str, list[str]] = {}
    for row in connection.execute(select(t.view_nodes).order_by(t.view_nodes.c.position)).mappings():
        members.setdefault(row["view"], []).append(row["node"])
    views = {
        row["key"]: ViewRecord(
            row["key"], row["name"], row["query"], tuple(tuple(c) for c in row["columns"]), row["comment"],
            row["properties"], row["refresh"], row["policy"], tuple(row["reads"]), tuple(members[row["key"]]),
            row["reason_code"], row["reason"], row["created_at"], Options(**(row["options"] or {})),
        )
        for row in connection.execute(select(t.views).order_by(t.views.c.created_at)).mappings()
    }  # fmt: skip
    frontiers: dict[str, dict[str, Frontier]] = {}
    for row in connection.execute(select(t.frontiers)).mappings():
        frontier = Frontier(row["version"], row["table_id"], row["direct"], row["fingerprint"])
        frontiers.setdefault(row["node"], {})[row["relation"]] = frontier
    epoch = connection.execute(select(func.max(t.epochs.c.id)).where(t.epochs.c.published_at.is_not(None))).scalar()
    settings = {row.name: row.value for row in connection.execute(select(t.settings)) if row.name != "schema_version"}
    newest = select(t.watermarks.c.relation, func.max(t.watermarks.c.epoch).label("epoch"))
    last = newest.group_by(t.watermarks.c.relation).subquery()
    same = (t.watermarks.c.relation == last.c.relation) & (t.watermarks.c.epoch == last.c.epoch)
    marks = connection.execute(select(t.watermarks).join(last, same)).mappings()
    watermarks = {row["relation"]: Mark(row["value"], Seen(**row["seen"]) if row["seen"] else None) for row in marks}
    return World(tables, views, nodes, frontiers, epoch or 0, settings, watermarks)


def _watermark(kept: dict[str, Any] | None) -> tuple[Watermark | None, int | None]:
    if not kept:
        return None, None
    return Watermark(kept["column"], kept["delay"]), kept.get("floor")


def latest(connection: Connection, table: Table, name: Column[str], epoch: int) -> dict[str, int]:
    """The version of everything in a table of versions, as of an epoch."""
    query = select(name, table.c.version).where(table.c.epoch <= epoch).order_by(table.c.epoch)
    return {row[0]: row[1] for row in connection.execute(query)}


def _identities(connection: Connection, epoch: int) -> dict[str, Identity]:
    """Which table each source was, as of an epoch; one whose epoch did not record it is not among them."""
    query = select(t.source_versions).where(t.source_versions.c.epoch <= epoch).order_by(t.source_versions.c.epoch)
    last = {row["source"]: row for row in connection.execute(query).mappings()}
    return {key: Identity(row["table_id"], row["fingerprint"]) for key, row in last.items() if row["table_id"]}


def utc(time: datetime) -> datetime:
    """SQLite keeps no zone; what is written is UTC."""
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _publish(connection: Connection, epoch: int, publication: Publication) -> None:
    for node, version in publication.versions.items():
        connection.execute(update(t.nodes).where(t.nodes.c.name == node).values(version=version))
        connection.execute(insert(t.node_versions).values(epoch=epoch, node=node, version=version))
    for node, frontier in publication.frontiers.items():
        connection.execute(delete(t.frontiers).where(t.frontiers.c.node == node))
        for relation, f in frontier.items():
            connection.execute(insert(t.frontiers).values(node=node, relation=relation, **asdict(f)))
    for source, version in publication.sources.items():
        known = publication.identities.get(source)
        told = asdict(known) if known is not None else {}
        connection.execute(insert(t.source_versions).values(epoch=epoch, source=source, version=version, **told))
    for relation, mark in publication.watermarks.items():
        seen = asdict(mark.seen) if mark.seen else None
        connection.execute(insert(t.watermarks).values(epoch=epoch, relation=relation, value=mark.value, seen=seen))
    for record in publication.history:
        connection.execute(insert(t.history).values(**vars(record)))
    connection.execute(update(t.epochs).where(t.epochs.c.id == epoch).values(published_at=now()))


def _history(row: object) -> HistoryRecord:
    fields = dict(row)  # type: ignore[call-overload]
    fields.pop("id")
    fields["started_at"] = utc(fields["started_at"])
    return HistoryRecord(**fields)


def _claim_name(connection: Connection, key: str, name: str) -> None:
    for table, kind in ((t.tables, "table"), (t.views, "materialized view")):
        if connection.execute(select(table.c.key).where(table.c.key == key)).scalar() is not None:
            raise AlreadyExistsError(
                f"the name {name!r} is taken by a {kind}. Choose another name"
                + (", or use CREATE OR REPLACE or IF NOT EXISTS." if table is t.views else ", or use IF NOT EXISTS.")
            )


def _insert_node(connection: Connection, node: NodeRecord) -> None:
    connection.execute(
        insert(t.nodes).values(
            name=node.name, hidden=node.hidden, path=node.path, fingerprint=node.fingerprint,
            schema_json=node.schema_json, details=dict(node.details), version=node.version,
        )
    )  # fmt: skip
    for position, read in enumerate(node.inputs):
        connection.execute(insert(t.dependencies).values(node=node.name, position=position, input=read))


def _insert_view(connection: Connection, view: ViewRecord) -> None:
    try:
        connection.execute(
            insert(t.views).values(
                key=view.key, name=view.name, query=view.query, columns=[list(c) for c in view.columns],
                comment=view.comment, properties=dict(view.properties), refresh=view.refresh, policy=view.policy,
                reads=list(view.reads), reason_code=view.reason_code, reason=view.reason, created_at=view.created_at,
                options=asdict(view.options),
            )
        )  # fmt: skip
    except IntegrityError:
        raise AlreadyExistsError(f"the name {view.name!r} is taken. Choose another name.") from None
    for position, node in enumerate(view.nodes):
        connection.execute(insert(t.view_nodes).values(view=view.key, position=position, node=node))


def _drop_unused_nodes(connection: Connection) -> None:
    """A hidden node's name tells what it computes, so one that comes again must not find what this one has left."""
    used = select(t.view_nodes.c.node)
    connection.execute(delete(t.nodes).where(t.nodes.c.name.not_in(used)))
    nodes, tables = select(t.nodes.c.name), select(t.tables.c.key)
    connection.execute(delete(t.node_versions).where(t.node_versions.c.node.not_in(nodes)))
    relation = t.watermarks.c.relation
    connection.execute(delete(t.watermarks).where(relation.not_in(nodes), relation.not_in(tables)))


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _read(names: list[str]) -> str:
    return "reads" if len(names) == 1 else "read"
