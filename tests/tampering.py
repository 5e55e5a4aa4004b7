"""Breaking a view's table for real: other rows behind Penstock's back, which the catalog is made to believe in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from deltalake import write_deltalake
from sqlalchemy import update

import penstock
from penstock.catalog import tables as t
from penstock.storage.delta_log import Snapshot
from penstock.storage.reader import read_snapshot

Change = Callable[[pa.Table], pa.Table]


def tamper(db: penstock.Database, node: str, change: Change) -> None:
    """Give a node's table other rows, which all who read it take for those that they know."""
    record = db._catalog.world().nodes[node]
    assert record.version is not None
    rows = read_snapshot(db.spark, Snapshot(record.path, record.version)).toArrow()
    write_deltalake(record.path, change(rows).cast(rows.schema), mode="overwrite")
    version = Snapshot(record.path).version
    with db._catalog.transaction(writes=True) as connection:
        connection.execute(update(t.nodes).where(t.nodes.c.name == node).values(version=version))
        connection.execute(update(t.frontiers).where(t.frontiers.c.relation == node).values(version=version))


def without(*places: int) -> Change:
    return lambda rows: rows.take([i for i in range(rows.num_rows) if i not in places])


def nothing(rows: pa.Table) -> pa.Table:
    return rows.slice(0, 0)


def filled(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (id INT, k INT, x DECIMAL(10,2), d DOUBLE, ts TIMESTAMP)")
    db.sql(
        "INSERT INTO t SELECT id, id % 4, id + 0.5, id / 8, TIMESTAMP '2024-01-01' + MAKE_INTERVAL(0, 0, 0, 0, id) "
        "FROM range(24)"
    )
    db.sql("CREATE TABLE u (k INT, name STRING)")
    db.sql("INSERT INTO u VALUES (0, 'zero'), (1, 'one'), (1, 'eins'), (2, 'two'), (7, 'seven')")
    return db


def created(db: penstock.Database, views: Mapping[str, str]) -> list[str]:
    for name, query in views.items():
        db.create_view(name, query)
    return list(views)
