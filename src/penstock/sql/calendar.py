"""Cron expressions: the moments that they mean, on the clocks of a time zone.

Five fields are those of cron; six or seven are those of Quartz, as in Databricks SQL: seconds first, days of the week
counted from Sunday = 1, ``?`` for any day. cronsim knows the calendar and what clocks do in spring and autumn.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import lru_cache
from itertools import islice
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
    local = now.astimezone(ZoneInfo(zone)).replace(microsecond=0)
    # Going back, cronsim gives moments before the one it starts at; that one may be meant too.
    earlier = next(CronSim(_plain(text), local, reverse=True)).astimezone(timezone.utc)
    following = [moment.astimezone(timezone.utc) for moment in islice(CronSim(_plain(text), _at(earlier, zone)), 2)]
    return max([earlier, *(moment for moment in following if moment <= now)])


@lru_cache(maxsize=1024)
def fires_after(text: str, zone: str, now: datetime) -> datetime:
    """The next moment after now, in UTC."""
    return next(CronSim(_plain(text), _at(now, zone))).astimezone(timezone.utc)


def _at(moment: datetime, zone: str) -> datetime:
    return moment.astimezone(ZoneInfo(zone))


def _plain(text: str) -> str:
    """The expression as cronsim reads it.

    >>> _plain("0 6 * * 1-5"), _plain("0 30 6 ? * MON-FRI"), _plain("0 0 12 * * 2,4 *"), _plain("0 0 0 1 1 ? 2030")
    ('0 6 * * 1-5', '0 30 6 * * MON-FRI', '0 0 12 * * 1,3', '0 0 0 1 1 ? 2030')
    """
    fields = text.upper().split()
    if len(fields) == 7 and fields[6] == "*":
        fields.pop()
    if len(fields) != 6:
        return text
    fields[3:6] = ("*" if field == "?" else field for field in fields[3:6])
    fields[5] = re.sub(r"(?<![#/\d])\d", _day, fields[5])
    return " ".join(fields)


def _day(found: re.Match[str]) -> str:
    """Quartz counts days from Sunday = 1, cron from Sunday = 0."""
    return str((int(found[0]) - 1) % 7)
