"""The names by which the rows are read that came too late for a view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.sql.names import DEFAULT, QualifiedName

if TYPE_CHECKING:
    from penstock.catalog.records import NodeRecord

LATE = "_late"
"""What stands behind the name of the view."""


def late_name(view: str, of: str | None = None) -> str:
    """The key of the rows that came late for a view, in all or in one of several tables.

    >>> late_name("bars"), late_name("gold.bars", "trades"), late_name("gold.bars", "silver.trades")
    ('bars_late', 'gold.bars_late_trades', 'gold.bars_late_silver_trades')
    """
    own, table = QualifiedName.read(view), None if of is None else QualifiedName.read(of)
    parts = [] if table is None else [table.name] if table.schema_key == DEFAULT else list(table.parts)
    return own.beside("_".join([own.name + LATE, *parts])).key


def late_names(view: str, nodes: Iterable[NodeRecord]) -> dict[str, NodeRecord]:
    """The names by which the late rows of a view are read."""
    late = [node for node in nodes if node.details.late]
    if len(late) == 1:
        return {late_name(view): late[0]}
    return {late_name(view, node.inputs[0]): node for node in late}
