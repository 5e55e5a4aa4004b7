"""What past refreshes say of maintaining and of recomputing. Pure: a list of measurements in, seconds out.

One measurement is never believed as it is. It moves what is believed by a bounded step, so that one slow moment of the
machine does not decide; and what is believed of a way that is not taken fades, so that it is tried again some time.
Each time in a row that it turns out to be as slow as it was believed to be, it is left alone for twice as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.vocabulary import Action

STEP = 4.0
"""How many times as long, or as short, as believed one refresh may make its way look."""

FURTHEST = 64.0
"""How far an estimate may be corrected, either way, by however many refreshes."""

HALF_LIFE = 4
"""Refreshes by the other way until half of a correction is left, in orders of magnitude."""

MOST_CONFIRMED = 3
"""Tries in a row that make it be left alone for longer: up to 8 times as long."""

REMEMBERED = 100
"""Refreshes of a view that are looked at."""


@dataclass(frozen=True)
class Measurement:
    """A refresh: the way it took, seconds, and the seconds that were expected before anything corrected them."""

    action: Action
    seconds: float
    expected: float

    @classmethod
    def of(cls, action: Action, seconds: float, details: Mapping[str, Any]) -> Measurement | None:
        """From what the history keeps; None of a refresh that was not estimated.

        What the refresh stood in line for a processor is not its own.

        >>> Measurement.of("FULL", 9.0, {"estimate": {"raw": {"FULL": 2.0}}, "in_line": 6.0})
        Measurement(action='FULL', seconds=3.0, expected=2.0)
        """
        expected = (details.get("estimate") or {}).get("raw", {}).get(action)
        return cls(action, max(seconds - details.get("in_line", 0.0), 0.0), expected) if expected else None


@dataclass(frozen=True, kw_only=True)
class Belief:
    """What is believed of one way: that it took so many seconds where so many were expected."""

    seconds: float
    expected: float
    since: int = 0
    """Refreshes by the other way since."""
    confirmed: int = 0
    """How often in a row it was tried again and found to be no faster than believed."""
    times: int = 1
    """How often it was measured."""

    @property
    def factor(self) -> float:
        return self.seconds / self.expected

    def faded(self) -> Belief:
        """What is left of it.

        >>> [Belief(seconds=64.0, expected=1.0, since=since).faded().seconds for since in (0, HALF_LIFE)]
        [64.0, 8.0]
        >>> Belief(seconds=64.0, expected=1.0, since=2 * HALF_LIFE, confirmed=1).faded().seconds
        8.0
        """
        left = 0.5 ** (self.since / (HALF_LIFE * 2**self.confirmed))
        return replace(self, seconds=self.expected * self.factor**left)

    def scaled(self, expected: float) -> float:
        return expected * self.factor

    def shifted(self, expected: float) -> float:
        """Seconds for another change: those of this one, more or less as it is larger or smaller.

        Much of what a refresh takes does not depend on the change, so a small one says little about the rest.
        """
        more = self.seconds + expected - self.expected
        return more if expected > self.expected else max(self.scaled(expected), more)

    def after(self, seen: Measurement) -> Belief:
        """What is believed once the way was measured again: no more than a step from what it was."""
        known, left = self.shifted(seen.expected), self.faded().shifted(seen.expected)
        confirmed = min(self.confirmed + 1, MOST_CONFIRMED) if self.since and seen.seconds > known / 2 else 0
        believed = _bounded(seen, min(known, left), max(known, left))
        return replace(believed, confirmed=confirmed, times=self.times + 1)


def _bounded(seen: Measurement, least: float, most: float) -> Belief:
    """A measurement as far as it is believed, where a way was believed to take between so many seconds."""
    near = min(max(seen.seconds, least / STEP), most * STEP)
    return Belief(seconds=min(max(near, seen.expected / FURTHEST), seen.expected * FURTHEST), expected=seen.expected)


@dataclass(frozen=True)
class Measured:
    """What is believed of each way that was measured."""

    beliefs: Mapping[Action, Belief] = field(default_factory=dict)

    @classmethod
    def of(cls, past: Iterable[tuple[Action, float, Mapping[str, Any]]]) -> Measured:
        """From past refreshes, the newest first: action, seconds, and details with an ``estimate`` if there was one."""
        known = cls()
        for seen in reversed([Measurement.of(*refresh) for refresh in past]):
            known = known if seen is None else known.after(seen)
        return known

    def after(self, seen: Measurement) -> Measured:
        others = {action: replace(b, since=b.since + 1) for action, b in self.beliefs.items() if action != seen.action}
        known = self.beliefs.get(seen.action)
        believed = known.after(seen) if known else _bounded(seen, seen.expected, seen.expected)
        return Measured({**others, seen.action: believed})

    def faded(self) -> Measured:
        return Measured({action: belief.faded() for action, belief in self.beliefs.items()})

    def factor(self, action: Action) -> float:
        """How far estimates were off. Of an action never measured: half as far as the other's, within a step.

        The machine may be slow for both; but the more often only the other was measured, the less that is believed.
        """
        if action in self.beliefs:
            return self.beliefs[action].factor
        other = next(iter(self.beliefs.values()), Belief(seconds=1.0, expected=1.0))
        return math.sqrt(min(max(other.factor, 1 / STEP), STEP)) ** 0.5 ** ((other.times - 1) / HALF_LIFE)

    def incremental(self, expected: float) -> float:
        """Seconds for maintaining: those of last time, more or less as the change is larger or smaller."""
        believed = self.beliefs.get(Action.INCREMENTAL)
        return believed.shifted(expected) if believed else expected * self.factor(Action.INCREMENTAL)

    def longest_ago(self) -> tuple[Action, int] | None:
        """The way that was not taken for longest, and for how many refreshes."""
        return max(((a, b.since) for a, b in self.beliefs.items() if b.since), key=lambda found: found[1], default=None)
