"""Making an epoch visible, in the transaction of whoever calls: definitions, versions, frontiers, watermarks, history.

An epoch gets its number here and nowhere else, so that numbers grow in the order in which epochs can be seen, and one
that can be seen never changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timezone

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from penstock.catalog import tables as t
from penstock.catalog.alerts import Alert, settle
from penstock.catalog.folding import folded
from penstock.catalog.intents import publish_tables
from penstock.catalog.records import (
    Definition,
    Fence,
    Frontier,
    HistoryRecord,
    Identity,
    Mark,
    NodeRecord,
    PlainView,
    Publication,
    ReadModel,
    Seen,
    ViewRecord,
)
from penstock.catalog.schemas import claim_schema
from penstock.errors import AlreadyExistsError, LeaseLostError, NotFoundError
from penstock.vocabulary import Reason, When


def publish(connection: Connection, publication: Publication, fence: Fence | None) -> tuple[int, list[Alert]]:
    """Publish as the next epoch; gives its number, and the alerts that have changed."""
    check_fence(connection, fence)
    for definition in publication.definitions:
        _check_reads(connection, definition, publication.definitions)
        _put(connection, definition)
    epoch = next_epoch(connection, publication.run)
    for definition in publication.definitions:
        _say_emptied(connection, epoch, definition, publication)
    mended = publication.mended & publication.versions.keys()
    if mended:
        connection.execute(delete(t.frontiers).where(t.frontiers.c.relation.in_(mended)))
    _put_versions(connection, epoch, publication.versions)
    _put_frontiers(connection, publication.frontiers)
    for source, version in publication.sources.items():
        read = _further(connection, source, version, publication.identities.get(source))
        connection.execute(insert(t.source_versions).values(epoch=epoch, source=source, **read))
    for relation, mark in publication.watermarks.items():
        mark = _not_back(_newest_mark(connection, relation), mark)
        seen = asdict(mark.seen) if mark.seen else None
        connection.execute(insert(t.watermarks).values(epoch=epoch, relation=relation, value=mark.value, seen=seen))
    publish_tables(connection, publication.tables)
    if publication.immediate:
        becoming = update(t.views).where(t.views.c.key.in_(publication.immediate))
        connection.execute(becoming.values(refresh=When.IMMEDIATE, scheduled_at=datetime.now(timezone.utc)))
    if publication.last and fence is not None:
        give_back(connection, fence)
    alerts = remember(connection, [replace(record, epoch=epoch) for record in publication.history])
    if publication.definitions:
        drop_unused_nodes(connection)
    return epoch, alerts


def _put_versions(connection: Connection, epoch: int, versions: Mapping[str, int]) -> None:
    """Two statements for all nodes: each has a cost of its own, and of rows there may be many."""
    if versions:
        reached = update(t.nodes).where(t.nodes.c.name == bindparam("node")).values(version=bindparam("reached"))
        connection.execute(reached, [{"node": node, "reached": version} for node, version in versions.items()])
        rows = [{"epoch": epoch, "node": node, "version": version} for node, version in versions.items()]
        connection.execute(insert(t.node_versions), rows)


def _put_frontiers(connection: Connection, frontiers: Mapping[str, Mapping[str, Frontier]]) -> None:
    rows = [
        {"node": node, "relation": relation, **vars(consumed)}
        for node, frontier in frontiers.items()
        for relation, consumed in frontier.items()
    ]
    if frontiers:
        stale = delete(t.frontiers).where(t.frontiers.c.node == bindparam("of"))
        connection.execute(stale, [{"of": node} for node in frontiers])
    if rows:
        connection.execute(insert(t.frontiers), rows)


def remember(connection: Connection, history: Iterable[HistoryRecord]) -> list[Alert]:
    """Keep what refreshes did, and the alerts that come of it; gives those that have changed."""
    done = list(history)
    if not done:
        return []
    connection.execute(insert(t.history), [vars(record) for record in folded(connection, done)])
    own = [(r.view, r.started_at) for r in done if r.reason != Reason.HELD_BY_ANOTHER]
    for started in {started for _, started in own}:  # what is written down goes on no longer, also if we die here
        leased = (t.leases.c.node.in_([view for view, at in own if at == started]), t.leases.c.began <= started)
        connection.execute(update(t.leases).where(*leased).values(began=None))
    return settle(connection, done, datetime.now(timezone.utc))


def check_fence(connection: Connection, fence: Fence | None) -> None:
    """Whether every lease is still its owner's. What a clock says of it does not matter."""
    if fence is None:
        return
    owned = select(func.count()).select_from(t.leases).where(t.leases.c.owner == fence.owner)
    if connection.execute(owned).scalar() == len(fence.nodes):  # an owner has no leases but those behind its fence
        return
    mine = set(connection.execute(select(t.leases.c.node).where(t.leases.c.owner == fence.owner)).scalars())
    lost = sorted(fence.nodes - mine)
    if lost:
        raise LeaseLostError(
            f"{lost[0]!r} was taken over by another process: this one had not been heard of for too long. Nothing of "
            "this run was published. Run it again."
        )


def give_back(connection: Connection, fence: Fence) -> None:
    """Give the leases back: what they were for is published."""
    connection.execute(delete(t.leases).where(t.leases.c.owner == fence.owner))


def next_epoch(connection: Connection, run: str = "", restored: int | None = None) -> int:
    """A new epoch, seen from now on. Whatever clocks say, it is not seen before the last one.

    ``restored`` is the epoch that it goes back to, if it does.
    """
    last, seen = connection.execute(select(func.max(t.epochs.c.id), func.max(t.epochs.c.published_at))).one()
    now = datetime.now(timezone.utc)
    if seen is not None:
        now = max(now, seen if seen.tzinfo else seen.replace(tzinfo=timezone.utc))
    epoch = int(last or 0) + 1
    connection.execute(insert(t.epochs).values(id=epoch, started_at=now, published_at=now, run=run, restored=restored))
    return epoch


# -- what is shared by epochs side by side ----------------------------------------------------------------------------


def _further(connection: Connection, source: str, version: int, identity: Identity | None) -> dict[str, object]:
    """What was read of a table, or what another epoch has read of it meanwhile, if that was more."""
    kept = t.source_versions
    told = asdict(identity) if identity is not None else {}
    query = select(kept).where(kept.c.source == source).order_by(kept.c.epoch.desc()).limit(1)
    last = connection.execute(query).mappings().first()
    another = last is not None and identity is not None and last["table_id"] != identity.table_id
    if last is None or another or last["version"] <= version:
        return {"version": version, **told}
    return {name: last[name] for name in ("version", "table_id", "fingerprint")}


def _newest_mark(connection: Connection, relation: str) -> Mark | None:
    marks = t.watermarks
    query = select(marks).where(marks.c.relation == relation).order_by(marks.c.epoch.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else Mark(row["value"], Seen(**row["seen"]) if row["seen"] else None)


def _not_back(known: Mark | None, mark: Mark) -> Mark:
    """A watermark never moves back, though an epoch that saw less is published after one that saw more."""
    if known is None:
        return mark
    value = max(known.value, mark.value)
    if known.seen is None or mark.seen is None:
        return replace(mark, value=value)
    alike = (known.seen.column, known.seen.table_id) == (mark.seen.column, mark.seen.table_id)
    return Mark(value, known.seen if alike and known.seen.version > mark.seen.version else mark.seen)


# -- definitions ------------------------------------------------------------------------------------------------------


def _check_reads(connection: Connection, definition: Definition, others: Iterable[Definition]) -> None:
    """What a view reads must be there: it may have been dropped since the view was planned."""
    known = {other.view.key for other in others}
    for table in (t.tables, t.views):
        known |= set(connection.execute(select(table.c.key)).scalars())
    for read in definition.view.reads:
        if read not in known:
            raise NotFoundError(f"view {definition.view.name!r} reads {read!r}, which was dropped in this moment.")


def _put(connection: Connection, definition: Definition) -> None:
    """Add a view with its nodes, or put it in the place of the one that has its name."""
    view = definition.view
    if not definition.replaces:
        claim_name(connection, view.key, view.name)
    known = set(connection.execute(select(t.nodes.c.name)).scalars())
    for node in definition.nodes:
        if node.name not in known:
            _insert_node(connection, node)
        elif not node.hidden:
            _update_node(connection, node)
    if definition.replaces:
        connection.execute(delete(t.view_nodes).where(t.view_nodes.c.view == view.key))
        connection.execute(update(t.views).where(t.views.c.key == view.key).values(**_values(view)))
    else:
        connection.execute(insert(t.views).values(key=view.key, **_values(view)))
    for position, name in enumerate(view.nodes):
        connection.execute(insert(t.view_nodes).values(view=view.key, position=position, node=name))
    if definition.model is not None:
        _put_model(connection, *definition.model)


def _put_model(connection: Connection, model: ReadModel, shown: PlainView) -> None:
    """A read model, and the plain view of its query."""
    put_plain(connection, shown, or_replace=_is_of(connection, model))
    connection.execute(delete(t.read_models).where(t.read_models.c.key == model.key))
    values = {"entity": model.entity, "plain_view": model.plain_view, "details": model.details()}
    connection.execute(insert(t.read_models).values(key=model.key, **values))


def _is_of(connection: Connection, model: ReadModel) -> bool:
    known = select(t.read_models.c.plain_view).where(t.read_models.c.key == model.key)
    return connection.execute(known).scalar() == model.plain_view


def put_plain(connection: Connection, view: PlainView, *, or_replace: bool) -> None:
    """Add a plain view, or put it in the place of the one that has its name."""
    if or_replace:
        connection.execute(delete(t.plain_views).where(t.plain_views.c.key == view.key))
    claim_name(connection, view.key, view.name)
    values = {**vars(view), "columns": [list(c) for c in view.columns], "settings": dict(view.settings)}
    connection.execute(insert(t.plain_views).values(**values))


def _say_emptied(connection: Connection, epoch: int, definition: Definition, publication: Publication) -> None:
    """A view that is replaced and not filled has no rows from this epoch on; those of earlier epochs stay."""
    own = definition.nodes[-1]
    if definition.replaces and own.version is None and own.name not in publication.versions:
        connection.execute(insert(t.node_versions).values(epoch=epoch, node=own.name, version=t.NO_ROWS))


def claim_name(connection: Connection, key: str, name: str) -> None:
    claim_schema(connection, name)
    for table, kind in ((t.tables, "table"), (t.views, "materialized view"), (t.plain_views, "view")):
        if connection.execute(select(table.c.key).where(table.c.key == key)).scalar() is not None:
            raise AlreadyExistsError(
                f"the name {name!r} is taken by a {kind}. Choose another name"
                + (
                    ", or use CREATE OR REPLACE or IF NOT EXISTS."
                    if table is not t.tables
                    else ", or use IF NOT EXISTS."
                )
            )


def _values(view: ViewRecord) -> dict[str, object]:
    return {
        "name": view.name, "query": view.query, "columns": [list(c) for c in view.columns], "comment": view.comment,
        "properties": dict(view.properties), "refresh": view.refresh, "policy": view.policy,
        "reads": list(view.reads), "reason_code": view.reason_code, "reason": view.reason,
        "created_at": view.created_at, "options": asdict(view.options), "scheduled_at": view.scheduled_at,
        "written": view.written,
    }  # fmt: skip


def _insert_node(connection: Connection, node: NodeRecord) -> None:
    connection.execute(
        insert(t.nodes).values(
            name=node.name, hidden=node.hidden, path=node.path, fingerprint=node.fingerprint,
            schema_json=node.schema_json, details=node.details.to_json(), version=node.version,
        )
    )  # fmt: skip
    _insert_inputs(connection, node)


def _update_node(connection: Connection, node: NodeRecord) -> None:
    """The node of a view that is replaced. Without a version, what the old one had consumed is not true of it."""
    connection.execute(
        update(t.nodes).where(t.nodes.c.name == node.name).values(
            path=node.path, fingerprint=node.fingerprint, schema_json=node.schema_json, details=node.details.to_json(),
            version=node.version,
        )
    )  # fmt: skip
    connection.execute(delete(t.dependencies).where(t.dependencies.c.node == node.name))
    _insert_inputs(connection, node)
    if node.version is None:
        connection.execute(delete(t.frontiers).where(t.frontiers.c.node == node.name))
        connection.execute(delete(t.watermarks).where(t.watermarks.c.relation == node.name))


def _insert_inputs(connection: Connection, node: NodeRecord) -> None:
    for position, read in enumerate(node.inputs):
        connection.execute(insert(t.dependencies).values(node=node.name, position=position, input=read))


def drop_unused_nodes(connection: Connection) -> None:
    """A hidden node's name tells what it computes, so one that comes again must not find what this one has left."""
    used = select(t.view_nodes.c.node)
    connection.execute(delete(t.nodes).where(t.nodes.c.name.not_in(used)))
    nodes, tables = select(t.nodes.c.name), select(t.tables.c.key)
    connection.execute(delete(t.node_versions).where(t.node_versions.c.node.not_in(nodes)))
    relation = t.watermarks.c.relation
    connection.execute(delete(t.watermarks).where(relation.not_in(nodes), relation.not_in(tables)))


def drop_views(connection: Connection, keys: Collection[str]) -> None:
    models = select(t.read_models.c.plain_view).where(t.read_models.c.key.in_(keys))
    shown = list(connection.execute(models).scalars())
    connection.execute(delete(t.plain_views).where(t.plain_views.c.key.in_(shown)))
    connection.execute(delete(t.read_models).where(t.read_models.c.key.in_(keys)))
    connection.execute(delete(t.views).where(t.views.c.key.in_(keys)))
    connection.execute(delete(t.nodes).where(t.nodes.c.name.in_(keys)))
    connection.execute(delete(t.alerts).where(t.alerts.c.view.in_(keys)))
    drop_unused_nodes(connection)


def listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)


def read_or_reads(names: list[str]) -> str:
    return "reads" if len(names) == 1 else "read"
