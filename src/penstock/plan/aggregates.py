"""Aggregate functions inside expressions: recognising them, and pulling them out into an Aggregate's measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from penstock.plan import functions
from penstock.plan.operators import Named, column, names_in
from penstock.plan.unsupported import Unsupported
from penstock.vocabulary import Reason

SUBQUERY = "__q"
"""How the columns begin that stand for subqueries until they are joined."""

_WITHOUT_DISTINCT = ("min", "max", "bool_and", "bool_or", "every", "some", "any", "collect_set")


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Func) and (
        isinstance(node, exp.AggFunc) or functions.function_name(node) in functions.AGGREGATES
    )


def name_of(node: exp.Expr) -> str:
    """The name of an aggregate function, also inside FILTER or WITHIN GROUP."""
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return functions.function_name(node) or type(node).__name__.lower()


def contains(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate of a group in it; the function of a window is none."""
    return any(is_aggregate(n) and not is_over_window(n) for n in node.walk())


def is_over_window(node: exp.Expr) -> bool:
    """Whether a function is the one that an OVER clause belongs to."""
    above = node.parent
    while isinstance(above, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node, above = above, above.parent
    return isinstance(above, exp.Window) and above.this is node


def check_aggregate(node: exp.Expr) -> None:
    """Raise ``Unsupported`` for an aggregate function that has no rule."""
    name = name_of(node)
    if name in ("grouping", "grouping_id"):
        return
    if name not in functions.ORDER_FREE:
        raise Unsupported(Reason.AGGREGATE_FUNCTION, f"the order-dependent aggregate {name.upper()}")
    if isinstance(node.parent, exp.IgnoreNulls | exp.RespectNulls):
        raise Unsupported(Reason.AGGREGATE_FUNCTION, f"{name.upper()} with IGNORE NULLS")


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
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter | exp.WithinGroup) or is_aggregate(node):
            return column(self._measure(_normal(node)))
        if isinstance(node, exp.Column):
            if node.name.startswith(SUBQUERY):
                return node
            raise Unsupported(Reason.UNRESOLVED_NAME, "a column that is neither grouped nor aggregated")
        return self._parts(node)

    def _parts(self, node: exp.Expr) -> exp.Expr:
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key, self._rewrite(value))
            elif isinstance(value, list):
                node.set(key, [self._rewrite(v) if isinstance(v, exp.Expr) else v for v in value])
        return node

    def _window(self, node: exp.Window) -> exp.Expr:
        """A window function over groups: its arguments are rewritten, the function itself is not an aggregate."""
        holder: exp.Expr = node
        function = node.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            holder, function = function, function.this
        for key, value in list(node.args.items()):
            if key == "this" or value is None:
                continue
            if isinstance(value, exp.Expr):
                node.set(key, self._parts(value))
            elif isinstance(value, list):
                node.set(key, [self._rewrite(v) if isinstance(v, exp.Expr) else v for v in value])
        if isinstance(holder, exp.Filter):
            holder.set("expression", self._parts(holder.expression))
        holder.set("this", self._parts(function))
        return node

    def _measure(self, node: exp.Expr) -> str:
        inner = node.this if isinstance(node, exp.WithinGroup) else node
        if any(contains(child) for child in inner.iter_expressions()):
            raise Unsupported(Reason.AGGREGATE_FUNCTION, "an aggregate of an aggregate")
        for name, known in self.measures:
            if known == node:
                return name
        name = self._fresh()
        self.measures.append((name, node.copy()))
        return name


def _normal(node: exp.Expr) -> exp.Expr:
    """An aggregate without FILTER: what the filter leaves out becomes NULL, which aggregates pass over."""
    if isinstance(node, exp.Filter):
        return _without_distinct(_only_where(_percentile(node.this).copy(), node.expression.this))
    return _without_distinct(_percentile(node))


def _percentile(node: exp.Expr) -> exp.Expr:
    """PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x) as PERCENTILE(x, p), which is the same."""
    if not isinstance(node, exp.WithinGroup):
        return node
    key = node.expression.expressions[0]
    if not isinstance(node.this, exp.PercentileCont) or key.args.get("desc"):
        raise Unsupported(Reason.AGGREGATE_FUNCTION, f"the aggregate {node.sql(dialect='spark')}")
    return exp.Anonymous(this="PERCENTILE", expressions=[key.this.copy(), node.this.this.copy()])


def _only_where(function: exp.Expr, condition: exp.Expr) -> exp.Expr:
    def kept(value: exp.Expr) -> exp.Expr:
        return exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])

    if isinstance(function, exp.Count) and isinstance(function.this, exp.Star):
        return exp.Count(this=kept(exp.Literal.number(1)), big_int=True)
    holder = function.this if isinstance(function.this, exp.Distinct) else function
    if isinstance(holder, exp.Distinct) or isinstance(function, exp.Anonymous):
        first, *others = holder.expressions
        holder.set("expressions", [kept(first.copy()), *others])
    elif isinstance(function.this, exp.Expr):
        function.set("this", kept(function.this.copy()))
    else:
        raise Unsupported(Reason.AGGREGATE_FILTER, f"{name_of(function).upper()} with FILTER")
    return function


def _without_distinct(node: exp.Expr) -> exp.Expr:
    """The largest of distinct values is the largest value."""
    if isinstance(node.this, exp.Distinct) and name_of(node) in _WITHOUT_DISTINCT:
        node = node.copy()
        node.set("this", node.this.expressions[0].copy())
    return node


def distinct_arguments(node: exp.Expr) -> tuple[exp.Expr, ...] | None:
    """The arguments of an aggregate with DISTINCT; None without."""
    if isinstance(node.this, exp.Distinct):
        return tuple(node.this.expressions)
    return None


def of_distinct(node: exp.Expr, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """The aggregate without DISTINCT, over these columns, whose rows are distinct already."""
    plain = node.copy()
    if any(names_in(part) for part in node.iter_expressions() if part is not node.this):
        raise Unsupported(Reason.DISTINCT_AGGREGATE, f"{name_of(node).upper()}(DISTINCT ..) of several values")
    if len(arguments) == 1:
        plain.set("this", arguments[0])
        return plain
    if not isinstance(node, exp.Count):
        raise Unsupported(Reason.DISTINCT_AGGREGATE, f"{name_of(node).upper()}(DISTINCT ..) of several values")
    known = exp.and_(*[exp.Not(this=exp.Is(this=a, expression=exp.Null())) for a in arguments])
    return exp.Count(this=exp.Case(ifs=[exp.If(this=known, true=exp.Literal.number(1))]), big_int=True)
