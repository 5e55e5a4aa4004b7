"""Plain views and read models, as the catalog keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from penstock.catalog import tables as t
from penstock.vocabulary import PartKind


@dataclass(frozen=True, kw_only=True)
class PlainView:
    """A query with a name, written out wherever it is read. Nothing of it is stored."""

    key: str
    name: str
    query: str
    columns: tuple[tuple[str, str], ...]
    """Name and Spark type of each."""
    created_at: datetime
    comment: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those that it was made under, as far as they are not the usual ones."""
    catalog_name: str | None = None
    """What Spark's catalog calls it, if it is a view of Spark's: then its definition is watched."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a place of a document is made of, and for an array of a group what its elements are matched by."""

    path: str
    kind: PartKind
    source: str | None = None
    """The read model or view that a nested document comes from."""
    match_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReadModel:
    """A view with a key and a JSON document: ``tv_<entity>`` is maintained, ``v_<entity>`` is its query."""

    key: str
    entity: str
    plain_view: str
    primary: str
    """The column that is its key."""
    lineage: tuple[str, ...] = ()
    """The columns ``fk_*``."""
    filters: tuple[str, ...] = ()
    """``id`` and the columns ``*_id``."""
    parts: tuple[Part, ...] = ()

    def details(self) -> dict[str, Any]:
        """What is kept as JSON."""
        told = asdict(self)
        return {name: told[name] for name in ("primary", "lineage", "filters", "parts")}

    @classmethod
    def of(cls, key: str, entity: str, plain_view: str, details: Mapping[str, Any]) -> ReadModel:
        parts = tuple(Part(**{**part, "kind": PartKind.recorded(part["kind"])}) for part in details["parts"])
        return cls(
            key=key, entity=entity, plain_view=plain_view, primary=details["primary"],
            lineage=tuple(details["lineage"]), filters=tuple(details["filters"]), parts=parts,
        )  # fmt: skip


def read_models(connection: Connection) -> dict[str, Any]:
    """What a world has of them."""
    plain = {
        row["key"]: PlainView(**{**row, "columns": tuple(tuple(c) for c in row["columns"])})
        for row in connection.execute(select(t.plain_views).order_by(t.plain_views.c.created_at)).mappings()
    }
    models = {row["key"]: ReadModel.of(**row) for row in connection.execute(select(t.read_models)).mappings()}
    return {"plain": plain, "models": models}
