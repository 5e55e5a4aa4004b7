"""Aggregate functions inside expressions: recognising them, and pulling them out into an Aggregate's measures."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.plan.functions import function_name
from penstock.plan.operators import Named, column
from penstock.plan.unsupported import Unsupported

SUPPORTED = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.CountIf)


def contains(node: exp.Expr) -> bool:
    return node.find(exp.AggFunc) is not None


def refuse_aggregate(node: exp.Expr) -> None:
    """Raise ``Unsupported`` for an aggregate function, or a form of one, that has no rule."""
    if isinstance(node, exp.Filter):
        raise Unsupported("AGGREGATE_FILTER", "an aggregate with FILTER")
    if isinstance(node, exp.WithinGroup | exp.IgnoreNulls):
        raise Unsupported("AGGREGATE_FUNCTION", f"the aggregate {node.sql(dialect='spark')}")
    if not isinstance(node, exp.AggFunc):
        return
    name = (function_name(node) or node.sql_name()).upper()
    if not isinstance(node, SUPPORTED):
        raise Unsupported("AGGREGATE_FUNCTION", f"the aggregate {name}")
    if isinstance(node.this, exp.Distinct):
        raise Unsupported("DISTINCT_AGGREGATE", f"{name}(DISTINCT ..)")
    if node.expressions:
        raise Unsupported("AGGREGATE_FUNCTION", f"{name} of several arguments")


def bare(node: exp.Expr) -> exp.Expr:
    """The expression without brackets, for comparing."""
    wrapped = exp.paren(node.copy())
    return wrapped.transform(lambda inner: inner.this if isinstance(inner, exp.Paren) else inner).unnest()


class Extractor:
    """Rewrites expressions over rows into expressions over groups: keys and measures become columns."""

    def __init__(self, keys: list[Named], fresh: Callable[[], str]):
        self._keys = [(name, bare(e)) for name, e in keys]
        self._fresh = fresh
        self.measures: list[Named] = []

    def rewrite(self, node: exp.Expr) -> exp.Expr:
        wrapped = exp.paren(node.copy())
        wrapped.set("this", self._rewrite(wrapped.this))
        return wrapped.this

    def _rewrite(self, node: exp.Expr) -> exp.Expr:
        plain = bare(node)
        for name, key in self._keys:
            if plain == key:
                return column(name)
        if isinstance(node, exp.AggFunc):
            return column(self._measure(node))
        if isinstance(node, exp.Column):
            raise Unsupported("UNRESOLVED_NAME", "a column that is neither grouped nor aggregated")
        for key_, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key_, self._rewrite(value))
            elif isinstance(value, list):
                node.set(key_, [self._rewrite(v) if isinstance(v, exp.Expr) else v for v in value])
        return node

    def _measure(self, node: exp.Expr) -> str:
        if node.this is not None and contains(node.this):
            raise Unsupported("AGGREGATE_FUNCTION", "an aggregate of an aggregate")
        for name, known in self.measures:
            if known == node:
                return name
        name = self._fresh()
        self.measures.append((name, node.copy()))
        return name
