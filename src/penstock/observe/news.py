"""What happens in a warehouse, told in order to whoever follows it: epochs, refreshes that failed, alerts.

It is read from the catalog, so it does not matter which process made it happen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.catalog import Catalog, HistoryRecord, World
from penstock.catalog.alerts import Alert
from penstock.catalog.news import newest, news, of_epochs
from penstock.vocabulary import Action, Status

_MOVED = (Action.INCREMENTAL, Action.FULL, Action.REINITIALIZE)


@dataclass(frozen=True)
class Event:
    """``kind``: ``epoch``, ``failure``, ``alert``; of a refresh that goes on also ``refresh`` and ``node``."""

    kind: str
    epoch: int
    """The newest epoch when it happened; of an epoch, its own number."""
    data: dict[str, Any]


class Follower:
    """Gives what is new since it was last asked. It belongs to one thread."""

    def __init__(self, catalog: Catalog):
        self._catalog = catalog
        self._pulse = catalog.pulse()
        self._beat: object = self._pulse.beat()
        self._place = newest(catalog)
        self._alerts = {_episode(alert): alert for alert in catalog.alerts()}

    @property
    def epoch(self) -> int:
        return self._place.epoch

    def look(self) -> tuple[list[Event], list[HistoryRecord]]:
        """Events, and the refreshes that came to an end. Where nothing was written, nothing is read."""
        beat = self._pulse.beat()
        if beat == self._beat:
            return [], []
        self._beat = beat
        found = news(self._catalog, self._place)
        world, alerts = self._catalog.world(), {_episode(alert): alert for alert in self._catalog.alerts()}
        self._place = found.place
        events = [_published(world, e.id, e.published_at, e.restored, found.history) for e in found.epochs]
        events += [_failed(world, r) for r in found.history if r.status == Status.FAILED]
        events += [_alert(world, a) for key, a in reversed(alerts.items()) if self._alerts.get(key) != a]
        self._alerts = alerts
        return events, found.history

    def missed(self, since: int) -> list[Event]:
        """The epochs after one that somebody knows, up to where this follower is, as far as the catalog has them."""
        first, last = since + 1, self.epoch
        history = of_epochs(self._catalog, first, last)
        world = self._catalog.world()
        known = [epoch for epoch in self._catalog.epochs() if first <= epoch.id <= last]
        return [_published(world, e.id, e.published_at, e.restored, history) for e in reversed(known)]

    def leases(self) -> int:
        """How many nodes somebody works on."""
        return len(self._catalog.leased())

    def close(self) -> None:
        self._pulse.close()


def _episode(alert: Alert) -> tuple[str, str, datetime]:
    return alert.view, str(alert.kind), alert.raised_at


def _published(world: World, epoch: int, at: datetime, restored: int | None, history: Iterable[HistoryRecord]) -> Event:
    did = [_counted(world, r) for r in history if r.epoch == epoch and r.action in _MOVED and r.status != Status.FAILED]
    return Event("epoch", epoch, {"epoch": epoch, "published_at": at, "restored": restored, "views": did})


def _counted(world: World, record: HistoryRecord) -> dict[str, Any]:
    return {
        "view": world.display_name(record.view), "action": record.action, "reason": record.reason,
        "strategy": record.strategy, "rows_inserted": record.rows_inserted, "rows_deleted": record.rows_deleted,
        "seconds": record.seconds,
    }  # fmt: skip


def _failed(world: World, record: HistoryRecord) -> Event:
    told = {"view": world.display_name(record.view), "reason": record.reason, "error": record.error}
    return Event("failure", record.epoch, told)


def _alert(world: World, alert: Alert) -> Event:
    told = {
        "event": "raised" if alert.cleared_at is None else "cleared", "kind": alert.kind,
        "view": world.display_name(alert.view), "message": alert.message, "suggestion": alert.suggestion,
        "raised_at": alert.raised_at, "cleared_at": alert.cleared_at,
    }  # fmt: skip
    return Event("alert", alert.epoch, told)
