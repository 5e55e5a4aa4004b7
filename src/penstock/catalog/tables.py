"""The catalog's own tables. Changing them means a new SCHEMA_VERSION and a migration in ``migrations.py``."""

from __future__ import annotations

from datetime import datetime, timezone

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

SCHEMA_VERSION = 8

NO_ROWS = -1
"""In the place of a version: the node was emptied, and has none."""

metadata = MetaData()

settings = Table(
    "settings", metadata,
    Column("name", String(200), primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip

schemas = Table(
    "schemas", metadata,
    Column("key", String(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)  # fmt: skip

tables = Table(
    "tables", metadata,
    Column("key", String(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("path", Text, nullable=False),
    Column("external", Boolean, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("watermark", JSON),
    Column("published", Integer),
    Column("catalog_name", Text),
)  # fmt: skip

intents = Table(
    "intents", metadata,
    Column("source", String(255), primary_key=True),
    Column("run", String(40), nullable=False),
    Column("base", Integer, nullable=False),
    Column("owner", String(80), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)  # fmt: skip

views = Table(
    "views", metadata,
    Column("key", String(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("query", Text, nullable=False),
    Column("columns", JSON, nullable=False),
    Column("comment", Text),
    Column("properties", JSON, nullable=False),
    Column("refresh", String(200), nullable=False),
    Column("policy", String(40), nullable=False),
    Column("reads", JSON, nullable=False),
    Column("reason_code", String(80)),
    Column("reason", Text),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("options", JSON),
    Column("scheduled_at", DateTime(timezone=True)),
    Column("written", Text),
)  # fmt: skip

plain_views = Table(
    "plain_views", metadata,
    Column("key", String(255), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("query", Text, nullable=False),
    Column("columns", JSON, nullable=False),
    Column("comment", Text),
    Column("settings", JSON, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("catalog_name", Text),
)  # fmt: skip

read_models = Table(
    "read_models", metadata,
    Column("key", String(255), ForeignKey("views.key", ondelete="CASCADE"), primary_key=True),
    Column("entity", String(255), nullable=False),
    Column("plain_view", String(255), nullable=False),
    Column("details", JSON, nullable=False),
)  # fmt: skip

nodes = Table(
    "nodes", metadata,
    Column("name", String(255), primary_key=True),
    Column("hidden", Boolean, nullable=False),
    Column("path", Text, nullable=False),
    Column("fingerprint", String(80), nullable=False),
    Column("schema_json", Text, nullable=False),
    Column("details", JSON, nullable=False),
    Column("version", Integer),
)  # fmt: skip

dependencies = Table(
    "dependencies", metadata,
    Column("node", String(255), ForeignKey("nodes.name", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("input", String(255), nullable=False),
)  # fmt: skip

view_nodes = Table(
    "view_nodes", metadata,
    Column("view", String(255), ForeignKey("views.key", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("node", String(255), ForeignKey("nodes.name", ondelete="CASCADE"), nullable=False),
)  # fmt: skip

frontiers = Table(
    "frontiers", metadata,
    Column("node", String(255), ForeignKey("nodes.name", ondelete="CASCADE"), primary_key=True),
    Column("relation", String(255), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("table_id", String(80), nullable=False),
    Column("direct", Boolean, nullable=False),
    Column("fingerprint", String(80)),
)  # fmt: skip

epochs = Table(
    "epochs", metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("published_at", DateTime(timezone=True)),
    Column("run", String(40)),
    Column("restored", Integer),
)  # fmt: skip

node_versions = Table(
    "node_versions", metadata,
    Column("epoch", Integer, ForeignKey("epochs.id", ondelete="CASCADE"), primary_key=True),
    Column("node", String(255), primary_key=True),
    Column("version", Integer, nullable=False),
)  # fmt: skip

source_versions = Table(
    "source_versions", metadata,
    Column("epoch", Integer, ForeignKey("epochs.id", ondelete="CASCADE"), primary_key=True),
    Column("source", String(255), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("table_id", String(80)),
    Column("fingerprint", String(80)),
)  # fmt: skip

watermarks = Table(
    "watermarks", metadata,
    Column("epoch", Integer, ForeignKey("epochs.id", ondelete="CASCADE"), primary_key=True),
    Column("relation", String(255), primary_key=True),
    Column("value", BigInteger, nullable=False),
    Column("seen", JSON),
)  # fmt: skip

history = Table(
    "history", metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("epoch", Integer, nullable=False),
    Column("view", String(255), nullable=False, index=True),
    Column("status", String(20), nullable=False),
    Column("action", String(20), nullable=False),
    Column("strategy", String(20)),
    Column("reason", String(80), nullable=False),
    Column("rows_inserted", Integer, nullable=False),
    Column("rows_deleted", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("error", Text),
    Column("details", JSON),
    Column("times", Integer),
    Column("since", DateTime(timezone=True)),
    Column("longest", Float),
)  # fmt: skip

alerts = Table(
    "alerts", metadata,
    Column("view", String(255), primary_key=True),
    Column("kind", String(40), primary_key=True),
    Column("raised_at", DateTime(timezone=True), primary_key=True),
    Column("message", Text, nullable=False),
    Column("suggestion", Text),
    Column("epoch", Integer, nullable=False),
    Column("cleared_at", DateTime(timezone=True)),
)  # fmt: skip

states = Table(
    "states", metadata,
    Column("view", String(255), ForeignKey("views.key", ondelete="CASCADE"), primary_key=True),
    Column("suspended", Boolean, nullable=False),
    Column("errors", Integer, nullable=False),
    Column("kind", String(20)),
    Column("not_before", DateTime(timezone=True)),
    Column("failed_on", JSON),
)  # fmt: skip

checkpoints = Table(
    "checkpoints", metadata,
    Column("name", String(255), primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("state", JSON, nullable=False),
)  # fmt: skip

catalog_names = Table(
    "catalog_names", metadata,
    Column("key", String(400), primary_key=True),
    Column("name", Text, nullable=False),
    Column("view", String(255), nullable=False),
    Column("digest", String(80)),
    Column("tried", String(80)),
    Column("problem", Text),
    Column("application", String(255)),
)  # fmt: skip

leases = Table(
    "leases", metadata,
    Column("node", String(255), primary_key=True),
    Column("owner", String(80), nullable=False),
    Column("host", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("began", DateTime(timezone=True)),
)  # fmt: skip


def utc(time: datetime) -> datetime:
    """SQLite keeps no zone; what is written is UTC."""
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)
