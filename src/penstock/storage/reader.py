"""Reading a pinned version of a Delta table with Spark, the cheapest way that gives the right rows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.storage.arrow import local_frame
from penstock.storage.delta_log import Snapshot


def schema_of(snapshot: Snapshot) -> StructType:
    return StructType.fromJson(json.loads(snapshot.schema_json))


def read_snapshot(spark: SparkSession, snapshot: Snapshot, columns: Sequence[str] | None = None) -> DataFrame:
    """The rows of a version: plain Parquet where that is right, the Delta reader where the table needs it."""
    if snapshot.plain:
        return read_files(spark, snapshot, [file.path for file in snapshot.files], columns)
    frame = spark.read.format("delta").option("versionAsOf", snapshot.version).load(snapshot.path)
    return frame if columns is None else frame.select(*[quoted(c) for c in columns])


def read_files(
    spark: SparkSession, snapshot: Snapshot, files: Sequence[str], columns: Sequence[str] | None = None
) -> DataFrame:
    """The rows of some files of a version, without what deletion vectors hide."""
    schema = schema_of(snapshot)
    wanted = schema.names if columns is None else _stored_names(schema, columns)
    if not files:
        return local_frame(spark, StructType([schema[c] for c in wanted]))
    if snapshot.plain:
        narrow = StructType([schema[c] for c in wanted])
        frame = spark.read.schema(narrow).parquet(*[snapshot.uri(file) for file in files])
        hidden = _hidden_rows(snapshot, files)
        return frame.where(f"NOT ({hidden})") if hidden else frame
    frame = spark.read.format("delta").option("versionAsOf", snapshot.version).load(snapshot.path)
    return frame.where(_in_files(files)).select(*[quoted(c) for c in wanted])


def _hidden_rows(snapshot: Snapshot, files: Sequence[str]) -> str:
    """Which rows of the files their deletion vectors hide, as a condition; empty when there are none."""
    names = {unquote(file).rsplit("/", 1)[-1] for file in files}
    return " OR ".join(
        f"(_metadata.file_name = '{name}' AND _metadata.row_index IN ({', '.join(map(str, places))}))"
        for name, places in snapshot.deleted.items()
        if name in names and places
    )


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


def quoted(name: str) -> str:
    """A column name that Spark takes as one, whatever it contains."""
    return "`" + name.replace("`", "``") + "`"
