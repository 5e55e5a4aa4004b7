"""What changed in a Delta table between two versions, as rows with weights, read the cheapest way there is.

| what the log says                         | what is read                                             |
|-------------------------------------------|----------------------------------------------------------|
| no data changed (OPTIMIZE, properties)    | nothing                                                  |
| files were only added                     | the added files                                          |
| change data feed on throughout            | the feed                                                 |
| files removed and added                   | the removed (-1) against the added (+1)                  |
| files with other deletion vectors         | the rows hidden since (-1), and shown again (+1)         |
| the log is gone, both versions are there  | the two versions, compared                               |

What cannot be read raises ``HistoryGone``. Rows are not consolidated here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from penstock.frames.clock import moved
from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.frames.sizes import UNKNOWN, Size
from penstock.frames.spark.conversion import on_driver
from penstock.frames.spark.dataframes import select, total, weighted
from penstock.frames.spark.frame import SparkFrame
from penstock.frames.spark.session import SparkOnDemand
from penstock.sql.dialect import quoted
from penstock.storage.change_files import read_locally
from penstock.storage.commits import Commit, read_commits
from penstock.storage.data_files import files_exist
from penstock.storage.deletion_vectors import unique_id
from penstock.storage.delta_log import (
    ADDED,
    CHANGE_TYPE,
    HistoryGone,
    Snapshot,
    check_files,
)
from penstock.storage.reader import read_files, read_places, read_snapshot, schema_of
from penstock.vocabulary import Word


class How(Word):
    """What a change was read from."""

    NONE = "NONE"
    APPEND = "APPEND"
    FEED = "FEED"
    FILES = "FILES"
    COMPARE = "COMPARE"


@dataclass(frozen=True)
class Change:
    """The change of a table: how it was read, and its rows; ``rows`` is None when nothing changed."""

    how: How
    rows: Frame | None
    append_only: bool = False


NOTHING = Change(How.NONE, None, append_only=True)


@dataclass(frozen=True)
class Extent:
    """About how many rows came and went between two versions, told from the sizes of files alone."""

    added: int
    removed: int


NO_EXTENT = Extent(0, 0)


def extent(before: Snapshot, after: Snapshot) -> Extent:
    """A file that was rewritten counts whole, since it would be read whole."""
    old = {file.path: file.rows or 0 for file in before.files}
    new = {file.path: file.rows or 0 for file in after.files}
    hidden = sum(max(rows - new[path], 0) for path, rows in old.items() if path in new)
    added = sum(rows for path, rows in new.items() if path not in old)
    return Extent(added, hidden + sum(rows for path, rows in old.items() if path not in new))


def may_have_changed(after: Snapshot, since: int) -> bool:
    """Whether the log shows a change of data since a version. It is asked before Spark is."""
    if since == after.version:
        return False
    try:
        return any(commit.changed for commit in read_commits(after.path, since, after.version))
    except HistoryGone:
        return True


_LONGEST_IN_FEED = 20_000
"""Places that surely fit: each takes at most two bytes, which are written down as two and a half."""


def read_change(spark: SparkOnDemand, before: Snapshot, after: Snapshot, columns: Sequence[str]) -> Change:
    """The rows added (+1) and removed (-1) from one version of a table to a later one; few are on the driver."""
    if before.version == after.version:
        return NOTHING
    try:
        commits = read_commits(after.path, before.version, after.version)
    except HistoryGone:
        return _compare(spark, before, after, columns)
    changing = [c for c in commits if c.changed]
    if not changing:
        return NOTHING
    local = read_locally(after, changing, columns)
    if local is not None:
        return _local(spark, after, local, _how(before, commits, changing))
    if all(not _data(c.removes) for c in changing) and not any(
        a.get("deletionVector") for c in changing for a in c.adds
    ):
        actions = [a for c in changing for a in _data(c.adds)]
        added = [str(a["path"]) for a in actions]
        if files_exist(after.path, actions) and (after.plain or set(added) <= {f.path for f in after.files}):
            rows = weighted(read_files(spark.session(), after, added, columns), 1)
            return Change(How.APPEND, SparkFrame.of_frame(spark, rows, _size(changing)), append_only=True)
    if _has_feed(before, commits) and _has_short_vectors(changing) and files_exist(after.path, _feed_actions(changing)):
        moved(read=sum(int(a.get("size") or 0) for c in changing for a in (c.changes or _data(c.adds + c.removes))))
        rows = _read_feed(spark, before, after, columns)
        return Change(How.FEED, SparkFrame.of_frame(spark, rows, _size(changing)))
    return _read_files(spark, before, after, changing, columns)


def _local(spark: SparkOnDemand, after: Snapshot, table: pa.Table, how: How) -> Change:
    """A change that was read on the driver."""
    if not table.num_rows:
        return NOTHING
    types = {f.name: f.dataType for f in schema_of(after).fields}
    fields = [StructField(name, types[name]) for name in table.column_names if name != WEIGHT]
    appended = int(table.column(WEIGHT).to_numpy().min()) > 0
    schema = StructType([*fields, StructField(WEIGHT, LongType())])
    return Change(how, on_driver(spark, table, schema, settled=not appended), append_only=appended)


def _how(before: Snapshot, commits: Sequence[Commit], changing: Sequence[Commit]) -> How:
    """What a change is read from."""
    if not any(_data(c.removes) for c in changing):
        return How.APPEND
    return How.FEED if _has_feed(before, commits) else How.FILES


def _has_feed(before: Snapshot, commits: Sequence[Commit]) -> bool:
    """The feed cannot be read across a change of the schema; what the files say is right there too."""
    return _feed_is_on(before, commits) and not any(c.metadata for c in commits)


def _has_short_vectors(changing: Sequence[Commit]) -> bool:
    """Delta's reader of the feed fails on a commit that hides many more rows of a file that had a vector already: it
    hands their places to Java's ``writeUTF``, which takes 64 KiB of text.
    """
    vectors = [a["deletionVector"] for c in changing if not c.changes for a in c.adds if a.get("deletionVector")]
    return all(int(vector["cardinality"]) <= _LONGEST_IN_FEED for vector in vectors)


_BYTES_OF_A_ROW = 20
"""At the least, of what is written: so a change is taken for larger than it is rather than for smaller."""


def _size(commits: Sequence[Commit]) -> Size:
    """About how many rows a change has, told by the sizes of its files."""
    actions = [a for c in commits for a in (c.changes or _data(c.adds + c.removes))]
    if not all("size" in a for a in actions):
        return UNKNOWN
    rows = sum(int(a["size"]) for a in actions) // _BYTES_OF_A_ROW
    return Size(rows, rows)


def _data(actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [a for a in actions if a.get("dataChange", True)]


def _feed_is_on(before: Snapshot, commits: Sequence[Commit]) -> bool:
    configurations = [before.configuration, *(c.metadata["configuration"] for c in commits if c.metadata)]
    return all(c.get("delta.enableChangeDataFeed", "false").lower() == "true" for c in configurations)


def _feed_actions(changing: Sequence[Commit]) -> list[dict[str, Any]]:
    """What the feed is read from: a commit's change files, else the files it added and removed."""
    return [a for c in changing for a in (c.changes or _data(c.adds + c.removes))]


def _read_feed(spark: SparkOnDemand, before: Snapshot, after: Snapshot, columns: Sequence[str]) -> DataFrame:
    feed = (
        spark.session()
        .read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", before.version + 1)
        .option("endingVersion", after.version)
        .load(after.path)
    )
    weight = f"IF({CHANGE_TYPE} IN {ADDED}, 1L, -1L) AS {WEIGHT}"
    return select(feed, *[quoted(c) for c in columns], weight)


def _read_files(
    spark: SparkOnDemand, before: Snapshot, after: Snapshot, changing: Sequence[Commit], columns: Sequence[str]
) -> Change:
    """Files that came and went in between cancel; a vector is part of a file's identity."""
    balance: dict[tuple[str, str], int] = {}
    named: dict[tuple[str, str], dict[str, Any]] = {}
    for commit in changing:
        for sign, actions in ((1, commit.adds), (-1, commit.removes)):
            for action in _data(actions):
                identity = (str(action["path"]), unique_id(action.get("deletionVector")))
                balance[identity], named[identity] = balance.get(identity, 0) + sign, action
    added = [path for (path, _), sign in balance.items() if sign > 0]
    removed = [path for (path, _), sign in balance.items() if sign < 0]
    if not added and not removed:
        return NOTHING
    vectors = any(sign and vector for (_, vector), sign in balance.items())
    if vectors or not before.plain or not after.plain:
        # With vectors, a file's rows depend on the version: only files of the two versions themselves can be read.
        old, new = {f.path for f in before.files}, {f.path for f in after.files}
        if not set(removed) <= old or not set(added) <= new:
            return _compare(spark, before, after, columns)
    if not files_exist(after.path, [named[identity] for identity, sign in balance.items() if sign]):
        return _compare(spark, before, after, columns)
    stayed = set(added) & set(removed) if before.plain and after.plain else set()
    session = spark.session()
    parts = [
        weighted(read_files(session, before, [f for f in removed if f not in stayed], columns), -1),
        weighted(read_files(session, after, [f for f in added if f not in stayed], columns), 1),
        *_read_vectors(session, before, after, stayed, columns),
    ]
    return Change(How.FILES, SparkFrame.of_frame(spark, total(parts), _size(changing)))


def _read_vectors(
    spark: SparkSession, before: Snapshot, after: Snapshot, files: Collection[str], columns: Sequence[str]
) -> list[DataFrame]:
    """The rows of files that are in both versions, with other vectors: those hidden since, and those shown again."""
    none = BitMap64()
    old, new = ({f: snapshot.deleted.get(f, none) for f in files} for snapshot in (before, after))
    turns = [({f: new[f] - old[f] for f in files}, -1), ({f: old[f] - new[f] for f in files}, 1)]
    return [
        weighted(read_places(spark, after, places, columns), weight) for places, weight in turns if any(places.values())
    ]


def _compare(spark: SparkOnDemand, before: Snapshot, after: Snapshot, columns: Sequence[str]) -> Change:
    """The two versions against each other; the last resort, since it reads both."""
    check_files(before)
    session = spark.session()
    old, new = (
        weighted(read_snapshot(session, before, columns), -1),
        weighted(read_snapshot(session, after, columns), 1),
    )
    return Change(How.COMPARE, SparkFrame.of_frame(spark, old.unionAll(new), UNKNOWN))
