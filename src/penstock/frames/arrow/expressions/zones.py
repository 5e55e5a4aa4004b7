"""Times on clocks of time zones: what a clock shows at a time, and at which time it shows something.

Only zones whose rules have not changed for long, and only times of years in which they are well known: of others,
Java's zones and those of this machine may be of different editions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere

STEADY = frozenset(
    """
    Europe/Amsterdam Europe/Athens Europe/Berlin Europe/Brussels Europe/Bucharest Europe/Budapest Europe/Copenhagen
    Europe/Helsinki Europe/London Europe/Luxembourg Europe/Madrid Europe/Oslo Europe/Paris Europe/Prague Europe/Rome
    Europe/Sofia Europe/Stockholm Europe/Vienna Europe/Warsaw Europe/Zurich America/Chicago America/Denver
    America/Los_Angeles America/New_York America/Phoenix America/Toronto Asia/Bangkok Asia/Calcutta Asia/Dubai
    Asia/Hong_Kong Asia/Kathmandu Asia/Kolkata Asia/Seoul Asia/Shanghai Asia/Singapore Asia/Taipei Asia/Tokyo
    Australia/Brisbane Australia/Melbourne Australia/Perth Australia/Sydney Pacific/Auckland Africa/Johannesburg
    Africa/Lagos Africa/Nairobi
    """.split()
)
"""Their clocks change at a full hour, and never at midnight."""
_UTC = ("UTC", "Z", "GMT", "Etc/GMT", "Etc/UTC", "+00:00")
_FIXED = re.compile(r"([+-])(0\d|1[0-7]):([0-5]\d)")
_FIRST, _LAST = datetime(1996, 1, 1, tzinfo=timezone.utc), datetime(2037, 12, 31, tzinfo=timezone.utc)
_SECOND = 10**6
_DAY = 86_400 * _SECOND


@dataclass(frozen=True, kw_only=True)
class Zone:
    """When the clock of a zone was changed, what it shows then at most, and how far it is ahead of UTC, in between."""

    changes: Numbers
    shown: Numbers
    ahead: Numbers
    first: int
    last: int

    def clock(self, times: Numbers) -> Numbers:
        """What the clock shows at times."""
        self._check(times)
        return np.asarray(times + self.ahead[np.searchsorted(self.changes, times, side="right")])

    def times(self, clock: Numbers, before: Numbers | None = None) -> Numbers:
        """When the clock shows something: the earlier time of two. An hour that is left out is one hour later.

        ``before``: times on the way from which the clock was moved; of two, the one as far ahead of UTC is meant.
        """
        self._check(clock)
        found = np.asarray(clock - self.ahead[np.searchsorted(self.shown, clock, side="right")])
        if before is None:
            return found
        other = clock - (self.clock(before) - before)
        return np.where(self.clock(other) == clock, other, found)

    def _check(self, micros: Numbers) -> None:
        if len(micros) and (micros.min() < self.first or micros.max() > self.last):
            raise NotHere


@lru_cache(maxsize=100)
def zone(name: str) -> Zone:
    """A zone by its name; raises ``NotHere`` if it is not known well."""
    none = np.array([], np.int64)
    if name in _UTC:
        return Zone(changes=none, shown=none, ahead=np.array([0]), first=-(2**63), last=2**63 - 1)
    fixed = _FIXED.fullmatch(name)
    if fixed:
        ahead = (int(fixed[2]) * 60 + int(fixed[3])) * 60 * _SECOND * (1 if fixed[1] == "+" else -1)
        return Zone(changes=none, shown=none, ahead=np.array([ahead]), first=-(2**62), last=2**62)
    if name not in STEADY:
        raise NotHere
    return _steady(_ahead(name))


def _ahead(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # this machine has no zones
        raise NotHere from None


def _steady(info: ZoneInfo) -> Zone:
    days = [_FIRST + timedelta(days=i) for i in range((_LAST - _FIRST).days + 1)]
    offsets = [_offset(info, day) for day in days]
    changes = [_change(info, days[i - 1], days[i]) for i in range(1, len(days)) if offsets[i] != offsets[i - 1]]
    ahead = [offsets[0], *(_offset(info, change) for change in changes)]
    at = [_micros(change) for change in changes]
    shown = [time + max(ahead[i], ahead[i + 1]) for i, time in enumerate(at)]
    changed, shows, offset = (np.array(found, np.int64) for found in (at, shown, ahead))
    return Zone(changes=changed, shown=shows, ahead=offset, first=_micros(_FIRST) + _DAY, last=_micros(_LAST) - _DAY)


def _change(info: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The second at which a clock is changed."""
    old = _offset(info, before)
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        before, after = (middle, after) if _offset(info, middle) == old else (before, middle)
    return after


def _offset(info: ZoneInfo, at: datetime) -> int:
    offset = at.astimezone(info).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def _micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
