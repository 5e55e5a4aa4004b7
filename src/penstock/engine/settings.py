"""What can be set for a whole warehouse, with what holds until then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from penstock.errors import DefinitionError, nearest
from penstock.frames.memory import memory
from penstock.graph.groups import FASTEST, SLOWEST
from penstock.sql.intervals import microseconds
from penstock.sql.names import parts_of
from penstock.sql.statements import ATOMIC, NONE


@dataclass(frozen=True)
class Setting:
    default: str
    about: str
    choices: tuple[str, ...] = ()
    """Without any, it is what ``kind`` says."""
    kind: Literal["time", "memory", "number", "url", "place", "rate"] = "time"


SETTINGS = {
    "consistency": Setting(ATOMIC, "whether views of a diamond are published together", (ATOMIC, NONE)),
    "schedule_policy": Setting(FASTEST, "when a group is due: as its fastest or slowest member", (FASTEST, SLOWEST)),
    "retention": Setting("7 days", "how long an epoch can be read after the next one is published"),
    "lock_timeout": Setting("30 seconds", "how long a statement waits for another one that is changing the same views"),
    "min_target_lag": Setting("1 minute", "the lag of a view with TARGET LAG DOWNSTREAM that no view with a lag reads"),
    "poll_interval": Setting("1 second", "how often penstock run looks for commits of other writers"),
    "max_concurrent_refreshes": Setting("2", "how many groups of views refresh side by side", kind="number"),
    "max_consecutive_errors": Setting("3", "after how many errors in a row a view is suspended", kind="number"),
    "max_change_backlog": Setting(
        "100", "how many commits may wait for a view that refreshes itself before an alert", kind="number"
    ),
    "alert_webhook": Setting("", "the URL that alerts are sent to", kind="url"),
    "history_retention": Setting("30 days", "how long the history of refreshes and alerts is kept"),
    "publish": Setting(
        "", "the catalog, or catalog.schema, of Spark in which all views are known by name", kind="place"
    ),
    "publish_as": Setting("VIEW", "what a view is there: a view of Spark's, or an external table", ("VIEW", "TABLE")),
    "spark_idle_time": Setting("10 minutes", "after how long without work penstock run lets Java go"),
    "sleep_after": Setting("5 minutes", "after how long without work penstock run gives its memory back"),
    "file_cache": Setting("10%", "how much memory keeps what was read of files for the next refresh", kind="memory"),
    "read_rate": Setting("measured", "how many bytes a second Penstock's process reads of files", kind="rate"),
}

OF_NAMES = ("publish", "publish_as")
"""Those that say what views are called in Spark's catalog, where it is done at once."""
_NEVER_ZERO = ("min_target_lag", "poll_interval")
"""A scheduler that never waits has no time for anything else."""
_UNITS = {"": 1, "b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(%|[kmgt]?b)?")


def value_of(given: Mapping[str, str], name: str) -> str:
    return given.get(name, SETTINGS[name].default)


def in_force(given: Mapping[str, str]) -> dict[str, str]:
    """All settings, as they hold with those that were given."""
    return {name: value_of(given, name) for name in SETTINGS}


def retention(given: Mapping[str, str]) -> timedelta:
    return _length(given, "retention")


def lock_timeout(given: Mapping[str, str]) -> timedelta:
    return _length(given, "lock_timeout")


def length_of(given: Mapping[str, str], name: str) -> timedelta:
    """A setting that is a length of time."""
    return _length(given, name)


def number_of(given: Mapping[str, str], name: str) -> int:
    """A setting that is a number."""
    return int(value_of(given, name))


def file_cache(given: Mapping[str, str]) -> int:
    """The bytes that may be kept of files."""
    found = amount(value_of(given, "file_cache"), memory())
    assert found is not None
    return found


def read_rate(given: Mapping[str, str]) -> int | None:
    """The bytes a second that are assumed to be read; None: as measured."""
    return amount(value_of(given, "read_rate"), 0)


def amount(text: str, whole: int) -> int | None:
    """The bytes that a text means, which may be a share of a whole; None if it means none.

    >>> amount("512 MB", 0), amount("10%", 2000), amount("0", 0), amount("120%", 100), amount("much", 1)
    (536870912, 200, 0, None, None)
    """
    found = _AMOUNT.fullmatch(text.strip().lower())
    if found is None:
        return None
    number, unit = float(found[1]), found[2] or ""
    if unit == "%":
        return int(whole * number / 100) if number <= 100 else None
    return int(number * _UNITS[unit])


def _length(given: Mapping[str, str], name: str) -> timedelta:
    length = microseconds(value_of(given, name))
    assert length is not None
    return timedelta(microseconds=length)


def checked(name: str, value: str) -> tuple[str, str]:
    """A setting's name and value as they are kept."""
    setting = SETTINGS.get(name.lower())
    if setting is None:
        raise DefinitionError(f"there is no setting {name!r}. {nearest(name, SETTINGS)}")
    if setting.kind == "memory":
        if amount(value, memory()) is None:
            raise DefinitionError(
                f"the setting {name!r} is an amount of memory such as '2 GB' or '10%', or 0, not {value!r}."
            )
        return name.lower(), value.lower()
    if setting.kind == "rate":
        if value.lower() != setting.default and not amount(value, 0):
            raise DefinitionError(
                f"the setting {name!r} is an amount of bytes a second such as '50 MB', or {setting.default!r}, "
                f"not {value!r}."
            )
        return name.lower(), value.lower()
    if setting.kind == "number":
        if not value.strip().isdigit() or int(value) < 1:
            raise DefinitionError(f"the setting {name!r} is a number from 1 on, not {value!r}.")
        return name.lower(), value.strip()
    if setting.kind == "url":
        if value and not re.fullmatch(r"https?://[^\s/]+\S*", value):
            raise DefinitionError(f"the setting {name!r} is a URL that begins with http:// or https://, or ''.")
        return name.lower(), value
    if setting.kind == "place":
        if value.strip() and len(parts_of(value.strip())) > 2:
            raise DefinitionError(f"the setting {name!r} is catalog or catalog.schema of Spark, or '', not {value!r}.")
        return name.lower(), value.strip()
    if not setting.choices:
        length = microseconds(value)
        if length == 0 and name.lower() in _NEVER_ZERO:
            raise DefinitionError(f"the setting {name!r} is a length of time such as {setting.default!r}, and never 0.")
        if length is None:
            raise DefinitionError(f"the setting {name!r} is a length of time such as '7 days', not {value!r}.")
        return name.lower(), value.lower()
    if value.upper() not in setting.choices:
        raise DefinitionError(f"the setting {name!r} is {' or '.join(setting.choices)}, not {value!r}.")
    return name.lower(), value.upper()
