"""Which files of a table can hold rows with some keys, told by the bounds that the log keeps for each file."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from penstock.storage.delta_log import DataFile, Snapshot

_TIME_UNIT = 1_000
"""Microseconds: Delta writes times with milliseconds, and may have cut off the rest."""


def files_near(snapshot: Snapshot, keys: pa.Table, columns: Mapping[str, str]) -> tuple[DataFile, ...]:
    """The files whose bounds the keys reach into, in every column; ``columns``: of the table to that of the keys."""
    bounds = snapshot.bounds
    kept = pa.array([True] * len(snapshot.files), pa.bool_())
    for name, key in columns.items():
        # A name with a dot in it could be taken for a field of a struct.
        overlap = _overlap(bounds, name, keys.column(key)) if "." not in name else None
        if overlap is not None:
            kept = pc.and_(kept, overlap)
    return tuple(file for file, near in zip(snapshot.files, kept.to_pylist(), strict=True) if near)


def _overlap(bounds: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Array | None:
    """For each file, whether its rows may have one of the values; None when the log does not say."""
    low_name, high_name = f"min.{name}", f"max.{name}"
    if values.null_count or not {low_name, high_name} <= set(bounds.column_names) or not len(values):
        return None
    low, high = bounds.column(low_name), bounds.column(high_name)
    if not _comparable(values.type, low.type):
        return None
    extremes = pc.min_max(values)
    first, last = extremes["min"].cast(low.type), extremes["max"].cast(low.type)
    if pa.types.is_timestamp(low.type):
        low, high = low.cast(pa.timestamp("us")).cast(pa.int64()), high.cast(pa.timestamp("us")).cast(pa.int64())
        first = pa.scalar(max(first.value - _TIME_UNIT, -(2**63)), pa.int64())
        last = last.cast(pa.int64())
    outside = pc.or_(pc.less(high, first), pc.greater(low, last))
    return pc.invert(pc.fill_null(outside, False)).combine_chunks()


def _comparable(mine: pa.DataType, theirs: pa.DataType) -> bool:
    """Not text, which Spark may compare by a collation, nor decimals, which the log rounds."""
    if pa.types.is_timestamp(mine):
        return pa.types.is_timestamp(theirs) and (mine.tz is None) == (theirs.tz is None)
    # A narrower type of the table cannot hold all the keys.
    return any(kind(mine) and kind(theirs) and mine == theirs for kind in (pa.types.is_integer, pa.types.is_date))
