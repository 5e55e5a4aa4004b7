"""An epoch that finds stored rows which do not fit their inputs is run again, and makes them anew.

Nothing of the first run is published; what it committed is undone as after a crash. Which node is to blame cannot be
told: the one whose rows were missing, or one below it whose change was wrong. So all of them are recomputed, and all
that reads them: a reader was handed changes, of which the broken table says nothing. Readers that have no part in the
epoch lose what they have consumed, and recompute when they are refreshed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from penstock.catalog import World
from penstock.engine.steps import Request, Result
from penstock.vocabulary import AlertKind

_log = logging.getLogger("penstock")


def run_mending(world: World, request: Request, run: Callable[[Request], Result]) -> Result:
    """Run an epoch until no stored rows are found broken that it does not recompute."""
    found: dict[str, str] = {}
    suspects: set[str] = set()
    result = run(request)
    while result.mismatches.keys() - suspects:
        found |= result.mismatches
        for node, problem in result.mismatches.items():
            _log.warning("the stored rows of %s do not fit its inputs: %s. Recomputing.", _owners(world, node), problem)
        suspects = _suspects(world, found)
        result = run(replace(request, broken=suspects, waiting=set(request.waiting) - suspects))
    for node, problem in found.items():
        if node in result.reports:
            message = f"its stored rows did not fit its inputs: {problem}. It was recomputed, with what it reads"
            result.reports[node].alerts = {AlertKind.STATE_MISMATCH: message}
    return result


def _suspects(world: World, found: Iterable[str]) -> set[str]:
    graph = world.nodes_graph()
    blamed = (set(found) | graph.ancestors(found)) - set(world.tables)
    return blamed | graph.descendants(blamed)


def _owners(world: World, node: str) -> str:
    return ", ".join(repr(view.name) for view in world.views.values() if node in view.nodes)
