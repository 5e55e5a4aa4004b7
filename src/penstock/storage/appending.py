"""Appending a few rows to a table on the driver: one file, and one commit that fails if another writer was first.

Only where nothing but the rows has to be written. What a table asks of its writers besides (constraints, generated
columns, partitions, features that are not known here) is Spark's.
"""

from __future__ import annotations

import json
import uuid

import pyarrow as pa

from penstock.errors import ConflictError
from penstock.storage.delta_log import HistoryGone, Shaped, Snapshot
from penstock.storage.log_writer import VersionTaken, can_write, put, said
from penstock.storage.table_rows import fitting
from penstock.storage.view_table import discard, write_table

_FEATURES = {"appendOnly", "invariants", "changeDataFeed", "deletionVectors", "timestampNtz"}
"""What a writer that only adds rows has nothing to do for; rows are checked where a column may not be NULL."""
_ASKING = ("delta.constraints.", "delta.columnMapping", "delta.enableRowTracking", "delta.enableIceberg")
"""Properties that ask more of a writer."""
_PLAIN = "comment"
_TRIES = 20


def can_append(table: Snapshot) -> bool:
    """Whether rows may be added to the table here."""
    if table.partition_columns or not can_write(table.path):
        return False
    if any(name.startswith(_ASKING) for name in table.configuration):
        return False
    if any(set(field["metadata"]) - {_PLAIN} for field in json.loads(table.schema_json)["fields"]):
        return False
    try:
        protocol = table.state.protocol
    except HistoryGone:
        return False
    if protocol["minWriterVersion"] < 7:
        return bool(protocol["minWriterVersion"] <= 4)
    return set(protocol.get("writerFeatures") or ()) <= _FEATURES


def append(table: Snapshot, rows: pa.Table, name: str, log: int | None = None) -> int:
    """Add rows; gives the version. Who comes second tries again, as long as the table is still of the same shape.

    ``log``: held before the table was looked at, so that a table in its place gets nothing; see ``held_log``.
    """
    shape, rows = _shape(table), fitting(table, rows)
    adds = write_table(rows, table.path, uuid.uuid4().hex[:12])
    actions = [{"add": {"path": a.path, "partitionValues": {}, "size": a.size, "modificationTime": a.modification_time,
                        "dataChange": True, "stats": a.stats}} for a in adds]  # fmt: skip
    about = said("WRITE", operationParameters={"mode": "Append"}, isBlindAppend=True)
    try:
        for _ in range(_TRIES):
            try:
                put(table.path, table.version + 1, [about, *actions], checkpoint_every=100, log=log)
                return table.version + 1
            except VersionTaken:
                table = Snapshot(table.path)
                if _shape(table) != shape or not can_append(table):
                    raise ConflictError(
                        f"table {name!r} was changed by another writer meanwhile. Nothing was inserted; try again."
                    ) from None
        raise ConflictError(f"table {name!r} is being written by others all the time. Nothing was inserted; try again.")
    except Exception:  # who is interrupted cannot know whether it was committed
        discard(table.path, adds)
        raise


def _shape(table: Shaped) -> tuple[str, tuple[str, ...]]:
    return table.schema_json, tuple(table.partition_columns)
