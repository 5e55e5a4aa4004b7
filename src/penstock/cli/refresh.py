"""``refresh``: bring views up to date and say what was done to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from penstock.cli.output import cell, out, plain_table, print_json, print_table, say_error
from penstock.cli.show import ACTION_STYLES, NO_TABLES, NO_VIEWS, STATUS_STYLES, count, styled
from penstock.cli.warehouse import CatalogOption, JsonOption, WarehouseOption, opened, place_of
from penstock.errors import RefreshError

if TYPE_CHECKING:
    from penstock.engine.report import ViewReport


def refresh(
    context: typer.Context,
    views: Annotated[
        list[str] | None, typer.Argument(metavar="VIEW", help="The views; all without.", show_default=False)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Recompute the views from all rows.")] = False,
    json: JsonOption = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Bring views, and the views that they read, up to date. The exit code is 1 when a view failed."""
    with opened(place_of(context, warehouse, catalog)) as (database, progress):
        nodes = database.graph().nodes
        report: Mapping[str, Any]
        try:
            with progress.during("refreshing"):
                report = database.refresh(*(views or ()), full=full)
        except RefreshError as problem:
            report = problem.report
    reports: list[ViewReport] = list(report.values())
    failed = [view for view in reports if view.status == "FAILED"]
    if json:
        print_json({"epoch": getattr(report, "epoch", None), "views": [asdict(view) for view in reports]})
    elif reports:
        print_table(report_table(reports))
        for note in {", ".join(view.unlike): view.unlike for view in reports if view.unlike}:
            out().print(f"computed under the views' own settings: {note}", highlight=False, markup=False)
    else:
        out().print(NO_VIEWS if nodes else NO_TABLES)
    for view in failed:
        say_error(f"view {view.name!r} failed to refresh: {view.error}")
    if failed:
        raise typer.Exit(1)


def report_table(reports: Iterable[ViewReport]) -> Table:
    """What a refresh did, a line a view."""
    reports = list(reports)
    columns = ["view", "action", "strategy", "reason", "+rows", "-rows", "seconds"]
    troubled = any(view.status != "SUCCEEDED" for view in reports)
    table = plain_table(*columns, *(["status"] if troubled else []), right=("+rows", "-rows", "seconds"))
    for view in reports:
        cells = [
            cell(view.name, "bold"), styled(view.action, ACTION_STYLES), cell(view.strategy), cell(view.reason),
            count(view.rows_inserted), count(view.rows_deleted), cell(f"{view.seconds:.2f}"),
        ]  # fmt: skip
        table.add_row(*cells, *([styled(view.status, STATUS_STYLES)] if troubled else []))
    return table
