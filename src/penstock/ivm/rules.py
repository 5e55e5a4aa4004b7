"""The table of contents: which file holds the rule of which operator.

A rule of ``RULES`` is two functions. ``evaluate(op, context, moment)`` is the operator's batch meaning at a moment;
``delta(op, context)`` is its change, such that  evaluate(post) = evaluate(pre) + delta  as Z-sets.

A rule of ``STATEFUL`` stands on top of a node and keeps what it knows in the node's table: ``layout`` says what that
table holds, ``evaluate`` gives all its rows, and ``delta`` its change, given the table as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from penstock.frames.frame import Frame
from penstock.frames.zset import Delta, ZSet, at_hand
from penstock.ivm import (
    accepted,
    aggregate,
    ended,
    filter,
    generate,
    join,
    late,
    project,
    scan,
    sessions,
    sided_join,
    top_k,
    union,
    values,
    window,
)
from penstock.ivm.context import Context, Moment, Stored
from penstock.ivm.keyed import Keyed
from penstock.ivm.layout import Layout, layout_of
from penstock.plan import operators as op
from penstock.plan.nodes import NodePlan


class Rule(Protocol):
    """How an operator without a table of its own is computed."""

    def evaluate(self, op: Any, context: Context, moment: Moment) -> ZSet: ...

    def delta(self, op: Any, context: Context) -> Delta | None: ...


class StatefulRule(Protocol):
    """How an operator with a table of its own is computed."""

    def evaluate(self, layout: Any, context: Context, moment: Moment) -> Frame: ...

    def delta(self, layout: Any, context: Context, stored: Stored) -> Frame | None: ...


RULES: Mapping[type, Rule] = {
    op.Scan: scan,
    op.Values: values,
    op.Project: project,
    op.Filter: filter,
    op.Ended: ended,
    op.Late: late,
    op.Accepted: accepted,
    op.Join: join,
    op.SidedJoin: sided_join,
    op.Generate: generate,
    op.Union: union,
}

STATEFUL: Mapping[type, StatefulRule] = {
    op.Aggregate: aggregate,
    op.Distinct: aggregate,
    op.Sessions: sessions,
    op.Window: window,
    op.TopK: top_k,
}


def evaluate(operator: op.Operator, context: Context, moment: Moment) -> ZSet:
    return RULES[type(operator)].evaluate(operator, context, moment)


def delta(operator: op.Operator, context: Context) -> Delta | None:
    change = RULES[type(operator)].delta(operator, context)
    return None if change is None else at_hand(change)


def layout(plan: NodePlan, types: Mapping[str, str]) -> Layout | Keyed | None:
    """What the table of a node holds; None for a node without a stateful operator."""
    match plan.body:
        case op.Sessions():
            return sessions.layout(plan)
        case op.Aggregate() | op.Distinct():
            return layout_of(plan, types)
        case op.Window():
            return window.layout(plan)
        case op.TopK():
            return top_k.layout(plan)
    return None
