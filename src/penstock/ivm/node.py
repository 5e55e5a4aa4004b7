"""Maintaining one node with the rules: all of its rows, or the change of its table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.ivm import aggregate, project, rules
from penstock.ivm.aggregate import Stored
from penstock.ivm.context import Context, Moment
from penstock.ivm.layout import Layout
from penstock.ivm.materialize import Materialized, Materializer
from penstock.plan.nodes import NodePlan
from penstock.storage.zset import consolidate, plain_rows


@dataclass(frozen=True)
class Maintained:
    """A node's plan and, for an aggregate or distinct node, the layout of its state."""

    plan: NodePlan
    layout: Layout | None

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The stored columns that identify a row; None when rows have no identity but themselves."""
        return self.layout.key_names if self.layout is not None else None

    def evaluate(self, context: Context, moment: Moment) -> DataFrame:
        """All rows of the node, as its table stores them."""
        if self.layout is not None:
            return aggregate.evaluate(self.layout, context, moment)
        rows = rules.evaluate(self.plan.body, context, moment)
        return project.apply(plain_rows(rows), self.plan.outputs, weighted=False)

    def delta(self, context: Context, stored: Stored, materializer: Materializer) -> Materialized | None:
        """The change of the node's table, computed once; None when none of the inputs changed."""
        if self.layout is not None:
            return aggregate.delta(self.layout, context, stored, materializer)
        change = rules.delta(self.plan.body, context)
        if change is None:
            return None
        rows = project.apply(change.frame, self.plan.outputs, weighted=True)
        rows = rows if change.append_only else consolidate(rows, small=change.small)
        return materializer.materialize(rows, small=change.small)
