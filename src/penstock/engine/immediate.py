"""IMMEDIATE views: which of them a write concerns, which views can be so, and what stands in the way of it.

An IMMEDIATE view reads managed tables and IMMEDIATE views only, so all that it reads moves in the statement that moves
it. For views that are not IMMEDIATE, one that is stands where a table does: it moves on its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from penstock.catalog import TableRecord, ViewRecord, World
from penstock.catalog.states import ACTIVE
from penstock.engine.sources import Relation
from penstock.errors import DefinitionError, DependencyError
from penstock.sql.statements import PERIODICALLY
from penstock.vocabulary import Reason


def immediate_readers(world: World, tables: Iterable[str]) -> list[str]:
    """The IMMEDIATE views that follow these tables, inputs before readers."""
    graph = world.views_graph()
    known = [key for key in tables if key in world.tables]
    found = [key for key in graph.descendants(known) if key in world.views and world.views[key].immediate]
    return [key for key in graph.order(found) if key in found] if found else []


def immediate_nodes(world: World) -> set[str]:
    """The nodes of all IMMEDIATE views."""
    return {node for view in world.views.values() if view.immediate for node in view.nodes}


def why_not_immediate(world: World, view: ViewRecord) -> str | None:
    """What keeps a view from being IMMEDIATE, and what to do; None if nothing does. ``world`` need not have it yet."""
    if view.reason_code == Reason.POLICY_FULL:
        return "its policy is FULL, which recomputes it each time. Choose REFRESH POLICY AUTO, or REFRESH ON COMMIT"
    if view.reason_code is not None:
        return (
            f"{view.reason} has no incremental rule ({view.reason_code}), so each write would recompute it. "
            "Rewrite the query, or use REFRESH ON COMMIT"
        )
    if view.options.emit == PERIODICALLY:
        return "it says EMIT PERIODICALLY. Leave that out, or use REFRESH ON COMMIT"
    for read in view.reads:
        why = _why_not_a_source(world, read)
        if why is not None:
            return why
    return None


def _why_not_a_source(world: World, key: str) -> str | None:
    table, read = world.tables.get(key), world.views.get(key)
    if isinstance(table, TableRecord):
        if not table.external:
            return None
        return (
            f"it reads {table.name!r}, an external table, which others write without Penstock. Copy that into a table "
            "made by CREATE TABLE, or use REFRESH ON COMMIT"
        )
    if read is None or read.immediate:
        return None
    return (
        f"it reads view {read.name!r}, which is REFRESH {read.trigger}. Make that IMMEDIATE first: "
        f"ALTER MATERIALIZED VIEW {read.name} REFRESH IMMEDIATE. Or use REFRESH ON COMMIT"
    )


def check_immediate(world: World, view: ViewRecord, *, initialize: bool = True) -> None:
    """An error if a view that is to be IMMEDIATE cannot be."""
    if not view.immediate:
        return
    why = why_not_immediate(world, view)
    if why is None and not initialize:
        why = "it would have no rows to begin with. Leave WITH NO DATA out"
    if why is None and world.states.get(view.key, ACTIVE).suspended:
        why = (
            "it is suspended, and IMMEDIATE views never are. Resume it first: "
            f"ALTER MATERIALIZED VIEW {view.name} RESUME"
        )
    if why is not None:
        raise DefinitionError(f"view {view.name!r} cannot be REFRESH IMMEDIATE: {why}.")


def check_readers(world: World, view: ViewRecord) -> None:
    """An error if a view is no longer to be IMMEDIATE, and IMMEDIATE views read it."""
    readers = [world.views[r].name for r in world.views_graph().readers(view.key) if world.views[r].immediate]
    if readers and not view.immediate:
        raise DependencyError(
            f"view {view.name!r} must be REFRESH IMMEDIATE: {readers[0]!r} reads it, and is. Change that first: "
            f"ALTER MATERIALIZED VIEW {readers[0]} REFRESH ON COMMIT."
        )


def with_followers(world: World, keys: Collection[str]) -> set[str]:
    """These views, and the IMMEDIATE ones that must not be left behind by those of them that are IMMEDIATE."""
    moving = [key for key in keys if key in world.views and world.views[key].immediate]
    found = world.views_graph().descendants(moving) if moving else set()
    return {*keys, *(key for key in found if world.views[key].immediate)}


def standing(world: World, nodes: Collection[str], sources: Mapping[str, Relation]) -> set[str]:
    """Those of these nodes that have seen their sources as they are pinned, so that nothing is to be done with them."""
    graph, found = world.nodes_graph(), set[str]()

    def has_seen(name: str) -> bool:
        frontier = world.frontiers.get(name, {})
        for key in graph.ancestors([name]) & sources.keys():
            after = sources[key].after
            if after is None or key not in frontier or after.version != frontier[key].version:
                return False
        return world.nodes[name].version is not None and not world.nodes[name].details.held_by_watermark

    for name in graph.order(nodes) if nodes else ():
        if has_seen(name) and set(graph.inputs(name)) <= found | world.tables.keys():
            found.add(name)
    return found
