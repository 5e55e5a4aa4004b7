"""Cuts a plan into nodes, each of which one rule can maintain.

A node is stateless operators, then at most one stateful operator, then a finalising projection. A stateful operator
further down becomes a hidden node, named after what it computes, so that equal sub-plans are one node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from penstock.plan.build import Plan
from penstock.plan.functions import function_name
from penstock.plan.operators import (
    CHANGE,
    STATEFUL,
    Accepted,
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Late,
    Named,
    Operator,
    Project,
    Scan,
    SidedJoin,
    TopK,
    Union,
    Values,
    Window,
    bracketed,
    column,
    mapped,
    names_in,
    render,
    walk,
)


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """What one node computes: a body, and the columns of its table as expressions over the body's columns."""

    name: str
    body: Operator
    outputs: tuple[Named, ...]
    hidden: bool
    keys: tuple[str, ...] | None = None
    """The columns that tell the rows of the table apart, where a hidden node is known to see to that."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The relations that the node reads, each once."""
        return tuple(dict.fromkeys(op.relation for op in walk(self.body) if isinstance(op, Scan)))

    @property
    def stateful(self) -> bool:
        return isinstance(self.body, STATEFUL)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.body, self.outputs)


@dataclass(frozen=True)
class _Hidden:
    """The hidden nodes found so far, by name, and what else their names depend on; see ``split``."""

    settings: str
    renamed: Mapping[str, str]
    nodes: dict[str, NodePlan] = field(default_factory=dict)

    def name(self, digest: str) -> str:
        if self.settings:
            digest = hashlib.sha256(f"{digest} {self.settings}".encode()).hexdigest()
        name = f"__node_{digest[:16]}"
        if name in self.renamed:
            name = f"__node_{hashlib.sha256(f'{name} {self.renamed[name]}'.encode()).hexdigest()[:16]}"
        return name


def split(
    plan: Plan, name: str, settings: str = "", renamed: Mapping[str, str] | None = None, *, beside: bool = False
) -> tuple[NodePlan, ...]:
    """The nodes of a view, inputs before readers; the last one is the view itself.

    ``settings`` tells what else the meaning of the plan depends on: only views that have the same share nodes.
    ``renamed``: hidden nodes whose name is taken by one that computes the same of columns that had other types then,
    each with what tells them apart. ``beside``: the view's own table has no state, since a hidden node keeps it.
    """
    hidden = _Hidden(settings, renamed or {})
    outputs: tuple[Named, ...] = tuple((visible, column(internal)) for visible, internal in plan.outputs)
    body = plan.root
    while isinstance(body, Project):
        values = dict(body.outputs)
        outputs = tuple((visible, _inline(e, values)) for visible, e in outputs)
        body = body.child
    keys = _keys(body, outputs) if beside else None
    if isinstance(body, STATEFUL) and not beside:
        body = mapped(body, lambda child: _cut(child, hidden))
    else:
        body = _cut(body, hidden)
    if beside and isinstance(body, Scan):
        body = _only(body, outputs)
    return (*hidden.nodes.values(), NodePlan(name=name, body=body, outputs=outputs, hidden=False, keys=keys))


def _keys(op: Operator, outputs: tuple[Named, ...]) -> tuple[str, ...] | None:
    """The columns that show what a grouping groups by; None unless all of that is shown."""
    shown = {e.name: visible for visible, e in reversed(outputs) if isinstance(e, exp.Column)}
    match op:
        case Aggregate(keys=keys):
            names = tuple(name for name, _ in keys)
        case Distinct(columns=names):
            pass
        case _:
            return None
    return tuple(shown[name] for name in names) if names and set(names) <= shown.keys() else None


def _only(scan: Scan, outputs: tuple[Named, ...]) -> Scan:
    """The scan without columns that nobody asks for: a change of those is none."""
    used = {name for _, e in outputs for name in names_in(e)}
    kept = tuple(pair for pair in scan.stored if pair[0] in used)
    return replace(scan, stored=kept or scan.stored)


def _inline(expression: exp.Expr, values: dict[str, exp.Expr]) -> exp.Expr:
    """The expression over the columns below a projection."""
    wrapped = exp.paren(expression.copy())
    for node in list(wrapped.find_all(exp.Column)):
        value = values[node.name]
        # AND and OR are functions too in the syntax tree, though they are not written as calls.
        is_call = isinstance(value, exp.Func) and function_name(value) is not None
        node.replace(value.copy() if is_call else bracketed(value))
    return wrapped.this.unnest()


def _cut(op: Operator, hidden: _Hidden) -> Operator:
    """The operator with every stateful operator in or below it replaced by a scan of a hidden node."""

    def cut(child: Operator) -> Operator:
        return _cut(child, hidden)

    if isinstance(op, Project) and isinstance(op.child, Aggregate) and not op.child.keys:
        # The one row of an ungrouped aggregate: only a change of what is read of it is a change for its readers.
        return _hide(mapped(op.child, cut), op.outputs, hidden)
    body = mapped(op, cut)
    return _hide(body, tuple((name, column(name)) for name in op.columns), hidden) if isinstance(op, STATEFUL) else body


def _hide(op: Operator, values: tuple[Named, ...], hidden: _Hidden) -> Scan:
    """A scan of the hidden node that computes the operator, and of it these values."""
    stored = tuple((internal, f"v{number}") for number, (internal, _) in enumerate(values, start=1))
    outputs = tuple((f"v{number}", e) for number, (_, e) in enumerate(values, start=1))
    node = NodePlan(name=hidden.name(fingerprint(op, outputs)), body=op, outputs=outputs, hidden=True)
    hidden.nodes.setdefault(node.name, node)
    return Scan(node.name, stored)


def fingerprint(body: Operator, outputs: tuple[Named, ...]) -> str:
    """A digest of what a node computes that does not depend on internal names.

    Two nodes with one fingerprint compute the same rows; the digest names nodes and is never compared with data.
    """
    numbers: dict[str, str] = {}
    text = _canonical(body, numbers) + "|" + ",".join(f"{name}={_plain(e, numbers)}" for name, e in outputs)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(expression: exp.Expr, numbers: dict[str, str]) -> str:
    wrapped = exp.paren(expression.copy())
    for node in list(wrapped.find_all(exp.Column)):
        node.replace(exp.column(numbers[node.name]))
    return render(wrapped.this)


def _canonical(op: Operator, numbers: dict[str, str]) -> str:
    """The operator as text, columns numbered in the order in which they appear."""

    def number(internal: str) -> str:
        return numbers.setdefault(internal, f"${len(numbers) + 1}")

    def named(pairs: tuple[Named, ...]) -> str:
        rendered = [(internal, _plain(e, numbers)) for internal, e in pairs]
        return ",".join(f"{number(internal)}={text}" for internal, text in rendered)

    inner = ";".join(_canonical(child, numbers) for child in op.children)
    match op:
        case Scan(relation=relation, stored=stored):
            return f"scan {relation}({','.join(f'{number(i)}={s}' for i, s in stored)})"
        case Values(columns=names):
            rows = ";".join(",".join(render(value) for value in row) for row in op.rows)
            return f"values({rows}|{','.join(number(n) for n in names)})"
        case Project(outputs=outputs):
            return f"project({inner}|{named(outputs)})"
        case Late(at=at, allowed=allowed):
            return f"late({inner}|{_plain(at, numbers)}|{allowed}|{number(CHANGE)})"
        case Accepted():
            return f"accepted({inner})"
        case Filter(condition=condition):
            return f"filter({inner}|{_plain(condition, numbers)})"
        case Join(conditions=conditions):
            return f"join({inner}|{' AND '.join(_plain(c, numbers) for c in conditions)})"
        case SidedJoin(kind=kind, conditions=conditions, mark=mark):
            marked = f"|{number(mark)}" if mark is not None else ""
            return f"{kind} join({inner}|{' AND '.join(_plain(c, numbers) for c in conditions)}{marked})"
        case Generate(generator=generator, outputs=names):
            text = _plain(generator, numbers)
            return f"generate({inner}|{text}|{','.join(number(n) for n in names)})"
        case Window(partition=partition, functions=functions):
            return f"window({inner}|{','.join(numbers[p] for p in partition)}|{named(functions)})"
        case TopK(order=order, limit=limit, offset=offset):
            return f"top({inner}|{','.join(_plain(e, numbers) for e in order)}|{limit}|{offset})"
        case Union(columns=columns):
            ordered = "/".join(",".join(numbers[c] for c in child.columns) for child in op.inputs)
            return f"union({inner}|{ordered}|{','.join(number(c) for c in columns)})"
        case Distinct():
            return f"distinct({inner})"
        case Aggregate(keys=keys, measures=measures):
            return f"aggregate({inner}|{named(keys)}|{named(measures)})"
