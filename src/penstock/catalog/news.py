"""What the catalog has gained since a moment: refreshes and epochs, whoever made them. For one who follows along."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from penstock.catalog import tables as t
from penstock.catalog.catalog import Catalog, utc
from penstock.catalog.history_rows import history_of
from penstock.catalog.records import EpochRecord, HistoryRecord

_MOST = 1_000
"""Refreshes and epochs that are told of at once; the rest comes with the next look."""


@dataclass(frozen=True)
class Place:
    """How far somebody has read: the last refresh and the last epoch that they know."""

    history: int = 0
    epoch: int = 0


@dataclass(frozen=True)
class News:
    place: Place
    """How far it reaches."""
    history: list[HistoryRecord]
    epochs: list[EpochRecord]


def newest(catalog: Catalog) -> Place:
    """The place behind all that there is now."""
    published = select(func.max(t.epochs.c.id)).where(t.epochs.c.published_at.is_not(None))
    with catalog.transaction(writes=False) as connection:
        last = connection.execute(select(func.max(t.history.c.id))).scalar()
        return Place(int(last or 0), int(connection.execute(published).scalar() or 0))


def news(catalog: Catalog, since: Place) -> News:
    """What came after a place, in the order in which it came."""
    shown = t.epochs.c.id > since.epoch, t.epochs.c.published_at.is_not(None)
    with catalog.transaction(writes=False) as connection:
        epochs = connection.execute(select(t.epochs).where(*shown).order_by(t.epochs.c.id).limit(_MOST)).mappings()
        found = [
            EpochRecord(
                id=row["id"],
                published_at=utc(row["published_at"]),
                restored=row["restored"],
                sources={},
                run=row["run"],
            )
            for row in epochs
        ]
        later = select(t.history).where(t.history.c.id > since.history).order_by(t.history.c.id).limit(_MOST)
        rows = list(connection.execute(later).mappings())
    place = Place(rows[-1]["id"] if rows else since.history, found[-1].id if found else since.epoch)
    return News(place, [history_of(row) for row in rows], found)


def of_epochs(catalog: Catalog, first: int, last: int) -> list[HistoryRecord]:
    """The refreshes that published the epochs from one to another, both among them."""
    wanted = select(t.history).where(t.history.c.epoch >= first, t.history.c.epoch <= last).order_by(t.history.c.id)
    with catalog.transaction(writes=False) as connection:
        return [history_of(row) for row in connection.execute(wanted.limit(_MOST)).mappings()]
