"""Which warehouse a command means, and opening it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import say_hint
from penstock.cli.progress import Progress
from penstock.errors import WarehouseError
from penstock.storage.locations import is_store, location

if TYPE_CHECKING:
    from penstock.database import Database

DEFAULT = "warehouse"
_WAREHOUSE_HELP = f"Directory of the warehouse (default: {DEFAULT}), or a URL such as s3://bucket/warehouse."
_CATALOG_HELP = "Database URL of the catalog (default: a file in the directory). A warehouse at a URL needs one."

# The variable of the environment belongs to the option before the command: one after the command, or none, must not
# take precedence over what was typed before it.
GlobalWarehouse = Annotated[
    str | None, typer.Option("--warehouse", "-w", metavar="PATH", envvar="PENSTOCK_WAREHOUSE", help=_WAREHOUSE_HELP)
]
GlobalCatalog = Annotated[
    str | None, typer.Option("--catalog", metavar="URL", envvar="PENSTOCK_CATALOG", help=_CATALOG_HELP)
]
WarehouseOption = Annotated[str | None, typer.Option("--warehouse", "-w", metavar="PATH", help=_WAREHOUSE_HELP)]
CatalogOption = Annotated[str | None, typer.Option("--catalog", metavar="URL", help=_CATALOG_HELP)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@dataclass(frozen=True)
class Place:
    """A warehouse's directory and, if it is elsewhere, the URL of its catalog."""

    path: str = DEFAULT
    catalog: str | None = None

    def but(self, path: str | None, catalog: str | None) -> Place:
        """This place, with what was given after the command in its stead."""
        return Place(path or self.path, catalog or self.catalog)

    @property
    def directory(self) -> str:
        return location(self.path, "a warehouse")

    @property
    def lacks_catalog(self) -> bool:
        """Whether nobody can know if there is a warehouse: opening it says what to name."""
        return self.catalog is None and is_store(self.directory)

    @property
    def exists(self) -> bool:
        """Whether there is a warehouse; a catalog on a server is asked only when it is opened."""
        if self.catalog is None:
            return os.path.isfile(os.path.join(self.directory, "catalog.sqlite"))
        file = self.catalog.removeprefix("sqlite:///")
        if file != self.catalog:
            return os.path.isfile(file)
        return is_store(self.directory) or os.path.isdir(self.directory)


def place_of(context: typer.Context, path: str | None, catalog: str | None) -> Place:
    given = context.obj if isinstance(context.obj, Place) else Place()
    return given.but(path, catalog)


@contextmanager
def opened(place: Place, *, create: bool = False, announce: bool = True) -> Iterator[tuple[Database, Progress]]:
    """The database at a place, and the progress display that it reports to. ``create`` makes a missing one."""
    from penstock.database import connect

    new = not place.exists
    if new and not create and not place.lacks_catalog:
        raise _nothing_there(place)
    progress = Progress()
    database = connect(place.path, catalog=place.catalog, progress=progress)
    if new and announce:
        say_hint(f"created the warehouse {database.path}")
    try:
        yield database, progress
    finally:
        with progress.during("stopping Spark"):
            database.close()


def _nothing_there(place: Place) -> WarehouseError:
    where = f"at {place.directory!r}" if place.catalog is None else f"at {place.directory!r} with the given catalog"
    return WarehouseError(
        f"there is no warehouse {where}. Name one with --warehouse PATH or PENSTOCK_WAREHOUSE, or make one there: "
        f'penstock sql -w {place.path} "CREATE TABLE t (id INT)".'
    )
