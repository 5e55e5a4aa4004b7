"""Cron expressions: the moments that they mean, on the clocks of a time zone.

Five fields are those of cron; six or seven are those of Quartz, as in Databricks SQL: seconds first, days of the week
counted from Sunday = 1, ``?`` for any day.

cronsim knows the calendar. It is asked for what clocks show; when they show it is found here, since it treats the two
spellings differently, and misses moments where clocks are set by half an hour. A time of the day comes once on every
day: the first time where clocks are set back, and when they are put forward where they skip it. What comes every hour
or minute goes by what the clocks show.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from penstock.errors import SqlError


def check_cron(text: str, zone: str) -> None:
    """Refuse what is no cron expression, never comes, or is on clocks that there are not."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise SqlError(f"the time zone {zone!r} is unknown. Name one such as 'Europe/Berlin' or 'UTC'.") from None
    try:
        next(CronSim(_plain(text), datetime(2024, 1, 1, tzinfo=timezone.utc)))
    except (CronSimError, StopIteration) as problem:
        why = str(problem) or "there is no such day"
        raise SqlError(
            f"{text!r} is no cron expression ({why}). Write minute, hour, day, month and day of the week, such as "
            "'0 6 * * MON-FRI'; or, as Quartz does, with seconds before them, such as '0 0 6 ? * MON-FRI'."
        ) from None


@lru_cache(maxsize=1024)
def fired_before(text: str, zone: str, now: datetime) -> datetime:
    """The newest moment of a cron expression that is not after now, in UTC."""
    clock, fixed = ZoneInfo(zone), _is_fixed(text)
    best: datetime | None = None
    for shown in CronSim(_plain(text), _far(now, clock, -_NEAR) + timedelta(seconds=1), reverse=True):
        moments = _moments(shown, clock, fixed)
        if best is not None and moments and max(moments) <= best:
            break
        best = max([moment for moment in moments if moment <= now] + ([best] if best else []), default=None)
        if best is not None and fixed:
            break
    assert best is not None, f"{text} has not come in 50 years"
    return best


@lru_cache(maxsize=1024)
def fires_after(text: str, zone: str, now: datetime) -> datetime:
    """The next moment after now, in UTC."""
    clock, fixed = ZoneInfo(zone), _is_fixed(text)
    best: datetime | None = None
    for shown in CronSim(_plain(text), _far(now, clock, _NEAR) - timedelta(seconds=1)):
        moments = _moments(shown, clock, fixed)
        if best is not None and moments and min(moments) >= best:
            break
        best = min([moment for moment in moments if moment > now] + ([best] if best else []), default=None)
        if best is not None and fixed:
            break
    assert best is not None, f"{text} does not come in 50 years"
    return best


_NEAR = timedelta(hours=3)
"""Clocks are not set within that time twice, nor by as much."""


def _far(now: datetime, clock: ZoneInfo, near: timedelta) -> datetime:
    """What the clock shows now; where it is set back between now and near, so much further that nothing is missed."""
    shown, later = now.astimezone(clock), (now + near).astimezone(clock)
    change = (later.utcoffset() or _NO_TIME) - (shown.utcoffset() or _NO_TIME)
    back = min(change, _NO_TIME) if near > _NO_TIME else max(change, _NO_TIME)
    return (shown + back).replace(tzinfo=None, fold=0)


_NO_TIME = timedelta(0)


def _moments(shown: datetime, clock: ZoneInfo, fixed: bool) -> list[datetime]:
    """When a clock shows a time: never or twice on days when it is set, but for a fixed time once on every day."""
    twice = [shown.replace(tzinfo=clock, fold=fold).astimezone(timezone.utc) for fold in (0, 1)]
    if _is_shown(shown, twice[0], clock):
        return twice[:1] if fixed or twice[0] == twice[1] else twice
    return [_put_forward(shown, clock)] if fixed else []


def _is_shown(shown: datetime, moment: datetime, clock: ZoneInfo) -> bool:
    return moment.astimezone(clock).replace(tzinfo=None, fold=0) == shown


def _put_forward(shown: datetime, clock: ZoneInfo) -> datetime:
    """The moment to which the clock is put forward over a time that it does not show."""
    shown = shown.replace(second=0)
    while not _is_shown(shown, moment := shown.replace(tzinfo=clock).astimezone(timezone.utc), clock):
        shown += timedelta(minutes=1)
    return moment


def _is_fixed(text: str) -> bool:
    """Whether it means times of the day, and not every hour or minute.

    >>> [_is_fixed(text) for text in ("30 2 * * *", "0 30 2 ? * MON", "*/5 2 * * *", "0 * * * *")]
    [True, True, False, False]
    """
    fields = _plain(text).split()[-5:]
    return not any(field.startswith("*") for field in fields[:2])


def _plain(text: str) -> str:
    """The expression as cronsim reads it.

    >>> _plain("0 6 * * 1-5"), _plain("0 30 6 ? * MON-FRI"), _plain("0 0 12 * * 2,4 *"), _plain("0 0 0 1 1 ? 2030")
    ('0 6 * * 1-5', '0 30 6 * * MON-FRI', '0 0 12 * * 1,3', '0 0 0 1 1 ? 2030')
    """
    fields = text.upper().split()
    if len(fields) == 7 and fields[6] == "*":
        fields.pop()
    if len(fields) in (5, 6):
        fields[-3:] = ("*" if field == "?" else field for field in fields[-3:])
    if len(fields) != 6:
        return " ".join(fields)
    fields[5] = re.sub(r"(?<![#/\d])\d", _day, fields[5])
    return " ".join(fields)


def _day(found: re.Match[str]) -> str:
    """Quartz counts days from Sunday = 1, cron from Sunday = 0."""
    return str((int(found[0]) - 1) % 7)
