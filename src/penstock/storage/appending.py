"""Which tables may be written on the driver: those where nothing but rows has to be written.

What a table asks of its writers besides (partitions, features that are not known here) is Spark's.
"""

from __future__ import annotations

import json

from penstock.storage.delta_log import HistoryGone, Snapshot

_FEATURES = {
    "appendOnly", "invariants", "changeDataFeed", "deletionVectors", "timestampNtz", "checkConstraints",
    "allowColumnDefaults",
}  # fmt: skip
"""What a writer of rows has nothing to do for, but to check the rows and to know the defaults."""
_ASKING = ("delta.columnMapping", "delta.enableRowTracking", "delta.enableIceberg")
"""Properties that ask more of a writer."""
_CONSTRAINT = "delta.constraints."
DEFAULT = "CURRENT_DEFAULT"
"""What a column says of the value that it gets if none is given."""
_PLAIN = {"comment", DEFAULT}


def can_append(table: Snapshot) -> bool:
    """Whether rows may be added to the table here."""
    if table.partition_columns:
        return False
    if any(name.startswith(_ASKING) for name in table.configuration):
        return False
    if any(set(field["metadata"]) - _PLAIN for field in json.loads(table.schema_json)["fields"]):
        return False
    try:
        protocol = table.state.protocol
    except HistoryGone:
        return False
    if protocol["minWriterVersion"] < 7:
        return bool(protocol["minWriterVersion"] <= 4)
    return set(protocol.get("writerFeatures") or ()) <= _FEATURES


def constraints_of(table: Snapshot) -> dict[str, str]:
    """The conditions that each row of the table must meet, by their names."""
    told = table.configuration.items()
    return {name.removeprefix(_CONSTRAINT): text for name, text in told if name.startswith(_CONSTRAINT)}
