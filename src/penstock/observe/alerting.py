"""Alerts that come with time: a view that gets too old, and commits that nobody reads.

What a refresh gives reason to is raised with its history. But that nothing is refreshed shows only to who looks, so
the scheduler does, and whoever asks for the alerts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from penstock.catalog import Catalog, HistoryRecord, ViewRecord, World
from penstock.catalog.alerts import Alert, Episode
from penstock.catalog.tables import utc
from penstock.engine.lags import lags_of, seconds_to_see
from penstock.engine.readable import versions_now
from penstock.engine.settings import number_of
from penstock.graph.lags import period
from penstock.observe.status import data_time_of, in_words, slowness
from penstock.vocabulary import AlertKind

_TOO_OLD = 2
"""How many times its target a view may be old before somebody is told."""
_WITH_TIME = (AlertKind.LAG_EXCEEDED, AlertKind.CHANGE_BACKLOG)


def overdue(
    world: World, seen: Mapping[str, HistoryRecord], newest: Mapping[str, int | None], now: datetime
) -> dict[Episode, str]:
    """What is the matter at a moment; ``seen``: the last refreshes that saw sources, ``newest``: versions of tables."""
    found, took = {}, seconds_to_see(world, seen)
    for key, lag in lags_of(world).items():
        view = world.views[key]
        old = now - (data_time_of(world, view, seen.get(key)) or utc(view.created_at))
        if old > _TOO_OLD * lag.length:
            every, takes = period(lag.length), timedelta(seconds=took.get(key, 0))
            told = f"it is {in_words(old)} old, and its target lag is {in_words(lag.length)}"
            found[key, AlertKind.LAG_EXCEEDED] = told + (f"; {slowness(takes, every)}" if takes > every else "")
    most = number_of(world.settings, "max_change_backlog")
    for key, view in world.views.items():
        waiting = _waiting(world, view, newest)
        if view.refreshes_itself and waiting > most:
            found[key, AlertKind.CHANGE_BACKLOG] = f"{waiting:,} commits to what it reads wait to be read"
    return found


def _waiting(world: World, view: ViewRecord, newest: Mapping[str, int | None]) -> int:
    """Commits to the tables of a view that it has not read."""
    read = [(f.version, newest.get(name)) for name, f in world.frontiers.get(view.key, {}).items()]
    return sum(max(version - consumed, 0) for consumed, version in read if version is not None)


def look(
    catalog: Catalog,
    world: World,
    seen: Mapping[str, HistoryRecord],
    newest: Mapping[str, int | None],
    going_on: set[Episode],
    now: datetime,
) -> bool:
    """Raise and clear what has come with time since the last look; whether anything has."""
    found = overdue(world, seen, newest, now)
    raised = {episode: message for episode, message in found.items() if episode not in going_on}
    over = [episode for episode in going_on if episode[1] in _WITH_TIME and episode not in found]
    if raised or over:
        catalog.change_alerts(raised, over)
    return bool(raised or over)


def current_alerts(catalog: Catalog, view: str | None = None) -> list[Alert]:
    """All alerts, as of now: those that go on first, then the newest first."""
    if not catalog.read_only:
        world = catalog.world()
        newest = versions_now(world)
        seen = catalog.last_refreshes(that_saw_sources=True)
        look(catalog, world, seen, newest, catalog.open_alerts(), datetime.now(timezone.utc))
    return catalog.alerts(view)
