"""What somebody should know of: an alert is raised once when it begins, and cleared when it is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection, insert, select, update

from penstock.catalog import tables as t
from penstock.vocabulary import Action, Status

if TYPE_CHECKING:
    from penstock.catalog.records import HistoryRecord

STATE_MISMATCH = "state_mismatch"
"""A view's stored rows did not fit its inputs. Over when the view is refreshed without finding such rows."""

_OF_A_REFRESH = (STATE_MISMATCH,)
"""Alerts that a refresh which succeeds without raising them ends."""


@dataclass(frozen=True, kw_only=True)
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
    alerts = t.alerts.c
    open_ones = connection.execute(select(alerts.view, alerts.kind).where(alerts.cleared_at.is_(None)))
    going_on = {(row.view, row.kind) for row in open_ones}
    for refresh in refreshes:
        raised = (refresh.details or {}).get("alerts", {})
        for kind, message in raised.items():
            if (refresh.view, kind) not in going_on:
                connection.execute(
                    insert(t.alerts).values(
                        kind=kind, view=refresh.view, message=message, suggestion=SUGGESTIONS.get(kind),
                        epoch=refresh.epoch, raised_at=at,
                    )
                )  # fmt: skip
        over = refresh.status == Status.SUCCEEDED and refresh.action != Action.SKIP
        for kind in _OF_A_REFRESH:
            if over and kind not in raised and (refresh.view, kind) in going_on:
                ended = (alerts.view == refresh.view, alerts.kind == kind, alerts.cleared_at.is_(None))
                connection.execute(update(t.alerts).where(*ended).values(cleared_at=at))
