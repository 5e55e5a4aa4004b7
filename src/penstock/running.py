"""The scheduler over a warehouse that is open: in this thread, or beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.catalog.connection import sqlite_file
from penstock.graph.shards import Shard
from penstock.schedule.naps import SIGNALS, Nap
from penstock.schedule.scheduler import Finished, Scheduler

if TYPE_CHECKING:
    from penstock.warehouse import Warehouse


class Runner:
    """A scheduler that runs. ``with db.run(background=True):`` ends it behind the block: what was written in it is
    followed first."""

    def __init__(
        self,
        at: Warehouse,
        tell: Callable[[Finished], None] | None = None,
        *,
        lets_java_go: bool = False,
        sleeps: bool = False,
        shard: Shard | None = None,
    ):
        """``lets_java_go``: after a while without work. Who holds DataFrames of the session would lose them.
        ``sleeps``: it ends after a while without work, with a ``nap`` that says when to begin again.
        ``shard``: which views it looks after, if not all."""
        self._at, self._lets_java_go = at, lets_java_go
        file = sqlite_file(at.catalog.url) if sleeps and SIGNALS else None
        self._catalog = [] if file is None else [file, f"{file}-wal"]
        self.nap: Nap | None = None
        self._told_to_stop = False
        self._scheduler = Scheduler(at.catalog, lambda: at.engine, tell=tell or _nobody, rest=self._rest, shard=shard)
        self._thread: threading.Thread | None = None

    def run(self, *, until_idle: bool = False) -> None:
        """In this thread, until ``stop`` is called by another, or Ctrl-C: what is being refreshed is finished first."""
        forget = self._at.committed.add(lambda commit: self._scheduler.look_again())
        try:
            self._scheduler.run(until_idle=until_idle)
        except KeyboardInterrupt:
            self._scheduler.stop()
        finally:
            forget()

    def start(self) -> None:
        self._thread = threading.Thread(target=self.run, name="penstock-run", daemon=True)
        self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """End it; what is being refreshed is finished first, which is waited for."""
        self._told_to_stop = True
        self._scheduler.stop()
        if wait and self._thread is not None:
            self._thread.join()

    def finish(self) -> None:
        """End it when what is due now was refreshed: what was committed until now is followed."""
        self._scheduler.finish()
        if self._thread is not None:
            self._thread.join()

    def look_again(self) -> None:
        """Look at once for what is due."""
        self._scheduler.look_again()

    def busy(self) -> set[str]:
        """The views that are being refreshed now."""
        return self._scheduler.busy()

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._told_to_stop

    def join(self, seconds: float) -> None:
        """Wait for the end, at most so long."""
        if self._thread is not None:
            self._thread.join(seconds)

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.stop()

    def _rest(self, idle: timedelta, settings: Mapping[str, str]) -> None:
        """After a while without work let Java go, then end."""
        from penstock.engine.settings import length_of

        if self._at.spark.started:
            if self._lets_java_go and idle >= length_of(settings, "spark_idle_time"):
                self._at.spark.rest()
        elif self._catalog and self._at.all_is_sent and idle >= length_of(settings, "sleep_after"):
            self.nap = self._scheduler.nap(self._catalog)
            if self.nap is not None:
                self._scheduler.stop()


def _nobody(finished: Finished) -> None:
    """Hears of refreshes where nobody wants to."""
