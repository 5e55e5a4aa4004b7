"""The rows of views and of their queries without Spark: delta-rs runs the queries on the sources' versions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

import penstock
from penstock.catalog import World
from penstock.engine.relations import visible_columns
from penstock.storage.delta_log import Snapshot
from penstock.storage.pinned import Pinned

Rows = Counter[tuple[Any, ...]]


def expected(world: World, view: str) -> Rows:
    """The rows of a view's query, with the views below it written out, on the versions of tables that it has read."""
    below = [name for name in world.views_graph().order(world.views_graph().ancestors([view])) if name in world.views]
    written_out = ", ".join(f"{name} AS ({world.views[name].query})" for name in below)
    builder = QueryBuilder()
    for name, consumed in world.frontiers[view].items():
        if name in world.tables:
            builder = builder.register(name, DeltaTable(world.tables[name].path, version=consumed.version))
    query = f"WITH {written_out} {world.views[view].query}" if below else world.views[view].query
    return counted(pa.table(builder.execute(query)))


def shown(db: penstock.Database) -> dict[str, Rows]:
    """The rows that readers see, of every view that has some."""
    found = {}
    for key in (world := db._catalog.world()).views:
        node = world.nodes[key]
        if node.version is not None:
            snapshot = Snapshot(node.path, node.version)
            columns = tuple(visible_columns(snapshot))
            found[key] = counted(Pinned(spark=db._at.spark, snapshot=snapshot, columns=columns).read().arrow())
    return found


def wanted(db: penstock.Database) -> dict[str, Rows]:
    """The same by the views' queries."""
    world = db._catalog.world()
    return {key: expected(world, key) for key in world.views if world.nodes[key].version is not None}


def counted(rows: pa.Table) -> Rows:
    return Counter(tuple(row.values()) for row in rows.to_pylist())
