"""A scheduler that had nothing to do for long, as a process of a few megabytes that looks at files.

``penstock run`` turns itself into this, and back as soon as a file has changed or a moment has come: one process with
one number, whose signals are heard all the while. It is run as a file and holds what it imports, so it imports next to
nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]


def marks(paths: list[str]) -> dict[str, list[int] | None]:
    """By each file or directory what differs when it has been written to; None where there is none.

    >>> marks(["/no/such/file"])
    {'/no/such/file': None}
    """
    return {path: _mark(path) for path in paths}


def _mark(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def _sleep(number: int) -> None:
    with os.fdopen(number, "r+") as kept:
        kept.seek(0)
        task = json.load(kept)
    paths, before = list(task["marks"]), time.time()
    while True:
        now = time.time()
        left = task["poll"] if task["until"] is None else min(task["poll"], task["until"] - now)
        heard = signal.sigtimedwait(SIGNALS, left) if left > 0 else None
        if heard is not None and heard.si_signo != signal.SIGHUP:
            sys.stderr.write("stopped\n")
            return
        # A clock that was set back has other moments to come.
        if heard is not None or left <= 0 or now < before or marks(paths) != task["marks"]:
            os.execv(sys.executable, task["waking"])
        before = now


if __name__ == "__main__":
    _sleep(int(sys.argv[1]))
