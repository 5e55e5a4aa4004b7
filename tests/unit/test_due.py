"""When views are due: thousands of simulated moments, and no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from random import Random
from zoneinfo import ZoneInfo

import pytest

from penstock.errors import SqlError
from penstock.graph.groups import SLOWEST, Group
from penstock.graph.lags import moment_before, period
from penstock.schedule.due import Plan, State, Why, due, next_moment, why_due
from penstock.sql.calendar import check_cron, fired_before, fires_after
from penstock.sql.triggers import Trigger
from penstock.vocabulary import When

START = datetime(2026, 3, 27, 12, 0, 7, tzinfo=timezone.utc)
EVERY_5 = Trigger(when=When.EVERY, length=300_000_000)


def at(text: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(timezone.utc)


def test_a_period_is_at_most_half_of_the_lag_and_shorter_ones_divide_it() -> None:
    found = [period(timedelta(seconds=s)) for s in range(96, 100_000, 97)]
    for lag, own in zip(range(96, 100_000, 97), found, strict=True):
        assert timedelta(seconds=lag) / 4 < own <= timedelta(seconds=lag) / 2
        assert own % timedelta(seconds=48) == timedelta(0)
        assert max(found) % own == timedelta(0)


def test_views_with_different_lags_share_moments() -> None:
    now = START
    moments = [moment_before(now, period(timedelta(minutes=m))) for m in (2, 5, 20, 60)]
    assert moments == sorted(moments, reverse=True)
    shared = moment_before(moments[-1], period(timedelta(minutes=2)))
    assert shared == moments[-1], "the moment of the longest period is one of the shortest too"


@pytest.mark.parametrize(
    ("cron", "zone", "now", "last", "following"),
    [
        ("0 6 * * *", "UTC", "2026-03-28 06:00:00", "2026-03-28 06:00:00", "2026-03-29 06:00:00"),
        ("0 6 * * *", "UTC", "2026-03-28 05:59:59", "2026-03-27 06:00:00", "2026-03-28 06:00:00"),
        ("*/15 * * * *", "Asia/Kolkata", "2026-03-28 10:14:59", "2026-03-28 10:00:00", "2026-03-28 10:15:00"),
        ("0 6 * * MON-FRI", "UTC", "2026-03-28 12:00:00", "2026-03-27 06:00:00", "2026-03-30 06:00:00"),
        ("0 30 6 ? * MON-FRI", "UTC", "2026-03-28 12:00:00", "2026-03-27 06:30:00", "2026-03-30 06:30:00"),
        ("0 0 12 ? * 2 *", "UTC", "2026-03-28 12:00:00", "2026-03-23 12:00:00", "2026-03-30 12:00:00"),
        ("30 0 6 * * ?", "UTC", "2026-03-28 06:00:30", "2026-03-28 06:00:30", "2026-03-29 06:00:30"),
        ("0 0 L * *", "UTC", "2026-03-28 12:00:00", "2026-02-28 00:00:00", "2026-03-31 00:00:00"),
    ],
)
def test_moments_of_a_cron_expression(cron: str, zone: str, now: str, last: str, following: str) -> None:
    check_cron(cron, zone)
    assert fired_before(cron, zone, at(now, zone)) == at(last, zone)
    assert fires_after(cron, zone, at(now, zone)) == at(following, zone)


SET_FORWARD_AND_BACK = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-10-04", "2026-04-05"),  # by half an hour
}


@pytest.mark.parametrize("zone", SET_FORWARD_AND_BACK)
def test_clocks_that_are_set(zone: str) -> None:
    """A time of the day comes once on every day, as soon as clocks show that much; every hour comes as they show it."""
    for day in SET_FORWARD_AND_BACK[zone]:
        first = at(f"{day} 00:00", zone) - timedelta(hours=30)
        minutes = [first + timedelta(minutes=n) for n in range(60 * 60)]
        shown = [moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0) for moment in minutes]
        for hours, minute, fixed in (
            ("2", "30", True), ("2", "0", True), ("1", "45", True), ("3", "5", True), ("1,2,3", "0,15,40", True),
            ("*", "0", False), ("*/2", "0", False), ("1-2", "*/20", False), ("*", "50", False),
        ):  # fmt: skip
            expected = _brute(minutes, shown, hours, minute, fixed)
            for cron in (f"{minute} {hours} * * *", f"0 {minute} {hours} * * ?", f"0 {minute} {hours} ? * * *"):
                assert _fired(cron, zone, minutes[0], minutes[-1]) == expected, (cron, day)
                for moment in minutes[1500:2400:31]:
                    assert fired_before(cron, zone, moment) == max(m for m in expected if m <= moment), (cron, moment)


def _brute(minutes: list[datetime], shown: list[datetime], hours: str, minute: str, fixed: bool) -> list[datetime]:
    """The same by looking at every minute."""
    wanted = {(h, m) for h in _numbers(hours, 24) for m in _numbers(minute, 60)}
    if not fixed:
        return [moment for moment, clock in zip(minutes, shown, strict=True) if (clock.hour, clock.minute) in wanted]
    found = set()
    for day in sorted({clock.date() for clock in shown}):
        for h, m in wanted:
            time = datetime(day.year, day.month, day.day, h, m)
            reached = [n for n, clock in enumerate(shown) if clock >= time]
            if reached and reached[0] > 0:
                found.add(minutes[reached[0]])
    return sorted(found)


def _numbers(field: str, end: int) -> list[int]:
    if "-" in field:
        return list(range(int(field[0]), int(field[-1]) + 1))
    if field.startswith("*"):
        return list(range(0, end, int(field.partition("/")[2] or 1)))
    return [int(number) for number in field.split(",")]


def _fired(cron: str, zone: str, since: datetime, until: datetime) -> list[datetime]:
    found = [fires_after(cron, zone, since - timedelta(seconds=1))]
    while (following := fires_after(cron, zone, found[-1])) <= until:
        found.append(following)
    return [moment for moment in found if moment > since or fired_before(cron, zone, since) == since]


@pytest.mark.parametrize("cron", ["", "hourly", "61 * * * *", "0 0 30 2 *", "* * *", "0 0 0 1 1 ? 2030"])
def test_no_cron_expression(cron: str) -> None:
    with pytest.raises(SqlError, match="is no cron expression"):
        check_cron(cron, "UTC")


def test_no_time_zone() -> None:
    with pytest.raises(SqlError, match="time zone 'Mars/Olympus' is unknown"):
        check_cron("0 * * * *", "Mars/Olympus")


def test_a_view_by_its_lag() -> None:
    plan = Plan(key="v", lag=timedelta(minutes=5), since=START)
    moment = moment_before(START, timedelta(seconds=96))
    assert why_due(plan, State(), START) is not None, "without rows it is due at once"
    seen = State(data_time=moment)
    assert why_due(plan, seen, START) is None
    assert next_moment(plan, seen, START) == moment + timedelta(seconds=96)
    again = why_due(plan, seen, moment + timedelta(seconds=96))
    assert again is not None
    assert (again.why, again.since) == (Why.LAG, moment + timedelta(seconds=96))


def test_a_view_every_five_minutes() -> None:
    plan = Plan(key="v", trigger=EVERY_5, since=START)
    assert why_due(plan, State(), START + timedelta(minutes=4)) is None
    assert why_due(plan, State(), START + timedelta(minutes=5)) is not None
    begun = State(begun=START + timedelta(minutes=5))
    assert why_due(plan, begun, START + timedelta(minutes=9)) is None
    assert why_due(plan, begun, START + timedelta(minutes=10)) is not None


def test_a_view_on_commit() -> None:
    plan = Plan(key="v", trigger=Trigger(when=When.ON_COMMIT), since=START)
    assert why_due(plan, State(begun=START), START) is None
    found = why_due(plan, State(begun=START, behind=True), START)
    assert found is not None
    assert found.why == Why.COMMIT
    rarely = Plan(key="v", trigger=Trigger(when=When.ON_COMMIT, length=60_000_000), since=START)
    behind = State(begun=START, behind=True)
    assert why_due(rarely, behind, START + timedelta(seconds=59)) is None
    assert next_moment(rarely, behind, START + timedelta(seconds=59)) == START + timedelta(seconds=60)
    assert why_due(rarely, behind, START + timedelta(seconds=60)) is not None


def test_one_that_is_suspended_or_waits_is_not_due() -> None:
    plan = Plan(key="v", lag=timedelta(minutes=5), trigger=EVERY_5, since=START)
    later = START + timedelta(days=1)
    assert why_due(plan, State(suspended=True), later) is None
    assert next_moment(plan, State(suspended=True), later) is None
    waiting = State(not_before=later + timedelta(minutes=1))
    assert why_due(plan, waiting, later) is None
    assert next_moment(plan, waiting, later) == later + timedelta(minutes=1)


def test_groups_advance_together() -> None:
    plans = [
        Plan(key="a", trigger=EVERY_5, since=START),
        Plan(key="b", trigger=Trigger(when=When.EVERY, length=3_600_000_000), since=START),
        Plan(key="c", since=START),
        Plan(key="other", since=START),
    ]
    group = Group(members=("a", "b", "c"), convergence=("c",))
    soon, late = START + timedelta(minutes=5), START + timedelta(hours=1)
    assert [one.key for one in due(plans, {}, soon, [group])] == ["a", "b", "c"]
    assert {one.key: one.why for one in due(plans, {}, soon, [group])}["c"] == Why.GROUP
    assert due(plans, {}, soon, [group], {"c": SLOWEST}) == []
    assert [one.key for one in due(plans, {}, late, [group], {"c": SLOWEST})] == ["a", "b", "c"]


def test_priority_orders_what_is_due_at_one_moment() -> None:
    plans = [Plan(key=key, trigger=EVERY_5, priority=rank, since=START) for key, rank in (("a", 0), ("b", 5), ("c", 0))]
    assert [one.key for one in due(plans, {}, START + timedelta(minutes=5))] == ["b", "a", "c"]


def test_weeks_of_thousands_of_views() -> None:
    """Whoever asks only at the moments that it was told misses nothing, and nothing is done twice for one moment."""
    random = Random(1)
    triggers = [
        Trigger(), Trigger(when=When.EVERY, length=3_600_000_000), Trigger(when=When.EVERY, length=86_400_000_000),
        Trigger(when=When.CRON, cron="0 6 * * MON-FRI", zone="Europe/Berlin"), Trigger(when=When.ON_COMMIT),
    ]  # fmt: skip
    plans = {
        f"v{i}": Plan(
            key=f"v{i}", trigger=random.choice(triggers), since=START,
            lag=random.choice((None, timedelta(hours=2), timedelta(hours=12))),
        )
        for i in range(2_000)
    }  # fmt: skip
    states = {key: State(data_time=START, begun=START) for key in plans}
    now, end = START, START + timedelta(days=14)
    refreshed: Counter[str] = Counter()
    worst = 0.0
    while now < end:
        for one in due(plans.values(), states, now):
            lag, seen = plans[one.key].lag, states[one.key].data_time
            assert seen is not None
            if lag is not None:
                worst = max(worst, (now - seen) / lag)
            states[one.key] = State(data_time=now, begun=now)
            refreshed[one.key] += 1
        moments = [m for key, plan in plans.items() if (m := next_moment(plan, states[key], now)) is not None]
        now = min(moments)
        assert now > START
    for key, plan in plans.items():
        if plan.lag is None and plan.trigger.when == When.EVERY:
            assert refreshed[key] == timedelta(days=14) // timedelta(microseconds=plan.trigger.length or 1)
        if plan.lag is None and plan.trigger.when == When.CRON:
            assert refreshed[key] == 10
        if plan.lag is None and plan.trigger.when in (When.MANUAL, When.ON_COMMIT):
            assert refreshed[key] == 0
    assert 0 < worst <= 1


@dataclass
class Machine:
    """A machine that refreshes a few views side by side; what a refresh has seen is what was there when it began."""

    plans: dict[str, Plan]
    takes: Callable[[str], timedelta]
    lanes: int
    states: dict[str, State]
    running: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)

    def within(self, length: timedelta) -> dict[str, float]:
        """The share of moments at which each view was no older than it may get."""
        now, end = START, START + length
        good = dict.fromkeys(self.plans, timedelta(0))
        while now < end:
            self._begin(now)
            following = min([until for _, until in self.running.values()] + self._moments(now))
            for key, plan in self.plans.items():
                seen = self.states[key].data_time
                assert seen is not None
                assert plan.lag is not None
                good[key] += max(min(following, seen + plan.lag) - max(now, seen), timedelta(0))
            now = following
            for key in [key for key, (_, until) in self.running.items() if until <= now]:
                began, _ = self.running.pop(key)
                self.states[key] = State(data_time=began, begun=began)
        return {key: time / (now - START) for key, time in good.items()}

    def _begin(self, now: datetime) -> None:
        waiting = [plan for key, plan in self.plans.items() if key not in self.running]
        for one in due(waiting, self.states, now)[: self.lanes - len(self.running)]:
            self.running[one.key] = now, now + self.takes(one.key)

    def _moments(self, now: datetime) -> list[datetime]:
        free = (key for key in self.plans if key not in self.running)
        return [moment for key in free if (moment := next_moment(self.plans[key], self.states[key], now)) is not None]


def test_the_promise_of_lags() -> None:
    """At 95 of 100 moments a view is no older than its target, where two refreshes at a time can do the work: here
    they are busy for three fifths of the time, with fifty views due at once. Where they cannot, nobody is forgotten."""
    kinds = {"seconds": (4, 10, 0.4), "minute": (15, 60, 0.8), "minutes": (30, 300, 1.5), "hour": (3, 3600, 20.0)}
    plans, usual = {}, {}
    for name, (count, lag, takes) in kinds.items():
        for number in range(count):
            plans[f"{name}{number}"] = Plan(key=f"{name}{number}", lag=timedelta(seconds=lag), since=START)
            usual[f"{name}{number}"] = takes
    seconds = sum(usual[key] / period(timedelta(seconds=lag)).total_seconds() for key, lag in _lags(plans))
    assert 1.2 < seconds < 1.3, "of two"

    def play(slower: float) -> dict[str, float]:
        random, states = Random(2), {key: State(data_time=START, begun=START) for key in plans}
        takes = lambda key: timedelta(seconds=usual[key] * slower * random.uniform(0.5, 1.5))  # noqa: E731
        return Machine(plans, takes, 2, states).within(timedelta(minutes=40))

    assert min(play(1).values()) >= 0.95
    assert min(play(3).values()) > 0.3


def _lags(plans: dict[str, Plan]) -> list[tuple[str, float]]:
    return [(key, plan.lag.total_seconds()) for key, plan in plans.items() if plan.lag is not None]
