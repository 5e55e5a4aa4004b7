"""Single rows of a large table by the value of one column: milliseconds, once the column has been looked at.

Of each file a sorted column of hashes is kept in memory (``file_cache``), which says in which rows a value may be. A
file never changes, so after a commit only new files are looked at. What is not simple gives None.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere
from penstock.frames.spark.types import to_arrow_schema
from penstock.storage.columns import Columns
from penstock.storage.deletion_vectors import as_bits
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.file_cache import FILES
from penstock.storage.files import files_of
from penstock.storage.parquet import Footer, footer_of, has_times, opened, plain_schema


@dataclass(frozen=True)
class _Index:
    """The hashes of a column in order, and the rows that they are of."""

    hashes: Numbers
    rows: Numbers

    def places(self, wanted: int) -> Numbers:
        begin, end = (int(np.searchsorted(self.hashes, wanted, side)) for side in ("left", "right"))
        return np.sort(self.rows[begin:end])

    @property
    def bytes(self) -> int:
        return int(self.hashes.nbytes + self.rows.nbytes)


class Places:
    """Where the rows of a version are that have a value in a column."""

    def __init__(self, table: Snapshot, column: str, value: Any, files: Sequence[DataFile]):
        """Raises ``NotHere`` for tables and columns that are not simple."""
        if table.partition_columns or not table.plain:
            raise NotHere
        self._table = table
        self._files = files_of(table.path)
        self._found = [(file, self._places(file, column, value)) for file in files]

    def _places(self, file: DataFile, column: str, value: Any) -> Numbers:
        footer = self._footer(file)
        key = (*footer.identity, "index", column)
        index: _Index = FILES.kept(key, lambda: self._index(file, footer, column), lambda found: found.bytes)
        places = index.places(hash(value))
        hidden = self._table.deleted.get(file.path)
        if hidden:
            places = places[~as_bits(hidden, footer.metadata.num_rows)[places]]
        return places

    def _footer(self, file: DataFile, schema: StructType | None = None) -> Footer:
        times = schema is not None and has_times(schema)
        return footer_of(self._files, file.path, times=times)

    def _index(self, file: DataFile, footer: Footer, column: str) -> _Index:
        with self._opened(file, footer, StructType()) as parquet:
            values = parquet.read(columns=[column]).column(0).to_pylist()
        hashes = np.fromiter(map(hash, values), np.int64, len(values))
        order = np.argsort(hashes, kind="stable")
        return _Index(hashes[order], order.astype(np.int32))

    def _opened(self, file: DataFile, footer: Footer, schema: StructType) -> pq.ParquetFile:
        return opened(
            self._files, file.path, times=has_times(schema), dictionaries=(),
            metadata=footer.metadata,
        )  # fmt: skip

    @property
    def count(self) -> int:
        return sum(len(places) for _, places in self._found)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of these rows; of rows whose hash is the same by chance, too."""
        schema = plain_schema(self._table, columns, nested=True)
        wanted = Columns(self._table, schema)
        parts = [to_arrow_schema(schema, timezone="UTC").empty_table()]
        for file, places in self._found:
            if len(places):
                parts.append(self._read(file, places, schema, wanted))
        return pa.concat_tables(parts).combine_chunks()

    def _read(self, file: DataFile, places: Numbers, schema: StructType, wanted: Columns) -> pa.Table:
        footer = self._footer(file, schema)
        wanted.check(footer.schema)
        ends = np.cumsum([footer.metadata.row_group(g).num_rows for g in range(footer.metadata.num_row_groups)])
        groups = np.searchsorted(ends, places, "right")
        parts = []
        with self._opened(file, footer, schema) as parquet:
            for group in np.unique(groups):
                begin = ends[group] - footer.metadata.row_group(int(group)).num_rows
                rows = parquet.read_row_group(int(group), columns=list(schema.names))
                parts.append(rows.take(pa.array(places[groups == group] - begin)))
        target = to_arrow_schema(schema, timezone="UTC")
        return pa.concat_tables(parts).select(target.names).cast(target)

    def only(self, kept: Numbers) -> Places:
        """Some of the rows, by their numbers in the order of ``read``."""
        some = copy(self)
        begin, found = 0, []
        for file, places in self._found:
            mine = kept[(kept >= begin) & (kept < begin + len(places))] - begin
            found.append((file, places[np.sort(mine)]))
            begin += len(places)
        some._found = found
        return some


def equal(rows: pa.Table, keys: pa.Table) -> Numbers:
    """Which rows have the values of the only row of ``keys``."""
    masks = [pc.fill_null(pc.equal(rows.column(name), keys.column(name)[0]), False) for name in keys.column_names]
    return np.logical_and.reduce([np.asarray(mask.to_numpy(), np.bool_) for mask in masks])
