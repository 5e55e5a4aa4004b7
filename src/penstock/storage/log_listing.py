"""What the names of the files in a Delta log tell, without opening any: fast enough to ask of every source."""

from __future__ import annotations

import os
import re

_COMMIT = re.compile(r"(\d{20})\.(?:json|checkpoint\b.*)")


def newest_version(path: str) -> int | None:
    """The newest version of the table at a path; None if there is none, or it cannot be told by listing."""
    try:
        names = os.listdir(os.path.join(path, "_delta_log"))
    except (OSError, ValueError):
        return None
    return max((int(match[1]) for match in map(_COMMIT.fullmatch, names) if match), default=None)


def bytes_to_read(path: str, version: int) -> int | None:
    """How much of a log is read to know a version: its last checkpoint and what follows; None if there is no log."""
    try:
        with os.scandir(os.path.join(path, "_delta_log")) as files:
            sizes = [(match, file.stat().st_size) for file in files if (match := _COMMIT.fullmatch(file.name))]
    except (OSError, ValueError):
        return None
    known = [(int(match[1]), "checkpoint" in match[0], size) for match, size in sizes if int(match[1]) <= version]
    base = max((number for number, checkpoint, _ in known if checkpoint), default=-1)
    return sum(size for number, checkpoint, size in known if number > base or (checkpoint and number == base))
