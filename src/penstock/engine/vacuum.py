"""Freeing what epochs beyond the setting ``retention`` have left: files of the views' tables, rows of the catalog.

It happens by itself after a refresh, once a day, and when a user asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, timezone

from penstock.catalog import Catalog
from penstock.catalog.leases import Leases
from penstock.catalog.retention import forget, needed_versions
from penstock.engine.settings import retention
from penstock.storage.delta_log import HistoryGone
from penstock.storage.vacuum import Freed, delete_left, vacuum

VACUUMED_AT = "vacuumed_at"
"""Kept beside the settings: when it happened last."""

_EVERY = timedelta(days=1)
_LEAST = timedelta(hours=1)
"""What was replaced less than this ago stays, whatever the setting says: a query may still be reading it."""


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
        for folder in folders:
            freed += delete_left(folder, _now() - _LEAST)
        forget(catalog, cutoff)
        catalog.set_setting(VACUUMED_AT, _now().isoformat())
    return freed


def _vacuum_node(catalog: Catalog, name: str, cutoff: datetime) -> Freed:
    """Another process may be refreshing the node: it is left alone then. A checkpoint may have come meanwhile."""
    with Leases(catalog, [name]) as held:
        needed = needed_versions(catalog, cutoff).get(name)
        if held or needed is None:
            return Freed()
        try:
            return vacuum(needed.path, needed.since, needed.pinned)
        except HistoryGone:  # what is needed cannot be told, so nothing is deleted
            return Freed()


def _now() -> datetime:
    return datetime.now(timezone.utc)
