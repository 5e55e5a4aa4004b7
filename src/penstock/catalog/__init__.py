"""What Penstock remembers: tables, views, nodes, epochs, frontiers, history. The only room that knows SQLAlchemy."""

from penstock.catalog.catalog import Catalog
from penstock.catalog.records import (
    Frontier,
    HistoryRecord,
    Moment,
    NodeRecord,
    Publication,
    TableRecord,
    ViewRecord,
    World,
)

__all__ = [
    "Catalog",
    "Frontier",
    "HistoryRecord",
    "Moment",
    "NodeRecord",
    "Publication",
    "TableRecord",
    "ViewRecord",
    "World",
]
