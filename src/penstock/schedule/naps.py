"""Whether a scheduler may sleep, and falling asleep: the process becomes ``asleep``, a few megabytes that wait."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NoReturn

from penstock.schedule import asleep

_SETTLED = 2.0
"""Seconds after which a file that is changed again has another time: file systems count in ticks."""
SIGNALS = asleep.SIGNALS if hasattr(signal, "sigtimedwait") else []
"""What is heard while asleep. Where it cannot be waited for, nobody sleeps."""


@dataclass(frozen=True, kw_only=True)
class Nap:
    """What wakes a scheduler. The marks are of a moment before it was seen that nothing is due."""

    marks: Mapping[str, list[int] | None]
    until: float | None
    """Seconds since 1970: when something will be due though nothing changes."""
    poll: float


def settled(marks: Mapping[str, list[int] | None], now: float) -> bool:
    """Whether none was written to just now: the next write to one that was may not be seen.

    >>> settled({"a": [5_000_000_000, 1, 1], "b": None}, now=8.0), settled({"a": [5_000_000_000, 1, 1]}, now=6.0)
    (True, False)
    """
    return all(mark is None or mark[0] / 1e9 < now - _SETTLED for mark in marks.values())


def fall_asleep(nap: Nap, waking: Sequence[str]) -> NoReturn:
    """Turn this process into one that only watches; ``waking`` is the command that it turns back into."""
    # An argument may not be as long as the names of a thousand tables.
    kept = tempfile.TemporaryFile("w+")  # noqa: SIM115, it is open for who comes after
    json.dump({**asdict(nap), "waking": list(waking)}, kept)
    kept.flush()
    os.set_inheritable(kept.fileno(), True)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-I", "-S", asleep.__file__, str(kept.fileno())])
