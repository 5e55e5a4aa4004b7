"""What somebody should know of: an alert is raised once when it begins, and cleared when it is over.

Whoever writes the row is the one to tell of it, so that of several processes one does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from penstock.catalog import tables as t
from penstock.vocabulary import Action, AlertKind, Status

if TYPE_CHECKING:
    from penstock.catalog.records import HistoryRecord

Episode = tuple[str, AlertKind]
"""A view's key and what is the matter with it: while that goes on, it is told once."""


@dataclass(frozen=True, kw_only=True)
class Alert:
    kind: AlertKind
    view: str
    """The view's key."""
    message: str
    suggestion: str | None
    epoch: int
    """The epoch in which it was raised."""
    raised_at: datetime
    cleared_at: datetime | None = None


SUGGESTIONS: Mapping[AlertKind, str] = {
    AlertKind.STATE_MISMATCH: "Run penstock verify on the view, and look for what else writes to its table or its "
    "sources.",
    AlertKind.LAG_EXCEEDED: "See that penstock run is running, what penstock status says of the view and of what it "
    "reads, and how long its refreshes take; or give it a longer TARGET LAG.",
    AlertKind.AUTO_SUSPENDED: "Mend what the error names, then ALTER MATERIALIZED VIEW .. RESUME.",
    AlertKind.REINITIALIZE_NEEDED: "If the view was filled anew, nothing. If its query no longer holds, CREATE OR "
    "REPLACE it, or put the column or the table back.",
    AlertKind.CHANGE_BACKLOG: "See that penstock run is running and the view is not suspended; write in fewer, larger "
    "commits, or SET max_change_backlog to a larger number.",
    AlertKind.UPSTREAM_FAILED: "Look at the view that it reads: SHOW REFRESH HISTORY tells what failed.",
    AlertKind.NOT_PUBLISHED: "Do what the message says. The next refresh with a Spark session that runs, and any "
    "CREATE, tries it again.",
    AlertKind.FELL_BACK_TO_FULL: "Refresh more often, so that changes are smaller; or keep to it with REFRESH POLICY "
    "INCREMENTAL.",
}

_OF_A_REFRESH = (
    AlertKind.STATE_MISMATCH, AlertKind.REINITIALIZE_NEEDED, AlertKind.UPSTREAM_FAILED, AlertKind.FELL_BACK_TO_FULL,
)  # fmt: skip
"""Alerts that a refresh which succeeds without raising them ends."""


def settle(connection: Connection, refreshes: Iterable[HistoryRecord], at: datetime) -> list[Alert]:
    """Raise and clear what some refreshes give reason to, in the transaction that keeps their history."""
    changed: list[Alert] = []
    going_on = open_episodes(connection)
    for refresh in refreshes:
        raised = {AlertKind.recorded(kind): told for kind, told in (refresh.details or {}).get("alerts", {}).items()}
        over = [kind for kind in _ended(refresh) if kind not in raised and (refresh.view, kind) in going_on]
        if raised or over:
            news = {(refresh.view, kind): message for kind, message in raised.items()}
            changed += change(connection, news, [(refresh.view, kind) for kind in over], refresh.epoch, at)
    return changed


def _ended(refresh: HistoryRecord) -> Collection[AlertKind]:
    """What a refresh puts an end to. One that found nothing to do does not show that the next is incremental."""
    if refresh.status != Status.SUCCEEDED or refresh.action == Action.SKIP:
        return ()
    if refresh.action == Action.NO_DATA:
        return [kind for kind in _OF_A_REFRESH if kind != AlertKind.FELL_BACK_TO_FULL]
    return _OF_A_REFRESH


def open_episodes(connection: Connection) -> set[Episode]:
    alerts = t.alerts.c
    rows = connection.execute(select(alerts.view, alerts.kind).where(alerts.cleared_at.is_(None)))
    return {(row.view, AlertKind.recorded(row.kind)) for row in rows}


def change(
    connection: Connection, raised: Mapping[Episode, str], over: Collection[Episode], epoch: int, at: datetime
) -> list[Alert]:
    """Raise what does not go on already, and clear what is over; gives what has changed by it."""
    going_on = open_episodes(connection)
    changed = [_raise(connection, each, raised[each], epoch, at) for each in raised if each not in going_on]
    return changed + [_clear(connection, each, at) for each in over if each in going_on]


def _raise(connection: Connection, episode: Episode, message: str, epoch: int, at: datetime) -> Alert:
    view, kind = episode
    alert = Alert(
        kind=kind, view=view, message=message, suggestion=SUGGESTIONS.get(kind), epoch=epoch,
        raised_at=_after_the_last(connection, episode, at),
    )  # fmt: skip
    connection.execute(insert(t.alerts).values(**vars(alert)))
    return alert


def _after_the_last(connection: Connection, episode: Episode, at: datetime) -> datetime:
    """When an episode begins: after the one before it, though the clock was set back since."""
    alerts = t.alerts.c
    same = (alerts.view == episode[0], alerts.kind == episode[1])
    last = connection.execute(select(func.max(alerts.raised_at)).where(*same)).scalar()
    if last is None:
        return at
    return max(at, t.utc(last) + timedelta(microseconds=1))


def _clear(connection: Connection, episode: Episode, at: datetime) -> Alert:
    alerts = t.alerts.c
    this = (alerts.view == episode[0], alerts.kind == episode[1], alerts.cleared_at.is_(None))
    row = connection.execute(select(t.alerts).where(*this)).mappings().one()
    connection.execute(update(t.alerts).where(*this).values(cleared_at=at))
    return replace(alert_of(row), cleared_at=at)


def alert_of(row: RowMapping) -> Alert:
    fields = dict(row)
    times = {key: t.utc(fields[key]) for key in ("raised_at", "cleared_at") if fields[key] is not None}
    return Alert(**{**fields, **times, "kind": AlertKind.recorded(fields["kind"])})
