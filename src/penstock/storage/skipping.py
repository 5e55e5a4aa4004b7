"""Which files of a table can hold rows with some keys, told by the bounds that the log keeps for each file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.frames import limits
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.file_bounds import bounds_of

_TIME_UNIT = 1_000
"""Microseconds: Delta writes times with milliseconds, and may have cut off the rest."""


def files_near(snapshot: Snapshot, keys: pa.Table, columns: Mapping[str, str]) -> tuple[DataFile, ...]:
    """The files whose bounds the keys reach into, in every column; ``columns``: of the table to that of the keys."""
    if _is_one_piece(snapshot):
        return snapshot.files
    kept = np.ones(len(snapshot.files), bool)
    for low, high, first, last in _bounded(snapshot, keys, columns):
        outside = pc.or_(pc.less(high, first), pc.greater(low, last))
        kept &= ~np.asarray(pc.fill_null(outside, False).combine_chunks().to_numpy(zero_copy_only=False), bool)
    return tuple(file for file, near in zip(snapshot.files, kept, strict=True) if near)


def rows_near(snapshot: Snapshot, keys: pa.Table, columns: Mapping[str, str]) -> int:
    """About how many rows lie between the least and the greatest of the keys, if a file's values are spread evenly."""
    if _is_one_piece(snapshot):
        return snapshot.rows
    shares = np.ones(len(snapshot.files))
    for low, high, first, last in _bounded(snapshot, keys, columns):
        begins, ends = (
            pc.fill_null(pc.cast(bound, pa.float64(), safe=False), np.nan).to_numpy() for bound in (low, high)
        )
        common = np.minimum(ends, float(last.as_py())) - np.maximum(begins, float(first.as_py()))
        width = np.maximum(ends - begins, 1)
        share = np.where(common < 0, 0.0, np.minimum((common + 1) / width, 1))
        shares = np.minimum(shares, np.where(np.isnan(share), 1.0, share))
    return int(sum(share * file.most for share, file in zip(shares, snapshot.files, strict=True)))


def _is_one_piece(snapshot: Snapshot) -> bool:
    """Whether the table is one small file: reading it takes less than finding out that it need not be read."""
    return len(snapshot.files) < 2 and snapshot.rows <= limits.NEARBY_ROWS


def widest(snapshot: Snapshot, keys: pa.Table, names: Sequence[str]) -> str | None:
    """The column of whole numbers with the widest range, if that is so wide that every row may have one of its own."""
    ranges = {}
    for name in names:
        if pa.types.is_integer(keys.schema.field(name).type):
            for low, high, _, _ in _bounded(snapshot, keys, {name: name}):
                if not low.null_count and not high.null_count:
                    ranges[name] = pc.max(high).as_py() - pc.min(low).as_py() + 1
    found = max(ranges, key=lambda name: ranges[name], default=None)
    return found if found is not None and ranges[found] >= snapshot.rows else None


_Bounds = tuple[pa.ChunkedArray, pa.ChunkedArray, pa.Scalar, pa.Scalar]


def _bounded(snapshot: Snapshot, keys: pa.Table, columns: Mapping[str, str]) -> Iterator[_Bounds]:
    """For each column that can be bounded: the least and greatest value of each file, and of the keys, as numbers."""
    for name, key in columns.items():
        # A name with a dot in it could be taken for a field of a struct.
        found = None if "." in name or key not in keys.column_names else bounds_of(snapshot, name)
        if found is None:
            continue
        values, (low, high) = keys.column(key), found
        if values.null_count or not len(values) or not _comparable(values.type, low.type):
            continue
        if name in snapshot.partition_columns and pa.types.is_timestamp(low.type) and low.type.tz is not None:
            continue  # delta-rs takes a moment without a zone for one of UTC, Spark for one of its session's
        extremes = pc.min_max(values)
        first, last = extremes["min"].cast(low.type), extremes["max"].cast(low.type)
        if pa.types.is_timestamp(low.type):
            low, high = low.cast(pa.timestamp("us")), high.cast(pa.timestamp("us"))
            first = pa.scalar(max(first.value - _TIME_UNIT, -(2**63)), pa.int64())
        wide = pa.int32() if pa.types.is_date(low.type) else pa.int64()
        yield low.cast(wide).cast(pa.int64()), high.cast(wide).cast(pa.int64()), _number(first), _number(last)


def _number(value: pa.Scalar) -> pa.Scalar:
    return value.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(value.type) else value.cast(pa.int64())


def _comparable(mine: pa.DataType, theirs: pa.DataType) -> bool:
    """Not text, which Spark may compare by a collation, nor decimals, which the log rounds."""
    if pa.types.is_timestamp(mine):
        return pa.types.is_timestamp(theirs) and (mine.tz is None) == (theirs.tz is None)
    # A narrower type of the table cannot hold all the keys.
    return any(kind(mine) and kind(theirs) and mine == theirs for kind in (pa.types.is_integer, pa.types.is_date32))
