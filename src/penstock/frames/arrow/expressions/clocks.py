"""Dates and times as whole numbers: days, or microseconds as stored or as clocks of the session's zone show them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.frames.arrow.expressions.values import TIME, Rows
from penstock.frames.arrow.expressions.zones import Zone, zone
from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere
from penstock.frames.settings import ZONE

LOCAL = pa.timestamp("us")
SECOND = 10**6
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
_FILL = 11_323
"""A day that all zones know, in place of NULL."""
_FIRST, _LAST = (int(np.datetime64(day, "D").astype(np.int64)) for day in ("0001-01-01", "9999-12-31"))


def zone_of(found: pa.Array, rows: Rows) -> Zone:
    """The zone whose clocks a time is read from: a time without zone is what all clocks show."""
    return zone(rows.settings[ZONE] if found.type == TIME else "UTC")


def stored(found: pa.Array) -> tuple[Numbers, Numbers]:
    """Dates as days and times as microseconds, as they are stored, and which of them are NULL."""
    missing = found.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_date32(found.type):
        return found.cast(pa.int32()).fill_null(_FILL).to_numpy().astype(np.int64), missing
    if found.type not in (TIME, LOCAL):
        raise NotHere
    return found.cast(pa.int64()).fill_null(_FILL * DAY).to_numpy(), missing


def clock(found: pa.Array, rows: Rows) -> tuple[Numbers, Numbers]:
    """What clocks show at times, or as a date begins, and which of them are NULL."""
    micros, missing = stored(found)
    if pa.types.is_date32(found.type):
        return micros * DAY, missing
    return zone_of(found, rows).clock(micros), missing


def dates(days: Numbers, missing: Numbers) -> pa.Array:
    _check(days, missing, 1)
    return pa.array(days.astype(np.int32), mask=missing).cast(pa.date32())


def times(micros: Numbers, missing: Numbers, kind: pa.DataType) -> pa.Array:
    """Times of a kind, with a zone or without, of what is stored for them."""
    _check(micros, missing, DAY)
    return pa.array(micros, mask=missing).cast(kind)


def at_clock(shown: Numbers, missing: Numbers, rows: Rows, before: Numbers | None = None) -> pa.Array:
    """Times at which clocks of the session's zone show something; see ``Zone.times``."""
    known = np.where(missing, _FILL * DAY, shown)
    return times(zone(rows.settings[ZONE]).times(known, before), missing, TIME)


def as_time(found: pa.Array, rows: Rows) -> pa.Array:
    """Dates and times without zone as times."""
    return found if found.type == TIME else at_clock(*clock(found, rows), rows)


def _check(numbers: Numbers, missing: Numbers, day: int) -> None:
    """Of the years from 1 to 9999 only."""
    if ((numbers < _FIRST * day) | (numbers >= (_LAST + 1) * day))[~missing].any():
        raise NotHere
