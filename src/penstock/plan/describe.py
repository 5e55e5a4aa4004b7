"""A node in words: its rule, what it computes, and what it reads. ``explain`` shows them."""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Aggregate, Distinct, Filter, Join, Operator, Project, Scan, Union, render


def describe_node(node: NodePlan, mergeable: bool) -> dict[str, str]:
    """``rule``, ``operator`` and ``reads`` of a node."""
    return {
        "rule": _rule(node.body),
        "operator": _outline(node.body, _names(node)),
        "reads": _reads(node.body, mergeable),
    }


def _rule(body: Operator) -> str:
    match body:
        case Aggregate():
            return "aggregate"
        case Distinct():
            return "distinct"
        case Join():
            return "join"
        case Union():
            return "union"
        case Filter():
            return "filter"
    return "project"


def _reads(body: Operator, mergeable: bool) -> str:
    match body:
        case Aggregate() if mergeable:
            extremes = any(isinstance(e, exp.Min | exp.Max) for _, e in body.measures)
            more = "; a group's rows when its minimum or maximum is removed" if extremes else ""
            return f"the change and the touched groups of its own table{more}"
        case Aggregate():
            return "the change and all rows of the touched groups (floating-point sums are recomputed)"
        case Distinct():
            return "the change and the touched rows of its own table"
        case Join():
            return "the change and, of the other inputs, the rows that join it"
    return "the change" if not _has_join(body) else "the change and, of the other inputs, the rows that join it"


def _has_join(op: Operator) -> bool:
    return isinstance(op, Join) or any(_has_join(child) for child in op.children)


def _names(node: NodePlan) -> dict[str, str]:
    """Names for internal columns that a person can read: those of the table they come from."""
    names: dict[str, str] = {}

    def visit(op: Operator) -> None:
        for child in op.children:
            visit(child)
        match op:
            case Scan(stored=stored):
                names.update(stored)
            case Project(outputs=outputs):
                names.update({n: _readable(e, names) for n, e in outputs})
            case Union():
                names.update(zip(op.columns, (names.get(c, c) for c in op.inputs[0].columns), strict=True))
            case Aggregate():
                names.update({n: _readable(e, names) for n, e in op.keys + op.measures})

    visit(node.body)
    return names


def _readable(expression: exp.Expr, names: dict[str, str]) -> str:
    wrapped = exp.paren(expression.copy())
    for column in list(wrapped.find_all(exp.Column)):
        column.replace(exp.Var(this=names.get(column.name, column.name)))
    return render(wrapped.this)


def _outline(op: Operator, names: dict[str, str]) -> str:
    """The operators of a node on one line, outermost first."""
    match op:
        case Scan(relation=relation):
            return relation
        case Project(child=child):
            return _outline(child, names)
        case Filter(child=child, condition=condition):
            return f"filter {_readable(condition, names)} of {_outline(child, names)}"
        case Join(inputs=inputs, conditions=conditions):
            on = " and ".join(_readable(c, names) for c in conditions)
            return f"join of {', '.join(_outline(i, names) for i in inputs)}" + (f" on {on}" if on else "")
        case Union(inputs=inputs):
            return f"union of {', '.join(_outline(i, names) for i in inputs)}"
        case Distinct(child=child):
            return f"distinct rows of {_outline(child, names)}"
        case Aggregate(child=child, keys=keys, measures=measures):
            what = ", ".join(_readable(e, names) for _, e in measures) or "groups"
            by = f" by {', '.join(_readable(e, names) for _, e in keys)}" if keys else ""
            return f"{what}{by} of {_outline(child, names)}"
