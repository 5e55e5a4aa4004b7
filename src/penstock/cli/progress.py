"""A spinner for what takes longer than a second: on a terminal's standard error only, gone when the work is done."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner

from penstock.cli.output import err

PATIENCE = 1.0


class Progress:
    """Called with a few words, it says them beside the spinner; outside ``during`` it shows nothing."""

    def __init__(self) -> None:
        self._text = ""
        self._since = 0.0
        self._spinner = Spinner("dots")

    def __call__(self, text: str) -> None:
        self._text = text

    @contextmanager
    def during(self, text: str) -> Iterator[None]:
        """Show the spinner once the block has taken longer than ``PATIENCE`` seconds."""
        self._text, self._since = text, time.monotonic()
        console = err()
        if not (console.is_terminal and sys.stderr.isatty()):
            yield
            return
        done = threading.Event()
        thread = threading.Thread(target=self._show, args=(console, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _show(self, console: Console, done: threading.Event) -> None:
        if done.wait(PATIENCE):
            return
        with Live(
            get_renderable=self._line, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
        ):
            done.wait()

    def _line(self) -> RenderableType:
        self._spinner.update(text=f"{self._text} ({time.monotonic() - self._since:.0f} s)", style="cyan")
        return self._spinner
