"""A new, empty table for rows from outside: its first commit, as Delta Lake on Spark would write it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence

from penstock.sql.columns import PlainColumn
from penstock.storage.files import files_of
from penstock.storage.log_listing import LOG
from penstock.storage.log_writer import now, put, said

_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "changeDataFeed", "invariants", "appendOnly"],
}
"""What Delta asks for of a table with a change feed and deletion vectors."""

WITH_CHANGES: Mapping[str, str] = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
"""The properties of such a table."""


def create_with_changes(path: str, columns: Sequence[PlainColumn]) -> None:
    """Make an empty table with a change feed and deletion vectors in a directory that is ours."""
    fields = [{"name": c.name, "type": c.kind, "nullable": c.nullable, "metadata": {}} for c in columns]
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}, separators=(",", ":")),
        "partitionColumns": [],
        "configuration": dict(WITH_CHANGES),
        "createdTime": now(),
    }
    about = {
        "partitionBy": "[]",
        "clusterBy": "[]",
        "isManaged": "false",
        "properties": json.dumps(dict(WITH_CHANGES), separators=(",", ":")),
    }
    files_of(path).make_folder(LOG)
    told = said("CREATE TABLE", operationParameters=about, isBlindAppend=True)
    put(path, 0, [told, {"metaData": metadata}, {"protocol": _PROTOCOL}])
