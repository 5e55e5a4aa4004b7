"""Reading a small change on the driver: from the log to the files to Arrow, without a Spark job.

Commit by commit: the change feed's files where a commit has some; else the files that it added (+1) and removed (-1),
and of a file that got another deletion vector just the rows that the vectors differ in. What is not simple (columns
that a file lacks, old calendars) or not small is left to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from penstock.frames import limits
from penstock.frames.clock import left_to_spark, moved
from penstock.frames.frame import NotHere
from penstock.frames.names import WEIGHT
from penstock.frames.pace import PACE
from penstock.frames.zset import narrowed
from penstock.storage.columns import Columns, nothing
from penstock.storage.commits import Commit
from penstock.storage.data_files import is_elsewhere
from penstock.storage.delta_log import ADDED, CHANGE_TYPE, Snapshot, vectors_of
from penstock.storage.file_cache import FILES
from penstock.storage.files import files_of
from penstock.storage.locations import disk_of
from penstock.storage.log_replay import UnknownLog
from penstock.storage.parquet import Footer, footer_of, has_times, opened, plain_schema
from penstock.storage.row_groups import GroupColumns, Numbers, decoded_size, row_groups


def read_locally(after: Snapshot, commits: Sequence[Commit], columns: Sequence[str]) -> pa.Table | None:
    """The consolidated change of these commits, as columns and weight; None when Spark must read it."""
    try:
        schema = plain_schema(after, columns, nested=True)
        reading = _Reading(after, Columns(after, schema), has_times(schema), not any(c.metadata for c in commits))
        for commit in commits:
            reading.read(commit)
        if all(weight > 0 for _, weight in reading.parts):
            return reading.total()
        return narrowed(reading.total(), schema.names)
    except (NotHere, UnknownLog, OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as problem:
        left_to_spark(f"reading the change of {', '.join(columns)}", problem)
        return None


class _Reading:
    def __init__(self, table: Snapshot, columns: Columns, times: bool, settled: bool):
        """``settled``: the table's columns and partitions are the same throughout."""
        self._files = files_of(table.path)
        self._settled = settled
        self._columns = columns
        self._times = times
        self._rows = self._bytes = self._held = self._cached = 0
        self._most = PACE.within(limits.CHANGE_BYTES_READ, disk_of(table.path))
        self.parts: list[tuple[pa.Table, int]] = []
        """Rows and their weight."""

    def read(self, commit: Commit) -> None:
        if commit.changes:
            for action in commit.changes:
                self._feed(action)
            return
        added = {str(a["path"]): a for a in commit.adds if a.get("dataChange", True)}
        removed = {str(a["path"]): a for a in commit.removes if a.get("dataChange", True)}
        old = vectors_of(self._files, removed)
        new = vectors_of(self._files, added)
        none = BitMap64()
        for path in added.keys() & removed.keys():
            before, now = old.get(path, none), new.get(path, none)
            self._places(added[path], now - before, -1)
            self._places(added[path], before - now, 1)
        for path in removed.keys() - added.keys():
            self._whole(removed[path], old.get(path, none), -1)
        for path in added.keys() - removed.keys():
            self._whole(added[path], new.get(path, none), 1)

    def total(self) -> pa.Table:
        tables = [rows.append_column(WEIGHT, pa.array(np.full(len(rows), weight))) for rows, weight in self.parts]
        empty = pa.schema([*self._columns.arrow, pa.field(WEIGHT, pa.int64())]).empty_table()
        return pa.concat_tables([empty, *tables]).combine_chunks()

    def _feed(self, action: dict[str, Any]) -> None:
        rows = self._read(self._open(action), [CHANGE_TYPE])
        added = pa.compute.is_in(rows.column(CHANGE_TYPE), value_set=pa.array(ADDED))
        for weight, kept in ((1, added), (-1, pa.compute.invert(added))):
            self._keep(rows.filter(kept), action, weight)

    def _whole(self, action: dict[str, Any], hidden: BitMap64, weight: int) -> None:
        file = self._open(action)
        if file.metadata.num_rows - len(hidden) > limits.CHANGE_ROWS:
            raise _too_many()
        rows = self._read(file)
        if hidden:
            mask = np.ones(len(rows), dtype=np.bool_)
            mask[np.array(hidden, dtype=np.int64)] = False
            rows = rows.filter(pa.array(mask))
        self._keep(rows, action, weight)

    def _places(self, action: dict[str, Any], places: BitMap64, weight: int) -> None:
        """The rows at some places, from the row groups that hold them."""
        if not places:
            return
        if len(places) > limits.CHANGE_ROWS:
            raise _too_many()
        path = _path(action)
        footer = footer_of(self._files, path, times=self._times)
        self._columns.check(footer.schema)
        wanted = np.array(places, dtype=np.int64)
        for group in row_groups(footer):
            here = wanted[(wanted >= group.begin) & (wanted < group.begin + group.length)] - group.begin
            if len(here):
                self._keep(self._taken(GroupColumns(group, partial(self._opened, path, footer)), here), action, weight)

    def _taken(self, columns: GroupColumns, places: Numbers) -> pa.Table:
        """Rows of a group. What is read for them stays in memory, but for one change not more than half of the cache:
        the next change is of the same files, as a rule, and others want their share.
        """
        names = self._columns.in_files
        if not names:
            return nothing(len(places))
        missing = columns.missing(names)
        self._count(columns.group.decoded_size(missing))
        moved(read=columns.group.size(missing))
        rows = columns.taken(names, places, keep=self._cached <= FILES.most // 2)
        self._cached += columns.newly_kept
        return rows

    def _opened(self, path: str, footer: Footer) -> pq.ParquetFile:
        return opened(
            self._files, path, times=self._times, dictionaries=self._columns.texts,
            metadata=footer.metadata,
        )  # fmt: skip

    def _open(self, action: dict[str, Any]) -> pq.ParquetFile:
        path = _path(action)
        moved(read=action.get("size") or self._files.info(unquote(path)).size)
        return opened(self._files, path, times=self._times)

    def _read(self, file: pq.ParquetFile, more: Sequence[str] = ()) -> pa.Table:
        """A whole file."""
        self._columns.check(file.schema_arrow)
        groups = range(file.metadata.num_row_groups)
        self._count(sum(decoded_size(file.metadata.row_group(n), [*self._columns.in_files, *more]) for n in groups))
        return self._columns.read(file, groups, more)

    def _count(self, size: int) -> None:
        """So many bytes, unpacked, are about to be read."""
        self._bytes += size
        if size > limits.CHANGE_BYTES or self._bytes > self._most:
            raise _too_many()

    def _keep(self, rows: pa.Table, action: dict[str, Any], weight: int) -> None:
        self._rows, self._held = self._rows + len(rows), self._held + rows.nbytes
        if self._rows > limits.CHANGE_ROWS or self._held > limits.CHANGE_BYTES:
            raise _too_many()
        if len(rows):
            # Delta leaves NULLs out where a file is removed. Files of other partitions only go with other columns.
            told = action.get("partitionValues")
            constants = self._columns.constants(told or {}, missing=told is not None and self._settled)
            self.parts.append((self._columns.complete(rows, constants), weight))


def _path(action: dict[str, Any]) -> str:
    path = str(action["path"])
    if is_elsewhere(path):
        raise NotHere("a file of another table")
    return path


def _too_many() -> NotHere:
    return NotHere(f"more than {limits.CHANGE_ROWS:,} rows, or too many bytes")
