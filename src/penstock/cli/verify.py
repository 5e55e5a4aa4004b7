"""``verify``: whether views are what their queries say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.output import cell, out, plain_table, print_json, print_table
from penstock.cli.show import NO_TABLES, NO_VIEWS, count, styled
from penstock.cli.warehouse import CatalogOption, JsonOption, WarehouseOption, opened, place_of

if TYPE_CHECKING:
    from penstock.observe.verify import Verification

_STYLES = {"EQUAL": "green", "DIFFERENT": "bold red", "NOT_VERIFIED": "yellow"}


def verify(
    context: typer.Context,
    views: Annotated[
        list[str] | None, typer.Argument(metavar="VIEW", help="The views; all without.", show_default=False)
    ] = None,
    sample: Annotated[
        float | None,
        typer.Option("--sample", metavar="SHARE", min=0.000001, max=1.0, help="Compare only this share of the rows."),
    ] = None,
    json: JsonOption = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Compare views with their queries, on what they were computed from. The exit code is 1 when one differs."""
    with opened(place_of(context, warehouse, catalog)) as (database, progress), progress.during("verifying"):
        empty = not database.graph().nodes
        found = database.verify(*(views or ()), sample=sample)
    if json:
        print_json([asdict(one) for one in found])
    elif found:
        print_table(_table(found))
        _print_examples(found)
    else:
        out().print(NO_TABLES if empty else NO_VIEWS)
    if any(one.outcome == "DIFFERENT" for one in found):
        raise typer.Exit(1)


def _table(found: Iterable[Verification]) -> Table:
    table = plain_table("view", "outcome", "missing", "superfluous", "why", right=("missing", "superfluous"))
    for one in found:
        outcome = styled(one.outcome, _STYLES)
        table.add_row(cell(one.view, "bold"), outcome, count(one.missing), count(one.superfluous), cell(one.reason))
    return table


def _print_examples(found: Iterable[Verification]) -> None:
    for one in found:
        for example in one.examples:
            what = "superfluous" if example.copies > 0 else "missing"
            values = ", ".join(f"{name} = {value}" for name, value in example.row.items())
            text = Text.assemble((f"{one.view}: ", "bold"), f"{what}, {abs(example.copies)} x ({values})")
            out().print(text, soft_wrap=True)
        if one.outcome == "DIFFERENT":
            out().print(Text(f"Make it right with: penstock refresh --full {one.view}", style="dim"), soft_wrap=True)
