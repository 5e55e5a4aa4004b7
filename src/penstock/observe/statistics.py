"""What the refreshes of a view came to, as far back as the history goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from penstock.catalog import Catalog
from penstock.catalog.records import Refreshing
from penstock.vocabulary import Action, Status


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
        refreshes=len(done),
        incremental=sum(r.action == Action.INCREMENTAL for r in done),
        full=sum(r.action in (Action.FULL, Action.REINITIALIZE) for r in done),
        without_change=sum(r.action == Action.NO_DATA for r in done),
        skips=sum(r.action == Action.SKIP and r.status in (Status.SUCCEEDED, Status.SKIPPED) for r in refreshes),
        errors=sum(r.status == Status.FAILED for r in refreshes),
        seconds=sum(r.seconds for r in refreshes),
        rows_inserted=sum(r.rows_inserted for r in done),
        rows_deleted=sum(r.rows_deleted for r in done),
        last_lag=lags[-1] if lags else None,
        largest_lag=max(lags, default=None),
        since=min((r.started_at for r in refreshes), default=None),
    )


def _lags(done: Iterable[Refreshing]) -> list[timedelta]:
    """From when one refresh looked at the sources until the next was through."""
    moments = [(r.started_at, r.started_at + timedelta(seconds=r.seconds)) for r in done]
    return [after - begun for (begun, _), (_, after) in pairwise(moments)]
