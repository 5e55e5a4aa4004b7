"""The names that views have in Spark's catalog, as far as they were written there.

A name is noted before it is written there, so that one which a crash has left half done is done again, and one whose
view is gone is not forgotten before it is gone there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from penstock.catalog import tables as t
from penstock.catalog.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class CatalogName:
    """A name of Spark's catalog; ``key`` tells it from others, and ``name`` is how it is written."""

    key: str
    name: str
    view: str
    """The key of the view that has it."""
    digest: str | None = None
    """Of what was written there; None while that is not certain."""
    tried: str | None = None
    """Of what was to be written and could not be."""
    problem: str | None = None
    """Why not."""
    application: str | None = None
    """The Spark application whose catalog it is in, if that is forgotten with it."""


@dataclass(frozen=True)
class CatalogNames:
    catalog: Catalog

    def all(self) -> dict[str, CatalogName]:
        with self.catalog.transaction(writes=False) as connection:
            rows = connection.execute(select(t.catalog_names)).mappings()
            return {row["key"]: CatalogName(**row) for row in rows}

    def begin(self, name: CatalogName) -> None:
        """Note that a name is about to be written there, or taken away: what is there now is not certain."""
        values: Mapping[str, object] = {**vars(name), "digest": None}
        with self.catalog.transaction(writes=True) as connection:
            connection.execute(delete(t.catalog_names).where(t.catalog_names.c.key == name.key))
            connection.execute(insert(t.catalog_names).values(**values))

    def end(self, key: str, digest: str, application: str | None) -> None:
        """Note what was written."""
        done = {"digest": digest, "application": application, "tried": None, "problem": None}
        with self.catalog.transaction(writes=True) as connection:
            connection.execute(update(t.catalog_names).where(t.catalog_names.c.key == key).values(**done))

    def fail(self, name: CatalogName, tried: str | None, problem: str) -> None:
        """Note that this could not be written. What is there is what was there before, if that was certain."""
        with self.catalog.transaction(writes=True) as connection:
            connection.execute(delete(t.catalog_names).where(t.catalog_names.c.key == name.key))
            connection.execute(insert(t.catalog_names).values(**{**vars(name), "tried": tried, "problem": problem}))

    def forget(self, key: str) -> None:
        with self.catalog.transaction(writes=True) as connection:
            connection.execute(delete(t.catalog_names).where(t.catalog_names.c.key == key))
