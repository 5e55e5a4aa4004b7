"""Rows of read models by key, as dicts, read on the driver from the published version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog import NodeRecord, ViewRecord, World
from penstock.engine.naming import DATA, STAMP
from penstock.engine.writing_out import check_model
from penstock.errors import DefinitionError, NotFoundError, nearest
from penstock.frames.bounded import exactly
from penstock.frames.frame import NotHere
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.spark.types import to_arrow_schema
from penstock.storage.delta_log import Snapshot, snapshot_of
from penstock.storage.pinned import Pinned
from penstock.storage.point_lookup import Places, equal
from penstock.storage.reader import schema_of
from penstock.storage.skipping import files_near

Row = dict[str, Any]

_READ_AT_ONCE = 100
"""Rows that are read whole, and looked at then; of more, first what they are told and sorted by."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A read model as it is published at one moment."""

    epoch: int
    view: ViewRecord
    node: NodeRecord
    primary: str
    spark: SparkOnDemand

    @classmethod
    def of(cls, spark: SparkOnDemand, world: World, name: str) -> Model:
        key = check_model(world, name)
        view, node = world.views[key], world.nodes[key]
        if node.version is None:
            raise DefinitionError(
                f"read model {view.name!r} has no rows yet. Run REFRESH MATERIALIZED VIEW {view.name}."
            )
        return cls(epoch=world.epoch, view=view, node=node, primary=world.models[key].primary, spark=spark)

    @property
    def tag(self) -> str:
        """Differs if a row may be another one: it tells the version of the table, and which table it is a version of.

        It stays the same through epochs that did not change the table.
        """
        made = self.view.created_at.isoformat(), self.node.path, self.node.fingerprint
        return f"{hashlib.sha256(repr(made).encode()).hexdigest()[:12]}-{self.node.version}"

    def found(self, wanted: Mapping[str, Any], limit: int | None = None, after: Any = None) -> list[Row]:
        """The rows whose columns have these values, in the order of the key; each document is a text of JSON.

        ``after``: a key; only rows behind it.
        """
        if limit is not None and limit < 0:
            raise DefinitionError(f"limit is a number of rows, from 0, not {limit}.")
        snapshot = snapshot_of(self.node.path, self.node.version)
        columns = [*(shown for shown, _, _ in self.view.columns), STAMP]
        asked = {_column(self.view, each): value for each, value in wanted.items()}
        keys = _keys(snapshot, self.view, asked)
        begin = None if after is None else _keys(snapshot, self.view, {self.primary: after}).column(0)[0]
        page = _Page(self.primary, begin, limit)
        try:
            found = _looked_up(snapshot, columns, keys, page)
        except (NotHere, OSError, pa.ArrowException):
            found = _read(self.spark, snapshot, columns, keys, page)
        return list(page.of(found).to_pylist())


@dataclass(frozen=True)
class _Page:
    """Which of the rows that were found are wanted: the first ones behind a key."""

    primary: str
    begin: pa.Scalar | None
    limit: int | None

    def places(self, rows: pa.Table) -> pa.Array:
        """Where they are, in the order of the key."""
        keys = rows.column(self.primary)
        order = pc.sort_indices(keys)
        if self.begin is not None:
            order = order.filter(pc.greater(keys.take(order), self.begin))
        return order if self.limit is None else order.slice(0, self.limit)

    def of(self, rows: pa.Table) -> pa.Table:
        return rows.take(self.places(rows))


def find_rows(spark: SparkOnDemand, world: World, name: str, wanted: Mapping[str, Any], limit: int | None) -> list[Row]:
    """The rows of a read model whose columns have these values, in the order of its key."""
    return [_parsed(row) for row in Model.of(spark, world, name).found(wanted, limit)]


def only_row(rows: list[Row], name: str, wanted: Mapping[str, Any]) -> Row | None:
    """The one row that was asked for; None if there is none."""
    if len(rows) > 1:
        told = ", ".join(f"{column} = {value!r}" for column, value in wanted.items())
        raise DefinitionError(f"{name!r} has {len(rows)} rows with {told}. Use find, which gives all of them.")
    return rows[0] if rows else None


def _column(view: ViewRecord, asked: str) -> str:
    known = {name.lower(): name for name, _, _ in view.columns if name.lower() != DATA}
    if asked.lower() not in known:
        raise NotFoundError(
            f"{view.name!r} has no column {asked!r} to look for. {nearest(asked, list(known.values()))}"
        )
    return known[asked.lower()]


def _keys(snapshot: Snapshot, view: ViewRecord, asked: Mapping[str, Any]) -> pa.Table:
    """What is asked for, in the types of the columns."""
    types = to_arrow_schema(schema_of(snapshot), timezone="UTC")
    values = {}
    for name, value in asked.items():
        plain = str(value) if isinstance(value, UUID) else value
        kind = types.field(name).type
        if isinstance(plain, bool) != pa.types.is_boolean(kind) or isinstance(plain, str) != pa.types.is_string(kind):
            plain = None if plain is None else _of_kind(plain, kind, view, name)
        try:
            values[name] = pa.array([plain], kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise _wrong(view, name, value, kind) from None
    return pa.table(values) if values else pa.table({})


def _of_kind(value: Any, kind: pa.DataType, view: ViewRecord, name: str) -> Any:
    """A time or a number may be told as text; nothing else is guessed."""
    if isinstance(value, str) and (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)):
        try:
            return pa.scalar(value).cast(kind).as_py()
        except pa.ArrowException:
            pass
    raise _wrong(view, name, value, kind)


def _wrong(view: ViewRecord, name: str, value: Any, kind: pa.DataType) -> DefinitionError:
    return DefinitionError(f"column {name!r} of {view.name!r} holds {kind}, and {value!r} is none.")


def _looked_up(snapshot: Snapshot, columns: list[str], keys: pa.Table, page: _Page) -> pa.Table:
    """The rows with these keys, found by that column which tells most; raises ``NotHere`` if all must be read."""
    if not keys.num_columns or any(keys.column(name).null_count for name in keys.column_names):
        raise NotHere
    told = min(keys.column_names, key=lambda name: (name != page.primary, name.lower() != "id"))
    if not _is_simple(keys.schema.field(told).type):
        raise NotHere
    files = files_near(snapshot, keys, {name: name for name in keys.column_names})
    places = Places(snapshot, told, keys.column(told)[0].as_py(), files)
    if places.count <= _READ_AT_ONCE:
        rows = places.read(columns)
        return rows.take(pa.array(np.flatnonzero(equal(rows, keys))))
    narrow = places.read(list(dict.fromkeys([*keys.column_names, page.primary])))
    kept = np.flatnonzero(equal(narrow, keys))
    return places.only(kept[page.places(narrow.take(pa.array(kept))).to_numpy()]).read(columns)


def _is_simple(kind: pa.DataType) -> bool:
    """Whether equal values have the same hash in Python, and others mostly not."""
    return pa.types.is_integer(kind) or pa.types.is_string(kind)


def _read(spark: SparkOnDemand, snapshot: Snapshot, columns: list[str], keys: pa.Table, page: _Page) -> pa.Table:
    """The same by looking at all rows; of a table with many, at their documents only when they are wanted."""
    if page.limit is None or snapshot.rows <= max(_READ_AT_ONCE, page.limit):
        return _with(keys, _whole(spark, snapshot, columns, keys))
    narrow = _with(keys, _whole(spark, snapshot, list(dict.fromkeys([*keys.column_names, page.primary])), keys))
    chosen = page.of(narrow).select([page.primary])
    near = Pinned(spark=spark, snapshot=snapshot, columns=tuple(columns)).near(chosen, {page.primary: page.primary})
    rows = near.read().only(columns).arrow()
    return rows.filter(pc.is_in(rows.column(page.primary), chosen.column(0).combine_chunks()))


def _whole(spark: SparkOnDemand, snapshot: Snapshot, columns: list[str], keys: pa.Table) -> pa.Table:
    """All rows; what Spark reads, it sends only those that have the keys, as far as that can be said."""
    rows = Pinned(spark=spark, snapshot=snapshot, columns=tuple(columns)).read()
    wanted = exactly(keys) if keys.num_columns and rows.rows() is None else None
    return (rows if wanted is None else rows.where(wanted)).arrow()


def _with(keys: pa.Table, rows: pa.Table) -> pa.Table:
    """Those of the rows that have the keys; NULL is like NULL."""
    masks = [
        rows.column(name).is_null()
        if keys.column(name).null_count
        else pc.equal(rows.column(name), keys.column(name)[0])
        for name in keys.column_names
    ]
    return rows.filter(reduce(pc.and_, masks)) if masks else rows


def _parsed(row: Row) -> Row:
    """The document as Python knows it; numbers are exact."""
    document = row[DATA]
    return {**row, DATA: None if document is None else json.loads(document, parse_float=Decimal)}
