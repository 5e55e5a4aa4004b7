"""From the catalog to what ``due`` decides by: the plan and the state of every view that refreshes by itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from penstock.catalog import HistoryRecord, World
from penstock.catalog.catalog import utc
from penstock.catalog.states import ACTIVE
from penstock.engine.consistency import groups_of, schedule_policy, shard_of
from penstock.engine.lags import lags_of
from penstock.graph.shards import Shard
from penstock.schedule.due import Due, Plan, State, due, next_moment, rests


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What is due at a moment, and when to look again."""

    due: tuple[Due, ...]
    next: datetime | None
    """When something may be due next, if no source changes."""
    left_out: frozenset[str]
    """Views that are not to be refreshed, though their readers are: suspended, or waiting after an error."""

    def quiet(self, now: datetime) -> bool:
        """Whether it still holds at a later moment, if nothing else has changed."""
        return not self.due and (self.next is None or now < self.next)


def outlook(
    world: World,
    last: Mapping[str, HistoryRecord],
    seen: Mapping[str, HistoryRecord],
    newest: Mapping[str, int | None],
    begun: Mapping[str, datetime],
    now: datetime,
    shard: Shard | None = None,
) -> Outlook:
    """``last`` and ``seen``: the last refresh of each view, and the last that saw its sources; ``newest``: the versions
    of the tables now; ``begun``: when a view was last tried by whoever asks; ``shard``: which views are theirs, if not
    all."""
    lags, mine = lags_of(world), world.views.keys() if shard is None else shard_of(world, shard)
    plans = {
        key: Plan(
            key=key, trigger=view.trigger, lag=lags[key].length if key in lags else None,
            priority=view.options.priority, since=utc(view.scheduled_at or view.created_at),
        )
        for key, view in world.views.items()
        if key in mine
    }  # fmt: skip
    states = {key: _state(world, key, last.get(key), seen.get(key), newest, begun.get(key), now) for key in world.views}
    behind = _behind(world, newest, {key for key, state in states.items() if state.suspended or _later(state, now)})
    states = {key: replace(state, behind=key in behind) for key, state in states.items()}
    waiting = {key for key, state in states.items() if state.suspended or _later(state, now)}
    groups = groups_of(world)
    policies = {key: schedule_policy(world, group) for group in groups for key in group.convergence}
    found = due(plans.values(), states, now, groups, policies)
    scheduled = {key for key in plans if world.views[key].refreshes_itself}
    moments = [m for key in scheduled if (m := next_moment(plans[key], states[key], now)) is not None]
    return Outlook(
        due=tuple(one for one in found if one.key not in waiting),
        next=min(moments, default=None),
        left_out=frozenset(waiting),
    )


def _state(
    world: World,
    key: str,
    last: HistoryRecord | None,
    seen: HistoryRecord | None,
    newest: Mapping[str, int | None],
    begun: datetime | None,
    now: datetime,
) -> State:
    view, kept = world.views[key], world.states.get(key, ACTIVE)
    made = min(utc(view.created_at), now)  # in the future if the clock was set back since
    filled = world.nodes[key].version is not None
    began = [m for m in (begun, last.started_at if last is not None and last.started_at >= made else None) if m]
    return State(
        data_time=seen.started_at if filled and seen is not None and seen.started_at >= made else None,
        begun=max(began, default=None),
        not_before=None if kept.not_before is None else utc(kept.not_before),
        suspended=kept.suspended,
        stuck=kept.failed_on is not None and dict(kept.failed_on) == _read_now(world, key, newest),
    )


def _read_now(world: World, key: str, newest: Mapping[str, int | None]) -> dict[str, int | None]:
    """The versions of all tables that a view reads, directly or not."""
    return {name: newest.get(name) for name in world.views_graph().ancestors([key]) if name in world.tables}


def _behind(world: World, newest: Mapping[str, int | None], waiting: Collection[str]) -> set[str]:
    """The nodes that a refresh would bring further: something below them has commits that they have not read.

    What a view has not read that waits itself, its readers cannot have.
    """
    found: set[str] = set()
    for name in world.nodes_graph().order(world.nodes):
        node, frontier = world.nodes[name], world.frontiers.get(name, {})
        own = {read: world.nodes[read].version for read in node.inputs if read in world.nodes}
        versions = {read: own[read] if read in own else newest.get(read) for read in node.inputs}
        unread = any(read not in frontier or frontier[read].version != version for read, version in versions.items())
        if node.version is None or unread or any(read in found and read not in waiting for read in node.inputs):
            found.add(name)
    return found


def _later(state: State, now: datetime) -> bool:
    return state.stuck or rests(state, now)
