"""Moments as users write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from penstock.engine.snapshots import time_of
from penstock.errors import SqlError

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "written",
    [
        "2026-01-31 12:00:00", "2026-01-31T12:00:00Z", "2026-01-31 12:00 UTC", "2026-01-31 12:00:00.000000000",
        "2026-01-31 17:00:00+05:00", "2026-01-31 17:30:00+0530", "2026-01-31 17:00:00.0 +05",
        "2026-02-01 00:00:00+12:00",
        "2026-01-31 04:00:00-08:00", " 2026-01-31 12:00:00 ",
        datetime(2026, 1, 31, 12), datetime(2026, 1, 31, 17, tzinfo=timezone(timedelta(hours=5))),
    ],
)  # fmt: skip
def test_one_moment_in_many_ways(written: str | datetime) -> None:
    found = time_of(written)
    assert found == NOON
    assert found.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "written",
    [
        "", "yesterday", "2026-01-31 12:00:00+5", "2026-01-31 12:00:00+19:00", "2026-01-31 12:00:00+05:60",
        "2026-01-31+05:00", "2026-13-01", "2026-01-31 25:00:00", "2026-01-31 12", "12:00:00", "2026-W05-6", "20260131",
        "2026-01-31 12:00:00 Europe/Berlin", "2026-01-31 12:00.5", "0001-01-01 00:00:00+05:00",
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(SqlError, match="is no time"):
        time_of(written)
