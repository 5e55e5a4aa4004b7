"""Rows of a large table whose columns lie between some bounds, read on the driver without a Spark job.

Row groups that lie outside are told by what the files say of them, and not read. Where a table is sorted by what is
asked for, that is nearly all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.frames import limits
from penstock.frames.arrow.tables import settled_type
from penstock.frames.clock import left_to_spark, moved
from penstock.frames.frame import NotHere
from penstock.frames.names import FILE, PLACE
from penstock.frames.pace import PACE
from penstock.storage.columns import Columns, nothing
from penstock.storage.deletion_vectors import as_bits
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.files import files_of
from penstock.storage.locations import disk_of
from penstock.storage.parquet import Footer, footer_of, has_times, opened, plain_schema
from penstock.storage.row_groups import GroupColumns, RowGroup, row_groups

Range = tuple[int, int]
"""The least and the greatest of whole numbers, days or microseconds."""
LEAST, MOST = -(2**63), 2**63 - 1


def read_between(table: Snapshot, columns: Sequence[str], bounds: Mapping[str, Range]) -> pa.Table | None:
    """The rows, with their places, of all row groups that reach into the bounds; None if they are Spark's to read."""
    try:
        return _Reading(table, columns, bounds).rows()
    except (NotHere, OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as problem:
        left_to_spark(f"reading between bounds of {', '.join(bounds)}", problem)
        return None


class _Reading:
    def __init__(self, table: Snapshot, columns: Sequence[str], bounds: Mapping[str, Range]):
        schema = plain_schema(table, columns, nested=True)
        self._table = table
        self._files = files_of(table.path)
        self._columns = Columns(table, schema)
        self._times = has_times(schema)
        stored = {name: self._columns.stored_as(name) for name in bounds}
        self._bounds = {place: bounds[name] for name, place in stored.items() if place is not None}

    def rows(self) -> pa.Table:
        chosen = [(file, footer, group) for file in self._table.files for footer, group in self._groups(file)]
        count = sum(group.length for _, _, group in chosen)
        size = sum(group.decoded_size(self._columns.in_files) for _, _, group in chosen)
        if count > limits.READ_ROWS or size > PACE.within(limits.LOOKUP_BYTES, disk_of(self._table.path)):
            raise NotHere(f"{count:,} rows lie between the bounds")
        schema = pa.schema([*self._columns.arrow, pa.field(FILE, pa.string()), pa.field(PLACE, pa.int64())])
        return pa.concat_tables([schema.empty_table(), *(self._read(*one) for one in chosen)]).combine_chunks()

    def _groups(self, file: DataFile) -> Iterator[tuple[Footer, RowGroup]]:
        """The row groups of a file that reach into the bounds."""
        footer = footer_of(self._files, file.path, times=self._times)
        self._columns.check(footer.schema)
        bounds = {n: b for n, b in self._bounds.items() if _is_number(settled_type(footer.schema.field(n).type))}
        for group in row_groups(footer):
            if all(_reaches(footer.metadata.row_group(group.number), name, b) for name, b in bounds.items()):
                yield footer, group

    def _read(self, file: DataFile, footer: Footer, group: RowGroup) -> pa.Table:
        places = np.arange(group.length)
        hidden = self._table.deleted.get(file.path)
        if hidden:
            bits = as_bits(hidden, footer.metadata.num_rows)[group.begin : group.begin + group.length]
            places = np.flatnonzero(~bits)
        names = self._columns.in_files
        source = GroupColumns(group, partial(self._open, file, footer))
        found = source.taken(names, places) if names else nothing(len(places))
        rows = self._columns.complete(found, self._columns.constants_of(self._table, file.path))
        moved(read=group.size(names))
        rows = rows.append_column(FILE, pa.array([file.name] * len(places), pa.string()))
        return rows.append_column(PLACE, pa.array(places + group.begin, pa.int64()))

    def _open(self, file: DataFile, footer: Footer) -> pq.ParquetFile:
        return opened(self._files, file.path, times=self._times, metadata=footer.metadata)


def _is_number(kind: pa.DataType) -> bool:
    """Whether the bounds that a file tells of the type are the numbers that are meant here."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or kind in _TIMES)


_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


def _reaches(group: pq.RowGroupMetaData, name: str, bounds: Range) -> bool:
    chunk = next((c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == name), None)
    statistics = None if chunk is None else chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return True
    low, high = statistics.min_raw, statistics.max_raw
    return not isinstance(low, int) or not isinstance(high, int) or (low <= bounds[1] and high >= bounds[0])
