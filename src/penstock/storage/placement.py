"""Where the rows of a node's table go: into which partitions and files, and in which order.

Files are sorted by what rows are looked up by, so that a reader who wants a few keys can skip most of them. What the
user asked for is kept in the table itself: partitions as Delta has them, the rest among the table's properties.

PARTITIONED BY  a folder for each value, as in any Delta table
CLUSTER BY      neighbours in these columns lie in the same file, sorted
BUCKETS n       rows are spread over n files by a hash of their keys, so that a change rewrites only some of them
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from penstock.frames.spark.dataframes import select
from penstock.plan.operators import render
from penstock.sql.dialect import quoted
from penstock.sql.statements import Placement
from penstock.storage.delta_log import PARTITIONED, Shaped

ROWS_PER_FILE = 2_000_000

_CLUSTER, _BUCKETS = "penstock.clusterBy", "penstock.buckets"
SHORT_GROUPS = "penstock.shortRowGroups"
"""The property of a table of which single rows are read by their key: its row groups are short."""
_TIMES = ("timestamp", "timestamp_ntz", "date")


def properties(placement: Placement) -> dict[str, str | None]:
    """What a table's properties tell of it."""
    # What is kept of the log is for ``vacuum`` to say: a named epoch may be older than Delta's thirty days.
    found: dict[str, str | None] = {"delta.enableExpiredLogCleanup": "false"}
    if placement.partition:
        found[PARTITIONED] = "true"
    if placement.cluster:
        found[_CLUSTER] = json.dumps(placement.cluster)
    if placement.buckets:
        found[_BUCKETS] = str(placement.buckets)
    return {**found, **dict(placement.properties)}


@dataclass(frozen=True)
class Placer:
    order: tuple[str, ...]
    """Columns that each file is sorted by."""
    placement: Placement
    texts: tuple[str, ...] = ()
    """The partition columns that hold text."""
    short_groups: bool = False

    @classmethod
    def of(cls, table: Shaped, keys: Sequence[str] | None) -> Placer:
        """How a table's rows are placed; ``keys`` identify them."""
        types = {field["name"]: field["type"] for field in json.loads(table.schema_json)["fields"]}
        cluster = tuple(json.loads(table.configuration.get(_CLUSTER, "[]")))
        buckets = table.configuration.get(_BUCKETS)
        partition = tuple(table.partition_columns)
        order = dict.fromkeys([*cluster, *_by_time(types, keys)])
        placement = Placement(partition, cluster, int(buckets) if buckets else None)
        short = table.configuration.get(SHORT_GROUPS) == "true"
        return cls(tuple(order), placement, tuple(c for c in partition if types[c] == "string"), short)

    @property
    def by_hand(self) -> bool:
        """Whether rows that are on the driver can go into one file."""
        return not self.placement.partition and not self.placement.buckets

    def sorted(self, rows: pa.Table) -> pa.Table:
        return rows.sort_by([(name, "ascending") for name in self.order]) if self.order else rows

    def spread(self, frame: DataFrame, rows: int | None = None) -> DataFrame:
        """The frame cut into the files to be written, each sorted; ``rows``, if known, are how many there will be."""
        files = None if rows is None else rows // ROWS_PER_FILE + 1
        keys = [quoted(c) for c in self.order]
        partition = [quoted(c) for c in self.placement.partition]
        if self.texts:
            frame = _without_empty_text(frame, self.texts)
        if self.placement.buckets:
            frame = frame.repartition(self.placement.buckets, *partition, *(keys or map(quoted, frame.columns)))
        elif partition:
            frame = frame.repartition(*partition)
        elif self.placement.cluster and files != 1:
            cluster = [quoted(c) for c in self.placement.cluster]
            frame = frame.repartitionByRange(files, *cluster) if files else frame.repartitionByRange(*cluster)
        elif files is not None:
            frame = frame.coalesce(files)  # a small change must not leave a file for each core
        return frame.sortWithinPartitions(*partition, *keys) if partition or keys else frame


def _by_time(types: dict[str, object], keys: Sequence[str] | None) -> list[str]:
    """The keys in the order to sort by: times first, since what changes is mostly recent. Maps have no order."""
    plain = [key for key in keys or () if isinstance(types[key], str)]
    return sorted(plain, key=lambda key: types[key] not in _TIMES)


def _without_empty_text(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Delta cannot tell an empty text from NULL in a partition column, so it is better not to write one."""
    problem = "the partition column {} has an empty text, which Delta would turn into NULL: use CLUSTER BY, or NULLIF"
    said = {c: render(exp.Literal.string(problem.format(c))) for c in columns}
    checked = {c: f"IF({quoted(c)} = '', RAISE_ERROR({said[c]}), {quoted(c)}) AS {quoted(c)}" for c in columns}
    return select(frame, *[checked.get(c, quoted(c)) for c in frame.columns])
