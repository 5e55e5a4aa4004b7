"""Maintaining one node with the rules: all of its rows, or the change of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.frames.zset import consolidate, plain_rows
from penstock.ivm import aggregate, project, rules, sessions, top_k, window
from penstock.ivm.context import Context, Moment
from penstock.ivm.keyed import Keyed, Stored
from penstock.ivm.layout import Layout, layout_of
from penstock.ivm.materialize import Materialized, Materializer
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Aggregate, Distinct, Join, Sessions, SidedJoin, TopK, Window, walk


@dataclass(frozen=True)
class Maintained:
    """A node's plan and, where a rule needs the node's table, the layout of it."""

    plan: NodePlan
    layout: Layout | Keyed | None

    @property
    def mergeable(self) -> bool:
        return isinstance(self.layout, Layout) and self.layout.mergeable

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the node is made of, in the words of the cost model."""
        joins = ["join" for op in walk(self.plan.body) if isinstance(op, Join | SidedJoin)]
        match self.layout, self.plan.body:
            case Layout(), _:
                return (*joins, "aggregate" if self.mergeable else "groups")
            case Keyed(), Window() | Sessions():
                return (*joins, "window")
            case Keyed(), _:
                return (*joins, "top_k")
        return tuple(joins) or ("rows",)

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The stored columns that identify a row; None when rows have no identity but themselves."""
        return self.layout.key_names if isinstance(self.layout, Layout) else None

    def evaluate(self, context: Context, moment: Moment) -> DataFrame:
        """All rows of the node, as its table stores them."""
        match self.layout, self.plan.body:
            case Layout() as layout, _:
                return aggregate.evaluate(layout, context, moment)
            case Keyed() as keyed, Window():
                return window.evaluate(keyed, context, moment)
            case Keyed() as keyed, Sessions():
                return sessions.evaluate(keyed, context, moment)
            case Keyed() as keyed, _:
                return top_k.evaluate(keyed, context, moment)
        rows = rules.evaluate(self.plan.body, context, moment)
        return project.apply(plain_rows(rows), self.plan.outputs, weighted=False)

    def delta(self, context: Context, stored: Stored, materializer: Materializer) -> Materialized | None:
        """The change of the node's table, computed once; None when none of the inputs changed."""
        match self.layout, self.plan.body:
            case Layout() as layout, _:
                return aggregate.delta(layout, context, stored, materializer)
            case Keyed() as keyed, Window():
                return window.delta(keyed, context, stored, materializer)
            case Keyed() as keyed, Sessions():
                return sessions.delta(keyed, context, stored, materializer)
            case Keyed() as keyed, _:
                return top_k.delta(keyed, context, stored, materializer)
        change = rules.delta(self.plan.body, context)
        if change is None:
            return None
        rows = project.apply(change.frame, self.plan.outputs, weighted=True)
        rows = rows if change.append_only else consolidate(rows, small=change.small)
        return materializer.materialize(rows, few=change.small or change.few, little=change.little)


def maintained_node(plan: NodePlan, types: Mapping[str, str]) -> Maintained:
    """A node ready to be maintained, given the types of its measures (see ``layout_of``)."""
    match plan.body:
        case Sessions(partition=partition):
            return Maintained(plan, Keyed.of(plan, partition))
        case Aggregate() | Distinct():
            return Maintained(plan, layout_of(plan, types))
        case Window(partition=partition):
            return Maintained(plan, Keyed.of(plan, partition))
        case TopK(child=child):
            return Maintained(plan, Keyed.of(plan, child.columns))
    return Maintained(plan, None)
