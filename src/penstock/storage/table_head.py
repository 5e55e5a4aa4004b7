"""What a version of a Delta table is like, besides its files: the same from the log's own actions and from delta-rs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from deltalake import DeltaTable, Schema

from penstock.storage.log_replay import Action


@dataclass(frozen=True, kw_only=True)
class Head:
    """A table's metadata and protocol."""

    table_id: str
    schema_json: str
    partition_columns: list[str]
    configuration: dict[str, str]
    description: str | None
    reader_version: int
    writer_version: int
    reader_features: frozenset[str]
    writer_features: frozenset[str]


def head_of_actions(metadata: Action, protocol: Action) -> Head:
    described = metadata.get("description")
    return Head(
        table_id=str(metadata["id"]),
        schema_json=_as_delta_rs(metadata["schemaString"]),
        partition_columns=list(metadata.get("partitionColumns") or ()),
        configuration=dict(metadata.get("configuration") or {}),
        description=None if described is None else str(described),
        reader_version=int(protocol["minReaderVersion"]),
        writer_version=int(protocol["minWriterVersion"]),
        reader_features=frozenset(protocol.get("readerFeatures") or ()),
        writer_features=frozenset(protocol.get("writerFeatures") or ()),
    )


def head_of_delta_rs(table: DeltaTable) -> Head:
    metadata, protocol = table.metadata(), table.protocol()
    return Head(
        table_id=str(metadata.id),
        schema_json=table.schema().to_json(),
        partition_columns=list(metadata.partition_columns),
        configuration=dict(metadata.configuration),
        description=None if metadata.description is None else str(metadata.description),
        reader_version=int(protocol.min_reader_version),
        writer_version=int(protocol.min_writer_version),
        reader_features=frozenset(protocol.reader_features or ()),
        writer_features=frozenset(protocol.writer_features or ()),
    )


@lru_cache(maxsize=1024)
def _as_delta_rs(schema: str) -> str:
    """A schema in the words that delta-rs has for it, so that two of them can be compared."""
    return Schema.from_json(schema).to_json()
