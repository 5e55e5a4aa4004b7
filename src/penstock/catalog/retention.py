"""Which versions of the nodes' tables are still needed, and forgetting the others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, select

from penstock.catalog import tables as t
from penstock.catalog.catalog import Catalog, latest, read_world
from penstock.catalog.checkpoints import Checkpoints
from penstock.vocabulary import Action, Status

_BY_EPOCH = (
    (t.node_versions, t.node_versions.c.node),
    (t.source_versions, t.source_versions.c.source),
    (t.watermarks, t.watermarks.c.relation),
)


@dataclass(frozen=True)
class Needed:
    """The versions of a node's table that can be asked for: all from one on, and some before it."""

    path: str
    since: int
    pinned: frozenset[int]


def needed_versions(catalog: Catalog, cutoff: datetime) -> dict[str, Needed]:
    """What epochs replaced after ``cutoff``, readers that lag behind, and checkpoints need; nothing if that is all."""
    checkpoints = Checkpoints(catalog).all()
    with catalog.transaction(writes=False) as connection:
        oldest = _oldest_epoch(connection, cutoff)
        if oldest is None:
            return {}
        world = read_world(connection)
        shown = latest(connection, t.node_versions, t.node_versions.c.node, oldest)
    needed = {}
    for name, node in world.nodes.items():
        if name not in shown:  # all of it is newer
            continue
        consumed = [f[name].version for f in world.frontiers.values() if name in f]
        since = min([shown[name], *consumed])
        pins = set()
        for checkpoint in checkpoints:
            path, version = checkpoint.nodes.get(name, (None, None))
            if path == node.path and version is not None:
                pins |= {version, *checkpoint.consumed(name)}
        needed[name] = Needed(node.path, since, frozenset(pin for pin in pins if pin < since))
    return needed


def forget(catalog: Catalog, cutoff: datetime) -> None:
    """Drop what is kept by epoch and belongs to epochs that can no longer be asked for."""
    named = {checkpoint.epoch for checkpoint in Checkpoints(catalog).all()}
    with catalog.transaction(writes=True) as connection:
        oldest = _oldest_epoch(connection, cutoff)
        if oldest is None:
            return
        for table, name in _BY_EPOCH:
            kept: dict[str, set[int]] = {}
            for epoch in {oldest, *(e for e in named if e < oldest)}:
                last = select(name, func.max(table.c.epoch)).where(table.c.epoch <= epoch).group_by(name)
                for row in connection.execute(last):
                    kept.setdefault(row[0], set()).add(row[1])
            for key, epochs in kept.items():
                old = (name == key, table.c.epoch < oldest, table.c.epoch.not_in(epochs))
                connection.execute(delete(table).where(*old))


def forget_history(catalog: Catalog, cutoff: datetime) -> None:
    """Drop what refreshes did before a moment, and alerts that were over by then.

    The last refresh of each view stays, and the last that saw its sources: they tell how old the view is.
    """
    history = t.history.c
    saw = (history.status == Status.SUCCEEDED, history.action != Action.SKIP)
    last = select(func.max(history.id)).group_by(history.view)
    with catalog.transaction(writes=True) as connection:
        kept = set(connection.execute(last).scalars()) | set(connection.execute(last.where(*saw)).scalars())
        connection.execute(delete(t.history).where(history.started_at < cutoff, history.id.not_in(kept)))
        connection.execute(delete(t.alerts).where(t.alerts.c.cleared_at < cutoff))


def _oldest_epoch(connection: Connection, cutoff: datetime) -> int | None:
    """The oldest epoch that can be read: the last one published by then, since it was replaced after it."""
    return connection.execute(select(func.max(t.epochs.c.id)).where(t.epochs.c.published_at <= cutoff)).scalar()
