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
