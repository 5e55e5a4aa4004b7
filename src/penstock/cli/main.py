"""The entry point: the commands and what they have in common."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from penstock.cli.bench import bench
from penstock.cli.checkpoint import checkpoint, restore
from penstock.cli.demo import demo
from penstock.cli.importing import import_tables
from penstock.cli.output import say_hint, say_problem
from penstock.cli.refresh import refresh
from penstock.cli.run import run
from penstock.cli.serve import serve, token
from penstock.cli.show import explain, graph, history, status
from penstock.cli.sql import sql
from penstock.cli.top import top
from penstock.cli.verify import verify
from penstock.cli.warehouse import DEFAULT, GlobalCatalog, GlobalWarehouse, Place
from penstock.errors import PenstockError


class Commands(TyperGroup):
    """The commands. An error that Penstock raises on purpose becomes a message and the exit code 1, Ctrl-C 130."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PenstockError as problem:
            say_problem(problem)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            say_hint("interrupted")
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        from penstock import __version__

        typer.echo(f"penstock {__version__}")
        raise typer.Exit()


@app.callback()
def penstock(
    context: typer.Context,
    warehouse: GlobalWarehouse = None,
    catalog: GlobalCatalog = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Keep SQL materialized views fresh on Spark and Delta Lake.

    The options --warehouse and --catalog may stand before or after the command.
    """
    context.obj = Place(warehouse or DEFAULT, catalog)


for command in (
    sql,
    refresh,
    run,
    serve,
    status,
    top,
    graph,
    history,
    explain,
    verify,
    checkpoint,
    restore,
    demo,
    bench,
):
    app.command()(command)
app.command("import")(import_tables)
app.add_typer(token, name="token")


def main() -> None:
    # Libraries below log what they also raise; py4j writes whole stacks when Ctrl-C comes in the midst of a call.
    logging.getLogger().addHandler(logging.NullHandler())
    app(prog_name="penstock")
