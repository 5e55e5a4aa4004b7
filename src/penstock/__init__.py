"""Penstock keeps SQL materialized views fresh on Apache Spark and Delta Lake by work in proportion to what changed."""

import logging
from typing import TYPE_CHECKING, Any

from penstock.database import Database, Done, connect
from penstock.errors import (
    AlreadyExistsError,
    BusyError,
    ConflictError,
    DefinitionError,
    DependencyError,
    InternalError,
    LeaseLostError,
    NotFoundError,
    NotIncrementalError,
    NotSupportedError,
    PenstockError,
    QueryError,
    RefreshError,
    RetentionError,
    SourceError,
    SparkError,
    SqlError,
    StoreError,
    WarehouseError,
)

logging.getLogger("penstock").addHandler(logging.NullHandler())  # quiet, unless a program wants to hear

if TYPE_CHECKING:
    from penstock.client import Client

__version__ = "0.1.0"

__all__ = [
    "AlreadyExistsError",
    "BusyError",
    "Client",
    "ConflictError",
    "Database",
    "DefinitionError",
    "DependencyError",
    "Done",
    "InternalError",
    "LeaseLostError",
    "NotFoundError",
    "NotIncrementalError",
    "NotSupportedError",
    "PenstockError",
    "QueryError",
    "RefreshError",
    "RetentionError",
    "SourceError",
    "SparkError",
    "SqlError",
    "StoreError",
    "WarehouseError",
    "connect",
]


def __getattr__(name: str) -> Any:
    """``Client`` is loaded when it is asked for: what it needs of the network, nobody else does."""
    if name == "Client":
        from penstock.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
