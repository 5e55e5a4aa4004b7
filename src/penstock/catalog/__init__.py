"""What Penstock remembers: tables, views, nodes, epochs, frontiers, history. The only room that knows SQLAlchemy."""

from penstock.catalog.catalog import Catalog
from penstock.catalog.details import NodeDetails
from penstock.catalog.models import Part, PlainView, ReadModel
from penstock.catalog.records import (
    Definition,
    Fence,
    Frontier,
    HistoryRecord,
    Identity,
    Intent,
    Mark,
    NodeRecord,
    Publication,
    Seen,
    TableRecord,
    ViewRecord,
)
from penstock.catalog.schemas import Schema
from penstock.catalog.world import AsOf, World

__all__ = [
    "AsOf",
    "Catalog",
    "Definition",
    "Fence",
    "Frontier",
    "HistoryRecord",
    "Identity",
    "Intent",
    "Mark",
    "NodeDetails",
    "NodeRecord",
    "Part",
    "PlainView",
    "Publication",
    "ReadModel",
    "Schema",
    "Seen",
    "TableRecord",
    "ViewRecord",
    "World",
]
