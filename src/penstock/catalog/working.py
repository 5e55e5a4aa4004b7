"""Who is refreshing what, as the leases tell it: a refresh that goes on is RUNNING, one whose process ended is FAILED.

Nothing is written for a refresh while it goes on but its leases. Whoever finds those of a process that has ended takes
them away, and writes down that the refresh failed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from sqlalchemy import Connection, RowMapping, delete, func, select

from penstock.catalog import tables as t
from penstock.catalog.publishing import remember
from penstock.catalog.records import HistoryRecord
from penstock.catalog.tables import utc
from penstock.vocabulary import Action, Reason, Status

TERM = timedelta(seconds=60)
"""How long a lease holds without word from its owner."""

_NOT_KNOWN_YET = Action.recorded("")

owners: set[str] = set()
"""Who has leases in this process. Another owner of its number was there before it, as in a container that restarts."""


def is_dead(lease: RowMapping) -> bool:
    """Whether the owner of a lease is known to have ended. Of another host nothing is known."""
    if lease["host"] != socket.gethostname():
        return False
    if lease["pid"] == os.getpid():
        return lease["owner"] not in owners
    try:
        os.kill(lease["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def is_over(lease: RowMapping, now: datetime) -> bool:
    """Whether nothing comes of a lease any more, as far as can be told."""
    return is_dead(lease) or (lease["host"] != socket.gethostname() and utc(lease["expires_at"]) <= now)


def dead_leases(connection: Connection) -> list[RowMapping]:
    """The leases of processes that have ended."""
    return [lease for lease in connection.execute(select(t.leases)).mappings() if is_dead(lease)]


def take_away(connection: Connection, leases: Iterable[RowMapping]) -> None:
    """Free the leases of those who have ended, and write down that their refreshes failed."""
    over = list(leases)
    if over:
        connection.execute(delete(t.leases).where(t.leases.c.owner.in_({lease["owner"] for lease in over})))
        remember(connection, [_failed(connection, lease) for lease in _of_views(connection, over)])


def working(connection: Connection, now: datetime, view: str | None = None) -> list[HistoryRecord]:
    """The refreshes that go on, and those that were broken off and nobody has written down yet."""
    wanted = select(t.leases) if view is None else select(t.leases).where(t.leases.c.node == view)
    leases = _of_views(connection, connection.execute(wanted).mappings())
    return [_failed(connection, each) if is_over(each, now) else _record(connection, each) for each in leases]


def being_refreshed(connection: Connection, now: datetime) -> set[str]:
    """The nodes that somebody refreshes, of whom there was word in time."""
    found = connection.execute(select(t.leases).where(t.leases.c.began.is_not(None))).mappings()
    return {lease["node"] for lease in found if utc(lease["expires_at"]) > now and not is_dead(lease)}


def _of_views(connection: Connection, leases: Iterable[RowMapping]) -> list[RowMapping]:
    found = [lease for lease in leases if lease["began"] is not None]
    known = set(connection.execute(select(t.views.c.key)).scalars()) if found else set()
    return [lease for lease in found if lease["node"] in known]


def _record(connection: Connection, lease: RowMapping) -> HistoryRecord:
    epoch = connection.execute(select(func.max(t.epochs.c.id))).scalar() or 0
    began = utc(lease["began"])
    return HistoryRecord(
        epoch=epoch, view=lease["node"], status=Status.RUNNING, action=_NOT_KNOWN_YET, strategy=None,
        reason=Reason.recorded(""), rows_inserted=0, rows_deleted=0,
        seconds=max(0.0, (datetime.now(timezone.utc) - began).total_seconds()), started_at=began,
    )  # fmt: skip


def _failed(connection: Connection, lease: RowMapping) -> HistoryRecord:
    heard = utc(lease["expires_at"]) - TERM
    return HistoryRecord(
        epoch=connection.execute(select(func.max(t.epochs.c.id))).scalar() or 0, view=lease["node"],
        status=Status.FAILED, action=Action.SKIP, strategy=None, reason=Reason.INTERRUPTED, rows_inserted=0,
        rows_deleted=0, seconds=max(0.0, (heard - utc(lease["began"])).total_seconds()), started_at=utc(lease["began"]),
        error=f"process {lease['pid']} on {lease['host']} ended before anything of it was published. Refresh again.",
    )  # fmt: skip
