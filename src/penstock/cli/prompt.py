"""The interactive prompt: statements over several lines until a semicolon, history, completion, highlighting."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from penstock.cli.interrupt import interruptible
from penstock.cli.output import out, say_hint, say_problem
from penstock.cli.show import NO_TABLES, graph_trees
from penstock.cli.sql import run_statement
from penstock.errors import PenstockError, SqlError
from penstock.sql.lexer import tokenize
from penstock.sql.parser import parse, split_script

if TYPE_CHECKING:
    from penstock.cli.progress import Progress
    from penstock.database import Database

_BEGUN = re.compile(r"[\w.`]+")
"""What a name or a keyword may begin with: schemas have a dot behind them."""

LEAVE = ("\\q", "exit", "quit")
HELP = """\
A statement ends with ';' and may take several lines. Tab completes, arrow up recalls, Ctrl-R searches.
  \\d     tables and views, and who reads whom
  \\?     this help
  \\q     leave; so do exit, quit and Ctrl-D
Ctrl-C drops what is typed, or stops what is running."""

KEYWORDS = """
    ALL ALTER AND AS ASC AVG BEGIN BETWEEN BIGINT BOOLEAN BY CASCADE CASE CAST COMMENT COMMIT COUNT CREATE CROSS
    DATE DECIMAL DELETE DEPENDENCIES DESC DESCRIBE DISTINCT DOUBLE DROP ELSE END EXCEPT EXISTS EXPLAIN FALSE FOR
    FROM FULL GROUP HAVING HISTORY IF IMMEDIATE IN INCREMENTAL INNER INSERT INT INTERSECT INTERVAL INTO IS JOIN LEFT
    LIKE LIMIT LOCATION MANUAL MATCHED MATERIALIZED MAX MERGE MIN NOT NULL ON OPTIMIZE OR ORDER OUTER OVER PARTITION
    POLICY REFRESH REPLACE RIGHT ROLLBACK SCHEMA SCHEMAS SELECT SEMI SET SHOW STRICT STRING SUM TABLE TABLES
    TBLPROPERTIES THEN TIMESTAMP TRANSACTION TRUE TRUNCATE TUMBLE TUMBLE_END TUMBLE_START UNION UPDATE USE USING VALUES
    VIEW VIEWS WHEN WHERE WITH
""".split()


def interact(database: Database, progress: Progress, limit: int, session: PromptSession[str] | None = None) -> None:
    """Read and run statements until the user leaves. An error is shown, and the prompt goes on."""
    session = session or new_session()
    out().print(f"Penstock on {database.path}. End statements with ';'. \\? helps, \\q leaves.", soft_wrap=True)
    while True:
        names = [node.name for node in database.graph().nodes]
        try:
            mark = "penstock*> " if database.in_transaction else "penstock> "
            text = session.prompt(mark, completer=Words(names)).strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if (command := text.rstrip("; ").lower()) in LEAVE:
            return
        try:
            if text.startswith("\\") or command == "help":
                _own_command(database, command)
            else:
                _run(database, progress, text, limit)
        except PenstockError as problem:
            say_problem(problem)
        except KeyboardInterrupt:
            say_hint("stopped")


def _own_command(database: Database, command: str) -> None:
    if command in ("\\?", "\\h", "help"):
        out().print(HELP)
    elif command == "\\d":
        found = database.graph()
        out().print(*graph_trees(found), sep="\n") if found.nodes else out().print(NO_TABLES)
    else:
        raise PenstockError(f"there is no command {command} here: \\? tells what there is.")


def _run(database: Database, progress: Progress, text: str, limit: int) -> None:
    pieces = split_script(text)
    for piece in pieces:
        parse(piece)  # a slip of the pen is told before anything is done
    for piece in pieces:
        interruptible(database, partial(run_statement, database, progress, piece, limit, json=False, timed=True))


def is_complete(text: str) -> bool:
    """Whether Enter runs the text rather than beginning a new line.

    >>> is_complete("SELECT 1"), is_complete("SELECT ';"), is_complete("SELECT 1; -- one"), is_complete("exit")
    (False, False, True, True)
    """
    stripped = text.strip()
    if stripped.startswith("\\") or stripped.rstrip("; ").lower() in (*LEAVE, "help"):
        return True
    try:
        tokens = tokenize(text)
    except SqlError:
        return False  # a string or a comment goes on in the next line
    return not tokens or tokens[-1].upper == ";"


def new_session() -> PromptSession[str]:
    """A prompt on the terminal, with the history of earlier ones."""
    return PromptSession(
        history=_history(), lexer=PygmentsLexer(SqlLexer), multiline=True, key_bindings=_keys(),
        prompt_continuation="      -> ", complete_while_typing=False, enable_open_in_editor=False,
    )  # fmt: skip


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def history_path() -> str:
    """Where shells keep such things: XDG_STATE_HOME, or ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "penstock", "sql_history")


def _history() -> History:
    path = history_path()
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8"):
            pass
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


class Words(Completer):
    """Completes the names of tables and views, then keywords in the case that was begun."""

    def __init__(self, names: Iterable[str]):
        self._names = list(names)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        begun = document.get_word_before_cursor(pattern=_BEGUN)
        word = begun.lower()
        if not word:
            return
        for name in self._names:
            if name.lower().startswith(word):
                yield Completion(name, start_position=-len(begun), display_meta="table or view")
        for keyword in KEYWORDS:
            if keyword.lower().startswith(word):
                yield Completion(keyword.lower() if begun.islower() else keyword, start_position=-len(begun))
