"""Applying a change to a node's table, by the cheapest strategy that is right.

APPEND     nothing is removed: the new rows become new files
OVERWRITE  the table is small: all its files are replaced
REWRITE    only the files that hold removed rows are replaced
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.reader import quoted, read_files
from penstock.storage.view_table import commit, write_files
from penstock.storage.zset import WEIGHT, copies, identity, not_matching

SMALL_TABLE_ROWS = 200_000
ROWS_PER_FILE = 2_000_000


@dataclass(frozen=True)
class Applied:
    version: int
    strategy: str


@dataclass(frozen=True)
class TableChange:
    """A consolidated change of a node's table. ``keys``: columns that identify a row, None when none do."""

    rows: DataFrame
    inserted: int
    deleted: int
    keys: Sequence[str] | None
    small: bool


def apply_change(spark: SparkSession, before: Snapshot, change: TableChange, *, node: str, epoch: int) -> Applied:
    """Bring the table from one version to the next."""
    added = copies(change.rows.where(F.col(WEIGHT) > 0))
    if change.deleted == 0:
        adds = write_files(_files(added, change.inserted), before.path, epoch)
        return Applied(commit(before.path, before.version, adds, (), node=node, epoch=epoch), "APPEND")
    removed = change.rows.where(F.col(WEIGHT) < 0)
    if _row_count(before.files) <= SMALL_TABLE_ROWS:
        strategy, touched = "OVERWRITE", list(before.files)
    else:
        strategy, touched = "REWRITE", _touched_files(spark, before, removed, change)
    kept = _without(read_files(spark, before, [f.path for f in touched]), removed, change)
    rows = _row_count(touched) + change.inserted - change.deleted
    adds = write_files(_files(kept.unionByName(added), rows), before.path, epoch) if rows > 0 else []
    return Applied(commit(before.path, before.version, adds, touched, node=node, epoch=epoch), strategy)


def replace_all(before: Snapshot, rows: DataFrame, *, node: str, epoch: int) -> Applied:
    """Replace the whole content of the table."""
    adds = write_files(rows, before.path, epoch)
    return Applied(commit(before.path, before.version, adds, before.files, node=node, epoch=epoch), "OVERWRITE")


def _row_count(files: Sequence[DataFile]) -> int:
    return sum(f.rows or 0 for f in files)


def _files(frame: DataFrame, rows: int) -> DataFrame:
    """As many files as the rows deserve: a small change must not leave a file for each core."""
    return frame.coalesce(rows // ROWS_PER_FILE + 1)


def _identity(frame: DataFrame, columns: Sequence[str]) -> list[str]:
    """Names under which ``_identified`` puts what rows are compared by."""
    return [f"__identity{i}" for i in range(len(columns))]


def _identified(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    types = {f.name: f.dataType for f in frame.schema.fields}
    names = _identity(frame, columns)
    return frame.withColumns({name: identity(types[c], c) for name, c in zip(names, columns, strict=True)})


def _touched_files(
    spark: SparkSession, before: Snapshot, removed: DataFrame, change: TableChange
) -> list[DataFile]:
    columns = list(change.keys) if change.keys is not None else [c for c in removed.columns if c != WEIGHT]
    names = _identity(removed, columns)
    located = read_files(spark, before, [f.path for f in before.files]).withColumn(
        "__file", F.substring_index(F.col("_metadata.file_path"), "/", -2)
    )
    gone = _identified(removed, columns).select(*[F.col(n).alias(f"__gone{i}") for i, n in enumerate(names)])
    condition = F.lit(True)
    for i, name in enumerate(names):
        condition = condition & F.col(name).eqNullSafe(F.col(f"__gone{i}"))
    gone = F.broadcast(gone) if change.small else gone
    hits = _identified(located, columns).join(gone, condition, "left_semi").select("__file").distinct().collect()
    wanted = {row["__file"] for row in hits}
    return [f for f in before.files if "/".join(f.path.split("/")[-2:]) in wanted]


def _without(rows: DataFrame, removed: DataFrame, change: TableChange) -> DataFrame:
    """The rows that stay: by key where there is one, else as many copies fewer as the weight says."""
    if change.keys is not None:
        return not_matching(rows, removed, list(change.keys), small=change.small) if change.keys else rows.where("false")
    columns = rows.columns
    names = _identity(rows, columns)
    gone = _identified(removed, columns).select(
        *[F.col(n).alias(f"__gone{i}") for i, n in enumerate(names)], (-F.col(WEIGHT)).alias("__times")
    )
    condition = F.lit(True)
    for i, name in enumerate(names):
        condition = condition & F.col(name).eqNullSafe(F.col(f"__gone{i}"))
    marked = _identified(rows, columns).join(F.broadcast(gone) if change.small else gone, condition, "left")
    window = Window.partitionBy(*[f"__gone{i}" for i in range(len(names))]).orderBy(F.lit(1))
    numbered = marked.where("__times IS NOT NULL").withColumn("__number", F.row_number().over(window))
    visible = [quoted(c) for c in columns]
    return (
        marked.where("__times IS NULL")
        .select(*visible)
        .unionByName(numbered.where("__number > __times").select(*visible))
    )
