"""The table of contents: which file holds the rule of which operator.

A rule is two functions. ``evaluate(op, context, moment)`` is the operator's batch meaning at a moment;
``delta(op, context)`` is its change, such that  evaluate(post) = evaluate(pre) + delta  as Z-sets. The stateful
operators stand on top of a node and need the node's table; their rules are in ``aggregate`` (distinct too), ``window``
and ``top_k``.
"""

from __future__ import annotations

from types import ModuleType

from penstock.ivm import accepted, ended, filter, generate, join, late, project, scan, sided_join, union, values
from penstock.ivm.context import Context, Moment
from penstock.plan import operators as op
from penstock.storage.zset import Delta, Rows, at_hand

RULES: dict[type, ModuleType] = {
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


def evaluate(operator: op.Operator, context: Context, moment: Moment) -> Rows:
    return RULES[type(operator)].evaluate(operator, context, moment)


def delta(operator: op.Operator, context: Context) -> Delta | None:
    change = RULES[type(operator)].delta(operator, context)
    return None if change is None else at_hand(change)
