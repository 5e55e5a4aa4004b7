"""``sql``: statements from the command line, a file, standard input or an interactive prompt."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.loading import without_pandas
from penstock.cli.output import out, print_json, print_table
from penstock.cli.refresh import leave_if_held
from penstock.cli.warehouse import CatalogOption, WarehouseOption, opened, place_of
from penstock.errors import InternalError, PenstockError, RefreshError, SqlError
from penstock.observe.listings import STATEMENT
from penstock.sql.lexer import position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.cli.progress import Progress
    from penstock.database import Database, Done
    from penstock.engine.report import ViewReport

SHOWN_ROWS = 100


def sql(
    context: typer.Context,
    statements: Annotated[
        str | None, typer.Argument(metavar="STATEMENTS", help="One or several, with ';' between.", show_default=False)
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="Run a file; '-' is the standard input.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", min=1, help=f"Rows to show (default: {SHOWN_ROWS}; with --json all).", metavar="N"
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="A line of JSON for each statement: an array of rows, or an object.")
    ] = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Run SQL. Without statements, at a terminal: an interactive prompt.

    Every statement is read before the first one runs. The first one that fails ends the run.
    """
    if statements is not None and file is not None:
        raise typer.BadParameter("give statements or --file, not both")
    place = place_of(context, warehouse, catalog)
    without_pandas()
    if statements is None and file is None and sys.stdin.isatty():
        from penstock.cli.prompt import interact

        with opened(place, create=True) as (database, progress):
            interact(database, progress, limit or SHOWN_ROWS)
        return
    script = Script(*_read(statements, file))
    if not script.pieces:
        if statements is not None:
            raise SqlError("there is no statement to run.")
        return
    with opened(place, create=True) as (database, progress):
        refreshed = script.run(database, progress, limit, json)
    leave_if_held(refreshed)


def _read(statements: str | None, file: str | None) -> tuple[str, str]:
    """The text and what to call it."""
    if statements is not None:
        return statements, ""
    if file in (None, "-"):
        return sys.stdin.read(), "the standard input"
    assert file is not None
    try:
        with open(file, encoding="utf-8") as source:
            return source.read(), file
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise PenstockError(f"the file {file!r} cannot be read: {reason}.") from None


class Script:
    """Statements in a row; an error says in which of them it is."""

    def __init__(self, text: str, source: str = ""):
        from penstock.sql.parser import parse, split_script

        self._text = text
        self._source = source
        self.pieces = split_script(text)
        for number, piece in enumerate(self.pieces):
            try:
                parse(piece)
            except PenstockError as problem:
                raise PenstockError(f"{self._where(number)}{problem}") from None

    def run(self, database: Database, progress: Progress, limit: int | None, json: bool) -> list[ViewReport]:
        """Run them all; gives what became of the views that were to be refreshed."""
        refreshed: list[ViewReport] = []
        for number, piece in enumerate(self.pieces):
            try:
                refreshed += run_statement(database, progress, piece, limit, json)
            except RefreshError:
                raise
            except PenstockError as problem:
                raise PenstockError(f"{self._where(number)}{problem}") from None
        if database.in_transaction:
            raise PenstockError(
                "the last transaction was not committed, so nothing of it was done. Write COMMIT at the end."
            )
        return refreshed

    def _where(self, number: int) -> str:
        if len(self.pieces) == 1 and not self._source:
            return ""
        start = 0
        for piece in self.pieces[:number]:
            start = self._text.index(piece, start) + len(piece)
        line, _ = position(self._text, self._text.index(self.pieces[number], start))
        of_source = f" of {self._source}" if self._source else ""
        return f"in statement {number + 1}, which begins in line {line}{of_source}: "


def run_statement(
    database: Database, progress: Progress, text: str, limit: int | None, json: bool, timed: bool = False
) -> list[ViewReport]:
    """Run one statement and print what it gives; ``timed`` says how long it took, too. Gives what it refreshed."""
    from penstock.cli.rows import Page, fetch, fetch_here, fetch_json
    from penstock.database import Done

    started = time.perf_counter()
    result: DataFrame | Done | None = None
    rows: Page | list[dict[str, Any]] | None = None
    with progress.during("running the statement"):
        found = database.read_here(text)
        if found is not None:
            rows = fetch_here(found, limit or (None if json else SHOWN_ROWS), json=json)
        result = database.sql(text) if rows is None else None
        if result is not None and not isinstance(result, Done):
            progress("reading the rows")
            rows = fetch_json(result, limit) if json else fetch(result, limit or SHOWN_ROWS)
    took = f"{time.perf_counter() - started:.2f} s" if timed else ""
    if isinstance(result, Done):
        _print_done(result, json, took)
    elif isinstance(rows, list):
        print_json(rows)
    elif rows is None:
        raise InternalError("a query gave neither rows nor a result. Please report this.")
    elif rows.columns == [STATEMENT]:  # to be run again, so not a character may be added
        out().file.write("".join(f"{row[0]};\n" for row in rows.rows))
    else:
        print_table(rows.readable(out().width))
        out().print(f"({rows.caption()}{', ' if took else ''}{took})", style="dim")
    return list(result.report.values()) if isinstance(result, Done) and result.report is not None else []


def _print_done(done: Done, json: bool, took: str) -> None:
    if json:
        views = [asdict(view) for view in done.report.values()] if done.report is not None else None
        print_json({"message": done.message, "rows": done.rows, "views": views, "by_spark": done.by_spark})
        return
    out().print(done.message, soft_wrap=True)
    remarks = [f"done by Spark: {done.by_spark}" if done.by_spark else "", took]
    if any(remarks):
        out().print(f"({', '.join(filter(None, remarks))})", style="dim", soft_wrap=True, highlight=False)
