"""Looking up the rows with some keys in a large table on the driver, without a Spark job.

Of each row group the key columns are read by Arrow and compared all at once; the other columns only where there is a
hit. Spark would make a row of every row before it can say that it is not wanted, which takes several times as long.
The key columns stay in memory for the next look-up, as far as there is room (``file_cache``). What is not simple, very
large, or finds many rows is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from penstock.frames import limits
from penstock.frames.arrow.tables import settled_type
from penstock.frames.clock import left_to_spark, moved
from penstock.frames.frame import NotHere
from penstock.frames.keys import Sought, floored
from penstock.frames.names import FILE, PLACE
from penstock.frames.pace import PACE
from penstock.frames.spark.types import to_arrow_schema
from penstock.storage.columns import Columns, nothing
from penstock.storage.deletion_vectors import as_bits
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.file_cache import FILES
from penstock.storage.files import files_of
from penstock.storage.locations import disk_of
from penstock.storage.parquet import footer_of, has_times, opened, plain_schema
from penstock.storage.row_groups import GroupColumns, Numbers, RowGroup


def look_up(
    table: Snapshot,
    columns: Sequence[str],
    sought: Sought,
    files: Sequence[DataFile] | None = None,
    *,
    located: bool = False,
    least: int | None = None,
) -> pa.Table | None:
    """The rows of a version (of some of its files) that have the keys; None when they should be found otherwise.

    ``located``: with file and place of each, as ``reader.read_files`` gives them. ``least``: of fewer rows all are
    better read.
    """
    files = table.files if files is None else files
    rows = sum(file.most for file in files)
    least = limits.LOOKUP_LEAST_ROWS if least is None else least
    if not least <= rows <= limits.LOOKUP_MOST_ROWS or not 0 < sought.keys.num_rows <= limits.LOOKUP_KEYS:
        return None
    try:
        schema = plain_schema(table, columns, nested=True)
        return _Search(table, schema, sought, located).rows(files)
    except (NotHere, OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as problem:
        left_to_spark(f"looking up {', '.join(place.column for place in sought.places.values())}", problem)
        return None


class _Search:
    def __init__(self, table: Snapshot, schema: StructType, sought: Sought, located: bool):
        self._files = files_of(table.path)
        self._table = table
        self._wanted = Columns(table, schema)
        places = [pa.field(FILE, pa.string()), pa.field(PLACE, pa.int64())] if located else []
        self._schema = pa.schema([*self._wanted.arrow, *places])
        self._located = located
        compared = plain_schema(table, [place.column for place in sought.places.values()])
        self._compared = Columns(table, StructType(list({field.name: field for field in compared.fields}.values())))
        self._keys = _Keys(sought, to_arrow_schema(compared, timezone="UTC"), self._compared)
        self._times = has_times(schema) or has_times(compared)
        self._lock = Lock()
        self._found = self._bytes = self._held = 0

    def rows(self, files: Sequence[DataFile]) -> pa.Table:
        tasks = [task for file in files for task in self._groups(file)]
        self._check(tasks)
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            parts = [part for part in pool.map(self._group, tasks) if part is not None]
        moved(read=self._bytes)
        return pa.concat_tables([self._schema.empty_table(), *parts]).combine_chunks()

    def _check(self, tasks: Sequence[_Group]) -> None:
        """Whether the driver may look through so much of what is not in its memory."""
        names, most = self._compared.in_files, PACE.within(limits.LOOKUP_BYTES_READ, disk_of(self._table.path))
        size = 0
        for group in tasks:
            size += group.size([name for name in names if not group.keeps(name)])
            if size > most:
                raise NotHere(f"more than {most:,} bytes to look through")

    def _groups(self, file: DataFile) -> Iterator[_Group]:
        """The row groups of a file that can hold a key; the file is not opened if its partition has none."""
        constants = self._compared.constants_of(self._table, file.path)
        if not self._keys.may_be_of(constants):
            return
        footer = footer_of(self._files, file.path, times=self._times)
        self._wanted.check(footer.schema)
        self._compared.check(footer.schema)
        self._keys.check(footer.schema)
        begin = 0
        for number in range(footer.metadata.num_row_groups):
            group = footer.metadata.row_group(number)
            if self._keys.may_be_in(group):
                yield _Group(file=file, footer=footer, number=number, begin=begin, constants=constants)
            begin += group.num_rows

    def _group(self, group: _Group) -> pa.Table | None:
        source = GroupColumns(group, partial(self._open, group))
        hits = self._hits(group, source)
        hidden = self._table.deleted.get(group.file.path)
        if hidden:
            hits &= ~as_bits(hidden, group.footer.metadata.num_rows)[group.begin : group.begin + len(hits)]
        found = int(hits.sum())
        with self._lock:
            self._found += found
            if self._found > limits.LOOKUP_FOUND:
                raise NotHere(f"more than {limits.LOOKUP_FOUND:,} rows")
        rows = self._rows(group, source, np.flatnonzero(hits)) if found else None
        with self._lock:
            self._bytes += group.size(source.read)
            self._held += rows.nbytes if rows is not None else 0
            if self._held > limits.LOOKUP_BYTES:
                raise NotHere(f"more than {limits.LOOKUP_BYTES:,} bytes")
        return rows

    def _open(self, group: _Group) -> pq.ParquetFile:
        return opened(
            self._files, group.file.path, times=self._times, dictionaries=self._compared.texts,
            metadata=group.footer.metadata,
        )  # fmt: skip

    def _hits(self, group: _Group, source: GroupColumns) -> Numbers:
        """Which rows of a row group have a key."""
        names, constants = self._compared.in_files, group.constants
        if not names:
            return self._keys.hits(self._compared.named(None, constants, group.length))
        batches = source.kept(names) if FILES.most else source.batches(names)
        return np.concatenate([self._keys.hits(self._compared.named(b, constants, b.num_rows)) for b in batches])

    def _rows(self, group: _Group, source: GroupColumns, places: Numbers) -> pa.Table:
        """What was found in a row group."""
        constants = self._wanted.constants_of(self._table, group.file.path)
        names = self._wanted.in_files
        rows = self._wanted.complete(source.taken(names, places) if names else nothing(len(places)), constants)
        if self._located:
            rows = rows.append_column(FILE, pa.array([group.file.name] * len(places), pa.string()))
            rows = rows.append_column(PLACE, pa.array(places + group.begin, pa.int64()))
        return rows


@dataclass(frozen=True, kw_only=True)
class _Group(RowGroup):
    """A row group in which keys are sought. ``constants`` are the keys that all its rows have."""

    file: DataFile
    constants: Mapping[str, pa.Scalar]


class _Keys:
    """The keys as numbers: every column's values are numbered, and a key is one number made of theirs."""

    def __init__(self, sought: Sought, compared: pa.Schema, columns: Columns):
        """``compared`` are the table's columns, in the order of the keys' columns."""
        self._kinds = {field.name: _kind(field.type) for field in compared}
        self._columns = columns
        parts: list[tuple[_Part, pa.Array]] = []
        for (key, place), field in zip(sought.places.items(), compared, strict=True):
            values = sought.keys.column(key).combine_chunks()
            if _kind(values.type) != _kind(field.type):
                raise NotHere
            if place.unit is not None and _kind(field.type) == "local time" and not place.local:
                raise NotHere("local times, in units of another zone")
            values = _comparable(values)
            parts.append((_Part(field.name, place.unit, pc.unique(values)), values))
        parts.sort(key=lambda part: -len(part[0].distinct))  # what tells most rows apart comes first
        self._parts = [part for part, _ in parts]
        self._bits: Numbers | None = None
        self._codes: Numbers | None = None
        if len(parts) == 1:  # every value of the column is a key
            self._bits = np.ones(len(self._parts[0].distinct), np.bool_)
            return
        code = np.zeros(sought.keys.num_rows, np.int64)
        size = 1
        for part, values in parts:
            code = code * len(part.distinct) + part.positions(values)
            size *= len(part.distinct)
            if size > 2**62:
                raise NotHere
        if size <= limits.LOOKUP_COMBINATIONS:
            self._bits = np.zeros(size, np.bool_)
            self._bits[code] = True
        else:
            self._codes = np.sort(code)

    def check(self, stored: pa.Schema) -> None:
        """Whether a file has the columns as the table says."""
        for name, kind in self._kinds.items():
            column = self._columns.stored_as(name)
            if column is not None and _kind(settled_type(stored.field(column).type)).split()[-1] != kind.split()[-1]:
                raise NotHere

    def may_be_of(self, constants: Mapping[str, pa.Scalar]) -> bool:
        """Whether a key has the values that all rows of a file have."""
        parts = [part for part in self._parts if part.name in constants]
        return all(part.positions(_comparable(pa.repeat(constants[part.name], 1)))[0] >= 0 for part in parts)

    def hits(self, rows: pa.RecordBatch) -> Numbers:
        """For each row whether it has one of the keys: column by column, of the rows that are left."""
        found = np.zeros(rows.num_rows, np.bool_)
        left, code = np.arange(rows.num_rows), np.zeros(rows.num_rows, np.int64)
        for part in self._parts:
            values = rows.column(part.name)
            position = part.positions(_comparable(values if len(left) == len(values) else values.take(pa.array(left))))
            there = position >= 0
            left, code = left[there], code[there] * len(part.distinct) + position[there]
            if not len(left):
                return found
        if self._bits is not None:
            known = self._bits[code]
        else:
            assert self._codes is not None
            place = np.minimum(np.searchsorted(self._codes, code), len(self._codes) - 1)
            known = self._codes[place] == code
        found[left[known]] = True
        return found

    def may_be_in(self, group: pq.RowGroupMetaData) -> bool:
        """Whether a row group's bounds leave room for a key."""
        chunks = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
        for part in self._parts:
            unit, distinct = part.unit, part.distinct
            column = self._columns.stored_as(part.name)
            if column is None:
                continue
            statistics = chunks[column].statistics
            numbers = pa.types.is_integer(distinct.type) and not distinct.null_count
            if not numbers or statistics is None or not statistics.has_min_max:
                continue
            bounds = _as_numbers(statistics)
            if bounds is None:
                continue
            low, high = bounds[0] - (unit or 0), bounds[1]
            values = distinct.to_numpy()
            if not bool(((values >= low) & (values <= high)).any()):
                return False
        return True


class _Part:
    """One column of the keys: its different values, each with a position."""

    def __init__(self, name: str, unit: int | None, distinct: pa.Array):
        self.name = name
        self.unit = unit
        self.distinct = distinct
        self._sieve: Numbers | None = None
        if pa.types.is_integer(distinct.type) and len(distinct) > limits.LOOKUP_FEW_VALUES:
            valid = distinct.is_valid().to_numpy(zero_copy_only=False)
            there = np.flatnonzero(valid)
            values = distinct.fill_null(0).to_numpy()[there]
            order = np.argsort(values)
            self._sorted, self._places = values[order], there[order]
            self._missing = next(iter(np.flatnonzero(~valid)), -1)
            self._sieve = np.zeros(1 << min(max(16 * len(values) - 1, 1).bit_length(), 26), np.bool_)
            self._sieve[values & (len(self._sieve) - 1)] = True

    def positions(self, values: pa.Array) -> Numbers:
        """The position of each value, -1 for others. NULL is a value."""
        if self.unit is not None:
            values = floored(values, self.unit)
        if self._sieve is None:
            return _positions(values, self.distinct)
        # Arrow would make a hash table of all values for each batch; most are told apart by their last bits.
        numbers = values.fill_null(0).to_numpy()
        found = np.full(len(numbers), -1, np.int64)
        maybe = np.flatnonzero(self._sieve[numbers & (len(self._sieve) - 1)])
        place = np.minimum(np.searchsorted(self._sorted, numbers[maybe]), len(self._sorted) - 1)
        same = self._sorted[place] == numbers[maybe]
        found[maybe[same]] = self._places[place[same]]
        if values.null_count:
            found[values.is_null().to_numpy(zero_copy_only=False)] = self._missing
        return found


def _as_numbers(statistics: pq.Statistics) -> tuple[int, int] | None:
    """The bounds of a row group as the numbers that are stored; None where they are none."""
    low, high = statistics.min_raw, statistics.max_raw
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def is_compared(data_type: pa.DataType) -> bool:
    """Whether keys of the type can be looked up."""
    try:
        return bool(_kind(data_type))
    except NotHere:
        return False


def _kind(data_type: pa.DataType) -> str:
    """What values of a type are compared as; only those that Arrow compares as Spark does.

    INT96, which Delta writes by default, has no zone: a file does not tell times from local times.
    """
    if pa.types.is_integer(data_type):
        return "number"
    if pa.types.is_date32(data_type):
        return "date"
    if pa.types.is_timestamp(data_type) and data_type.unit == "us":
        return "time" if data_type.tz else "local time"
    if pa.types.is_string(data_type):
        return "text"
    raise NotHere(f"keys of type {data_type}")


def _comparable(values: pa.Array) -> pa.Array:
    """Numbers, dates and times as whole numbers; text as it is."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    return values if _is_text(values.type) else values.cast(pa.int64())


def _is_text(data_type: pa.DataType) -> bool:
    return pa.types.is_dictionary(data_type) or pa.types.is_string(data_type)


def _positions(values: pa.Array, distinct: pa.Array) -> Numbers:
    """The place of each value among the distinct ones, -1 for others. NULL is a value."""
    if pa.types.is_dictionary(values.type):
        known = _positions(values.dictionary.cast(distinct.type), distinct)
        missing = _positions(pa.nulls(1, distinct.type), distinct)
        return np.append(known, missing)[values.indices.fill_null(len(known)).to_numpy()]
    found = pc.index_in(values, value_set=distinct)
    return np.asarray(found.fill_null(-1).to_numpy(), np.int64)
