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
from penstock.vocabulary import Outcome

if TYPE_CHECKING:
    from penstock.observe.graph import Graph
    from penstock.observe.verify import Verification

_STYLES = {Outcome.EQUAL: "green", Outcome.DIFFERENT: "bold red", Outcome.NOT_VERIFIED: "yellow"}


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
    """Compare views with their queries.

    The queries are run on what the views were computed from. The exit code is 1 when one differs.
    """
    with opened(place_of(context, warehouse, catalog)) as (database, progress), progress.during("verifying"):
        graph = database.graph()
        found = database.verify(*(views or ()), sample=sample)
    if json:
        print_json([asdict(one) for one in found])
    elif found:
        print_table(_table(found))
        _print_examples(found)
        _print_remedy([one.view for one in found if one.outcome == Outcome.DIFFERENT], graph)
    else:
        out().print(NO_VIEWS if graph.nodes else NO_TABLES)
    if any(one.outcome == Outcome.DIFFERENT for one in found):
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


def _print_remedy(wrong: list[str], graph: Graph) -> None:
    """A reader goes on from what it was handed, and not from what the view's table says: it is made anew as well."""
    readers = {node.name: node.readers for node in graph.nodes}
    for name in wrong:
        wrong += [reader for reader in readers[name] if reader not in wrong]
    if wrong:
        names = " ".join(wrong)
        out().print(
            Text(f"Recompute it, and what reads it: penstock refresh --full {names}", style="dim"), soft_wrap=True
        )
