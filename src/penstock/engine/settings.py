"""What can be set for a whole warehouse, with what holds until then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from penstock.errors import DefinitionError, nearest
from penstock.graph.groups import FASTEST, SLOWEST
from penstock.sql.intervals import microseconds
from penstock.sql.statements import ATOMIC, NONE


@dataclass(frozen=True)
class Setting:
    default: str
    about: str
    choices: tuple[str, ...] = ()
    """Without any, it is a length of time."""


SETTINGS = {
    "consistency": Setting(ATOMIC, "whether views of a diamond are published together", (ATOMIC, NONE)),
    "schedule_policy": Setting(FASTEST, "when a group is due: as its fastest or slowest member", (FASTEST, SLOWEST)),
    "retention": Setting("7 days", "how long an epoch can be read after the next one is published"),
    "lock_timeout": Setting("30 seconds", "how long a statement waits for another one that is changing the same views"),
}


def value_of(given: Mapping[str, str], name: str) -> str:
    return given.get(name, SETTINGS[name].default)


def retention(given: Mapping[str, str]) -> timedelta:
    return _length(given, "retention")


def lock_timeout(given: Mapping[str, str]) -> timedelta:
    return _length(given, "lock_timeout")


def _length(given: Mapping[str, str], name: str) -> timedelta:
    length = microseconds(value_of(given, name))
    assert length is not None
    return timedelta(microseconds=length)


def checked(name: str, value: str) -> tuple[str, str]:
    """A setting's name and value as they are kept."""
    setting = SETTINGS.get(name.lower())
    if setting is None:
        raise DefinitionError(f"there is no setting {name!r}. {nearest(name, SETTINGS)}")
    if not setting.choices:
        if microseconds(value) is None:
            raise DefinitionError(f"the setting {name!r} is a length of time such as '7 days', not {value!r}.")
        return name.lower(), value.lower()
    if value.upper() not in setting.choices:
        raise DefinitionError(f"the setting {name!r} is {' or '.join(setting.choices)}, not {value!r}.")
    return name.lower(), value.upper()
