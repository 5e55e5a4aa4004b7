"""A node in words: its rule, what it computes, and what it reads. ``explain`` shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from penstock.plan.aggregates import name_of
from penstock.plan.functions import function_name
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import (
    Accepted,
    Aggregate,
    Distinct,
    Ended,
    Filter,
    Generate,
    Join,
    Late,
    Operator,
    Project,
    Scan,
    Sessions,
    SidedJoin,
    TopK,
    Union,
    Values,
    Window,
    render,
    walk,
)
from penstock.plan.window_reach import reach_of

_KINDS = {"left": "left join", "full": "full join", "semi": "semi join", "anti": "anti join", "mark": "mark join"}


Labels = Mapping[str, Mapping[str, str]]
"""What the columns of hidden nodes hold, in words, by node and column."""


def describe_node(node: NodePlan, mergeable: bool, labels: Labels) -> dict[str, Any]:
    """``rule``, ``operator`` and ``reads`` of a node, and ``constructs``: what it is made of, and how each is kept."""
    return {
        "rule": _rule(node.body),
        "operator": _outline(node.body, _names(node, labels)),
        "reads": _reads(node.body, mergeable),
        "constructs": tuple((c, _how(op, mergeable)) for op in walk(node.body) for c in _constructs(op)),
    }


def label_columns(node: NodePlan, labels: Labels) -> dict[str, str]:
    """What each column of a node holds, in words; ``labels`` are those of the nodes that it reads."""
    names = _names(node, labels)
    return {name: _readable(e, names) for name, e in node.outputs}


def _constructs(op: Operator) -> list[str]:
    """An operator as the user wrote it; scans and projections are not worth a line."""
    match op:
        case Ended():
            return ["EMIT AFTER WATERMARK"]
        case Late() | Accepted():
            return ["ALLOW LATENESS"]
        case Filter():
            return ["filter"]
        case Join(conditions=conditions):
            return ["inner join" if conditions else "cross join"]
        case SidedJoin(kind=kind):
            return [_KINDS[kind]]
        case Generate(generator=generator):
            return [function_name(generator) or "generator"]
        case Union():
            return ["UNION ALL"]
        case Distinct():
            return ["DISTINCT"]
        case Aggregate(measures=measures):
            names = dict.fromkeys(name_of(e).upper() for _, e in measures)
            return [", ".join(names) or "GROUP BY"]
        case Window(functions=functions):
            return [", ".join(dict.fromkeys(f"{name_of(e.this).upper()} OVER" for _, e in functions))]
        case TopK():
            return ["ORDER BY .. LIMIT"]
    return []


def _how(op: Operator, mergeable: bool) -> str:
    match op:
        case Ended():
            return "the change, and the windows that ended since, shown"
        case Late() | Accepted():
            return "late rows are told from the change"
        case Filter() | Generate() | Union():
            return "applied to the change"
        case Join():
            return "the change joined with the other inputs"
        case SidedJoin():
            return "the rows that the change matches, looked up before and after"
        case Sessions(partition=partition):
            return "the sessions of the touched keys made anew" if partition else "made anew: there is no other key"
        case Aggregate() if mergeable:
            return "the change merged into the stored groups"
        case Aggregate():
            return "the touched groups aggregated anew"
        case Distinct():
            return "a count for each row, kept up to date"
        case Window(partition=partition):
            return "the touched partitions computed anew" if partition else "computed anew: there is one partition"
        case TopK():
            return "the change merged into the first rows"
    return ""


def _rule(body: Operator) -> str:
    match body:
        case Ended():
            return "windows that have ended"
        case Late():
            return "late rows"
        case Accepted():
            return "rows in time"
        case Sessions():
            return "sessions"
        case Aggregate():
            return "aggregate"
        case Distinct():
            return "distinct"
        case Window():
            return "window"
        case TopK():
            return "top-k"
        case Join():
            return "join"
        case SidedJoin(kind=kind):
            return _KINDS[kind]
        case Union():
            return "union"
        case Generate():
            return "generate"
        case Values():
            return "values"
        case Filter(child=child):
            return _rule(child) if not isinstance(child, Scan | Project) else "filter"
        case Project(child=child) if not isinstance(child, Scan):
            return _rule(child)
    return "project"


def _reads(body: Operator, mergeable: bool) -> str:
    match body:
        case Sessions(partition=partition):
            return (
                "the change and all rows with the touched keys" if partition else "all rows: sessions are the only key"
            )
        case Aggregate() if mergeable:
            extremes = any(isinstance(e, exp.Min | exp.Max) for _, e in body.measures)
            more = "; a group's rows when its minimum or maximum is removed" if extremes else ""
            return f"the change and the touched groups of its own table{more}"
        case Aggregate():
            return "the change and all rows of the touched groups, which are aggregated anew"
        case Distinct():
            return "the change and the touched rows of its own table"
        case Window(partition=()):
            return "all rows: without PARTITION BY there is one partition"
        case Window(functions=functions):
            at_end = reach_of(f for _, f in functions if isinstance(f, exp.Window)).is_tail
            return f"the change and {'the end, or all,' if at_end else 'all rows'} of the touched partitions"
        case TopK():
            return "the change and its own table; all rows when one of the first rows is removed"
    kinds = {type(op) for op in walk(body)}
    if Scan not in kinds:
        return "nothing: its rows stand in the query"
    if SidedJoin in kinds:
        return "the change and, on both sides, the rows that match it"
    return "the change" if Join not in kinds else "the change and, of the other inputs, the rows that join it"


def _names(node: NodePlan, labels: Labels) -> dict[str, str]:
    """Names for internal columns that a person can read: those of the table they come from."""
    names: dict[str, str] = {}

    def visit(op: Operator) -> None:
        for child in op.children:
            visit(child)
        match op:
            case Scan(relation=relation, stored=stored):
                names.update({name: labels.get(relation, {}).get(column, column) for name, column in stored})
            case Values(columns=columns):
                names.update({name: f"col{i}" for i, name in enumerate(columns, start=1)})
            case Project(outputs=outputs):
                names.update({n: _readable(e, names) for n, e in outputs})
            case Union(inputs=inputs):
                for name, *parts in zip(op.columns, *(i.columns for i in inputs), strict=True):
                    names[name] = " or ".join(dict.fromkeys(names.get(part, part) for part in parts))
            case Aggregate():
                names.update({n: _readable(e, names) for n, e in op.keys + op.measures})
            case Window(functions=functions):
                names.update({n: _readable(e, names) for n, e in functions})
            case Generate(outputs=outputs, generator=generator):
                names.update(dict.fromkeys(outputs, _readable(generator, names)))
            case SidedJoin(mark=str(mark)):
                names[mark] = "found"

    visit(node.body)
    return names


def _readable(expression: exp.Expr, names: dict[str, str]) -> str:
    if isinstance(expression, exp.Column):
        return names.get(expression.name, expression.name)
    found = expression.copy()
    for column in list(found.find_all(exp.Column)):
        label = names.get(column.name, column.name)
        column.replace(exp.Var(this=label if _is_one_thing(label) else f"({label})"))
    return render(found)


def _is_one_thing(label: str) -> bool:
    """Whether a label can stand in an expression as it is: a name, a number or a call.

    >>> [_is_one_thing(label) for label in ("a", "SUM(a * (b + 1))", "a + b", "SUM(a) + COUNT(*)")]
    [True, True, False, False]
    """
    if not re.fullmatch(r"[\w.]+(\(.*\))?", label, re.DOTALL):
        return False
    depth = 0
    for i, letter in enumerate(label):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0 and i < len(label) - 1:
            return False
    return True


def in_words(text: str, node: NodePlan) -> str:
    """A text over a node's internal columns with names that a person can read."""
    names = _names(node, {})
    return re.sub(r"`?(__c\d+)`?", lambda found: names.get(found[1], found[1]), text)


def _outline(op: Operator, names: dict[str, str]) -> str:
    """The operators of a node on one line, outermost first."""
    match op:
        case Scan(relation=relation):
            return relation
        case Values(rows=rows):
            return "one row" if len(rows) == 1 else f"{len(rows)} rows"
        case Project(child=child):
            return _outline(child, names)
        case Ended(child=child):
            return f"ended windows of {_outline(child, names)}"
        case Late(child=child):
            return f"late rows of {_outline(child, names)}"
        case Accepted(child=child):
            return f"rows in time of {_outline(child, names)}"
        case Filter(child=child, condition=condition):
            return f"filter {_readable(condition, names)} of {_outline(child, names)}"
        case Join(inputs=inputs, conditions=conditions):
            on = " and ".join(_readable(c, names) for c in conditions)
            return f"join of {', '.join(_outline(i, names) for i in inputs)}" + (f" on {on}" if on else "")
        case SidedJoin(kind=kind, left=left, right=right, conditions=conditions):
            on = " and ".join(_readable(c, names) for c in conditions)
            return f"{_KINDS[kind]} of {_outline(left, names)} with {_outline(right, names)}" + (
                f" on {on}" if on else ""
            )
        case Generate(child=child, generator=generator):
            return f"{_readable(generator, names)} of {_outline(child, names)}"
        case Window(child=child, functions=functions):
            return f"{', '.join(_readable(e, names) for _, e in functions)} of {_outline(child, names)}"
        case TopK(child=child, order=order, limit=limit, offset=offset):
            by = ", ".join(_readable(e, names) for e in order)
            skipped = f" after {offset}" if offset else ""
            return f"first {limit}{skipped} by {by} of {_outline(child, names)}"
        case Union(inputs=inputs):
            return f"union of {', '.join(_outline(i, names) for i in inputs)}"
        case Distinct(child=child):
            columns = ", ".join(names.get(c, c) for c in op.columns)
            return f"distinct {columns} of {_outline(child, names)}"
        case Aggregate(child=child, keys=keys, measures=measures):
            what = ", ".join(_readable(e, names) for _, e in measures) or "groups"
            by = f" by {', '.join(_readable(e, names) for _, e in keys)}" if keys else ""
            return f"{what}{by} of {_outline(child, names)}"
