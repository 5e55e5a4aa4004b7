"""``top``: how the views stand, drawn again every second: the oldest against their target first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from penstock.cli.live import standing
from penstock.cli.output import cell, numbered, out, plain_table
from penstock.cli.show import count, did
from penstock.cli.warehouse import CatalogOption, WarehouseOption, opened, place_of
from penstock.sql.names import key_of
from penstock.vocabulary import Action, State, Status

if TYPE_CHECKING:
    from penstock.database import Database
    from penstock.observe.status import ViewStatus

_REFRESHES = 8
"""The last refreshes that are shown."""


def top(
    context: typer.Context,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.2, help="How often to look.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and leave.")] = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Watch how views stand, what is wrong or too old first.

    It shows what any process does. Ctrl-C ends it.
    """
    with opened(place_of(context, warehouse, catalog)) as (database, _):
        if once or not out().is_terminal:
            out().print(_drawn(database))
            return
        with (
            suppress(KeyboardInterrupt),
            Live(_drawn(database), console=out(), screen=True, auto_refresh=False) as live,
        ):
            while True:
                time.sleep(every)
                live.update(_drawn(database), refresh=True)


def _drawn(database: Database) -> RenderableType:
    views = sorted(database.status(), key=_urgency)
    alerts = [alert for alert in database.alerts() if alert.cleared_at is None]
    building = sum(view.building for view in views)
    head = Text.assemble(
        (database.path, "bold"), f"  {numbered(len(views), 'view')}, {building:,} being refreshed, ",
        (numbered(len(alerts), "alert"), "bold red" if alerts else "green"),
    )  # fmt: skip
    table = standing(views, out(), past=True)
    names = {key_of(view.name): view.name for view in views}
    lines: list[RenderableType] = [
        Text.assemble((f"{names.get(a.view, a.view)}, {a.kind}: ", "yellow"), a.message) for a in alerts
    ]
    return Group(head, "", table, *(["", *lines] if lines else []), "", _last(database, names))


def _urgency(view: ViewStatus) -> tuple[bool, bool, float, str]:
    """What is wrong first, then what is old against what it may be."""
    share = 0.0
    if view.lag is not None and view.target_lag:
        share = view.lag / view.target_lag
    return view.state in (State.ACTIVE, State.INITIALIZING), not view.building, -share, view.name


def _last(database: Database, names: Mapping[str, str]) -> RenderableType:
    """The last refreshes that did something, or failed."""
    newest = database.history(limit=_REFRESHES * 10)
    done = [r for r in newest if r.status == Status.FAILED or r.action not in (Action.NO_DATA, Action.SKIP)]
    table = plain_table(
        "at", "view", "action", "+rows", "-rows", "seconds", "due by", right=("+rows", "-rows", "seconds")
    )
    for record in done[:_REFRESHES]:
        table.add_row(
            record.started_at.astimezone().strftime("%H:%M:%S"), cell(names.get(record.view, record.view), "bold"),
            did(record),
            count(record.rows_inserted), count(record.rows_deleted), f"{record.seconds:.2f}",
            cell((record.details or {}).get("due")),
        )  # fmt: skip
    return table
