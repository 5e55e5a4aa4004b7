"""The spinner: late, on a terminal only, and gone afterwards."""

from __future__ import annotations

import os
import pty
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.cli import progress as module
from penstock.cli.progress import Progress


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Standard error is a terminal; gives a way to read its screen until some text has come."""
    screen, tty = pty.openpty()

    def until(text: str) -> str:
        seen = ""
        while text not in seen:
            assert select.select([screen], [], [], 60)[0], f"{text!r} never came; there was {seen!r}"
            seen += os.read(screen, 1024).decode()
        return seen

    with monkeypatch.context() as patched, os.fdopen(tty, "w") as stderr:
        patched.setenv("TERM", "xterm")
        patched.setattr(sys, "stderr", stderr)
        yield until
    os.close(screen)


def say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def test_the_words_of_the_moment_are_shown_and_then_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    progress = Progress()
    with terminal(monkeypatch) as until:
        with progress.during("starting"):
            until("starting (")
            progress("refreshing totals")
            until("refreshing totals (")
        say("end")
        erase_line = "\x1b[2K"
        assert until("end").endswith(f"{erase_line}end")


def test_what_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as until:
        with Progress().during("quick"):
            pass
        say("end")
        assert until("end") == "end"


def test_nothing_is_shown_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Progress().during("working"):
        pass
    assert capsys.readouterr().err == ""
