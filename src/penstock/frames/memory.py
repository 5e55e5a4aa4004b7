"""How much memory there is. Nothing is imported here that takes time: settings are listed without Arrow and Spark."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_UNKNOWN = 4 * 1024**3
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def memory() -> int:
    """The bytes of memory that this process may have at most: those of the machine, or of the container."""
    found = _UNKNOWN
    with suppress(AttributeError, ValueError, OSError):  # not every system tells
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(ValueError, OSError):  # "max" where a container has no bound
        found = min(found, int(_CONTAINER.read_text()))
    return found
