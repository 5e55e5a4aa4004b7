"""The interactive prompt, typed into through a pipe."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import penstock
from penstock.cli.interrupt import interruptible
from penstock.cli.progress import Progress
from penstock.cli.prompt import Words, interact, is_complete
from penstock.cli.sql import run_statement

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for the history, so that tests leave the user's alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def typed(database: penstock.Database, *keys: str) -> None:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text("".join(keys))
        interact(database, Progress(), limit=2)


@pytest.mark.parametrize("leave", ["\\q\r", "exit\r", "quit;\r", CTRL_D])
def test_ways_to_leave(tmp_path: Path, leave: str) -> None:
    with penstock.connect(tmp_path / "w") as database:
        typed(database, leave)


def test_a_slip_is_shown_and_the_prompt_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.connect(tmp_path / "w") as database:
        typed(database, "SELEC 1;\r", "\\x\r", "SELECT 'dropped", CTRL_C, "\\?\r", "\\d\r", "exit\r")
    shown = capsys.readouterr()
    assert "line 1, column 1: " in shown.err
    assert "there is no command \\x here" in shown.err
    assert "A statement ends with ';'" in shown.out
    assert "The warehouse is empty" in shown.out


def test_statements_over_several_lines_and_what_was_typed_before(
    db: penstock.Database, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(db, "SELECT id\r", "FROM range(3);\r", "SELECT 1 / 0;\r", "CREATE TABLE t (id INT);\r", "\\d\r", "\\q\r")
    shown = capsys.readouterr()
    assert "2 rows shown, 1 more" in shown.out
    assert "DIVIDE_BY_ZERO" in shown.err
    assert "t  table" in shown.out
    assert "SELECT id\n+FROM range(3);" in (state / "penstock" / "sql_history").read_text()
    typed(db, UP, UP, UP, UP, UP, "\r", "\\q\r")
    assert "2 rows shown, 1 more" in capsys.readouterr().out


def test_what_needs_no_spark_starts_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with penstock.connect(tmp_path / "w") as database:
        made, said = "CREATE TABLE t (id INT);\r", "INSERT INTO t VALUES (7), (8);\r"
        typed(database, made, "BEGIN;\r", said, "COMMIT;\r", "SELECT * FROM t WHERE id > 7;\r", "\\q\r")
        database.interrupt()
    shown = capsys.readouterr()
    assert (shown.err, "1 row, " in shown.out) == ("", True)


def test_ctrl_c_stops_what_runs_and_spark_goes_on(db: penstock.Database) -> None:
    jobs = db.spark.sparkContext.statusTracker()

    def interrupt_once_it_runs() -> None:
        while not jobs.getActiveJobsIds():
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_once_it_runs, daemon=True).start()
    endless = "SELECT SUM(hash(id)) FROM range(1000000000000)"
    with pytest.raises(KeyboardInterrupt):
        interruptible(db, partial(run_statement, db, Progress(), endless, limit=1, json=False))
    assert not jobs.getActiveJobsIds()
    interruptible(db, partial(run_statement, db, Progress(), "SELECT 1", limit=1, json=False))


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True), ("SELECT 1", False), ("SELECT 1;", True), ("SELECT ';", False), ("SELECT ';'", False),
        ("SELECT 1 -- ;", False), ("SELECT 1; -- one", True), ("SELECT /* ;", False), ("\\d", True), ("exit", True),
        ("Quit ;", True), ("exit_codes", False),
    ],
)  # fmt: skip
def test_where_a_statement_ends(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_names_are_completed_before_keywords_and_in_the_case_that_was_begun() -> None:
    def completed(text: str) -> list[str]:
        words = Words(["Totals", "Orders", "gold.daily"])
        return [c.text for c in words.get_completions(Document(text), CompleteEvent())]

    assert completed("SELECT * FROM tot") == ["Totals"]
    assert completed("SELECT * FROM (gold.d") == completed("refresh g")[:1] == ["gold.daily"]
    assert completed("select * from o") == ["Orders", "on", "optimize", "or", "order", "outer", "over"]
    assert completed("MATER") == ["MATERIALIZED"]
    assert completed("SELECT ") == []
