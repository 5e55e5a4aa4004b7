"""``refresh``: bring views up to date and say what was done to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from penstock.cli.loading import without_pandas
from penstock.cli.output import cell, out, plain_table, print_json, print_table, say_error, say_hint
from penstock.cli.show import ACTION_STYLES, NO_TABLES, NO_VIEWS, STATUS_STYLES, count, styled
from penstock.cli.warehouse import CatalogOption, JsonOption, WarehouseOption, opened, place_of
from penstock.errors import RefreshError
from penstock.sql.intervals import microseconds
from penstock.vocabulary import Reason, Status

if TYPE_CHECKING:
    from penstock.engine.report import ViewReport

HELD = 3
"""The exit code when views were left to another process."""


def refresh(
    context: typer.Context,
    views: Annotated[
        list[str] | None, typer.Argument(metavar="VIEW", help="The views; all without.", show_default=False)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Recompute the views from all rows.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for another process that is refreshing some of the views.")
    ] = False,
    wait_for: Annotated[
        str | None, typer.Option("--wait-for", metavar="TIME", help="The same, but at most so long: '5 minutes'.")
    ] = None,
    json: JsonOption = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Bring views, and the views that they read, up to date.

    The exit code is 0 when all of them are, 1 when a view failed, and 3 when none failed but some were skipped because
    another process is refreshing them (see --wait).
    """
    if wait_for is not None and microseconds(wait_for) is None:
        raise typer.BadParameter(f"--wait-for takes a length of time such as '5 minutes', not {wait_for!r}.")
    without_pandas()
    with opened(place_of(context, warehouse, catalog)) as (database, progress):
        nodes = database.graph().nodes
        report: Mapping[str, Any]
        try:
            with progress.during("refreshing"):
                report = database.refresh(*(views or ()), full=full, wait=wait_for or wait)
        except RefreshError as problem:
            report = problem.report
    reports: list[ViewReport] = list(report.values())
    failed = [view for view in reports if view.status == Status.FAILED]
    if json:
        print_json({"epoch": getattr(report, "epoch", None), "views": [asdict(view) for view in reports]})
    elif reports:
        print_table(report_table(reports))
        for note in {", ".join(view.unlike): view.unlike for view in reports if view.unlike}:
            out().print(f"computed under the views' own settings: {note}", highlight=False, markup=False)
    else:
        out().print(NO_VIEWS if nodes else NO_TABLES)
    for view in reports:
        for message in view.alerts.values():
            say_hint(f"view {view.name!r}: {message}. SHOW ALERTS tells more.")
        if view.remark:
            say_hint(f"view {view.name!r}: {view.remark}.")
    for view in failed:
        say_error(f"view {view.name!r} failed to refresh: {view.error}")
    if failed:
        raise typer.Exit(1)
    leave_if_held(reports)


def leave_if_held(reports: Iterable[ViewReport]) -> None:
    """Say which views were left to another process, if any, and leave with the exit code for that."""
    held = ", ".join(repr(view.name) for view in reports if view.reason == Reason.HELD_BY_ANOTHER)
    if held:
        say_hint(f"not refreshed: {held}, since another process is at it. 'penstock refresh --wait' waits for it.")
        raise typer.Exit(HELD)


def report_table(reports: Iterable[ViewReport]) -> Table:
    """What a refresh did, a line a view."""
    reports = list(reports)
    columns = ["view", "action", "strategy", "reason", "+rows", "-rows", "seconds"]
    troubled = any(view.status != Status.SUCCEEDED for view in reports)
    table = plain_table(*columns, *(["status"] if troubled else []), right=("+rows", "-rows", "seconds"))
    for view in reports:
        cells = [
            cell(view.name, "bold"), styled(view.action, ACTION_STYLES), cell(view.strategy), cell(view.reason),
            count(view.rows_inserted), count(view.rows_deleted), cell(f"{view.seconds:.2f}"),
        ]  # fmt: skip
        table.add_row(*cells, *([styled(view.status, STATUS_STYLES)] if troubled else []))
    return table
