"""``checkpoint`` and ``restore``: name an epoch, and bring all views back to it."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import out, plain_table, print_json, print_table
from penstock.cli.warehouse import CatalogOption, JsonOption, WarehouseOption, opened, place_of


def checkpoint(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A name for the newest epoch; without one, list them.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Forget the checkpoint of that name.")] = False,
    json: JsonOption = False,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Name the newest epoch, to keep it and go back to it."""
    with opened(place_of(context, warehouse, catalog)) as (database, _):
        if name is None:
            found = [(c.name, c.epoch, c.created_at) for c in database.checkpoints()]
        elif drop:
            database.drop_checkpoint(name)
            out().print(f"checkpoint {name} dropped")
            return
        else:
            out().print(f"checkpoint {name} is epoch {database.checkpoint(name)}")
            return
    if json:
        print_json([{"name": n, "epoch": epoch, "created_at": at} for n, epoch, at in found])
    elif found:
        table = plain_table("checkpoint", "epoch", "created", right=("epoch",))
        for n, epoch, at in found:
            table.add_row(n, str(epoch), f"{at:%Y-%m-%d %H:%M:%S}")
        print_table(table)
    else:
        out().print("There are no checkpoints yet. Make one with: penstock checkpoint NAME")


def restore(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The checkpoint.")],
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Bring all views back to a checkpoint, in one step. Tables stay as they are; refresh to catch up."""
    with opened(place_of(context, warehouse, catalog)) as (database, progress), progress.during("restoring"):
        epoch = database.restore(name)
    out().print(f"checkpoint {name} restored as epoch {epoch}")
