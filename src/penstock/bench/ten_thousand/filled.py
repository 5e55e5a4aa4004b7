"""A real catalog with the made-up warehouse in it, as it is after every view was refreshed once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Table, insert

from penstock.bench.ten_thousand.made_up import MadeUp, MadeView
from penstock.catalog import Catalog, NodeDetails
from penstock.catalog import tables as t
from penstock.sql.statements import DOWNSTREAM
from penstock.vocabulary import Action, Policy, Reason, Status, Strategy

_COLUMNS = {"id": "bigint", "region": "string", "day": "date", "n": "bigint", "total": "decimal(22,2)"}
"""Of every view: about as many as views have, since what is known of them is most of what a catalog holds."""


def fill(catalog: Catalog, made: MadeUp, where: str) -> None:
    """Write it down; ``where``: the directory that the tables would be in."""
    at = datetime.now(timezone.utc)
    tables = [
        {"key": key, "name": key, "path": source_path(where, key), "external": True, "created_at": at}
        for key in made.every
    ]
    nodes = [_node(key, view, where) for key, view in made.views.items()]
    views = [_view(key, view, at) for key, view in made.views.items()]
    inputs = [
        {"node": key, "position": position, "input": read}
        for key, view in made.views.items()
        for position, read in enumerate(view.reads)
    ]
    own = [{"view": key, "position": 0, "node": key} for key in made.views]
    with catalog.transaction(writes=True) as connection:
        connection.execute(insert(t.epochs).values(id=1, started_at=at, published_at=at, run="made up"))
        rows: dict[Table, list[dict[str, Any]]] = {
            t.tables: tables, t.nodes: nodes, t.views: views, t.dependencies: inputs, t.view_nodes: own,
            t.frontiers: list(_frontiers(made)), t.history: [_refreshed(key, at) for key in made.views],
            t.node_versions: [{"epoch": 1, "node": key, "version": 0} for key in made.views],
            t.source_versions: [{"epoch": 1, "source": key, "version": 0} for key in made.every],
        }  # fmt: skip
        for table, some in rows.items():
            connection.execute(insert(table), some)


def source_path(where: str, key: str) -> str:
    return f"{where}/tables/{key}"


def _node(key: str, view: MadeView, where: str) -> dict[str, Any]:
    details = NodeDetails(
        incremental=True, types=_COLUMNS, schemas=dict.fromkeys(view.reads, tuple(_COLUMNS)),
        input_types=dict.fromkeys(view.reads, _COLUMNS), rule="aggregate", operator="GROUP BY region, day",
        reads="its change, and the touched groups", estimated_rows=10_000,
        constructs=(("GROUP BY", "merged"), ("SUM", "added to")), seal="0" * 40,
    )  # fmt: skip
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _COLUMNS.items()]
    return {
        "name": key, "hidden": False, "path": f"{where}/views/{key}", "fingerprint": "0" * 40,
        "schema_json": json.dumps({"type": "struct", "fields": fields}), "details": details.to_json(), "version": 0,
    }  # fmt: skip


def _view(key: str, view: MadeView, at: datetime) -> dict[str, Any]:
    lag = DOWNSTREAM if view.downstream else None if view.lag is None else round(view.lag.total_seconds() * 1_000_000)
    joined = " JOIN ".join(view.reads)
    return {
        "key": key, "name": key, "query": f"SELECT id, region, day, COUNT(*) AS n, SUM(total) AS total FROM {joined} "
        "WHERE total > 0 GROUP BY id, region, day", "columns": [(n, kind, None) for n, kind in _COLUMNS.items()],
        "properties": {}, "refresh": str(view.trigger), "policy": Policy.AUTO, "reads": list(view.reads),
        "created_at": at, "options": {"lag": lag},
    }  # fmt: skip


def _frontiers(made: MadeUp) -> Iterator[dict[str, Any]]:
    for key, view in made.views.items():
        for read in view.reads:
            yield {
                "node": key,
                "relation": read,
                "version": 0,
                "table_id": "0" * 36,
                "direct": True,
                "fingerprint": "0" * 40,
            }


def _refreshed(key: str, at: datetime) -> dict[str, Any]:
    return {
        "epoch": 1, "view": key, "status": Status.SUCCEEDED, "action": Action.REINITIALIZE,
        "strategy": Strategy.OVERWRITE, "reason": Reason.INITIAL, "rows_inserted": 10_000, "rows_deleted": 0,
        "seconds": 0.05, "started_at": at, "details": {"jobs": 0, "phases": {"computing": 0.02, "writing": 0.02}},
    }  # fmt: skip
