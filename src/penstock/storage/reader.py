"""Reading a pinned version of a Delta table with Spark, the cheapest way that gives the right rows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StringType, StructField, StructType

from penstock.frames import limits
from penstock.frames.clock import moved
from penstock.frames.frame import Frame
from penstock.frames.names import FILE, PLACE
from penstock.frames.spark.conversion import on_driver
from penstock.frames.spark.dataframes import select
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.spark.types import local_frame
from penstock.sql.dialect import quoted
from penstock.storage.data_files import name_of
from penstock.storage.deletion_vectors import as_words
from penstock.storage.delta_log import Shaped, Snapshot


def schema_of(snapshot: Shaped) -> StructType:
    return _parsed(snapshot.schema_json)


@lru_cache(maxsize=1000)
def _parsed(schema_json: str) -> StructType:
    """Nobody changes what they get: it is asked for several times in every refresh."""
    return StructType.fromJson(json.loads(schema_json))


def columns_by_name(snapshot: Snapshot) -> dict[str, str]:
    """What the columns are really called, by their names in lower case; empty for a table without column mapping."""
    found = {f.name.lower(): f.metadata.get("delta.columnMapping.physicalName") for f in schema_of(snapshot).fields}
    return {name: physical for name, physical in found.items() if physical}


def physical_names(snapshot: Shaped) -> dict[str, Any]:
    """What the columns are really called, and the fields within them, by their names in lower case.

    Without column mapping, and for what was there before it was switched on, that is the name itself.
    """
    return {f.name.lower(): (_physical(f), _within(f.dataType)) for f in schema_of(snapshot).fields}


def _physical(field: StructField) -> str:
    return str(field.metadata.get("delta.columnMapping.physicalName", field.name))


def _within(kind: DataType) -> Any:
    match kind:
        case StructType():
            return [(f.name, _physical(f), _within(f.dataType)) for f in kind.fields]
        case ArrayType():
            return _within(kind.elementType)
        case MapType():
            return _within(kind.keyType), _within(kind.valueType)
    return None


def read_snapshot(spark: SparkSession, snapshot: Snapshot, columns: Sequence[str] | None = None) -> DataFrame:
    """The rows of a version: plain Parquet where that is right, the Delta reader where the table needs it."""
    if snapshot.plain:
        return read_files(spark, snapshot, [file.path for file in snapshot.files], columns)
    moved(read=snapshot.size)
    frame = spark.read.format("delta").option("versionAsOf", snapshot.version).load(snapshot.path)
    return frame if columns is None else frame.select(*[quoted(c) for c in columns])


def read_files(
    spark: SparkSession,
    snapshot: Snapshot,
    files: Sequence[str],
    columns: Sequence[str] | None = None,
    hidden: Mapping[str, BitMap64] | None = None,
    located: bool = False,
) -> DataFrame:
    """The rows of some files of a version, without what deletion vectors hide.

    ``hidden`` takes the place of the version's own vectors. ``located``: with the file (``__file``, its name) and the
    place in it (``__place``) of each row. Only a plain table can be read so.
    """
    schema = schema_of(snapshot)
    wanted = schema.names if columns is None else _stored_names(schema, columns)
    narrow = StructType([schema[c] for c in wanted])
    if not files:
        return local_frame(spark, StructType([*narrow.fields, *LOCATION_FIELDS]) if located else narrow)
    everything = hidden is None and not located and set(files) == {file.path for file in snapshot.files}
    if snapshot.plain and not (everything and _count(snapshot.deleted) > limits.MANY_PLACES):
        gone = snapshot.deleted if hidden is None else hidden
        return _read_plain(spark, snapshot, files, narrow, gone, LOCATION if located else ())
    frame = spark.read.format("delta").option("versionAsOf", snapshot.version).load(snapshot.path)
    chosen = set(files)
    moved(read=sum(file.size for file in snapshot.files if file.path in chosen))
    return (frame if everything else frame.where(_in_files(files))).select(*[quoted(c) for c in wanted])


def found_frame(spark: SparkOnDemand, snapshot: Snapshot, rows: pa.Table) -> Frame:
    """Rows of a version that are on the driver, maybe with their places, as a frame."""
    fields = {f.name: StructField(f.name, f.dataType) for f in (*schema_of(snapshot).fields, *LOCATION_FIELDS)}
    return on_driver(spark, rows, StructType([fields[name] for name in rows.column_names]))


def read_located(
    spark: SparkSession, snapshot: Snapshot, columns: Sequence[str], condition: str | None = None
) -> DataFrame:
    """The rows of a plain version, with the file (``__file``, its name) and the place in it (``__place``) of each."""
    schema = schema_of(snapshot)
    narrow = StructType([schema[c] for c in _stored_names(schema, columns)])
    files = [file.path for file in snapshot.files]
    return _read_plain(spark, snapshot, files, narrow, snapshot.deleted, LOCATION, condition)


def read_places(
    spark: SparkSession, snapshot: Snapshot, places: Mapping[str, BitMap64], columns: Sequence[str]
) -> DataFrame:
    """Only the rows at some places of a table's files, whatever vectors say."""
    schema = schema_of(snapshot)
    narrow = StructType([schema[c] for c in _stored_names(schema, columns)])
    named = {name_of(file): rows for file, rows in places.items() if rows}
    if not named:
        return local_frame(spark, narrow)
    frame = _parquet(spark, snapshot, narrow, list(places))
    found = frame.where(_at(named)) if _are_few(named) else _looked_up(spark, frame, named, 1)
    return found.select(*[quoted(c) for c in narrow.names])


LOCATION = ("_metadata.file_name AS __file", "_metadata.row_index AS __place")
LOCATION_FIELDS = (StructField(FILE, StringType()), StructField(PLACE, LongType()))


def _read_plain(
    spark: SparkSession,
    snapshot: Snapshot,
    files: Sequence[str],
    schema: StructType,
    deleted: Mapping[str, BitMap64],
    location: Sequence[str] = (),
    condition: str | None = None,
) -> DataFrame:
    """Parquet files without the deleted rows. If those are many, files that have none are read without a join."""

    def read(paths: Sequence[str]) -> DataFrame:
        frame = _parquet(spark, snapshot, schema, paths)
        return frame if condition is None else frame.where(condition)

    def shown(frame: DataFrame) -> DataFrame:
        return select(frame, *[quoted(c) for c in schema.names], *location)

    names = {name_of(file) for file in files}
    moved(read=sum(file.size for file in snapshot.files if file.name in names))
    hidden = {name_of(file): rows for file, rows in deleted.items() if rows and name_of(file) in names}
    if not hidden:
        return shown(read(files)) if location or snapshot.partition_columns else read(files)
    if _are_few(hidden):
        return shown(read(files).where(f"NOT ({_at(hidden)})"))
    whole = [file for file in files if name_of(file) not in hidden]
    rest = shown(_looked_up(spark, read([f for f in files if name_of(f) in hidden]), hidden, 0))
    return shown(read(whole)).unionAll(rest) if whole else rest


def _parquet(spark: SparkSession, snapshot: Snapshot, schema: StructType, files: Sequence[str]) -> DataFrame:
    """Files as they are; partition columns come last, and those that are not asked for come too."""
    reader = spark.read.schema(schema)
    if snapshot.partition_columns:
        reader = reader.option("basePath", snapshot.path)
    return reader.parquet(*[snapshot.uri(file) for file in files])


def _are_few(places: Mapping[str, BitMap64]) -> bool:
    return _count(places) <= limits.FEW_PLACES


def _count(places: Mapping[str, BitMap64]) -> int:
    return sum(map(len, places.values()))


def _at(places: Mapping[str, BitMap64]) -> str:
    """Whether a row lies at one of the places, as a condition."""
    return " OR ".join(
        f"(_metadata.file_name = '{name}' AND _metadata.row_index IN ({', '.join(map(str, rows))}))"
        for name, rows in places.items()
    )


def _looked_up(spark: SparkSession, frame: DataFrame, places: Mapping[str, BitMap64], bit: int) -> DataFrame:
    """The rows of the places (``bit`` 1) or the others (0), for any number of places in each of the frame's files.

    Each file's places go to the executors as bits. As rows they would take Spark ten times as long.
    """
    bits = pa.array([as_words(rows) for rows in places.values()], pa.list_(pa.int64()))
    table = pa.table({"__name": list(places), "__bits": bits})
    word, place = "CAST(_metadata.row_index DIV 64 AS INT)", "CAST(_metadata.row_index % 64 AS INT)"
    sent = F.broadcast(spark.createDataFrame(table, "__name STRING, __bits ARRAY<LONG>"))
    joined = frame.join(sent, F.expr("_metadata.file_name = __name"))
    return joined.where(f"COALESCE(BIT_GET(GET(__bits, {word}), {place}), 0) = {bit}")


def _in_files(files: Sequence[str]) -> Column:
    """Whether a row lies in one of the files, told by as many parts of its path as the log gives."""
    by_depth: dict[int, list[str]] = defaultdict(list)
    for file in files:
        by_depth[file.count("/") + 1].append(file)
    condition = F.lit(False)
    for depth, paths in by_depth.items():
        condition = condition | F.substring_index(F.col("_metadata.file_path"), "/", -depth).isin(paths)
    return condition


def _stored_names(schema: StructType, columns: Sequence[str]) -> list[str]:
    """The columns as the table spells them: names in Spark do not depend on case."""
    known = {name.lower(): name for name in schema.names}
    return [known[c.lower()] for c in columns]
