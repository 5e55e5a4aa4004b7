"""A moment as users write it: a date, maybe a time of day, maybe an offset. Without an offset it is in UTC."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_WRITTEN = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[ T](?P<clock>\d{2}:\d{2}(?::\d{2})?)(?:\.(?P<fraction>\d{1,9}))?"
    r"\s?(?P<zone>Z|UTC|(?P<sign>[+-])(?P<hours>\d{2})(?::?(?P<minutes>\d{2}))?)?)?",
    re.IGNORECASE,
)


def moment(text: str) -> datetime | None:
    """The moment in UTC, without what is finer than a microsecond; None for a text that is none.

    >>> moment("2026-01-31 12:00:00+05:30").isoformat()
    '2026-01-31T06:30:00+00:00'
    >>> moment("2026-01-31T12:00:00.5Z").isoformat(), moment("2026-01-31").isoformat()
    ('2026-01-31T12:00:00.500000+00:00', '2026-01-31T00:00:00+00:00')
    >>> moment("2026-02-30"), moment("2026-01-31 12:00 +25:00"), moment("2026-01-31 12:00 CET"), moment("tomorrow")
    (None, None, None, None)
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or (found["fraction"] and found["clock"].count(":") < 2):
        return None
    try:
        time = datetime.fromisoformat(f"{found['date']} {found['clock'] or '00:00'}")
        return in_utc(time.replace(microsecond=_micros(found["fraction"]), tzinfo=_zone(found)))
    except (ValueError, OverflowError):
        return None


def in_utc(time: datetime) -> datetime:
    """The same moment in UTC; one without a zone is taken to be in UTC."""
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)


def _micros(fraction: str | None) -> int:
    return int((fraction or "0")[:6].ljust(6, "0"))


def _zone(found: re.Match[str]) -> timezone:
    if found["sign"] is None:
        return timezone.utc
    hours, minutes = int(found["hours"]), int(found["minutes"] or 0)
    if hours > 18 or minutes > 59:  # Spark knows no offset of more than 18 hours
        raise ValueError(found["zone"])
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if found["sign"] == "-" else offset)
