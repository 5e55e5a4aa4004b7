"""What displays show in the width and the height that a terminal has."""

from __future__ import annotations

import io
import os
import pty
import select
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console, Group
from rich.text import Text

import penstock
from penstock.cli.live import standing, that_fit
from penstock.cli.rows import Page

VIEWS = {"totals_of_all_orders": "CRON '0 6 * * *' AT TIME ZONE 'Europe/Berlin'", "rich_customers": "ON COMMIT"}


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> penstock.Database:
    db = penstock.connect(tmp_path / "w", spark=spark)
    db.sql("CREATE TABLE orders (id INT, amount INT)")
    for name, refresh in VIEWS.items():
        db.create_view(name, "SELECT id, amount FROM orders", refresh=refresh)
    db.sql("INSERT INTO orders VALUES (1, 10)")
    return db


def drawn(part: object, width: int, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(part)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_names_stay_whole_and_less_is_shown_where_the_terminal_is_narrow(db: penstock.Database) -> None:
    views = db.status()
    for width, columns in ((80, False), (200, True)):
        lines = drawn(standing(views, Console(width=width), past=True), width)
        assert all(any(line.startswith(f"{name} ") for line in lines) for name in VIEWS), lines
        assert all(("refreshes" in lines[0], "seconds" in lines[0])) == columns
        assert "orders (1 commit)" in " ".join(" ".join(lines).split())
    busy = drawn(standing(views, Console(width=80), refreshing={"rich_customers"}), 80)
    assert [line.split()[1] for line in busy if line.startswith("rich")] == ["refreshing"]


def test_what_does_not_fit_below_is_the_oldest(db: penstock.Database) -> None:
    console = Console(width=80, height=10)
    above = [standing(db.status(), console), Text("a count")]
    lines = [Text(f"refresh {number}") for number in range(20)]
    shown = drawn(Group(*that_fit(above, lines, console)), 80)
    assert len(shown) < console.height
    assert [line for line in shown if line.startswith("refresh ")][:2] == ["refresh 0", "refresh 1"]
    assert "refresh 19" not in shown


def test_rows_of_many_columns_are_shown_a_line_for_each_value() -> None:
    page = Page(["name", "query", *"abcdef"], [False] * 8, [("t", "SELECT a " * 12, None, *["long enough"] * 5)] * 2, 2)
    lines = drawn(page.readable(80), 80)
    assert lines[0].split() == ["name", "t"]
    assert lines[1].startswith("query  SELECT a SELECT a")
    assert lines.count("f      long enough") == 2
    assert drawn(page.readable(200), 200)[0].split() == page.columns
    two = Page(["name", "about"], [False] * 2, [("t", "word " * 40)], 1)
    assert drawn(two.readable(80), 80)[0].split() == ["name", "about"]


def test_ctrl_c_at_a_terminal_says_what_is_finished(db: penstock.Database, tmp_path: Path) -> None:
    db.close()
    child, terminal = pty.fork()
    if child == 0:
        command = "from penstock.cli import run; run()"
        os.execve(
            sys.executable,
            [sys.executable, "-c", command, "run", "-w", str(tmp_path / "w")],
            {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
        )
    said = ""
    while "1 refresh\x1b" not in said and "INCREMENTAL +1" not in said:
        said += _heard(terminal)
    os.write(terminal, b"\x03")
    while said_now := _heard(terminal):
        said += said_now
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "finishing nothing; once more to abandon it" in said
    assert "stopped" in said


def _heard(terminal: int) -> str:
    """What comes next; nothing at the end."""
    select.select([terminal], [], [])
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:  # the other side is gone
        return ""
