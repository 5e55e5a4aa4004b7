"""Maintaining one node with the rules: all of its rows, or the change of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.frames.frame import Frame
from penstock.frames.zset import plain_rows
from penstock.ivm import project, rules
from penstock.ivm.context import Context, Moment, Stored
from penstock.ivm.keyed import Keyed
from penstock.ivm.layout import Layout
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Join, Sessions, SidedJoin, Window, walk


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
        return self.layout.key_names if isinstance(self.layout, Layout) else self.plan.keys

    def evaluate(self, context: Context, moment: Moment) -> Frame:
        """All rows of the node, as its table stores them."""
        if self.layout is not None:
            return rules.STATEFUL[type(self.plan.body)].evaluate(self.layout, context, moment)
        rows = rules.evaluate(self.plan.body, context, moment)
        return project.apply(plain_rows(rows), self.plan.outputs, weighted=False)

    def delta(self, context: Context, stored: Stored) -> Frame | None:
        """The change of the node's table, computed once; None when none of the inputs changed.

        It may say where the rows that go lie (``LOCATED``).
        """
        if self.layout is not None:
            return rules.STATEFUL[type(self.plan.body)].delta(self.layout, context, stored)
        change = rules.delta(self.plan.body, context)
        if change is None:
            return None
        rows = project.apply(change.frame, self.plan.outputs, weighted=True)
        return context.keep(rows if change.append_only else rows.consolidated())


def maintained_node(plan: NodePlan, types: Mapping[str, str]) -> Maintained:
    """A node ready to be maintained, given the types of its measures (see ``layout_of``)."""
    return Maintained(plan, rules.layout(plan, types))
