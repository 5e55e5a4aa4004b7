"""Consistency groups of a warehouse: which views are published together, and what a failure holds back.

The groups themselves are found in ``graph.groups``. Here they meet the catalog and the outcome of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from penstock.catalog import World
from penstock.engine.report import ViewReport
from penstock.engine.settings import value_of
from penstock.graph.groups import FASTEST, Group, groups, policy_of, withheld
from penstock.graph.shards import Shard, sharded
from penstock.sql.names import key_of
from penstock.sql.statements import NONE
from penstock.vocabulary import Action, Reason, Status

if TYPE_CHECKING:
    from penstock.engine.epoch import Result


def consistency(world: World, key: str) -> str:
    return world.views[key].options.consistency or value_of(world.settings, "consistency")


def groups_of(world: World) -> list[Group]:
    """Every view in one group; those with CONSISTENCY NONE stand alone, and IMMEDIATE ones move with their tables."""
    return world.once("groups", _groups)


def _groups(world: World) -> list[Group]:
    free = {key for key, view in world.views.items() if view.immediate or consistency(world, key) == NONE}
    return groups(world.views_graph(), set(world.views), free)


def together(world: World, keys: Iterable[str]) -> set[str]:
    """These views, all that they read, and what must advance together with one of those, with what it reads."""
    graph = world.views_graph()
    group_of = world.once("group_of", _group_of)
    found: set[str] = set()
    pending = list(keys)
    while pending:
        key = pending.pop()
        if key in world.views and key not in found:
            found.add(key)
            pending += [*graph.inputs(key), *group_of[key]]
    return found


def _group_of(world: World) -> dict[str, tuple[str, ...]]:
    return {key: group.members for group in groups_of(world) for key in group.members}


def shard_of(world: World, shard: Shard) -> set[str]:
    """The views of one of several schedulers."""
    whose = world.once(
        f"shards {shard.of}", lambda world: sharded(world.views_graph(), world.views, groups_of(world), shard.of)
    )
    return {key for key, found in whose.items() if found == shard}


def schedule_policy(world: World, group: Group) -> str:
    said = {key: policy for key in group.convergence if (policy := world.views[key].options.schedule)}
    return policy_of(group, said, value_of(world.settings, "schedule_policy"))


def not_due(world: World, changed_at: Mapping[str, datetime]) -> set[str]:
    """The views with EMIT PERIODICALLY that changed a short while ago, and what must advance together with them.

    A group is due when all its periodic members are (SLOWEST), or when one of them is (FASTEST).
    """
    now = datetime.now(timezone.utc)
    early, periodic = set(), set()
    for key, view in world.views.items():
        every, last = view.options.every, changed_at.get(key)
        if every is not None:
            periodic.add(key)
            if last is not None and now - last < timedelta(microseconds=every):
                early.add(key)
    waiting: set[str] = set()
    for group in groups_of(world) if early else ():
        members = set(group.members)
        late_ones = periodic & members - early
        if early & members and not (late_ones and schedule_policy(world, group) == FASTEST):
            waiting |= members
    return {key for key in waiting if world.nodes[key].version is not None}


def hold_back(world: World, result: Result, reports: list[ViewReport]) -> list[ViewReport]:
    """Take out of a publication what must wait for views that failed; gives the reports as they are then."""
    stopped = [key_of(report.name) for report in reports if report.status != Status.SUCCEEDED]
    if not stopped:
        return reports
    waiting = withheld(world.views_graph(), groups_of(world), stopped)
    # What reads an unpublished view, be it a part of another view, has read what nobody else can see.
    unpublished = {key for key in waiting.group | waiting.downstream if key in result.reports}
    graph = world.nodes_graph()
    for node in unpublished | graph.descendants(unpublished | set(stopped)):
        result.publication.versions.pop(node, None)
        result.publication.frontiers.pop(node, None)
        result.publication.watermarks.pop(node, None)
    held = []
    for report in reports:
        key = key_of(report.name)
        if report.status == Status.SUCCEEDED and key in unpublished:
            reason = Reason.GROUP_FAILED if key in waiting.group else Reason.UPSTREAM_FAILED
            report = replace(
                report,
                action=Action.SKIP,
                reason=reason,
                status=Status.SKIPPED,
                strategy=None,
                rows_inserted=0,
                rows_deleted=0,
            )
        if report.status == Status.SKIPPED:
            report.waits_for = _failed_for(world, key, reports)
        held.append(report)
    return held


def _failed_for(world: World, key: str, reports: Iterable[ViewReport]) -> tuple[str, ...]:
    """The views that failed, as far as a view has to do with them: it reads them, or they are of one group."""
    failed = {key_of(r.name): r.name for r in reports if r.status == Status.FAILED}
    graph = world.views_graph()
    near = graph.ancestors([key]).union(world.once("group_of", _group_of).get(key, ()))
    return tuple(name for found, name in failed.items() if found in near | graph.ancestors(near))
