"""Rows of read models by key, as dicts, read on the driver from the published version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import reduce
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog import ViewRecord, World
from penstock.engine.naming import DATA, STAMP
from penstock.engine.writing_out import check_model
from penstock.errors import DefinitionError, NotFoundError, nearest
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


def find_rows(spark: SparkOnDemand, world: World, name: str, wanted: Mapping[str, Any], limit: int | None) -> list[Row]:
    """The rows of a read model whose columns have these values, in the order of its key."""
    key = check_model(world, name)
    view, node, primary = world.views[key], world.nodes[key], world.models[key].primary
    if node.version is None:
        raise DefinitionError(f"read model {view.name!r} has no rows yet. Run REFRESH MATERIALIZED VIEW {view.name}.")
    if limit is not None and limit < 0:
        raise DefinitionError(f"limit is a number of rows, from 0, not {limit}.")
    snapshot = snapshot_of(node.path, node.version)
    names = [shown for shown, _, _ in view.columns]
    asked = {_column(view, each): value for each, value in wanted.items()}
    keys = _keys(snapshot, view, asked)
    try:
        found = _looked_up(snapshot, [*names, STAMP], keys, primary, limit)
    except (NotHere, OSError, pa.ArrowException):
        found = _read(spark, snapshot, [*names, STAMP], keys)
    first = found.take(pc.sort_indices(found, [(primary, "ascending")]))
    return [_parsed(row) for row in first.slice(0, limit).to_pylist()]


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


def _looked_up(snapshot: Snapshot, columns: list[str], keys: pa.Table, primary: str, limit: int | None) -> pa.Table:
    """The rows with these keys, found by that column which tells most; raises ``NotHere`` if all must be read."""
    if not keys.num_columns or any(keys.column(name).null_count for name in keys.column_names):
        raise NotHere
    told = min(keys.column_names, key=lambda name: (name != primary, name.lower() != "id"))
    if not _is_simple(keys.schema.field(told).type):
        raise NotHere
    files = files_near(snapshot, keys, {name: name for name in keys.column_names})
    places = Places(snapshot, told, keys.column(told)[0].as_py(), files)
    if places.count <= _READ_AT_ONCE:
        rows = places.read(columns)
        return rows.take(pa.array(np.flatnonzero(equal(rows, keys))))
    narrow = places.read(list(dict.fromkeys([*keys.column_names, primary])))
    kept = np.flatnonzero(equal(narrow, keys))
    if limit is not None and len(kept) > limit:
        order = pc.sort_indices(narrow.column(primary).take(pa.array(kept))).to_numpy()
        kept = kept[order[:limit]]
    return places.only(kept).read(columns)


def _is_simple(kind: pa.DataType) -> bool:
    """Whether equal values have the same hash in Python, and others mostly not."""
    return pa.types.is_integer(kind) or pa.types.is_string(kind)


def _read(spark: SparkOnDemand, snapshot: Snapshot, columns: list[str], keys: pa.Table) -> pa.Table:
    """The same by reading all rows: of a table that is small, or for values that are not looked up."""
    rows = Pinned(spark=spark, snapshot=snapshot, columns=tuple(columns)).read().arrow()
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
