"""Window functions inside expressions: recognising them, and pulling them out into Window operators.

Functions with the same PARTITION BY share an operator; different partitionings are stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan import functions
from penstock.plan.aggregates import name_of
from penstock.plan.operators import Named, Operator, Project, Window, column, render
from penstock.plan.unsupported import Unsupported
from penstock.vocabulary import Reason

if TYPE_CHECKING:
    from penstock.plan.build import Builder

_BY_PLACE = frozenset("first first_value last last_value nth_value".split())


def inline_named(node: exp.Expr, named: Mapping[str, exp.Window]) -> exp.Expr:
    """The expression with ``OVER name`` written out from the WINDOW clause."""
    for window in list(node.find_all(exp.Window)):
        alias = window.args.get("alias")
        if alias is None:
            continue
        definition = named.get(alias.name.lower())
        if definition is None:
            raise Unsupported(Reason.WINDOW_FUNCTION, f"the unknown window {alias.name!r}")
        window.set("alias", None)
        for key in ("partition_by", "order", "spec"):
            value = definition.args.get(key)
            if value and not window.args.get(key):
                window.set(key, [v.copy() for v in value] if isinstance(value, list) else value.copy())
    return node


def extract(
    builder: Builder, source: Operator, items: list[exp.Expr], within: tuple[str, ...] = ()
) -> tuple[Operator, list[exp.Expr]]:
    """The source with window functions computed, and the expressions over their columns.

    ``within``: columns whose values every partition is within.
    """
    found: list[tuple[str, exp.Window]] = []
    rewritten = []
    for item in items:
        wrapped = exp.paren(item.copy())
        for node in [n for n in wrapped.find_all(exp.Window) if n.find_ancestor(exp.Window) is None]:
            _check(node)
            if within:
                node.set("partition_by", [*map(column, within), *(node.args.get("partition_by") or ())])
            name = next((name for name, known in found if known == node), None)
            if name is None:
                name = builder.fresh()
                found.append((name, node.copy()))
            node.replace(column(name))
        rewritten.append(wrapped.this)
    by_partition: dict[str, list[Named]] = {}
    for name, window in found:
        keys = ", ".join(render(e) for e in window.args.get("partition_by") or ())
        by_partition.setdefault(keys, []).append((name, window))
    for group in by_partition.values():
        source = _window(builder, source, group)
    return source, rewritten


def _window(builder: Builder, source: Operator, group: list[Named]) -> Operator:
    partition: list[str] = []
    computed: list[Named] = []
    for e in group[0][1].args.get("partition_by") or ():
        inner = e.unnest()
        if isinstance(inner, exp.Column) and inner.name in source.columns:
            partition.append(inner.name)
        else:
            computed.append((builder.fresh(), e.copy()))
            partition.append(computed[-1][0])
    if computed:
        source = Project(source, (*((name, column(name)) for name in source.columns), *computed))
    functions_ = []
    for name, window in group:
        own = window.copy()
        own.set("partition_by", [column(p) for p in partition])
        functions_.append((name, own))
    return Window(source, tuple(dict.fromkeys(partition)), tuple(functions_))


def _check(node: exp.Window) -> None:
    name = name_of(node.this)
    if any(isinstance(n, exp.Window) for n in node.this.walk()):
        raise Unsupported(Reason.WINDOW_FUNCTION, "a window function of a window function")
    if isinstance(node.this, exp.Func) and node.this.find(exp.Distinct):
        raise Unsupported(Reason.WINDOW_FUNCTION, f"{name.upper()}(DISTINCT ..) over a window")
    if name in ("collect_list", "collect_set", "array_agg"):
        raise Unsupported(Reason.WINDOW_FUNCTION, f"{name.upper()} over a window, whose order Spark leaves open")
    if name in _BY_PLACE and node.args.get("order") is None:
        raise Unsupported(Reason.WINDOW_FUNCTION, f"{name.upper()} over a window without ORDER BY")
    if name not in functions.WINDOW_ONLY | functions.ORDER_FREE | _BY_PLACE:
        raise Unsupported(Reason.WINDOW_FUNCTION, f"the function {name.upper()} over a window")
