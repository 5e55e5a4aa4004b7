"""Parquet files read on the driver, by Arrow: which ones hold for Arrow what they hold for Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DateType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.clock import left_to_spark, moved
from penstock.frames.frame import Frame, NotHere
from penstock.frames.names import FILE, LOCATED, PLACE
from penstock.frames.pace import PACE
from penstock.frames.sizes import Size
from penstock.frames.spark.conversion import survives
from penstock.frames.spark.frame import SparkFrame
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.spark.types import nullable, to_arrow_schema
from penstock.plan.operators import render
from penstock.storage.columns import Columns
from penstock.storage.deletion_vectors import as_bits
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.file_cache import FILES, Identity
from penstock.storage.files import Files, files_of
from penstock.storage.locations import disk_of
from penstock.storage.reader import LOCATION_FIELDS, columns_by_name, read_files, read_snapshot, schema_of


def plain_schema(table: Snapshot, columns: Sequence[str], *, nested: bool = False) -> StructType:
    """Some columns of a table, if all of them are of types that are read here; ``nested``: or made of such types."""
    known = {field.name.lower(): field for field in schema_of(table).fields}
    fields = [known[column.lower()] for column in columns]
    if not table.is_known or not fields:
        raise NotHere("a table with features of Delta that only Spark reads")
    nested = nested and not columns_by_name(table)  # the fields of a struct would have other names too
    for field in fields:
        if not _is_plain(field.dataType, nested):
            raise NotHere(f"{field.name} is of type {field.dataType.simpleString()}")
    return StructType([StructField(f.name, nullable(f.dataType)) for f in fields])


def _is_plain(data_type: DataType, nested: bool) -> bool:
    inside = _inside(data_type)
    if inside is not None:
        return nested and bool(inside) and all(_is_plain(part, nested) for part in inside)
    if isinstance(data_type, StringType) and data_type != StringType():
        return False
    return isinstance(data_type, AtomicType) and data_type.typeName() not in ("variant", "geometry", "geography")


def _inside(data_type: DataType) -> list[DataType] | None:
    """What a nested type is made of; None for one that is not."""
    match data_type:
        case StructType(fields=fields):
            return [field.dataType for field in fields]
        case ArrayType(elementType=element):
            return [element]
        case MapType(keyType=key, valueType=value):
            return [key, value]
    return None


def has_times(data_type: DataType) -> bool:
    """Whether there are dates or times in it."""
    if isinstance(data_type, DateType | TimestampType | TimestampNTZType):
        return True
    return any(has_times(part) for part in _inside(data_type) or ())


@dataclass(frozen=True)
class Footer:
    """What a file says of itself: the bounds and places of its row groups, its columns. ``identity`` tells the file."""

    identity: Identity
    metadata: pq.FileMetaData
    schema: pa.Schema


def footer_of(files: Files, path: str, *, times: bool) -> Footer:
    """The footer of a file of a table, which is read once. ``times`` as in ``opened``."""
    known = files.identity(unquote(path))

    def read() -> Footer:
        with opened(files, path, times=False) as file:
            return Footer(known, file.metadata, file.schema_arrow)

    footer = FILES.kept((*known, "footer"), read, lambda found: int(found.metadata.serialized_size))
    _check_calendar(footer.metadata, times)
    return footer


def opened(
    files: Files,
    path: str,
    *,
    times: bool,
    dictionaries: Sequence[str] = (),
    metadata: pq.FileMetaData | None = None,
) -> pq.ParquetFile:
    """A file of a table. ``times``: columns with dates or times are read, which may be of another calendar."""
    file = pq.ParquetFile(
        files.open(unquote(path)), coerce_int96_timestamp_unit="us", read_dictionary=list(dictionaries),
        metadata=metadata, pre_buffer=not files.local,
    )  # fmt: skip
    _check_calendar(file.metadata, times)
    return file


def _check_calendar(metadata: pq.FileMetaData, times: bool) -> None:
    said = metadata.metadata or {}
    version = said.get(b"org.apache.spark.version", b"4")
    if times and (version[:1] < b"4" or any(b"legacy" in key for key in said)):
        raise NotHere


def read_rows(
    table: Snapshot, columns: Sequence[str], files: Sequence[DataFile] | None = None, *, located: bool = False
) -> pa.Table:
    """The rows of a version, or of some of its files, without what deletion vectors hide.

    ``located``: with file and place of each, as ``reader.read_files`` gives them.
    """
    wanted = Columns(table, plain_schema(table, columns, nested=True))
    place = files_of(table.path)
    parts = []
    for file in table.files if files is None else files:
        found = opened(place, file.path, times=has_times(wanted.schema))
        wanted.check(found.schema_arrow)
        rows = wanted.read(found, range(found.metadata.num_row_groups))
        rows = wanted.complete(rows, wanted.constants_of(table, file.path))
        if located:
            rows = rows.append_column(FILE, pa.array([file.name] * rows.num_rows, pa.string()))
            rows = rows.append_column(PLACE, pa.array(np.arange(rows.num_rows)))
        hidden = table.deleted.get(file.path)
        parts.append(rows.filter(pa.array(~as_bits(hidden, rows.num_rows))) if hidden else rows)
        moved(read=file.size)
    places = [pa.field(FILE, pa.string()), pa.field(PLACE, pa.int64())] if located else []
    return pa.concat_tables([pa.schema([*wanted.arrow, *places]).empty_table(), *parts])


def batches(
    table: Snapshot, columns: Sequence[str], start: int = 0
) -> tuple[pa.Schema, Callable[[], Iterator[pa.Table]]]:
    """The columns' types, and a way through the rows from one on, row group by row group; ``NotHere`` comes at once.

    The rows of a version are in the same order whenever it is read.
    """
    wanted = Columns(table, plain_schema(table, columns, nested=True))
    if not survives(wanted.schema):
        raise NotHere("types that Arrow does not have")
    files = files_of(table.path)
    times = has_times(wanted.schema)
    constants = {}
    for file in table.files:
        wanted.check(footer_of(files, file.path, times=times).schema)
        constants[file.path] = wanted.constants_of(table, file.path)

    def each() -> Iterator[pa.Table]:
        skipped = 0
        for file in table.files:
            if file.rows is not None and skipped + file.rows <= start:
                skipped += file.rows
                continue
            found = opened(files, file.path, times=times)
            hidden, place = as_bits(table.deleted.get(file.path) or BitMap64(), found.metadata.num_rows), 0
            for number in range(found.metadata.num_row_groups):
                count = found.metadata.row_group(number).num_rows
                rows = wanted.complete(wanted.read(found, [number]), constants[file.path])
                rows = rows.filter(pa.array(~hidden[place : place + count]))
                place += count
                yield rows.slice(max(start - skipped, 0))
                skipped += rows.num_rows
            moved(read=file.size)

    return wanted.arrow, each


def table_frame(
    spark: SparkOnDemand,
    table: Snapshot,
    columns: Sequence[str],
    files: Sequence[DataFile] | None = None,
    *,
    located: bool = False,
    condition: exp.Expr | None = None,
    expected: int | None = None,
) -> Frame:
    """The same as a frame, whose rows are read when they are asked for: by Spark, if they are many or of types that
    only Spark reads. Rows that do not fulfil the condition are not wanted, but may come; about ``expected`` rows do.
    """
    chosen = table.files if files is None else files
    most, size = sum(file.most for file in chosen), sum(file.size for file in chosen)
    told = Size.exactly(most) if expected is None else Size(expected, most)
    told = told if size <= limits.LOCAL_BYTES else told.guess()  # few rows that are large are no small table
    try:
        schema = plain_schema(table, columns, nested=True)
        if most > limits.READ_ROWS or size > PACE.within(limits.READ_BYTES, disk_of(table.path)):
            raise NotHere(f"more than {limits.READ_ROWS:,} rows, or too many bytes")
        whole = StructType([*schema.fields, *(LOCATION_FIELDS if located else ())])
        if not survives(whole):
            raise NotHere("types that Arrow does not have")
    except NotHere as problem:
        return _by_spark(spark, table, columns, files, located, condition, told, str(problem))
    return ArrowFrame(
        spark, to_arrow_schema(whole, timezone="UTC"),
        lambda: read_rows(table, schema.names, chosen, located=located), told,
        lambda: _by_spark(spark, table, columns, files, located, condition, told, None),
    )  # fmt: skip


def _by_spark(
    spark: SparkOnDemand,
    table: Snapshot,
    columns: Sequence[str],
    files: Sequence[DataFile] | None,
    located: bool,
    condition: exp.Expr | None,
    size: Size,
    problem: str | None,
) -> SparkFrame:
    known = {field.name.lower(): field.name for field in schema_of(table).fields}
    names = [known[name.lower()] for name in columns]

    def read() -> DataFrame:
        if problem is not None:
            left_to_spark(f"reading {', '.join(names)}", problem)
        if not located and (files is None or not table.plain):  # Delta's own reader looks for files itself
            return read_snapshot(spark.session(), table, names)
        chosen = table.files if files is None else files
        frame = read_files(spark.session(), table, [file.path for file in chosen], names, located=located)
        return frame if condition is None else frame.where(render(condition))

    return SparkFrame.of(spark, read, [*names, *(LOCATED if located else ())], size)
