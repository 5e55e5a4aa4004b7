"""``run``: keep views fresh by themselves; a display that lives at a terminal, a line for each refresh elsewhere."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from penstock.cli.live import standing, that_fit
from penstock.cli.loading import without_pandas
from penstock.cli.output import err, numbered, out, print_json, say_hint
from penstock.cli.show import ACTION_STYLES, STATUS_STYLES
from penstock.cli.warehouse import CatalogOption, JsonOption, WarehouseOption, opened, place_of
from penstock.logs import LEVEL, written
from penstock.schedule.naps import SIGNALS, Nap, fall_asleep
from penstock.vocabulary import Action, Status

if TYPE_CHECKING:
    from penstock.database import Database
    from penstock.engine.report import ViewReport
    from penstock.running import Runner
    from penstock.schedule.scheduler import Finished

_SHOWN = 12
"""Refreshes that the display remembers."""
_TIMES_A_SECOND = 2
_WOKEN = "--woken"
"""Says that this process has slept, and was greeted before."""
_SECONDS = 1.0
"""How long a signal may wait. One that comes just after a process was stopped and continued is given to any thread, and
the main one, which alone may answer it, goes on waiting."""


def run(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Refresh what is due now, and leave.")] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard", metavar="N/M", help="Look after one of M parts of the views; run M of these processes."
        ),
    ] = None,
    json: JsonOption = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
    woken: Annotated[bool, typer.Option(_WOKEN, hidden=True)] = False,
) -> None:
    """Keep views fresh that say when they refresh.

    That is ON COMMIT, EVERY, CRON or TARGET LAG. It runs until Ctrl-C or SIGTERM, and finishes what it is doing
    first; a second one abandons that. Several of them may run on one warehouse: they share the work. At a terminal
    it shows how the views stand, elsewhere it writes a line for each refresh that did something, with --json in
    JSON, and gives its memory back after a while without work.
    """
    without_pandas()
    with opened(place_of(context, warehouse, catalog)) as (database, _):
        live = not json and not once and out().is_terminal
        display = _Display(database) if live else None
        tell = display.hear if display is not None else _json_line if json else _line
        failed: list[Finished] = []
        due: list[str] = []

        def told(finished: Finished) -> None:
            due.extend(one.key for one in finished.due)
            if once and (finished.error or any(report.status == Status.FAILED for report in finished.reports)):
                failed.append(finished)
            tell(finished)

        runner = database.runner(told, lets_java_go=True, sleeps=display is None and not once, shard=shard)
        if not json and not woken:
            _greet(database, once)
        logs = written(os.environ.get(LEVEL, "warning"), as_json=json) if display is None else nullcontext()
        with _obeying(runner, say_hint if display is None else display.say), logs:
            if once:
                runner.run(until_idle=True)
            elif display is None:
                runner.start()
                while runner.running:  # this thread has nothing to do but to hear signals
                    runner.join(_SECONDS)
            else:
                display.during(runner)
            if runner.nap is not None:
                _nap(runner, runner.nap)
    if failed:
        raise typer.Exit(1)
    if not json and not (once and due):
        say_hint("nothing was due" if once else "stopped")


def _greet(database: Database, once: bool) -> None:
    views = [view for view in database.status() if view.refreshes_itself]
    if not views:
        say_hint(
            "No view refreshes by itself yet. Say when, for example:\n"
            '  penstock sql "ALTER MATERIALIZED VIEW totals REFRESH ON COMMIT"'
        )
    elif not once:
        say_hint(f"keeping {numbered(len(views), 'view')} of {database.path} fresh; stop with Ctrl-C")


@contextmanager
def _obeying(runner: Runner, say: Callable[[str], None]) -> Iterator[None]:
    """SIGTERM and Ctrl-C finish what is being done, a second one abandons it; SIGHUP looks at everything again."""

    def finish(number: int, frame: FrameType | None) -> None:
        if runner.stopping:
            _abandon(number)
        runner.stop(wait=False)  # first: another signal may come while this is being said
        say(f"finishing {', '.join(sorted(runner.busy())) or 'nothing'}; once more to abandon it")

    wanted = {signal.SIGTERM: finish, signal.SIGINT: finish}
    if hasattr(signal, "SIGHUP"):
        wanted[signal.SIGHUP] = lambda number, frame: runner.look_again()
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    if SIGNALS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # who was asleep has blocked them until now
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _nap(runner: Runner, nap: Nap) -> None:
    """Turn into a process that waits for work, unless a signal came first. The catalog is not closed: closing it
    writes to it, and would wake whoever sleeps."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # they are heard asleep, or by whoever wakes
    if runner.stopping:
        return
    fall_asleep(nap, [*(word for word in sys.orig_argv if word != _WOKEN), _WOKEN])


def _abandon(number: int) -> None:
    """Leave at once, whatever the threads are doing: to others this is a process that has died, and they take over."""
    err().show_cursor(True)
    say_hint("abandoned")
    sys.stdout.flush()
    os._exit(128 + number)


def _line(finished: Finished) -> None:
    """What a refresh did, in one line a view; of one that found nothing to do, nothing."""
    when = finished.began.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    for report in _worth_telling(finished):
        sys.stdout.write(f"{when} {_said(report)}\n")
    if finished.error:
        sys.stdout.write(f"{when} {', '.join(one.key for one in finished.due)}: {finished.error}\n")
    sys.stdout.flush()


def _json_line(finished: Finished) -> None:
    """The whole of it, also where there was nothing to do."""
    print_json(
        {
            "at": finished.began, "epoch": finished.epoch, "seconds": round(finished.seconds, 3),
            "error": finished.error,
            "due": [{"view": one.key, "why": one.why.value, "since": one.since} for one in finished.due],
            "views": [{**asdict(report), "error": report.told} for report in finished.reports],
        }
    )  # fmt: skip
    sys.stdout.flush()


def _worth_telling(finished: Finished) -> list[ViewReport]:
    return [r for r in finished.reports if r.action not in (Action.NO_DATA, Action.SKIP) or r.status == Status.FAILED]


def _said(report: ViewReport) -> str:
    if report.status == Status.FAILED:
        return f"{report.name} FAILED: {report.told}"
    return f"{report.name} {report.action} +{report.rows_inserted:,} -{report.rows_deleted:,} in {report.seconds:.2f} s"


class _Display:
    """How the views stand, and the last refreshes, newest first, drawn again twice a second."""

    def __init__(self, database: Database):
        self._database = database
        self._last: deque[tuple[datetime, ViewReport]] = deque(maxlen=_SHOWN)
        self._lock = threading.Lock()
        self._refreshes = 0
        self._said: Text | None = None

    def hear(self, finished: Finished) -> None:
        with self._lock:
            self._refreshes += 1
            self._last.extend((finished.began, report) for report in _worth_telling(finished))

    def say(self, words: str) -> None:
        """Say something beside what is drawn: what is printed meanwhile would be drawn over."""
        self._said = Text(words, style="bold")

    def during(self, runner: Runner) -> None:
        runner.start()
        console = err()
        with Live(
            console=console, refresh_per_second=_TIMES_A_SECOND, get_renderable=lambda: self._drawn(runner, console)
        ):
            while runner.running:
                runner.join(1 / _TIMES_A_SECOND)

    def _drawn(self, runner: Runner, console: Console) -> Group:
        views = [view for view in self._database.status() if view.refreshes_itself]
        table = standing(views, console, refreshing=runner.busy())
        with self._lock:
            lines = [
                Text.assemble(
                    (began.astimezone().strftime("%H:%M:%S "), "dim"),
                    (_said(r), STATUS_STYLES[r.status] if r.status == Status.FAILED else ACTION_STYLES[r.action]),
                )
                for began, r in reversed(self._last)
            ]
            count = Text(numbered(self._refreshes, "refresh", "refreshes"), style="dim")
        above: list[RenderableType] = [table, count, *([] if self._said is None else [self._said])]
        return Group(*that_fit(above, lines, console))
