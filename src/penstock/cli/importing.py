"""``import``: Delta tables and views of Spark's catalogs made known here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from penstock.cli.output import cell, plain_table, print_json, print_table
from penstock.cli.warehouse import CatalogOption, JsonOption, WarehouseOption, opened, place_of


def import_tables(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="catalog.schema.table, or catalog.schema for all in it.")],
    json: JsonOption = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Make Delta tables and views of Spark's catalogs known.

    Tables become external tables of the same schema and name, and stay where they are. Views become plain views, whose
    definition is watched. The exit code is 1 when one of
    them cannot be taken.
    """
    place = place_of(context, warehouse, catalog)
    with opened(place, create=True) as (database, progress), progress.during("asking Spark's catalog"):
        found = database.import_tables(name)
    if json:
        print_json([asdict(one) for one in found])
    else:
        table = plain_table("in Spark's catalog", "here", "why not")
        for one in found:
            table.add_row(cell(one.source, "bold"), cell(one.name), cell(one.why_not))
        print_table(table)
    if any(one.name is None for one in found):
        raise typer.Exit(1)
