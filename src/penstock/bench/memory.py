"""The most memory that this process and its Java held since the last look, where the system tells (Linux)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


class Peaks:
    """High-water marks of resident memory. Java keeps what it once took, so a mark is an upper bound of the need."""

    def __init__(self) -> None:
        self._processes = {"python": os.getpid(), **_java_child()}

    def reset(self) -> None:
        for pid in self._processes.values():
            with suppress(OSError):
                (_PROC / str(pid) / "clear_refs").write_text("5")

    def read(self) -> dict[str, int]:
        """Bytes by process; empty where the system does not say."""
        marks = {name: _high_water(pid) for name, pid in self._processes.items()}
        return {name: mark for name, mark in marks.items() if mark is not None}


def _java_child() -> dict[str, int]:
    """The Java that this process started, if there is one."""
    with suppress(OSError):
        for task in (_PROC / "self" / "task").iterdir():
            for child in (task / "children").read_text().split():
                if (_PROC / child / "comm").read_text().strip() == "java":
                    return {"java": int(child)}
    return {}


def _high_water(pid: int) -> int | None:
    with suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
