"""Row groups of data files, and their columns: from memory, if they were read before, or else from the file.

A column of a row group is decoded as a whole, whoever wants a few of its rows: Parquet has no cheaper way in. So the
columns that the next one will ask for too stay in memory (``file_cache``): keys that are looked up, and what is read
of rows that were marked as deleted. Text stays as numbers and a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.frames.arrow.tables import settled
from penstock.storage.file_cache import FILES
from penstock.storage.parquet import Footer

_BATCH = 65_536

Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, kw_only=True)
class RowGroup:
    """A row group of a file; ``begin`` rows lie before it."""

    footer: Footer
    number: int
    begin: int

    @property
    def length(self) -> int:
        return int(self._metadata.num_rows)

    def batches(self, file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some thousand rows at a time: what was just read is still at hand, and memory is used again."""
        return map(
            settled, file.iter_batches(_BATCH, row_groups=[self.number], columns=list(columns), use_threads=False)
        )

    def size(self, columns: Collection[str]) -> int:
        """The bytes that columns have in the file."""
        return sum(chunk.total_compressed_size for chunk in _chunks(self._metadata, columns))

    def decoded_size(self, columns: Collection[str]) -> int:
        return decoded_size(self._metadata, columns)

    def key(self, column: str) -> Hashable:
        """Under what a column is kept in memory."""
        return (*self.footer.identity, self.number, column)

    def keeps(self, column: str) -> bool:
        """Whether a column is in memory."""
        return self.key(column) in FILES

    @property
    def _metadata(self) -> pq.RowGroupMetaData:
        return self.footer.metadata.row_group(self.number)


def decoded_size(group: pq.RowGroupMetaData, columns: Collection[str]) -> int:
    """The bytes that columns of a row group have when they are unpacked."""
    return sum(chunk.total_uncompressed_size for chunk in _chunks(group, columns))


def _chunks(group: pq.RowGroupMetaData, columns: Collection[str]) -> Iterator[pq.ColumnChunkMetaData]:
    wanted = set(columns)
    chunks = (group.column(i) for i in range(group.num_columns)) if wanted else ()
    return (c for c in chunks if {c.path_in_schema, c.path_in_schema.partition(".")[0]} & wanted)


def row_groups(footer: Footer) -> Iterator[RowGroup]:
    """The row groups of a file."""
    begin = 0
    for number in range(footer.metadata.num_row_groups):
        group = RowGroup(footer=footer, number=number, begin=begin)
        yield group
        begin += group.length


class GroupColumns:
    """The columns of one row group. ``open_file`` is called if one of them is not in memory."""

    def __init__(self, group: RowGroup, open_file: Callable[[], pq.ParquetFile]):
        self.group = group
        self.read: set[str] = set()
        """The columns that were read from the file."""
        self.newly_kept = 0
        """The bytes that stay in memory of them."""
        self._open = open_file
        self._kept: dict[str, pa.Array] = {}

    @cached_property
    def _file(self) -> pq.ParquetFile:
        return self._open()

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of the file, some rows at a time."""
        self.read.update(names)
        return self.group.batches(self._file, names)

    def kept(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same of columns that are asked for again and again: from now on they are in memory."""
        missing = self.missing(names)
        if missing:
            self._keep(missing, pa.Table.from_batches(list(self.batches(missing))))
        whole = pa.record_batch([self._kept[name] for name in names], names=list(names))
        step = max([_BATCH, *map(_different, whole.columns)])
        return (whole.slice(begin, step) for begin in range(0, len(whole), step))

    def missing(self, names: Sequence[str]) -> list[str]:
        """The columns that are not in memory. Those that are stay at hand, whatever else is kept meanwhile."""
        for name in names:
            column = FILES.get(self.group.key(name)) if name not in self._kept and FILES.most else None
            if column is not None:
                self._kept[name] = column
        return [name for name in names if name not in self._kept]

    def taken(self, names: Sequence[str], places: Numbers, *, keep: bool = False) -> pa.Table:
        """Columns of the rows at some places, in order; ``keep``: those of the file stay in memory from now on."""
        missing = self.missing(names)
        found: dict[str, pa.Array | pa.ChunkedArray] = {}
        if missing and keep:
            self.read.update(missing)
            self._keep(missing, settled(self._file.read_row_groups([self.group.number], columns=missing)))
        elif missing:
            rows = pa.Table.from_batches(list(_chosen(self.batches(missing), places)))
            found = dict(zip(missing, rows.select(missing).columns, strict=True))
        at = pa.array(places)
        return pa.table({n: found[n] if n in found else _decoded(self._kept[n].take(at)) for n in names})

    def _keep(self, names: Sequence[str], rows: pa.Table) -> None:
        for name in names:
            column = self._kept[name] = _joined(rows.column(name))
            FILES.put(self.group.key(name), column, column.nbytes)
            self.newly_kept += column.nbytes


def _chosen(batches: Iterable[pa.RecordBatch], places: Numbers) -> Iterator[pa.RecordBatch]:
    begin = 0
    for batch in batches:
        first, last = np.searchsorted(places, [begin, begin + batch.num_rows])
        if last > first:
            yield batch.take(pa.array(places[first:last] - begin))
        begin += batch.num_rows


def _different(column: pa.Array) -> int:
    """How many texts a column's dictionary has: all of them are compared for each batch."""
    return len(column.dictionary) if pa.types.is_dictionary(column.type) else 0


def _joined(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece; of text, with one dictionary."""
    return column.unify_dictionaries().combine_chunks()


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
