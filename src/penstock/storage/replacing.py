"""Replacing and deleting a few rows of a table on the driver: old ones are marked, new ones appended, in one commit.

The commit is for the version that the rows were read at. If another writer was first, nothing is left behind, and who
asked reads again: the statement may mean other rows now.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyroaring import BitMap64

from penstock.storage.deletion_vectors import describe, file_name
from penstock.storage.delta_log import CHANGE_TYPE, Snapshot, filesystem_of
from penstock.storage.log_replay import Action
from penstock.storage.log_writer import can_write, marked, put, removed, said
from penstock.storage.table_rows import fitting
from penstock.storage.view_table import as_action, discard, write_table

_BEFORE, _AFTER = "update_preimage", "update_postimage"


def can_mark(table: Snapshot) -> bool:
    """Whether rows may be marked as deleted here; what else a writer has to do is told by ``appending.can_append``."""
    said_so = table.configuration.get("delta.enableDeletionVectors") == "true" and table.allows_vectors
    return said_so and table.configuration.get("delta.appendOnly") != "true" and can_write(table.path)


def replace_rows(
    table: Snapshot, gone: Mapping[str, BitMap64], old: pa.Table, new: pa.Table | None, operation: str, log: int
) -> None:
    """Put ``new`` rows in the place of ``old`` ones, which are at these places of the table's files; or none.

    Raises ``VersionTaken`` if there is a newer version. ``log`` was held before the table was looked at.
    """
    going = _adds(table, gone)
    hidden = {path: table.deleted.get(path, BitMap64()) | places for path, places in gone.items()}
    partly = {path: places for path, places in hidden.items() if len(places) < _rows_of(going[path])}
    file_id = uuid.uuid4()
    descriptors, content = describe(partly, file_id)
    adds: list[AddAction] = []
    feed: list[Action] = []
    root = filesystem_of(table.path)[1]
    vectors = f"{root}/{file_name(file_id)}"
    try:
        if new is not None:
            adds = write_table(fitting(table, new), table.path, uuid.uuid4().hex[:12])
            feed = _feed(table, old, new)
        if content:
            with open(vectors, "xb") as out:
                out.write(content)
        actions = [
            said(operation, isBlindAppend=False),
            *[removed(add) for add in going.values()],
            *[marked(going[path], vector) for path, vector in descriptors.items()],
            *[as_action(add) for add in adds],
            *feed,
        ]
        put(table.path, table.version + 1, actions, checkpoint_every=100, log=log)
    except Exception:  # who is interrupted cannot know whether it was committed
        discard(table.path, adds)
        for path in [vectors, *(f"{root}/{one['cdc']['path']}" for one in feed)]:
            with suppress(FileNotFoundError):
                os.unlink(path)
        raise


def are_counted(table: Snapshot, files: Iterable[str]) -> bool:
    """Whether the log says how many rows these files have; without, none of them may be marked."""
    return all("numRecords" in json.loads(add.get("stats") or "{}") for add in _adds(table, files).values())


def _adds(table: Snapshot, files: Iterable[str]) -> dict[str, Action]:
    """What the log says of some files; it may quote their paths otherwise."""
    known = {unquote(path): add for path, add in table.state.adds.items()}
    return {path: known[unquote(path)] for path in files}


def _rows_of(add: Action) -> int:
    """All rows of a file, those that are hidden among them."""
    return int(json.loads(add["stats"])["numRecords"])


def _feed(table: Snapshot, old: pa.Table, new: pa.Table) -> list[Action]:
    """What a commit says to who reads the change feed: each row before and after. Deleted rows are told by marks."""
    if table.configuration.get("delta.enableChangeDataFeed") != "true":
        return []
    parts = [
        fitting(table, rows).append_column(CHANGE_TYPE, pa.array([kind] * rows.num_rows, pa.string()))
        for rows, kind in ((old, _BEFORE), (new, _AFTER))
    ]
    filesystem, root = filesystem_of(table.path)
    filesystem.create_dir(f"{root}/_change_data", recursive=False)
    path = f"_change_data/cdc-{uuid.uuid4()}.snappy.parquet"
    pq.write_table(pa.concat_tables(parts), f"{root}/{path}", filesystem=filesystem, write_statistics=False)
    size = filesystem.get_file_info(f"{root}/{path}").size
    return [{"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": False}}]
