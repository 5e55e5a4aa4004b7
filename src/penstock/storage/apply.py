"""Applying a change to a node's table, by the cheapest strategy that is right.

APPEND     nothing is removed: the new rows become new files
OVERWRITE  the table is small: all its files are replaced
REWRITE    only the files that hold removed rows are replaced
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.local_apply import LOCAL_TABLE_ROWS, added_rows, kept_rows
from penstock.storage.reader import quoted, read_files
from penstock.storage.view_table import commit, write_files, write_table
from penstock.storage.zset import WEIGHT, copies, identity, not_matching

SMALL_TABLE_ROWS = 200_000
ROWS_PER_FILE = 2_000_000


@dataclass(frozen=True)
class Applied:
    version: int
    strategy: str


@dataclass(frozen=True)
class TableChange:
    """A consolidated change of a node's table."""

    rows: DataFrame
    inserted: int
    deleted: int
    keys: Sequence[str] | None
    """Columns that identify a row; None when rows have no identity but themselves."""
    local: pa.Table | None
    """The rows, when they are few."""

    @property
    def small(self) -> bool:
        return self.local is not None


def apply_change(spark: SparkSession, before: Snapshot, change: TableChange, *, node: str, epoch: int) -> Applied:
    """Bring the table from one version to the next."""
    if change.deleted == 0:
        strategy, touched = "APPEND", []
    elif _row_count(before.files) <= SMALL_TABLE_ROWS:
        strategy, touched = "OVERWRITE", list(before.files)
    else:
        strategy, touched = "REWRITE", _touched_files(spark, before, change)
    if change.local is not None and _row_count(touched) <= LOCAL_TABLE_ROWS:
        adds = _write_locally(before, touched, change.local, change.keys, epoch)
    else:
        adds = _write_with_spark(spark, before, touched, change, epoch)
    return Applied(commit(before.path, before.version, adds, touched, node=node, epoch=epoch), strategy)


def _write_locally(
    before: Snapshot, touched: list[DataFile], change: pa.Table, keys: Sequence[str] | None, epoch: int
) -> list[AddAction]:
    added = added_rows(change)
    rows = pa.concat_tables([kept_rows(before, touched, change, keys), added]) if touched else added
    return write_table(rows, before.path, epoch)


def _write_with_spark(
    spark: SparkSession, before: Snapshot, touched: list[DataFile], change: TableChange, epoch: int
) -> list[AddAction]:
    rows = copies(change.rows.where(f"{WEIGHT} > 0"))
    if touched:
        kept = _without(read_files(spark, before, [f.path for f in touched]), change)
        rows = kept.unionByName(rows)
    count = _row_count(touched) + change.inserted - change.deleted
    return write_files(_files(rows, count), before.path, epoch) if count > 0 else []


def replace_all(before: Snapshot, rows: DataFrame, *, node: str, epoch: int) -> Applied:
    """Replace the whole content of the table."""
    adds = write_files(rows, before.path, epoch)
    return Applied(commit(before.path, before.version, adds, before.files, node=node, epoch=epoch), "OVERWRITE")


def _row_count(files: Sequence[DataFile]) -> int:
    return sum(f.rows or 0 for f in files)


def _files(frame: DataFrame, rows: int) -> DataFrame:
    """As many files as the rows deserve: a small change must not leave a file for each core."""
    return frame.coalesce(rows // ROWS_PER_FILE + 1)


def _identified(frame: DataFrame, columns: Sequence[str], prefix: str, *more: str) -> DataFrame:
    """The frame's ``more`` columns, and what rows are compared by as ``prefix0``, ``prefix1``, .."""
    schema = frame.schema
    return frame.selectExpr(*more, *[f"{identity(schema[c])} AS {prefix}{i}" for i, c in enumerate(columns)])


def _same(columns: Sequence[str]) -> Column:
    return F.expr(" AND ".join(f"__here{i} <=> __gone{i}" for i in range(len(columns))) or "true")


def _sent(frame: DataFrame, change: TableChange) -> DataFrame:
    return F.broadcast(frame) if change.small else frame


def _touched_files(spark: SparkSession, before: Snapshot, change: TableChange) -> list[DataFile]:
    """The files that hold at least one row to be removed."""
    removed = change.rows.where(f"{WEIGHT} < 0")
    columns = list(change.keys) if change.keys is not None else [c for c in removed.columns if c != WEIGHT]
    rows = read_files(spark, before, [f.path for f in before.files])
    located = _identified(rows, columns, "__here", "SUBSTRING_INDEX(_metadata.file_path, '/', -2) AS __file")
    gone = _identified(removed, columns, "__gone")
    hits = located.join(_sent(gone, change), _same(columns), "left_semi").select("__file").distinct().collect()
    wanted = {row["__file"] for row in hits}
    return [f for f in before.files if "/".join(f.path.split("/")[-2:]) in wanted]


def _without(rows: DataFrame, change: TableChange) -> DataFrame:
    """The rows that stay: by key where there is one, else as many copies fewer as the weight says."""
    removed = change.rows.where(f"{WEIGHT} < 0")
    if change.keys is not None:
        return not_matching(rows, removed, change.keys, small=change.small) if change.keys else rows.where("false")
    columns = rows.columns
    gone = _identified(removed, columns, "__gone", f"-{WEIGHT} AS __times")
    marked = _identified(rows, columns, "__here", "*").join(_sent(gone, change), _same(columns), "left")
    window = Window.partitionBy(*[f"__gone{i}" for i in range(len(columns))]).orderBy(F.lit(1))
    numbered = marked.where("__times IS NOT NULL").withColumn("__number", F.row_number().over(window))
    visible = [quoted(c) for c in columns]
    untouched = marked.where("__times IS NULL").select(*visible)
    return untouched.unionByName(numbered.where("__number > __times").select(*visible))
