"""What Penstock remembers: tables, views, nodes, epochs, frontiers, history. The only room that knows SQLAlchemy."""

from penstock.catalog.catalog import Catalog
from penstock.catalog.records import (
    Definition,
    Fence,
    Frontier,
    HistoryRecord,
    Identity,
    Mark,
    Moment,
    NodeRecord,
    Publication,
    Seen,
    TableRecord,
    ViewRecord,
    World,
)

__all__ = [
    "Catalog",
    "Definition",
    "Fence",
    "Frontier",
    "HistoryRecord",
    "Identity",
    "Mark",
    "Moment",
    "NodeRecord",
    "Publication",
    "Seen",
    "TableRecord",
    "ViewRecord",
    "World",
]
