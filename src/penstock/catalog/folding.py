"""Refreshes that came to nothing, one after the other, are one line of the history: it grows with what happens.

A view with a lag is looked at in every period, and one that another process holds at every look. Such refreshes are
kept as one record, which says how often, since when, and what became of it the last time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import Connection, RowMapping, delete, func, select

from penstock.catalog import tables as t
from penstock.catalog.records import HistoryRecord
from penstock.catalog.tables import utc
from penstock.vocabulary import Action, Status


def folded(connection: Connection, records: Iterable[HistoryRecord]) -> list[HistoryRecord]:
    """The records to keep. What they continue is taken away, and they stand for it too."""
    kept = list(records)
    open_views = [record.view for record in kept if _came_to_nothing(record)]
    if not open_views:
        return kept
    last = select(func.max(t.history.c.id)).where(t.history.c.view.in_(open_views)).group_by(t.history.c.view)
    rows = connection.execute(select(t.history).where(t.history.c.id.in_(last))).mappings()
    before = {row["view"]: row for row in rows}
    continued = {r.view: before[r.view] for r in kept if _continued_by(r, before)}
    if continued:
        gone = [row["id"] for row in continued.values()]
        connection.execute(delete(t.history).where(t.history.c.id.in_(gone)))
    return [_together(continued[r.view], r) if _continued_by(r, continued) else r for r in kept]


def _continued_by(record: HistoryRecord, before: Mapping[str, RowMapping]) -> bool:
    return record.view in before and _continues(before[record.view], record)


def _came_to_nothing(record: HistoryRecord) -> bool:
    """A refresh that somebody asked for, and that found nothing to do, is an answer, and stays."""
    if record.status == Status.FAILED:
        return False
    return record.action == Action.SKIP or (record.action == Action.NO_DATA and _by_itself(record.details))


def _by_itself(details: object) -> bool:
    return isinstance(details, dict) and "due" in details


def _continues(row: RowMapping, record: HistoryRecord) -> bool:
    said = ("status", "action", "reason")
    if not _came_to_nothing(record) or any(row[name] != getattr(record, name) for name in said):
        return False
    return _by_itself(row["details"]) == _by_itself(record.details)


def _together(row: RowMapping, record: HistoryRecord) -> HistoryRecord:
    since, last = utc(row["since"] or row["started_at"]), utc(row["started_at"])
    between = (record.started_at + timedelta(seconds=record.seconds) - last).total_seconds()
    return replace(
        record, times=(row["times"] or 1) + 1, since=since, seconds=row["seconds"] + record.seconds,
        longest=max(row["longest"] or 0.0, between),
    )  # fmt: skip
