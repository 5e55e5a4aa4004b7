"""Patching a table: removed rows are marked in deletion vectors where they lie, and new rows become a new file.

So an update of a few rows of a large table writes those rows, not the files that they lie in. A file of which much is
gone is rewritten on the way, and one of which nothing is left is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.bounded import Span, superset
from penstock.frames.frame import Frame
from penstock.frames.keys import Place, Sought
from penstock.frames.names import FILE, PLACE, WEIGHT
from penstock.frames.spark.dataframes import identity, select
from penstock.frames.spark.frame import as_spark
from penstock.frames.zset import ADDED, REMOVED
from penstock.plan.operators import render
from penstock.storage.deletion_vectors import from_arrow
from penstock.storage.delta_log import DataFile, HistoryGone, Snapshot
from penstock.storage.lookup import is_compared, look_up
from penstock.storage.reader import read_located
from penstock.storage.skipping import files_near, widest
from penstock.storage.table_rows import can_tell
from penstock.storage.table_rows import gone as gone_rows
from penstock.vocabulary import Strategy

MOST_TRUSTED = 16 * 1024 * 1024
"""Bytes of files that may hold a row to be removed; in more of them a single column is taken to tell it."""

MOST_DEAD = 0.3
"""The share of a file's rows that may be hidden before the file is rewritten."""

Places = Mapping[str, BitMap64]
"""File to the places of rows in it."""


@dataclass(frozen=True, kw_only=True)
class TableChange:
    """A consolidated change of a node's table."""

    rows: Frame
    inserted: int
    deleted: int
    keys: Sequence[str] | None
    """Columns that identify a row; None when rows have no identity but themselves."""
    local: pa.Table | None
    """The rows, when they are few."""
    places: Places | None = None
    """Where the removed rows lie, if that is known."""

    @property
    def small(self) -> bool:
        return self.local is not None and self.local.num_rows <= limits.LOCAL_ROWS

    @property
    def told_by(self) -> list[str]:
        """The columns by which a row is told from others."""
        return list(self.keys) if self.keys is not None else [c for c in self.rows.columns if c != WEIGHT]

    @property
    def removed(self) -> Frame:
        return self.rows.where(REMOVED)

    @property
    def added(self) -> DataFrame:
        """The rows that come, each as often as its weight says, for Spark."""
        return as_spark(self.rows.where(ADDED).copies()).frame

    def sent(self, frame: DataFrame) -> DataFrame:
        """Rows of the change, to every executor if they are few."""
        return F.broadcast(frame) if self.small else frame


@dataclass(frozen=True)
class Patch:
    """What becomes of a table's files; the others stay as they are."""

    marked: dict[str, BitMap64] = field(default_factory=dict)
    """Files that get a vector, with all that it hides."""
    rewritten: list[DataFile] = field(default_factory=list)
    """Files whose remaining rows are written again, beside the new ones."""
    emptied: list[DataFile] = field(default_factory=list)
    """Files of which nothing remains."""
    weighed: Mapping[Strategy, int] | None = None
    """About how many rows REWRITE and PATCH would have written, where there was a choice."""


def can_locate(before: Snapshot) -> bool:
    """Whether rows of the table can be told by file and place."""
    return before.plain and before.told_by_name


def can_patch(before: Snapshot) -> bool:
    """Whether the table may get deletion vectors from us."""
    if before.configuration.get("delta.enableDeletionVectors") == "false":
        return False
    if any(file.rows is None for file in before.files):
        return False
    try:
        return before.state.protocol["minWriterVersion"] in (1, 2, 7)
    except HistoryGone:
        return False


def plan_patch(
    files: Sequence[DataFile], deleted: Mapping[str, BitMap64], found: Mapping[str, BitMap64], added: int
) -> Patch:
    """Mark, rewrite or drop each file in which rows to be removed were found, and merge small files.

    Beside files of which too much is gone, files no larger than what is written anyway are rewritten, the smallest
    first. So the files that patches leave grow together, and there are never more than a few of each size.
    """
    hidden = joined(deleted, found)
    left = {file.path: (file.rows or 0) - len(found.get(file.path, ())) for file in files}
    worn = {path for path in found if len(hidden[path]) > MOST_DEAD * (len(hidden[path]) + left[path])}
    plan = Patch()
    written = added + sum(left[path] for path in worn)
    for file in sorted(files, key=lambda file: left[file.path]):
        if left[file.path] == 0:
            plan.emptied.append(file)
        elif file.path in worn:
            plan.rewritten.append(file)
        elif left[file.path] <= written:
            plan.rewritten.append(file)
            written += left[file.path]
        elif file.path in found:
            plan.marked[file.path] = hidden[file.path]
    return plan


def joined(one: Mapping[str, BitMap64], other: Mapping[str, BitMap64]) -> dict[str, BitMap64]:
    """The rows of either, file by file."""
    return {**one, **{path: one.get(path, BitMap64()) | rows for path, rows in other.items()}}


def touched_files(spark: SparkSession, before: Snapshot, change: TableChange) -> list[DataFile]:
    """The files that hold at least one row to be removed."""
    here, gone, condition = _compared(spark, before, change)
    hits = here.join(gone, condition, "left_semi").select("__file").distinct().collect()
    names = {row["__file"] for row in hits}
    return [file for file in before.files if file.name in names]


def locate(spark: SparkSession, before: Snapshot, change: TableChange) -> Places:
    """Where the rows to be removed lie. Of identical rows, as many as the weight says."""
    alone = _told_by_one_column(before, change)
    if alone is not None:
        return by_file(before, alone.select([FILE, PLACE]))
    found = _looked_up(before, change)
    if found is not None and change.local is not None:
        columns = change.told_by
        return by_file(before, found.filter(pa.array(gone_rows(found, change.local, columns))).select([FILE, PLACE]))
    here, gone, condition = _compared(spark, before, change)
    if change.keys is not None:
        hits = here.join(gone, condition, "left_semi")
    else:
        window = Window.partitionBy(*[c for c in gone.columns if c != "__times"]).orderBy(F.lit(1))
        numbered = here.join(gone, condition).withColumn("__number", F.row_number().over(window))
        hits = numbered.where("__number <= __times")
    found = hits.select(FILE, PLACE).limit(change.deleted + 1)  # one more would be as wrong as a million more
    return by_file(before, found.toArrow())


def places_in(before: Snapshot, change: pa.Table) -> Places | None:
    """The places that a change names for the rows that it removes; None if it does not for one of them."""
    removed = change.filter(pc.less(change.column(WEIGHT), 0))
    if PLACE not in removed.column_names:
        return None
    if removed.column(PLACE).null_count or pc.sum(removed.column(WEIGHT)).as_py() not in (None, -removed.num_rows):
        return None
    return by_file(before, removed.select([FILE, PLACE]))


def by_file(before: Snapshot, rows: pa.Table) -> Places:
    """The places of rows, by the files that they are in."""
    found = rows.group_by(FILE).aggregate([(PLACE, "list")])
    paths = {file.name: file.path for file in before.files}
    places = found.column(f"{PLACE}_list")
    return {paths[name]: from_arrow(places[i].values) for i, name in enumerate(found.column(FILE).to_pylist())}


def _compared(spark: SparkSession, before: Snapshot, change: TableChange) -> tuple[DataFrame, DataFrame, Column]:
    """The table's rows with their places, the rows to be removed, and when one of these is one of those."""
    columns = change.told_by
    bounds = _bounds(change)
    rows = read_located(spark, before, columns, None if bounds is None else render(bounds))
    here = identified(rows, columns, "__here", "__file", "__place")
    gone = identified(as_spark(change.removed).frame, columns, "__gone", f"-{WEIGHT} AS __times")
    return here, change.sent(gone), same(columns)


def _told_by_one_column(before: Snapshot, change: TableChange) -> pa.Table | None:
    """The rows to be removed, if a single column tells them from all others: then the rest of them need not be read.

    Every row to be removed is there. If the table has as many rows with their values as there are values, it is they.
    Where it costs little, the whole rows are compared all the same: a table that has lost one may have another one with
    its value.
    """
    if change.local is None or len(change.told_by) == 1:
        return None
    removed = change.local.filter(pc.less(change.local.column(WEIGHT), 0))
    name = widest(before, removed, change.told_by)
    if name is None or pc.min(removed.column(WEIGHT)).as_py() != -1 or not _are_distinct(removed.column(name)):
        return None
    files = files_near(before, removed, {name: name})
    sought = Sought(removed.select([name]), {name: Place(name)})
    if sum(file.size for file in files) <= MOST_TRUSTED and can_tell(removed, change.told_by):
        found = look_up(before, change.told_by, sought, files, located=True, least=0)
        if found is not None:
            return found.filter(pa.array(gone_rows(found, change.local, change.told_by)))
    found = look_up(before, [name], sought, files, located=True, least=0)
    if found is None or found.num_rows != removed.num_rows or not _are_distinct(found.column(name)):
        return None
    return found


def _are_distinct(values: pa.ChunkedArray) -> bool:
    return not values.null_count and bool(pc.count_distinct(values).as_py() == len(values))


def _looked_up(before: Snapshot, change: TableChange) -> pa.Table | None:
    """The rows that may have to go, with their places, if they can be found without Spark."""
    columns = change.told_by
    if change.local is None or not can_tell(change.local, columns):
        return None
    removed = change.local.filter(pc.less(change.local.column(WEIGHT), 0))
    places = {c: Place(c) for c in columns if is_compared(removed.schema.field(c).type)}
    if not places:
        return None
    files = files_near(before, removed, {c: c for c in places})
    return look_up(before, columns, Sought(removed.select(list(places)), places), files, located=True, least=0)


def _bounds(change: TableChange) -> exp.Expr | None:
    """A condition that every row to be removed fulfils, where their keys are few."""
    if change.local is None or not change.keys:
        return None
    removed = change.local.filter(pc.less(change.local.column(WEIGHT), 0))
    return superset(removed, {key: Span(key) for key in change.keys})


def identified(frame: DataFrame, columns: Sequence[str], prefix: str, *more: str) -> DataFrame:
    """The frame's ``more`` columns, and what rows are compared by as ``prefix0``, ``prefix1``, .."""
    schema = frame.schema
    return select(frame, *more, *[f"{identity(schema[c])} AS {prefix}{i}" for i, c in enumerate(columns)])


def same(columns: Sequence[str]) -> Column:
    """Whether a row that is ``__here`` is one that is ``__gone``."""
    return F.expr(" AND ".join(f"__here{i} <=> __gone{i}" for i in range(len(columns))) or "true")
