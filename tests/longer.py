"""Parameters of which some are run every time, and the others by ``make test-long``: they vary what those show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def varied(values: Iterable[Any], *, often: Iterable[Any]) -> list[Any]:
    """All values, with those marked that are not run every time."""
    every, chosen = list(values), list(often)
    assert all(value in every for value in chosen), "what is run often is one of the values"
    return [
        value if value in chosen else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=LONG)
        for value in every
    ]


LONG = pytest.mark.long
