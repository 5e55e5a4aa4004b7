"""What ``explain`` is told from: a view's records, its history, and the logs of its tables and of what it reads."""

from __future__ import annotations

import re
from contextlib import suppress

from penstock.catalog import Catalog, Definition, ViewRecord, World
from penstock.errors import NotSupportedError, SourceError
from penstock.observe.explain import Explanation, explain
from penstock.storage.delta_log import Snapshot
from penstock.vocabulary import Action

_PAST = 50
"""Refreshes among which the last one that did something is looked for."""


def explain_planned(world: World, definition: Definition) -> Explanation:
    """How a view would be maintained."""
    return explain(world, definition.view, definition.nodes, properties=_properties(world, definition.view))


def explain_known(catalog: Catalog, world: World, name: str) -> Explanation:
    """How a view is maintained, and what its last refresh did."""
    if re.match(r"\s*(SELECT|WITH)\s", name, re.IGNORECASE):
        raise NotSupportedError(
            "explain tells how a view is maintained. Write CREATE MATERIALIZED VIEW some_name AS before the query; "
            "nothing is created."
        )
    view = world.views[world.view_key(name)]
    nodes = [world.nodes[n] for n in view.nodes]
    rows = {n.name: Snapshot(n.path, n.version).rows for n in nodes if n.version is not None}
    past = catalog.history(view.key, _PAST)
    last = next((r for r in past if r.action not in (Action.NO_DATA, Action.SKIP)), next(iter(past), None))
    return explain(world, view, nodes, last, rows, _properties(world, view))


def _properties(world: World, view: ViewRecord) -> dict[str, dict[str, str]]:
    """Those of the tables that a view reads, as far as they are there."""
    found = {}
    for key in view.reads:
        if key in world.tables:
            with suppress(SourceError):
                found[key] = Snapshot(world.tables[key].path).configuration
    return found
