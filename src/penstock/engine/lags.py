"""The target lags of a warehouse's views, resolved through its graph."""

from __future__ import annotations

from datetime import timedelta

from penstock.catalog import ViewRecord, World
from penstock.engine.settings import length_of
from penstock.graph.lags import EffectiveLag, TargetLag, effective_lags


def lags_of(world: World) -> dict[str, EffectiveLag]:
    """The lag of each view that has one."""
    said = {key: _target(view) for key, view in world.views.items() if view.options.lag is not None}
    return effective_lags(said, world.views_graph(), length_of(world.settings, "min_target_lag"))


def _target(view: ViewRecord) -> TargetLag:
    lag = view.options.lag
    return TargetLag(timedelta(microseconds=lag) if isinstance(lag, int) else None)
