"""What a statement changes in a table, as rows on the driver: a value, computed from one version of the table; then
files that no version has yet; then one commit. Old rows are marked by deletion vectors, new ones are in one new file.

Who has several such values (a transaction) writes the files of each, and commits their actions together.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyroaring import BitMap64

from penstock.storage.deletion_vectors import describe, file_name
from penstock.storage.delta_log import CHANGE_TYPE, Snapshot
from penstock.storage.files import Held, files_of
from penstock.storage.log_replay import Action
from penstock.storage.log_writer import marked, put, removed, said
from penstock.storage.table_rows import fitting
from penstock.storage.view_table import as_action, discard, write_table

_CHECKPOINT_EVERY = 100


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """What becomes of the rows of a table; nothing of it is written yet.

    ``gone`` are the places of the rows that are ``deleted`` and of those that an update finds (``before``), file by
    file. ``after`` has the updated rows, in the order of ``before``.
    """

    table: Snapshot
    """The version that it was computed from."""
    operation: str
    """As the log calls it: WRITE, UPDATE, DELETE, MERGE."""
    gone: Mapping[str, BitMap64] = field(default_factory=dict)
    deleted: pa.Table | None = None
    before: pa.Table | None = None
    after: pa.Table | None = None
    inserted: pa.Table | None = None
    blind: bool = False
    """Whether it is the same whatever the table's rows are."""

    @property
    def rows(self) -> int:
        """How many rows it touches."""
        return sum(_count(rows) for rows in (self.deleted, self.before, self.inserted))

    @cached_property
    def new(self) -> pa.Table | None:
        """The rows to be appended."""
        return _together([rows for rows in (self.after, self.inserted) if _count(rows)])


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Files that were written for a change, and what the log is to say; no version has them yet."""

    path: str
    actions: Sequence[Action]
    adds: Sequence[AddAction]
    others: Sequence[str]
    """Files that hold no rows of the table: vectors, and the change feed."""

    def discard(self) -> None:
        """Delete the files of what will not be committed."""
        discard(self.path, self.adds)
        files_of(self.path).delete(self.others)


def prepare(change: RowChange) -> Prepared:
    """Write the files of a change."""
    table = change.table
    going = _adds(table, change.gone)
    hidden = {path: table.deleted.get(path, BitMap64()) | places for path, places in change.gone.items()}
    partly = {path: places for path, places in hidden.items() if len(places) < _rows_of(going[path])}
    file_id = uuid.uuid4()
    descriptors, content = describe(partly, file_id)
    adds: list[AddAction] = []
    others: list[str] = []
    try:
        if change.new is not None:
            adds = write_table(fitting(table, change.new), table.path, uuid.uuid4().hex[:12])
        feed = _feed(change, others)
        if content:
            others.append(file_name(file_id))
            files_of(table.path).write(others[-1], lambda out: out.write(content))
    except BaseException:
        discard(table.path, adds)
        files_of(table.path).delete(others)
        raise
    actions = [
        *[removed(add) for add in going.values()],
        *[marked(going[path], vector) for path, vector in descriptors.items()],
        *[as_action(add) for add in adds],
        *feed,
    ]
    return Prepared(path=table.path, actions=actions, adds=adds, others=others)


def commit(change: RowChange, log: Held) -> int:
    """Write a change and commit it; gives the version, that of the table if nothing changes.

    If another writer was first, nothing is left behind, and ``VersionTaken`` is raised: the statement may mean other
    rows now. ``log`` was held before the table was looked at, so that a table in its place gets nothing; see
    ``held_log``.
    """
    if not change.rows:
        return change.table.version
    written = prepare(change)
    about = {"operationParameters": {"mode": "Append"}} if change.operation == "WRITE" else {}
    actions = [said(change.operation, isBlindAppend=change.blind, **about), *written.actions]
    version = change.table.version + 1
    try:
        put(change.table.path, version, actions, checkpoint_every=_CHECKPOINT_EVERY, log=log)
        return version
    except Exception:  # who is interrupted cannot know whether it was committed
        written.discard()
        raise


def can_mark(table: Snapshot) -> bool:
    """Whether rows may be marked as deleted here; what else a writer has to do is told by ``appending.can_append``."""
    said_so = table.configuration.get("delta.enableDeletionVectors") == "true" and table.allows_vectors
    return said_so and table.configuration.get("delta.appendOnly") != "true"


def are_counted(table: Snapshot, files: Iterable[str]) -> bool:
    """Whether the log says how many rows these files have; without, none of them may be marked."""
    return all("numRecords" in json.loads(add.get("stats") or "{}") for add in _adds(table, files).values())


def _adds(table: Snapshot, files: Iterable[str]) -> dict[str, Action]:
    """What the log says of some files; it may quote their paths otherwise."""
    wanted = {unquote(path): path for path in files}
    return {wanted[unquote(path)]: add for path, add in table.state.adds.items() if unquote(path) in wanted}


def _rows_of(add: Action) -> int:
    """All rows of a file, those that are hidden among them."""
    return int(json.loads(add["stats"])["numRecords"])


def _feed(change: RowChange, written: list[str]) -> list[Action]:
    """What a commit says to who reads the change feed, unless all of it is told by what is added, or by marks."""
    kinds = {
        "delete": change.deleted, "update_preimage": change.before, "update_postimage": change.after,
        "insert": change.inserted,
    }  # fmt: skip
    parts = [
        fitting(change.table, rows).append_column(CHANGE_TYPE, pa.array([kind] * rows.num_rows, pa.string()))
        for kind, rows in kinds.items()
        if rows is not None and rows.num_rows
    ]
    if change.table.configuration.get("delta.enableChangeDataFeed") != "true" or len(parts) < 2:
        return []
    path = f"_change_data/cdc-{uuid.uuid4()}.snappy.parquet"
    written.append(path)
    rows = pa.concat_tables(parts)
    size = files_of(change.table.path).write(path, lambda out: pq.write_table(rows, out, write_statistics=False))
    return [{"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": False}}]


def _count(rows: pa.Table | None) -> int:
    return 0 if rows is None else int(rows.num_rows)


def _together(parts: Sequence[pa.Table]) -> pa.Table | None:
    return pa.concat_tables([part.select(parts[0].column_names) for part in parts]) if parts else None
