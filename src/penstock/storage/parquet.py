"""Parquet files read on the driver, by Arrow: which ones hold for Arrow what they hold for Spark."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql.types import (
    AtomicType,
    DataType,
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.storage.arrow import nullable
from penstock.storage.delta_log import Snapshot
from penstock.storage.reader import columns_by_name, schema_of


class NotHere(Exception):
    """What is asked for is better done by Spark."""


def plain_schema(table: Snapshot, columns: Sequence[str], *, structs: bool = False) -> StructType:
    """Some columns of a table, if all of them are of types that are read here; ``structs`` of such types too."""
    known = {field.name.lower(): field for field in schema_of(table).fields}
    fields = [known[column.lower()] for column in columns]
    if table.partition_columns or columns_by_name(table) or not table.plain or not fields:
        raise NotHere
    if not all(_is_plain(f.dataType, structs) for f in fields):
        raise NotHere
    return StructType([StructField(f.name, nullable(f.dataType)) for f in fields])


def _is_plain(data_type: DataType, structs: bool) -> bool:
    if isinstance(data_type, StructType):
        return structs and bool(data_type.fields) and all(_is_plain(f.dataType, structs) for f in data_type.fields)
    if isinstance(data_type, StringType) and data_type != StringType():
        return False
    return isinstance(data_type, AtomicType) and data_type.typeName() not in ("variant", "geometry", "geography")


def has_times(data_type: DataType) -> bool:
    """Whether there are dates or times in it."""
    if isinstance(data_type, StructType):
        return any(has_times(f.dataType) for f in data_type.fields)
    return isinstance(data_type, DateType | TimestampType | TimestampNTZType)


def opened(
    filesystem: fs.FileSystem,
    root: str,
    path: str,
    *,
    times: bool,
    dictionaries: Sequence[str] = (),
    metadata: pq.FileMetaData | None = None,
) -> pq.ParquetFile:
    """A file of a table. ``times``: columns with dates or times are read, which may be of another calendar."""
    file = pq.ParquetFile(
        f"{root}/{unquote(path)}", filesystem=filesystem, coerce_int96_timestamp_unit="us",
        read_dictionary=list(dictionaries), metadata=metadata,
    )  # fmt: skip
    said = file.metadata.metadata or {}
    version = said.get(b"org.apache.spark.version", b"4")
    if times and (version[:1] < b"4" or any(b"legacy" in key for key in said)):
        raise NotHere
    return file
