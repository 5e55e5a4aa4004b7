"""What somebody should know of: an alert is raised once when it begins, and cleared when it is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection, insert, select, update

from penstock.catalog import tables as t

if TYPE_CHECKING:
    from penstock.catalog.records import HistoryRecord

STATE_MISMATCH = "state_mismatch"
"""A view's stored rows did not fit its inputs. Over when the view is refreshed without finding such rows."""

_OF_A_REFRESH = (STATE_MISMATCH,)
"""Alerts that a refresh which succeeds without raising them ends."""


@dataclass(frozen=True)
class Alert:
    kind: str
    view: str
    """The view's key."""
    message: str
    suggestion: str | None
    epoch: int
    """The epoch in which it was raised."""
    raised_at: datetime
    cleared_at: datetime | None = None


SUGGESTIONS = {
    STATE_MISMATCH: "Run penstock verify on the view, and look for what else writes to its table or its sources.",
}


def settle(connection: Connection, refreshes: Iterable[HistoryRecord], at: datetime) -> None:
    """Raise and clear the alerts that some refreshes give reason to, in the transaction that keeps their history."""
    open_ones: dict[str, set[str]] = {}
    for view, kind in connection.execute(
        select(t.alerts.c.view, t.alerts.c.kind).where(t.alerts.c.cleared_at.is_(None))
    ):
        open_ones.setdefault(view, set()).add(kind)
    for refresh in refreshes:
        raised = (refresh.details or {}).get("alerts", {})
        going_on = open_ones.get(refresh.view, set())
        for kind in raised.keys() - going_on:
            connection.execute(
                insert(t.alerts).values(
                    kind=kind, view=refresh.view, message=raised[kind], suggestion=SUGGESTIONS.get(kind),
                    epoch=refresh.epoch, raised_at=at,
                )
            )  # fmt: skip
        if refresh.status == "SUCCEEDED" and refresh.action != "SKIP":
            over = [kind for kind in _OF_A_REFRESH if kind in going_on and kind not in raised]
            _clear(connection, refresh.view, over, at)


def _clear(connection: Connection, view: str, kinds: Iterable[str], at: datetime) -> None:
    alerts = t.alerts.c
    for kind in kinds:
        wanted = (alerts.view == view, alerts.kind == kind, alerts.cleared_at.is_(None))
        connection.execute(update(t.alerts).where(*wanted).values(cleared_at=at))
