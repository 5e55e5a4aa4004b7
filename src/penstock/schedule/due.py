"""What is due: a pure function of definitions, states and a moment. Nothing here looks at a clock.

A view is due
- by its lag, when a moment of its period has come that its data time is before;
- EVERY so often, and by CRON, when a moment has come that no refresh of it has begun at or after;
- ON COMMIT, when a source has a commit that it has not read, and its last refresh began long enough ago.

One that is suspended, or waits after an error, is not. What is due at one moment is one epoch, by priority.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum

from penstock.graph.groups import SLOWEST, Group
from penstock.graph.lags import moment_before, period
from penstock.sql.calendar import fired_before, fires_after
from penstock.sql.triggers import MANUAL, Trigger
from penstock.vocabulary import When

_SKEW = timedelta(minutes=1)
"""By how much clocks of several machines may differ."""
_LONGEST_WAIT = timedelta(minutes=20)
"""More than any wait after an error."""


class Why(str, Enum):
    """What made a view due."""

    LAG = "its target lag"
    EVERY = "its schedule"
    CRON = "its schedule by cron"
    COMMIT = "a commit to a source"
    GROUP = "a view that it must advance together with"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a view's definition says about time."""

    key: str
    trigger: Trigger = MANUAL
    lag: timedelta | None = None
    """The effective one; see ``lags.py``."""
    priority: int = 0
    since: datetime
    """When the view was created, or its schedule last changed: no moment before that counts."""


@dataclass(frozen=True, kw_only=True)
class State:
    """How a view stands."""

    data_time: datetime | None = None
    """The moment up to which it has seen its sources; None for one without rows."""
    begun: datetime | None = None
    """When its last refresh began, whatever came of it."""
    behind: bool = False
    """Whether a source has a commit that it has not read."""
    not_before: datetime | None = None
    """When to try again after an error."""
    suspended: bool = False
    stuck: bool = False
    """Whether it failed on just these versions of its sources, and would again."""


@dataclass(frozen=True)
class Due:
    key: str
    why: Why
    since: datetime
    """The moment that it is due for."""


def why_due(plan: Plan, state: State, now: datetime) -> Due | None:
    """Whether a view is due by itself."""
    if state.suspended or state.stuck or rests(state, now):
        return None
    if plan.lag is not None:
        moment, seen = moment_before(now, period(plan.lag)), told(state.data_time, now, period(plan.lag))
        if seen is None or seen < moment:
            return Due(plan.key, Why.LAG, moment)
    length = timedelta(microseconds=plan.trigger.length or 0)
    known = [m for m in (told(plan.since, now, length), told(state.begun, now, length)) if m is not None]
    begun = max(known, default=None)
    match plan.trigger.when:
        case When.EVERY:
            moment = moment_before(now, length)
            return Due(plan.key, Why.EVERY, moment) if begun is None or begun < moment else None
        case When.CRON:
            assert plan.trigger.cron is not None
            moment = fired_before(plan.trigger.cron, plan.trigger.zone, now)
            return Due(plan.key, Why.CRON, moment) if begun is None or begun < moment else None
        case When.ON_COMMIT:
            last = told(state.begun, now, length)
            rested = last is None or now >= last + length
            return Due(plan.key, Why.COMMIT, now) if state.behind and rested else None
    return None


def told(moment: datetime | None, now: datetime, length: timedelta) -> datetime | None:
    """A moment of the past, as far as it can be believed.

    Clocks of several machines differ a little, so what is a little ahead is now. What is far ahead was told by a clock
    that was set back since, and says nothing.
    """
    if moment is None or moment > now + max(length, _SKEW):
        return None
    return min(moment, now)


def rests(state: State, now: datetime) -> bool:
    """Whether a view waits after an error; nobody waits for longer than the longest wait."""
    return state.not_before is not None and now < state.not_before <= now + _LONGEST_WAIT


def next_moment(plan: Plan, state: State, now: datetime) -> datetime | None:
    """When a view that is not due now may be due next, if no source changes; None for never."""
    if state.suspended or state.stuck:
        return None
    if rests(state, now):
        return state.not_before
    found = []
    if plan.lag is not None:
        found.append(moment_before(now, period(plan.lag)) + period(plan.lag))
    length = timedelta(microseconds=plan.trigger.length or 0)
    match plan.trigger.when:
        case When.EVERY:
            found.append(moment_before(now, length) + length)
        case When.CRON:
            assert plan.trigger.cron is not None
            found.append(fires_after(plan.trigger.cron, plan.trigger.zone, now))
        case When.ON_COMMIT if state.behind and state.begun is not None:
            last = told(state.begun, now, length)
            found.append(now if last is None else max(now, last + length))
    return min(found, default=None)


def due(
    plans: Iterable[Plan],
    states: Mapping[str, State],
    now: datetime,
    groups: Sequence[Group] = (),
    policies: Mapping[str, str] | None = None,
) -> list[Due]:
    """What to refresh at a moment, in one epoch: the most urgent first, which is by priority what is late soonest.

    ``groups`` advance together: when one of their views is due, or, where ``policies`` says SLOWEST of a view in which
    their paths meet, when all those are that have a time of their own.
    """
    known = {plan.key: plan for plan in plans}
    found = {
        key: one for key, plan in known.items() if (one := why_due(plan, states.get(key, State()), now)) is not None
    }
    for group in groups:
        _advance_together(group, known, states, found, now, policies or {})
    late = {key: _late_at(known[key], states.get(key, State()), one) for key, one in found.items()}
    for group in groups:
        members = found.keys() & set(group.members)
        late |= dict.fromkeys(members, min((late[key] for key in members), default=now))
    return sorted(found.values(), key=lambda one: (-known[one.key].priority, late[one.key], one.key))


def _late_at(plan: Plan, state: State, one: Due) -> datetime:
    """When what is due will be late. Who goes by that keeps short lags though many views are due at one moment."""
    if one.why == Why.LAG and plan.lag is not None and state.data_time is not None:
        return state.data_time + plan.lag
    if one.why == Why.GROUP:  # as the others are
        return datetime.max.replace(tzinfo=timezone.utc)
    if one.why == Why.EVERY:
        return one.since + timedelta(microseconds=plan.trigger.length or 0)
    return one.since


def _advance_together(
    group: Group,
    plans: Mapping[str, Plan],
    states: Mapping[str, State],
    found: dict[str, Due],
    now: datetime,
    policies: Mapping[str, str],
) -> None:
    if len(group.members) < 2 or not found.keys() & set(group.members):
        return
    timed = [key for key in group.members if key in plans and _has_time(plans[key])]
    if any(policies.get(key) == SLOWEST for key in group.convergence) and not _all_due(timed, found):
        for key in group.members:
            found.pop(key, None)
        return
    since = min(found[key].since for key in group.members if key in found)
    for key in group.members:
        if key in plans and key not in found and not states.get(key, State()).suspended:
            found[key] = Due(key, Why.GROUP, since)


def _has_time(plan: Plan) -> bool:
    return plan.lag is not None or plan.trigger.when in (When.EVERY, When.CRON, When.ON_COMMIT)


def _all_due(keys: Collection[str], found: Mapping[str, Due]) -> bool:
    return all(key in found for key in keys)
