"""What the refreshes of a view came to, as far back as the history goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.catalog import Catalog
from penstock.catalog.records import Refreshing
from penstock.vocabulary import Action, Status

_NOT_FAILED = (Status.SUCCEEDED, Status.SKIPPED)


@dataclass(frozen=True, kw_only=True)
class ViewStatistics:
    view: str
    """The view's key."""
    refreshes: int = 0
    """Those that succeeded, also if there was nothing to do."""
    incremental: int = 0
    full: int = 0
    """Recomputed, or filled anew."""
    without_change: int = 0
    skips: int = 0
    errors: int = 0
    seconds: float = 0.0
    rows_inserted: int = 0
    rows_deleted: int = 0
    last_lag: timedelta | None = None
    """How old the view was just before its last refresh made it fresh."""
    largest_lag: timedelta | None = None
    """The same of the refresh for which that was the most."""
    since: datetime | None = None
    """When the first of these refreshes began."""


def statistics(catalog: Catalog) -> dict[str, ViewStatistics]:
    by_view: dict[str, list[Refreshing]] = {}
    for refresh in catalog.refreshes():
        by_view.setdefault(refresh.view, []).append(refresh)
    return {view: summed(view, refreshes) for view, refreshes in by_view.items()}


def summed(view: str, refreshes: list[Refreshing]) -> ViewStatistics:
    """``refreshes`` in the order in which they were recorded."""
    done = [r for r in refreshes if r.status == Status.SUCCEEDED and r.action != Action.SKIP]
    lags = _lags(done)
    return ViewStatistics(
        view=view,
        refreshes=sum(r.times for r in done),
        incremental=sum(r.action == Action.INCREMENTAL for r in done),
        full=sum(r.action in (Action.FULL, Action.REINITIALIZE) for r in done),
        without_change=sum(r.times for r in done if r.action == Action.NO_DATA),
        skips=sum(r.times for r in refreshes if r.action == Action.SKIP and r.status in _NOT_FAILED),
        errors=sum(r.status == Status.FAILED for r in refreshes),
        seconds=sum(r.seconds for r in refreshes),
        rows_inserted=sum(r.rows_inserted for r in done),
        rows_deleted=sum(r.rows_deleted for r in done),
        last_lag=lags[-1] if lags else None,
        largest_lag=max(lags, default=None),
        since=min((r.since or r.started_at for r in refreshes), default=None),
    )


def _lags(done: Iterable[Refreshing]) -> list[timedelta]:
    """From when one refresh looked at the sources until the next was through."""
    refreshes = list(done)
    ends = [(r.since or r.started_at) + timedelta(seconds=r.seconds / r.times) for r in refreshes]
    gaps = [after - earlier.started_at for earlier, after in zip(refreshes, ends[1:], strict=False)]
    inner = [timedelta(seconds=r.longest) if r.longest else None for r in refreshes]
    return [lag for pair in zip([None, *gaps], inner, strict=False) for lag in pair if lag is not None]
