"""Processes that do one thing to a warehouse and are killed in the middle of it, by ``kill -9``, at a point of ours.

Loading Penstock takes a process far longer than most of what it is to do. So one process loads it and makes the others:
each is a fork of its own, with a memory, a number and a death of its own. What needs Spark uses a server of Spark
Connect, which outlives it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Death:
    """What became of a process: the points that it reached, and whether it was killed at the last of them."""

    points: tuple[str, ...]
    killed: bool
    said: str


class Nursery:
    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS,
            env=environment,
        )  # fmt: skip

    def let(
        self,
        do: str,
        warehouse: Path | str,
        *,
        die_at: int = 0,
        spark: str | None = None,
        more: str = "",
        catalog: Path | None = None,
    ) -> Death:
        """A process opens the warehouse as ``db`` and does something, until it comes to a point; 0 is none.

        ``more``: what is done before, such as to another limit. ``catalog``: its file, if it is not in the warehouse.
        """
        beside = catalog or Path(warehouse)
        log, url = beside.parent / f"{beside.name}.points", None if catalog is None else f"sqlite:///{catalog}"
        task = {
            "do": do, "warehouse": str(warehouse), "n": die_at, "log": str(log), "spark": spark, "more": more,
            "catalog": url,
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        status = int(self._process.stdout.readline())
        reached, _, said = log.read_text().partition("\n--\n")
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or status == 0, f"{do}: {status} {said}"
        return Death(tuple(reached.split()), killed, said)

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate("")


def _live(task: dict[str, Any]) -> None:
    import penstock
    from penstock import points

    log = os.open(str(task["log"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    seen, one_at_a_time = 0, threading.Lock()

    def listen(point: str) -> None:
        nonlocal seen
        with one_at_a_time:  # of several threads, none is to miss its number
            seen += 1
            os.write(log, f"{point} ".encode())
            if seen == task["n"]:
                os.kill(os.getpid(), signal.SIGKILL)

    session = None
    if task["spark"]:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.remote(str(task["spark"])).getOrCreate()
    exec(str(task["more"]))
    db = penstock.connect(str(task["warehouse"]), spark=session, catalog=task["catalog"])
    points.listener = listen
    try:
        said = repr(eval(str(task["do"]), {"db": db, "penstock": penstock}))
    except penstock.PenstockError as problem:
        said = f"{type(problem).__name__}: {problem}"
    points.listener = None
    os.write(log, f"\n--\n{said}".encode())
    db.close()


def _serve() -> None:
    """Loads all that is needed, and has no thread of its own when it forks."""
    import penstock.engine.engine
    import penstock.engine.past
    import penstock.engine.source_tables  # noqa: F401

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _live(json.loads(line))
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    import traceback

    try:
        _serve()
    except Exception:
        traceback.print_exc()
        raise
