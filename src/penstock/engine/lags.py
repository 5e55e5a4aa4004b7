"""The target lags of a warehouse's views, resolved through its graph."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from penstock.catalog import HistoryRecord, ViewRecord, World
from penstock.engine.settings import length_of
from penstock.graph.lags import EffectiveLag, TargetLag, effective_lags, period
from penstock.vocabulary import When


def lags_of(world: World) -> dict[str, EffectiveLag]:
    """The lag of each view that has one."""
    said = {key: _target(view) for key, view in world.views.items() if view.options.lag is not None}
    return effective_lags(said, world.views_graph(), length_of(world.settings, "min_target_lag"))


def pace(view: ViewRecord, lag: EffectiveLag | None) -> timedelta | None:
    """How often a view is to be refreshed by its lag or its schedule; None if neither says it."""
    found = [] if lag is None else [period(lag.length)]
    if view.trigger.when == When.EVERY:
        found.append(timedelta(microseconds=view.trigger.length or 0))
    return min(found, default=None)


def seconds_to_see(world: World, seen: Mapping[str, HistoryRecord]) -> dict[str, float]:
    """What it took each view to see its sources the last time: its own refresh, after those of what it reads."""
    found: dict[str, float] = {}
    graph = world.views_graph()
    for key in graph.order(world.views):
        if key in seen:
            same = (i for i in graph.inputs(key) if i in found and seen[i].started_at == seen[key].started_at)
            found[key] = seen[key].seconds + max((found[i] for i in same), default=0.0)
    return found


def _target(view: ViewRecord) -> TargetLag:
    lag = view.options.lag
    return TargetLag(timedelta(microseconds=lag) if isinstance(lag, int) else None)
