"""Whole pipelines: after a batch of mixed changes every view is incremental and equals its query."""

from __future__ import annotations

import pytest

import penstock
from oracle import assert_fresh
from pipelines import MEDALLION, NEXMARK, Pipeline


@pytest.mark.parametrize("pipeline", [MEDALLION, NEXMARK], ids=lambda p: p.name)
def test_every_view_of_a_pipeline_follows(pipeline: Pipeline, db: penstock.Database) -> None:
    for table, columns in pipeline.tables.items():
        db.sql(f"CREATE TABLE {table} {columns}")
        db.sql(f"INSERT INTO {table} VALUES {', '.join(pipeline.rows[table])}")
    for view, query in pipeline.views.items():
        db.create_view(view, query, policy="INCREMENTAL STRICT")
    for statement in pipeline.changes:
        db.sql(statement)
    report = db.refresh()
    for view in pipeline.views:
        assert_fresh(db, view, ("INCREMENTAL", "NO_DATA"))
    moved = [view for view in report.values() if view.rows_inserted or view.rows_deleted]
    assert len(moved) >= len(pipeline.views) - 2, "the changes are meant to reach nearly every view"
