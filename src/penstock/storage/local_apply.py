"""Applying a small change to a small table on the driver: no Spark job, the rows go from Arrow to Parquet.

The meaning is that of ``apply``: removed rows go by key, or as many copies as the weight says; added rows come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from penstock.errors import InternalError
from penstock.storage.arrow import loosened, nullable
from penstock.storage.deletion_vectors import as_bits
from penstock.storage.delta_log import DataFile, Snapshot, filesystem_of
from penstock.storage.reader import schema_of
from penstock.storage.zset import WEIGHT

_PLACE = "__place"

LOCAL_TABLE_ROWS = 10_000
"""Rows that are compared on the driver one by one."""

LOCAL_KEYED_ROWS = 1_000_000
"""Rows that are looked up there by their keys, or told by their places, all at once."""

_LOCAL_BYTES = 64 * 1024 * 1024
"""Of files that are read for it."""


def fit_here(files: Sequence[DataFile], rows: int) -> bool:
    """Whether files are small enough to be written again on the driver; ``rows`` are how many that may be."""
    return sum(file.most for file in files) <= rows and sum(file.size for file in files) <= _LOCAL_BYTES


def added_rows(change: pa.Table) -> pa.Table:
    """The rows that a change adds, each as often as its weight says."""
    weights = change.column(WEIGHT).to_numpy()
    places = np.repeat(np.arange(len(weights)), np.maximum(weights, 0))
    return loosened(change.drop_columns([WEIGHT]).take(pa.array(places)))


def fitting(table: Snapshot, rows: pa.Table) -> pa.Table:
    """Rows for a table, which must have its columns; nothing else may be written."""
    schema = schema_of(table)
    wanted = to_arrow_schema(
        StructType([StructField(f.name, nullable(f.dataType)) for f in schema.fields]), timezone="UTC"
    )
    rows = rows.select(wanted.names)
    for field, found in zip(wanted, rows.schema, strict=True):
        if found.type not in (field.type, pa.null()):
            raise InternalError(
                f"column {field.name!r} was computed as {found.type} and not as {field.type}. Please report this."
            )
    return rows.cast(wanted)


def kept_rows(before: Snapshot, files: Sequence[DataFile], change: pa.Table, keys: Sequence[str] | None) -> pa.Table:
    """The rows of the files that a change leaves."""
    schema = loosened(change.drop_columns([WEIGHT])).schema
    rows = live_rows(before, files, schema, before.deleted)
    if keys and can_look_up(change, keys):
        return _without(rows, change, keys)
    columns = list(keys) if keys is not None else schema.names
    removed: Counter[Hashable] = Counter()
    for row, weight in zip(_identities(change, columns), change.column(WEIGHT).to_pylist(), strict=True):
        if weight < 0:
            removed[row] -= weight
    places = []
    for place, row in enumerate(_identities(rows, columns)):
        if removed[row] > 0:
            removed[row] -= 1
        else:
            places.append(place)
    return rows.take(pa.array(places, pa.int64()))


def can_look_up(change: pa.Table, keys: Sequence[str] | None) -> bool:
    """Whether Arrow compares the keys as we do: not floats, nested values and NULLs."""
    simple = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal)
    columns = [change.column(key) for key in keys or ()]
    return bool(columns) and all(c.null_count == 0 and any(kind(c.type) for kind in simple) for c in columns)


def _without(rows: pa.Table, change: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows whose keys are not among the removed ones."""
    removed = change.filter(pc.less(change.column(WEIGHT), 0)).select(keys)
    places = pa.array(np.arange(rows.num_rows))
    kept = rows.select(keys).append_column(_PLACE, places).join(removed, list(keys), join_type="left anti")
    return rows.take(kept.column(_PLACE).combine_chunks().sort())


def live_rows(
    snapshot: Snapshot, files: Sequence[DataFile], schema: pa.Schema, hidden: Mapping[str, BitMap64]
) -> pa.Table:
    """The rows of the files, without the hidden ones of each."""
    filesystem, root = filesystem_of(snapshot.path)
    tables = []
    for file in files:
        table = pq.read_table(f"{root}/{unquote(file.path)}", filesystem=filesystem, columns=schema.names)
        table = table.select(schema.names).cast(schema)
        if file.path in hidden:
            table = table.filter(pa.array(~as_bits(hidden[file.path], table.num_rows)))
        tables.append(table)
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _identities(table: pa.Table, columns: Sequence[str]) -> list[Hashable]:
    """What each row is compared by; without columns all rows are one."""
    if not columns:
        return [()] * table.num_rows
    values = [[_identity(v) for v in _comparable(table.column(c)).to_pylist()] for c in columns]
    return list(zip(*values, strict=True))


def _comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as numbers: Spark knows years that Python does not."""
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _identity(value: Any) -> Hashable:
    """NaN equals NaN and 0.0 is not -0.0, as text says it; the order of a map's entries does not matter."""
    match value:
        case float():
            return repr(value)
        case list() | tuple():
            return tuple(_identity(v) for v in value)
        case dict():
            return tuple((k, _identity(v)) for k, v in value.items())
    return value
