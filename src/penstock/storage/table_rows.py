"""Applying a small change to a small table on the driver: no Spark job, the rows go from Arrow to Parquet.

The meaning is that of ``apply``: removed rows go by key, or as many copies as the weight says; added rows come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from pyspark.sql.types import StructField, StructType

from penstock.errors import InternalError
from penstock.frames import limits
from penstock.frames.arrow.groups import Numbers, can_tell_apart
from penstock.frames.arrow.groups import gone as removed_rows
from penstock.frames.arrow.tables import loosened
from penstock.frames.mismatch import check_removed
from penstock.frames.names import WEIGHT
from penstock.frames.pace import PACE
from penstock.frames.spark.types import nullable, to_arrow_schema
from penstock.storage.deletion_vectors import as_bits
from penstock.storage.delta_log import DataFile, Shaped, Snapshot
from penstock.storage.files import files_of
from penstock.storage.locations import disk_of
from penstock.storage.reader import schema_of


def fit_here(path: str, files: Sequence[DataFile], rows: int) -> bool:
    """Whether files of a table are small enough to be written again on the driver; ``rows``: how many that may be."""
    most = PACE.within(limits.LOCAL_TABLE_BYTES, disk_of(path))
    return sum(file.most for file in files) <= rows and sum(file.size for file in files) <= most


def added_rows(change: pa.Table) -> pa.Table:
    """The rows that a change adds, each as often as its weight says."""
    weights = change.column(WEIGHT).to_numpy()
    places = np.repeat(np.arange(len(weights)), np.maximum(weights, 0))
    return loosened(change.drop_columns([WEIGHT]).take(pa.array(places)))


def fitting(table: Shaped, rows: pa.Table) -> pa.Table:
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
    """The rows of the files that a change leaves; all that it removes must be there."""
    schema = loosened(change.drop_columns([WEIGHT])).schema
    rows = live_rows(before, files, schema, before.deleted)
    columns = list(keys) if keys is not None else schema.names
    going = gone(rows, change, columns) if files else np.zeros(0, np.bool_)
    check_removed(-int(np.minimum(change.column(WEIGHT).to_numpy(), 0).sum()), int(going.sum()))
    return rows.filter(pa.array(~going))


def gone(rows: pa.Table, change: pa.Table, columns: Sequence[str]) -> Numbers:
    """Which rows a change removes: as many copies of each as its weight says."""
    return removed_rows(rows, change, columns, WEIGHT)


def can_tell(change: pa.Table, columns: Sequence[str]) -> bool:
    """Whether rows can be told apart by these columns here: not by lists and maps."""
    return all(can_tell_apart(change.schema.field(c).type) for c in columns)


def live_rows(
    snapshot: Snapshot, files: Sequence[DataFile], schema: pa.Schema, hidden: Mapping[str, BitMap64]
) -> pa.Table:
    """The rows of the files, without the hidden ones of each."""
    place = files_of(snapshot.path)
    tables = []
    for file in files:
        table = pq.read_table(place.open(unquote(file.path)), columns=schema.names)
        table = table.select(schema.names).cast(schema)
        if file.path in hidden:
            table = table.filter(pa.array(~as_bits(hidden[file.path], table.num_rows)))
        tables.append(table)
    return pa.concat_tables(tables) if tables else schema.empty_table()
