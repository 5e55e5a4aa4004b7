"""Applying a change to a node's table, by the cheapest strategy that is right.

APPEND     nothing is removed: the new rows become new files
OVERWRITE  the table is small: all its files are replaced
REWRITE    only the files that hold removed rows are replaced
PATCH      removed rows are marked in deletion vectors, and the files that hold them stay
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from deltalake.transaction import AddAction
from pyroaring import BitMap64
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from penstock.errors import PenstockError, WarehouseError
from penstock.frames import limits
from penstock.frames.clock import phase
from penstock.frames.frame import Frame
from penstock.frames.mismatch import StateMismatch, check_removed
from penstock.frames.names import WEIGHT
from penstock.frames.sizes import UNKNOWN
from penstock.frames.spark.frame import SparkFrame, as_spark
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.zset import not_matching
from penstock.sql.dialect import quoted
from penstock.storage.compact import FILES_OF_A_TIER, compact
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.patch import (
    Patch,
    TableChange,
    can_locate,
    can_patch,
    identified,
    joined,
    locate,
    plan_patch,
    same,
    touched_files,
)
from penstock.storage.placement import Placer
from penstock.storage.reader import read_files
from penstock.storage.runs import Run
from penstock.storage.strategy import cheaper, weighed
from penstock.storage.table_rows import (
    added_rows,
    can_tell,
    fit_here,
    fitting,
    kept_rows,
    live_rows,
)
from penstock.storage.view_table import Shape, commit, discard, rows_in, write_files, write_table
from penstock.vocabulary import Strategy

__all__ = ["Applied", "TableChange", "apply_change", "replace_all"]

Measured = Callable[[], Mapping[Strategy, float]]
"""By strategy, how many times as long as expected it took the last time; asked only where there is a choice."""


@dataclass(frozen=True)
class Applied:
    version: int
    strategy: Strategy
    weighed: Mapping[Strategy, int] | None = None
    """About how many rows each strategy would have written, where there was a choice."""


def apply_change(
    spark: SparkOnDemand, before: Snapshot, change: TableChange, *, node: str, run: Run, off: Measured = dict
) -> Applied:
    """Bring the table from one version to the next; ``off`` gives how far estimates were off, as in ``cheaper``."""
    with phase("writing"):
        strategy, plan, adds = _written(spark, before, change, run.name, off)
    version = _commit(before, adds, plan, node, run)
    if strategy == Strategy.APPEND and len(before.files) >= FILES_OF_A_TIER - 1:
        with phase("writing"):
            version = compact(spark, Snapshot(before.path, version), change.keys, node=node, run=run)
    return Applied(version, strategy, plan.weighed)


def _written(
    spark: SparkOnDemand, before: Snapshot, change: TableChange, run: str, off: Measured
) -> tuple[Strategy, Patch, list[AddAction]]:
    """Write the files of the cheapest strategy: its name, what becomes of the files that are there, the new ones."""
    if change.deleted == 0:
        strategy, plan, adds = Strategy.APPEND, Patch(), _write(spark, before, [], change, run)
    elif before.rows <= limits.SMALL_TABLE_ROWS or not can_locate(before):
        strategy, plan = Strategy.OVERWRITE, Patch(rewritten=list(before.files))
        adds = _write(spark, before, plan.rewritten, change, run)
    elif change.deleted > limits.LOCATED_ROWS:
        strategy, plan = Strategy.REWRITE, Patch(rewritten=touched_files(spark.session(), before, change))
        adds = _write(spark, before, plan.rewritten, change, run)
    else:
        found = change.places if change.places is not None else locate(spark.session(), before, change)
        check_removed(change.deleted, sum(map(len, found.values())))
        strategy, plan = _planned(before, change, found, off())
        adds = _write_found(spark, before, plan.rewritten, change, run, joined(before.deleted, found))
    return strategy, plan, adds


def replace_all(
    before: Snapshot,
    rows: Frame,
    keys: Sequence[str] | None = None,
    *,
    node: str,
    run: Run,
    shape: Shape | None = None,
) -> Applied:
    """Replace the whole content of the table, and what it is like if a ``shape`` is given."""
    with phase("writing"):
        placer, local = Placer.of(shape or before, keys), rows.rows()
        if local is not None and placer.by_hand and local.num_rows <= limits.LOCAL_TABLE_ROWS:
            adds = write_table(
                placer.sorted(fitting(shape or before, local)), before.path, run.name, short_groups=placer.short_groups
            )
        else:
            adds = write_files(
                placer.spread(as_spark(rows).frame),
                before.path,
                run.name,
                placer.placement.partition,
                short_groups=placer.short_groups,
            )
    return Applied(_commit(before, adds, Patch(rewritten=list(before.files)), node, run, shape), Strategy.OVERWRITE)


def _commit(
    before: Snapshot, adds: list[AddAction], plan: Patch, node: str, run: Run, shape: Shape | None = None
) -> int:
    try:
        with phase("committing"):
            removes = [*plan.rewritten, *plan.emptied]
            return commit(before, adds, removes, plan.marked, node=node, run=run, shape=shape)
    except (PenstockError, OSError):  # it is known that nothing was committed
        discard(before.path, adds)
        raise


def _planned(
    before: Snapshot, change: TableChange, found: Mapping[str, BitMap64], off: Mapping[Strategy, float]
) -> tuple[Strategy, Patch]:
    """The strategy for a change whose removed rows were found, and what it does to the table's files."""
    touched = [file for file in before.files if file.path in found]
    plan = plan_patch(before.files, before.deleted, found, change.inserted)
    sizes = {
        "touched_rows": _row_count(touched), "touched_files": len(touched), "removed": change.deleted,
        "added": change.inserted, "merged": _row_count(plan.rewritten),
    }  # fmt: skip
    if cheaper(**sizes, off=off) == Strategy.PATCH and can_patch(before):
        return Strategy.PATCH, replace(plan, weighed=weighed(**sizes))
    return Strategy.REWRITE, Patch(rewritten=touched, weighed=weighed(**sizes))


def _write(
    spark: SparkOnDemand, before: Snapshot, replaced: list[DataFile], change: TableChange, run: str
) -> list[AddAction]:
    """Write what the change adds and what it leaves of the replaced files, whose rows are told by their values."""
    placer = Placer.of(before, change.keys)
    if change.local is not None and placer.by_hand:
        told = change.keys if change.keys is not None else [c for c in change.local.column_names if c != WEIGHT]
        if not replaced or (can_tell(change.local, told) and fit_here(before.path, replaced, limits.LOCAL_TABLE_ROWS)):
            added = fitting(before, added_rows(change.local))
            kept = kept_rows(before, replaced, change.local, change.keys)  # which checks what goes
            return write_table(
                placer.sorted(pa.concat_tables([kept, added])), before.path, run, short_groups=placer.short_groups
            )
    rows = change.added
    if replaced:
        rows = _without(spark, read_files(spark.session(), before, [f.path for f in replaced]), change).unionByName(
            rows
        )
    count = _row_count(replaced) - change.deleted + change.inserted
    if not replaced:
        check_removed(change.deleted, 0)
        return _written_all(before, placer, rows, count, run)
    adds = _by_spark(before, placer, rows, max(count, 0), run)
    try:
        check_removed(change.deleted, _row_count(replaced) + change.inserted - rows_in(adds))
    except StateMismatch:
        discard(before.path, adds)
        raise
    return adds


def _write_found(
    spark: SparkOnDemand,
    before: Snapshot,
    replaced: list[DataFile],
    change: TableChange,
    run: str,
    hidden: Mapping[str, BitMap64],
) -> list[AddAction]:
    """The same for rows that were found; ``hidden`` says which of the replaced files' rows are gone."""
    placer = Placer.of(before, change.keys)
    if change.local is not None and placer.by_hand and fit_here(before.path, replaced, limits.LOCAL_TABLE_ROWS):
        added = fitting(before, added_rows(change.local))
        rows = pa.concat_tables([live_rows(before, replaced, added.schema, hidden), added])
        return write_table(placer.sorted(rows), before.path, run, short_groups=placer.short_groups)
    rows = change.added
    if replaced:
        rows = read_files(spark.session(), before, [f.path for f in replaced], hidden=hidden).unionByName(rows)
    newly = sum(len(hidden.get(f.path, ())) - len(before.deleted.get(f.path, ())) for f in replaced)
    return _written_all(before, placer, rows, _row_count(replaced) - newly + change.inserted, run)


def _by_spark(before: Snapshot, placer: Placer, rows: DataFrame, count: int, run: str) -> list[AddAction]:
    """Files that executors write; about how many rows there are."""
    partition, short = placer.placement.partition, placer.short_groups
    return write_files(placer.spread(rows, count), before.path, run, partition, short_groups=short)


def _written_all(before: Snapshot, placer: Placer, rows: DataFrame, count: int, run: str) -> list[AddAction]:
    """The same of rows whose number is known. What executors have written and the driver does not see would be lost."""
    if count <= 0:
        return []
    adds = _by_spark(before, placer, rows, count, run)
    if rows_in(adds) != count:
        seen = rows_in(adds)
        discard(before.path, adds)
        raise WarehouseError(
            f"Spark was to write {count:,} rows to {before.path!r}, and files with {seen:,} are there. Refresh again; "
            "if executors write to a mounted directory, it must show their files at once (NFS: actimeo=0)."
        )
    return adds


def _row_count(files: Sequence[DataFile]) -> int:
    return sum(f.rows or 0 for f in files)


def _without(spark: SparkOnDemand, rows: DataFrame, change: TableChange) -> DataFrame:
    """The rows that stay: by key where there is one, else as many copies fewer as the weight says."""
    if change.keys is not None:
        stay = SparkFrame.of_frame(spark, rows, UNKNOWN)
        return as_spark(not_matching(stay, change.removed, change.keys)).frame if change.keys else rows.where("false")
    columns = rows.columns
    gone = identified(as_spark(change.removed).frame, columns, "__gone", f"-{WEIGHT} AS __times")
    marked = identified(rows, columns, "__here", "*").join(change.sent(gone), same(columns), "left")
    window = Window.partitionBy(*[f"__gone{i}" for i in range(len(columns))]).orderBy(F.lit(1))
    numbered = marked.where("__times IS NOT NULL").withColumn("__number", F.row_number().over(window))
    visible = [quoted(c) for c in columns]
    untouched = marked.where("__times IS NULL").select(*visible)
    return untouched.unionByName(numbered.where("__number > __times").select(*visible))
