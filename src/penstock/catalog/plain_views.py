"""Plain views in the catalog: adding, replacing and dropping them, each a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete

from penstock.catalog import tables as t
from penstock.catalog.catalog import Catalog
from penstock.catalog.models import PlainView, read_models
from penstock.catalog.publishing import put_plain
from penstock.errors import BusyError


@dataclass(frozen=True)
class PlainRecords:
    catalog: Catalog

    def put(self, view: PlainView, known: PlainView | None) -> None:
        """Add a plain view, or put it in the place of the one that is ``known``."""
        with self.catalog.transaction(writes=True) as connection:
            if read_models(connection)["plain"].get(view.key) != known:
                raise BusyError(f"view {view.name!r} was changed by another process in this moment. Try again.")
            put_plain(connection, view, or_replace=known is not None)

    def drop(self, key: str) -> None:
        with self.catalog.transaction(writes=True) as connection:
            connection.execute(delete(t.plain_views).where(t.plain_views.c.key == key))
