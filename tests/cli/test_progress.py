"""The spinner: late, on a terminal only, and gone afterwards."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from typing import IO

import pytest

from penstock.cli import progress as module
from penstock.cli.progress import Progress


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[IO[bytes]]:
    """Standard error is a terminal; gives its other end."""
    other, this = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(this, "w") as tty, os.fdopen(other, "rb", buffering=0) as screen:
        monkeypatch.setattr(sys, "stderr", tty)
        yield screen


def until(screen: IO[bytes], text: str) -> str:
    seen = b""
    while text.encode() not in seen:
        seen += screen.read(1024)
    return seen.decode()


def test_the_words_of_the_moment_are_shown_and_then_erased(
    terminal: IO[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    progress = Progress()
    with progress.during("starting"):
        assert "starting (0 s)" in until(terminal, "s)")
        progress("refreshing totals")
        until(terminal, "refreshing totals (0 s)")
    sys.stderr.write("end")
    sys.stderr.flush()
    erase_line = "\x1b[2K"
    assert until(terminal, "end").endswith(f"{erase_line}end")


def test_what_is_quick_shows_nothing(terminal: IO[bytes]) -> None:
    with Progress().during("quick"):
        pass
    sys.stderr.write("end")
    sys.stderr.flush()
    assert until(terminal, "end") == "end"


def test_nothing_is_shown_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Progress().during("working"):
        pass
    assert capsys.readouterr().err == ""
