"""What the names of read models are made of: ``tv_user`` is the table, ``v_user`` its query, ``pk_user`` its key."""

from __future__ import annotations

from penstock.sql.names import QualifiedName
from penstock.sql.statements import CreateTable

TABLE, VIEW, PRIMARY, LINEAGE = "tv_", "v_", "pk_", "fk_"
DATA = "data"
STAMP = "updated_at"
"""The column of a read model that says when a row was last written."""


def entity_of(name: str) -> str:
    """The entity of ``tv_<entity>``.

    >>> entity_of("app.tv_post"), query_of("app.tv_post"), key_column("app.tv_post")
    ('post', 'app.v_post', 'pk_post')
    """
    return QualifiedName.read(name).name[len(TABLE) :]


def query_of(name: str) -> str:
    """The name of the plain view that is the query of a read model: ``v_<entity>``, beside it."""
    return str(QualifiedName.read(name).beside(f"{VIEW}{entity_of(name)}"))


def key_column(name: str) -> str:
    """The name of the column that is the key of a read model."""
    return f"{PRIMARY}{entity_of(name)}"


def is_read_model(statement: CreateTable) -> bool:
    """Whether CREATE TABLE is about a read model."""
    return QualifiedName.read(statement.name).name.lower().startswith(TABLE) and statement.query is not None
