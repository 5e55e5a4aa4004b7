"""What the names of read models are made of: ``tv_user`` is the table, ``v_user`` its query, ``pk_user`` its key."""

from __future__ import annotations

from penstock.sql.statements import CreateTable

TABLE, VIEW, PRIMARY, LINEAGE = "tv_", "v_", "pk_", "fk_"
DATA = "data"
STAMP = "updated_at"
"""The column of a read model that says when a row was last written."""


def entity_of(name: str) -> str:
    """The entity of ``tv_<entity>``."""
    return name[len(TABLE) :]


def is_read_model(statement: CreateTable) -> bool:
    """Whether CREATE TABLE is about a read model."""
    return statement.name.lower().startswith(TABLE) and statement.query is not None
