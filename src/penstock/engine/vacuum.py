"""Freeing what epochs beyond the setting ``retention`` have left: files of the views' tables, rows of the catalog.

It happens by itself after a refresh, once a day, and when a user asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, timezone

from penstock.catalog import Catalog
from penstock.catalog.checkpoints import Checkpoints
from penstock.catalog.leases import Leases
from penstock.catalog.retention import forget, forget_history, needed_versions
from penstock.engine.settings import length_of, retention
from penstock.storage.delta_log import HistoryGone
from penstock.storage.vacuum import Freed, delete_left, leave_forgotten, vacuum

TABLES = "tables"
"""The folder of the source tables that are ours."""
VACUUMED_AT = "vacuumed_at"
"""Kept beside the settings: when it happened last."""

_EVERY = timedelta(days=1)
_LEAST = timedelta(hours=1)
"""What was replaced or written less than this ago stays, whatever the setting says: a query may still be reading it, or
a writer may still commit it."""
_FORGOTTEN = timedelta(days=1)
"""What a CREATE that was killed has left is deleted when nothing was written there for so long."""


def vacuum_if_due(catalog: Catalog, settings: Mapping[str, str], folders: Collection[str]) -> None:
    """Once a day, or as often as epochs expire if that is more often."""
    every = max(min(_EVERY, retention(settings)), _LEAST)
    last = settings.get(VACUUMED_AT)
    if last is None or datetime.fromisoformat(last) < _now() - every:
        vacuum_views(catalog, folders)


def vacuum_views(catalog: Catalog, folders: Collection[str], nodes: Collection[str] | None = None) -> Freed:
    """Delete what is no longer needed of these nodes' tables; without nodes of all, and of views that are gone.

    ``folders`` are where the tables lie. Expired epochs are forgotten.
    """
    cutoff = _now() - max(retention(catalog.world().settings), _LEAST)
    freed = Freed()
    for name in needed_versions(catalog, cutoff):
        if nodes is None or name in nodes:
            freed += _vacuum_node(catalog, name, cutoff)
    if nodes is None:
        used = _used_paths(catalog)
        for folder in folders:
            mine = os.path.basename(folder) != TABLES  # among users' tables, what is not known may be somebody's
            leave_forgotten(folder, used, _now() - _FORGOTTEN, empty=not mine)
            freed += delete_left(folder, used, _now() - _LEAST)
        forget(catalog, cutoff)
        forget_history(catalog, _now() - length_of(catalog.world().settings, "history_retention"))
        catalog.set_setting(VACUUMED_AT, _now().isoformat())
    return freed


def _used_paths(catalog: Catalog) -> set[str]:
    """Where the tables lie that the catalog, or a checkpoint, knows."""
    checkpoints, world = Checkpoints(catalog).all(), catalog.world()
    kept = {path for checkpoint in checkpoints for path, _ in checkpoint.nodes.values()}
    kept |= {table["path"] for checkpoint in checkpoints for table in checkpoint.tables}
    return kept | {node.path for node in world.nodes.values()} | {table.path for table in world.tables.values()}


def _vacuum_node(catalog: Catalog, name: str, cutoff: datetime) -> Freed:
    """Another process may be refreshing the node: it is left alone then. A checkpoint may have come meanwhile.

    A writer that is alive, or of which nothing is known, may still commit what it has written, though its lease has run
    out. One that lost its lease cannot publish; what it wrote in the last hour stays all the same.
    """
    with Leases(catalog, [name], expired=False) as held:
        needed = needed_versions(catalog, cutoff).get(name)
        if held or needed is None:
            return Freed()
        try:
            return vacuum(needed.path, needed.since, needed.pinned, written_before=_now() - _LEAST)
        except HistoryGone:  # what is needed cannot be told, so nothing is deleted
            return Freed()


def _now() -> datetime:
    return datetime.now(timezone.utc)
