"""Where the command writes: results to standard output, words about them to standard error; JSON for machines."""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any, Literal

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from penstock.errors import PenstockError, RefreshError
from penstock.observe.values import jsonable

# A table in a file or a pipe has no edge to wrap at.
_ENDLESS = 10_000


def out() -> Console:
    """Results. Made at each use, since tests and callers replace ``sys.stdout``."""
    return _console(sys.stdout)


def err() -> Console:
    """Errors, progress and hints."""
    return _console(sys.stderr)


def _console(file: IO[str]) -> Console:
    console = Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _ENDLESS
    return console


def say_error(message: str) -> None:
    """One clear message. One of several lines is not wrapped: a pointer below a statement stays where it points."""
    text = Text.assemble(("error: ", "bold red"), message)
    err().print(text, soft_wrap="\n" in message)


def say_problem(problem: PenstockError) -> None:
    """What went wrong; of a refresh, what went wrong in each view."""
    if isinstance(problem, RefreshError):
        for view in problem.report.values():
            if view.error:
                say_error(f"view {view.name!r} failed to refresh: {view.error}")
    else:
        say_error(str(problem))


def say_hint(message: str) -> None:
    err().print(Text(message, style="dim"), soft_wrap=True)


def print_json(document: Any) -> None:
    """One document on one line."""
    sys.stdout.write(json.dumps(jsonable(document), ensure_ascii=False, allow_nan=False) + "\n")


def plain_table(*columns: str, right: tuple[str, ...] = (), whole: tuple[str, ...] = ("view", "action")) -> Table:
    """An empty table in the one style of the command. Columns in ``right`` are aligned there; what is in those in
    ``whole`` does not go on in the next line."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(
            column, justify=justify, overflow="ellipsis" if column in whole else "fold", no_wrap=column in whole
        )
    return table


def print_table(table: Table) -> None:
    """Print a table; one that is too wide for the terminal gets narrower gaps first."""
    if not fits(table):
        table.padding = (0, 1, 0, 0)
    out().print(table)


def fits(table: Table, console: Console | None = None) -> bool:
    """Whether a table can be printed without wrapping what it says."""
    console = console or out()
    return Measurement.get(console, console.options.update(max_width=_ENDLESS), table).maximum <= console.width


def numbered(number: int, one: str, several: str = "") -> str:
    """
    >>> numbered(1, "view"), numbered(1200, "view"), numbered(2, "refresh", "refreshes")
    ('1 view', '1,200 views', '2 refreshes')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def cell(value: object, style: str = "") -> Text:
    """A cell of text; nothing is a dim dash."""
    return Text("-", style="dim") if value is None or value == "" else Text(str(value), style=style)
