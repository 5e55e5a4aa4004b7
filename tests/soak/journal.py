"""What a worker of the soak test writes down, so that it is known when the worker is killed: one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGUN, DONE, REFUSED = "begun", "done", "refused"
"""What became of a statement. Of one that was begun and nothing more, its writer did not live to tell."""


class Journal:
    """Lines are written by one call of the system each: a process that is killed leaves whole lines."""

    def __init__(self, path: Path):
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def write(self, **told: Any) -> None:
        os.write(self._file, (json.dumps(told) + "\n").encode())


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open() as lines:
            yield from (json.loads(line) for line in lines)


def statements(path: Path) -> list[dict[str, Any]]:
    """The statements of a writer, in its order, each with what became of it in ``state``."""
    found: dict[int, dict[str, Any]] = {}
    for line in read_journal(path):
        if line["state"] == BEGUN:
            found[line["number"]] = line
        else:
            found[line["number"]].update(line)
    return list(found.values())
