"""Merging the small files that appends leave, so that a table which is often appended to stays fast to read.

Files are of one tier when their row counts have as many digits. Ten of a tier become one of the next, so a row is
written again once for each digit, and there are never more than nine files of a tier for long. The rows stay what they
are, and the commit says so: whoever reads changes sees none, and versions before it keep their files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from urllib.parse import unquote

from deltalake.transaction import AddAction

from penstock.errors import PenstockError
from penstock.frames import limits
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.spark.types import fits_arrow, to_arrow_schema
from penstock.storage.data_files import partition_of
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.placement import Placer
from penstock.storage.reader import read_files, schema_of
from penstock.storage.runs import Run
from penstock.storage.table_rows import live_rows
from penstock.storage.view_table import commit, discard, write_files, write_table

FILES_OF_A_TIER = 10


def worth_merging(files: Sequence[DataFile], buckets: int = 1) -> list[DataFile]:
    """The files of every tier that is full. Each partition has tiers of its own, of as many files for each bucket.

    >>> few = [DataFile(f"{i}.parquet", 900, rows=5) for i in range(10)]
    >>> len(worth_merging(few)), len(worth_merging(few[1:]))
    (10, 0)
    >>> len(worth_merging([*few, DataFile("large.parquet", 90_000, rows=5_000)]))
    10
    >>> len(worth_merging(few, buckets=2))
    0
    >>> len(worth_merging([DataFile(f"day={i}/0.parquet", 900, rows=5) for i in range(10)]))
    0
    """
    tiers: dict[tuple[str, int], list[DataFile]] = defaultdict(list)
    for file in files:
        if file.rows is not None and file.rows <= limits.COMPACTED_ROWS:
            tiers[str(partition_of(unquote(file.path))), len(str(file.rows))].append(file)
    return [file for tier in tiers.values() if len(tier) >= FILES_OF_A_TIER * buckets for file in tier]


def compact(spark: SparkOnDemand, table: Snapshot, keys: Sequence[str] | None, *, node: str, run: Run) -> int:
    """Merge small files if there are many; gives the version that the table has then."""
    placer = Placer.of(table, keys)
    files = worth_merging(table.files, placer.placement.buckets or 1)
    if not files:
        return table.version
    adds = _merged(spark, table, files, placer, run.name)
    try:
        return commit(table, adds, files, {}, node=node, run=run, data_change=False)
    except (PenstockError, OSError):
        discard(table.path, adds)
        raise


def _merged(
    spark: SparkOnDemand, table: Snapshot, files: Sequence[DataFile], placer: Placer, run: str
) -> list[AddAction]:
    schema = schema_of(table)
    count = sum(file.rows or 0 for file in files)
    if count <= limits.LOCAL_TABLE_ROWS and placer.by_hand and fits_arrow(schema):
        rows = live_rows(table, files, to_arrow_schema(schema, timezone="UTC"), table.deleted)
        return write_table(placer.sorted(rows), table.path, run, short_groups=placer.short_groups)
    frame = read_files(spark.session(), table, [file.path for file in files])
    return write_files(
        placer.spread(frame, count), table.path, run, placer.placement.partition, short_groups=placer.short_groups
    )
