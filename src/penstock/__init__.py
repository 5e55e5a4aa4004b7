"""Penstock keeps SQL materialized views fresh on Apache Spark and Delta Lake by work in proportion to what changed."""

import logging

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
    WarehouseError,
)

logging.getLogger("penstock").addHandler(logging.NullHandler())  # quiet, unless a program wants to hear

__version__ = "0.1.0"

__all__ = [
    "AlreadyExistsError",
    "BusyError",
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
    "WarehouseError",
    "connect",
]
