"""Where the tables of a warehouse are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.database import Database


def table_paths(database: Database) -> dict[str, str]:
    """The directory of each table."""
    from pyspark.sql import DataFrame

    listing = database.sql("SHOW TABLES")
    assert isinstance(listing, DataFrame)
    return {str(row["name"]): str(row["location"]) for row in listing.collect()}
