"""Bringing a catalog that an older Penstock made up to date, one schema version after the other."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text, update

from penstock.catalog.dotted_names import rename_dotted
from penstock.catalog.tables import SCHEMA_VERSION, settings

MIGRATIONS: dict[int, list[str | Callable[[Connection], None]]] = {
    2: ["ALTER TABLE history ADD COLUMN details JSON"],
    3: [
        "ALTER TABLE views ADD COLUMN options JSON",
        "ALTER TABLE tables ADD COLUMN watermark JSON",
        "CREATE TABLE watermarks (epoch INTEGER NOT NULL REFERENCES epochs (id) ON DELETE CASCADE, "
        "relation VARCHAR(255) NOT NULL, value BIGINT NOT NULL, seen JSON, PRIMARY KEY (epoch, relation))",
        "CREATE TABLE checkpoints (name VARCHAR(255) NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL, "
        "created_at TIMESTAMP NOT NULL, state JSON NOT NULL)",
    ],
    4: [
        "ALTER TABLE epochs ADD COLUMN run VARCHAR(40)",
        "ALTER TABLE epochs ADD COLUMN restored INTEGER",
        "CREATE TABLE alerts (view VARCHAR(255) NOT NULL, kind VARCHAR(40) NOT NULL, raised_at TIMESTAMPTZ NOT NULL, "
        "message TEXT NOT NULL, suggestion TEXT, epoch INTEGER NOT NULL, cleared_at TIMESTAMPTZ, "
        "PRIMARY KEY (view, kind, raised_at))",
        "ALTER TABLE frontiers ADD COLUMN fingerprint VARCHAR(80)",
        "ALTER TABLE source_versions ADD COLUMN table_id VARCHAR(80)",
        "ALTER TABLE source_versions ADD COLUMN fingerprint VARCHAR(80)",
    ],
    5: [
        "ALTER TABLE views ADD COLUMN scheduled_at TIMESTAMPTZ",
        "CREATE TABLE states (view VARCHAR(255) NOT NULL PRIMARY KEY REFERENCES views (key) ON DELETE CASCADE, "
        "suspended BOOLEAN NOT NULL, errors INTEGER NOT NULL, kind VARCHAR(20), not_before TIMESTAMPTZ, "
        "failed_on JSON)",
    ],
    6: [
        "ALTER TABLE views ADD COLUMN written TEXT",
        "CREATE TABLE plain_views (key VARCHAR(255) NOT NULL PRIMARY KEY, name VARCHAR(255) NOT NULL, "
        "query TEXT NOT NULL, columns JSON NOT NULL, comment TEXT, settings JSON NOT NULL, "
        "created_at TIMESTAMPTZ NOT NULL)",
        "CREATE TABLE read_models (key VARCHAR(255) NOT NULL PRIMARY KEY REFERENCES views (key) ON DELETE CASCADE, "
        "entity VARCHAR(255) NOT NULL, plain_view VARCHAR(255) NOT NULL, details JSON NOT NULL)",
        "ALTER TABLE tables ADD COLUMN published INTEGER",
        "CREATE TABLE intents (source VARCHAR(255) NOT NULL PRIMARY KEY, run VARCHAR(40) NOT NULL, "
        "base INTEGER NOT NULL, owner VARCHAR(80) NOT NULL, created_at TIMESTAMPTZ NOT NULL)",
        "ALTER TABLE leases ADD COLUMN began TIMESTAMPTZ",
        "ALTER TABLE history ADD COLUMN times INTEGER",
        "ALTER TABLE history ADD COLUMN since TIMESTAMPTZ",
        "ALTER TABLE history ADD COLUMN longest FLOAT",
    ],
    7: [
        "CREATE TABLE schemas (key VARCHAR(255) NOT NULL PRIMARY KEY, name VARCHAR(255) NOT NULL, "
        "created_at TIMESTAMPTZ NOT NULL)",
        "ALTER TABLE tables ADD COLUMN catalog_name TEXT",
        rename_dotted,
    ],
    8: [
        "CREATE TABLE catalog_names (key VARCHAR(400) NOT NULL PRIMARY KEY, name TEXT NOT NULL, "
        "view VARCHAR(255) NOT NULL, digest VARCHAR(80), tried VARCHAR(80), problem TEXT, application VARCHAR(255))",
        "ALTER TABLE plain_views ADD COLUMN catalog_name TEXT",
    ],
}
"""What each version asks of a catalog of the version before it."""


def migrate(connection: Connection, found: int) -> None:
    """Run what is missing, in the transaction that the connection is in."""
    for version in range(found + 1, SCHEMA_VERSION + 1):
        for step in MIGRATIONS[version]:
            if isinstance(step, str):
                connection.execute(text(step))
            else:
                step(connection)
    connection.execute(update(settings).where(settings.c.name == "schema_version").values(value=str(SCHEMA_VERSION)))
