"""Subqueries in expressions become joins.

| in WHERE or HAVING          | becomes                                                                           |
|-----------------------------|-----------------------------------------------------------------------------------|
| EXISTS, IN                  | semi join                                                                         |
| NOT EXISTS                  | anti join                                                                         |
| NOT IN                      | anti join, and an anti join that finds NULLs on either side                       |

| anywhere else               | becomes                                                                           |
|-----------------------------|-----------------------------------------------------------------------------------|
| EXISTS                      | mark join                                                                         |
| IN                          | mark join; NOT IN two: found, and not known                                       |
| an aggregate                | cross join with its one row; when correlated, left join with a group for each key |

Outside WHERE and HAVING, IN with a subquery is true or false and never NULL, NOT IN too: so it is in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan import functions
from penstock.plan.aggregates import SUBQUERY, Extractor, contains, name_of
from penstock.plan.build import Ctes, Plan, only
from penstock.plan.operators import (
    Aggregate,
    Distinct,
    Join,
    Kind,
    Named,
    Operator,
    Project,
    SidedJoin,
    TopK,
    Values,
    bracketed,
    column,
    found_by,
    names_in,
)
from penstock.plan.relations import filtered
from penstock.plan.scope import Scope
from penstock.plan.unsupported import Unsupported
from penstock.vocabulary import Reason

if TYPE_CHECKING:
    from penstock.plan.build import Builder
    from penstock.plan.select import Select as _Opened

_NULL_OF_NOTHING = functions.ORDER_FREE - functions.ZERO_OF_NOTHING - {"collect_list", "collect_set", "array_agg"}


@dataclass(frozen=True)
class _Subquery:
    kind: str
    """``exists``, ``in`` or ``scalar``."""
    tree: exp.Expr
    scope: Scope
    operands: tuple[exp.Expr, ...] = ()
    """What stands before IN."""


class Subqueries:
    """The subqueries of one SELECT: taken out of its expressions as columns, then joined to its source."""

    def __init__(self, builder: Builder, ctes: Ctes):
        self._builder = builder
        self._ctes = ctes
        self._found: dict[str, _Subquery] = {}
        self._values: dict[tuple[str, bool], exp.Expr] = {}
        """The value of a subquery, or of its negation, over the columns that were joined for it."""
        self.rewrite: Callable[[exp.Expr], exp.Expr] = lambda e: e
        """Turns an expression over rows into one over groups, once the SELECT has grouped."""

    # -- taking out ---------------------------------------------------------------------------------------------------

    def take_out(self, node: exp.Expr, scope: Scope, resolve: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """The expression with a column in the place of every subquery."""
        wrapped = exp.paren(node)
        while (found := _first(wrapped)) is not None:
            name = f"{SUBQUERY}{self._builder.fresh()}"
            self._found[name] = self._described(found, scope, resolve)
            found.replace(column(name))
        return wrapped.this

    @staticmethod
    def _described(node: exp.Expr, scope: Scope, resolve: Callable[[exp.Expr], exp.Expr]) -> _Subquery:
        match node:
            case exp.Exists():
                return _Subquery("exists", node.this, scope)
            case exp.In():
                operand = node.this.unnest()
                parts = operand.expressions if isinstance(operand, exp.Tuple) else [operand]
                return _Subquery("in", node.args["query"], scope, tuple(resolve(p) for p in parts))
            case exp.Subquery():
                return _Subquery("scalar", node, scope)
        raise Unsupported(Reason.SUBQUERY, f"a subquery with {type(node.parent).__name__.upper()}")

    # -- joining ------------------------------------------------------------------------------------------------------

    def restrict(self, source: Operator, condition: exp.Expr) -> Operator:
        """The rows of the source that satisfy a condition, which may be or contain subqueries."""
        inner = condition.unnest()
        negated = isinstance(inner, exp.Not)
        tested = inner.this.unnest() if negated else inner
        subquery = self._found.get(tested.name) if isinstance(tested, exp.Column) else None
        if subquery is not None and subquery.kind in ("exists", "in"):
            return self._filtered(source, subquery, negated=negated)
        source, (rest,) = self.attach_all(source, [condition])
        return filtered(source, (rest,))

    def attach_all(self, source: Operator, values: list[exp.Expr]) -> tuple[Operator, list[exp.Expr]]:
        """The source with every subquery of the values joined to it, and the values over its columns."""
        results = []
        for value in values:
            wrapped = exp.paren(value.copy())
            nested = [c for c in wrapped.find_all(exp.Column) if c.name.startswith(SUBQUERY)]
            if any(self._found[c.name].kind == "in" for c in nested):
                wrapped = exp.paren(_with_inner_nots(wrapped.this))
                nested = [c for c in wrapped.find_all(exp.Column) if c.name.startswith(SUBQUERY)]
            for node in nested:
                whole = _negation(node) if self._found[node.name].kind == "in" else None
                key = (node.name, whole is not None)
                if key not in self._values or not names_in(self._values[key]) <= set(source.columns):
                    source, self._values[key] = self._attached(source, self._found[node.name], negated=key[1])
                (whole or node).replace(exp.paren(self._values[key].copy()))
            results.append(wrapped.this)
        return source, results

    def _filtered(self, source: Operator, subquery: _Subquery, *, negated: bool) -> Operator:
        kind: Kind = "anti" if negated else "semi"
        if subquery.kind == "exists":
            return self._sided(kind, source, self._rows(subquery))
        found = self._sided(kind, source, *self._compared(subquery))
        return self._sided(kind, found, *self._unknown(subquery)) if negated else found

    def _attached(self, source: Operator, subquery: _Subquery, *, negated: bool) -> tuple[Operator, exp.Expr]:
        """The source with a subquery's value as columns, and the expression of the value."""
        if subquery.kind == "scalar":
            return self._scalar(source, subquery)
        if subquery.kind == "exists":
            marked = self._sided("mark", source, self._rows(subquery))
            return marked, column(marked.columns[-1])
        found = self._sided("mark", source, *self._compared(subquery))
        if not negated:
            return found, column(found.columns[-1])
        both = self._sided("mark", found, *self._unknown(subquery))
        return both, exp.not_(exp.paren(exp.or_(column(found.columns[-1]), column(both.columns[-1]))))

    def _sided(self, kind: Kind, source: Operator, plan: Plan, more: tuple[exp.Expr, ...] = ()) -> SidedJoin:
        """The source joined with a subquery by what relates it to the query around, and by ``more``."""
        mine = set(plan.root.columns)
        conditions = (*(_with_outer(c, mine, self.rewrite) for c in plan.conditions), *more)
        for condition in conditions:
            if not names_in(condition) <= set(source.columns) | mine:
                raise Unsupported(Reason.CORRELATED_SUBQUERY, "a subquery that uses names of a query further out")
        return SidedJoin(
            kind=kind,
            left=source,
            right=plan.root,
            conditions=conditions,
            mark=self._builder.fresh() if kind == "mark" else None,
        )

    # -- EXISTS and IN ------------------------------------------------------------------------------------------------

    def _rows(self, subquery: _Subquery) -> Plan:
        """The rows that EXISTS asks for; when they do not depend on the query around, one row if there are any."""
        tree = _without_order(subquery.tree)
        if isinstance(tree, exp.Select) and not _aggregates(tree) and not _generates(tree):
            tree.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
            tree.set("distinct", None)
        plan = self._builder.query(tree, self._ctes, subquery.scope)
        if plan.conditions:
            return plan
        one = (self._builder.fresh(), exp.Literal.number(1))
        return Plan(Distinct(Project(plan.root, (one,))), (("one", one[0]),))

    def _compared(self, subquery: _Subquery) -> tuple[Plan, tuple[exp.Expr, ...]]:
        """The rows that IN compares with, and the equations."""
        plan = self._builder.query(_unwrapped(subquery.tree), self._ctes, subquery.scope)
        if len(plan.outputs) != len(subquery.operands):
            raise Unsupported(Reason.SUBQUERY, "IN with a subquery of several columns")
        operands = [self.rewrite(o) for o in subquery.operands]
        return plan, tuple(
            exp.EQ(this=bracketed(o), expression=column(name)) for o, name in zip(operands, plan.names, strict=True)
        )

    def _unknown(self, subquery: _Subquery) -> tuple[Plan, tuple[exp.Expr, ...]]:
        """The rows for which IN is neither true nor false, and the condition. It asks only which values are NULL."""
        plan, _ = self._compared(subquery)
        if len(plan.outputs) > 1:
            raise Unsupported(Reason.SUBQUERY, "NOT IN with several columns")
        carried = [n for n in plan.root.columns if n not in plan.names]
        missing = self._builder.fresh()
        is_null = exp.Is(this=column(plan.names[0]), expression=exp.Null())
        kinds = Distinct(Project(plan.root, (*((n, column(n)) for n in carried), (missing, is_null))))
        operand = exp.Is(this=exp.paren(self.rewrite(subquery.operands[0])), expression=exp.Null())
        return Plan(kinds, (), plan.conditions), (exp.paren(exp.or_(operand, column(missing))),)

    # -- scalar subqueries --------------------------------------------------------------------------------------------

    def _scalar(self, source: Operator, subquery: _Subquery) -> tuple[Operator, exp.Expr]:
        from penstock.plan.select import Select

        tree = _unwrapped(subquery.tree)
        if not isinstance(tree, exp.Select) or not _aggregates(tree) or tree.args.get("group") or _extras(tree):
            return self._single(source, tree, subquery)
        select = Select(self._builder, tree, self._ctes, subquery.scope)
        select.restrict()
        items = select.items()
        extractor = Extractor([], self._builder.fresh)
        if not select.conditions:
            plan = self._builder.query(tree, self._ctes)
            return _crossed(source, only(plan.root, plan.names)), column(plan.names[0])
        value = extractor.rewrite(items[0][1])
        joined = self._sided("left", source, *self._grouped(source, select, extractor.measures))
        wrapped = exp.paren(value)
        for name, function in extractor.measures:
            called = name_of(function)
            if called in functions.ZERO_OF_NOTHING:
                for node in [c for c in wrapped.find_all(exp.Column) if c.name == name]:
                    node.replace(exp.Coalesce(this=column(name), expressions=[exp.Literal.number(0)]))
            elif called not in _NULL_OF_NOTHING:
                raise Unsupported(Reason.SCALAR_SUBQUERY, f"{called.upper()} in a correlated subquery")
        return joined, wrapped.this

    def _single(self, source: Operator, tree: exp.Expr, subquery: _Subquery) -> tuple[Operator, exp.Expr]:
        """A subquery that can be seen to give at most one row."""
        plan = self._builder.query(tree, self._ctes, subquery.scope)
        top = plan.root
        while isinstance(top, Project):
            top = top.child
        if not _at_most_one(top) or plan.conditions:
            raise Unsupported(Reason.SCALAR_SUBQUERY, "a scalar subquery that is not a single aggregate")
        return self._sided("left", source, Plan(only(plan.root, plan.names), plan.outputs)), column(plan.names[0])

    def _grouped(self, source: Operator, select: _Opened, measures: list[Named]) -> tuple[Plan, tuple[exp.Expr, ...]]:
        """The measures for each value of the query around that the subquery depends on, and how to find them."""
        mine = set(select.source.columns)
        outside = {n for c in select.conditions for n in names_in(c)} | {n for _, e in measures for n in names_in(e)}
        outside -= mine
        simple = all(_is_equation(c, mine) for c in select.conditions)
        if simple and all(names_in(e) <= mine for _, e in measures):
            keys, conditions = [], []
            for condition in select.conditions:
                plain = condition.unnest()
                assert isinstance(plain, exp.EQ)
                a, b = (plain.left, plain.right) if names_in(plain.left) <= mine else (plain.right, plain.left)
                keys.append((self._builder.fresh(), a))
                conditions.append(found_by(keys[-1][0], b))
            return Plan(Aggregate(select.source, tuple(keys), tuple(measures)), (), tuple(conditions)), ()
        return self._by_outer_values(source, select, measures, sorted(outside))

    def _by_outer_values(
        self, source: Operator, select: _Opened, measures: list[Named], outside: list[str]
    ) -> tuple[Plan, tuple[exp.Expr, ...]]:
        """For any relation: the distinct values of the query around, joined with the subquery's rows, and grouped."""
        values = {name: self.rewrite(column(name)) for name in outside}
        if any(not names_in(e) <= set(source.columns) for e in values.values()):
            raise Unsupported(Reason.CORRELATED_SUBQUERY, "a subquery that uses names of a query further out")
        copies = {name: self._builder.fresh() for name in outside}
        distinct = Distinct(Project(source, tuple((copies[name], e) for name, e in values.items())))

        def inside(e: exp.Expr) -> exp.Expr:
            wrapped = exp.paren(e.copy())
            for node in list(wrapped.find_all(exp.Column)):
                if node.name in copies:
                    node.replace(column(copies[node.name]))
            return wrapped.this

        joined = Join((distinct, select.source), tuple(inside(c) for c in select.conditions))
        keys = {name: self._builder.fresh() for name in outside}
        grouped = Aggregate(
            joined,
            tuple((keys[name], column(copies[name])) for name in outside),
            tuple((name, inside(e)) for name, e in measures),
        )
        found = tuple(exp.NullSafeEQ(this=column(keys[name]), expression=values[name].copy()) for name in outside)
        return Plan(grouped, ()), found


def _first(root: exp.Expr) -> exp.Expr | None:
    """The first subquery construct in an expression, outermost first."""
    for node in root.walk():
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            return node
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return node
        if isinstance(node, exp.Subquery):
            return node
        if isinstance(node, exp.Query):
            raise Unsupported(Reason.SUBQUERY, f"a subquery with {type(node.parent).__name__.upper()}")
    return None


def _at_most_one(op: Operator) -> bool:
    """Whether an operator can be seen to give at most one row."""
    match op:
        case TopK(limit=limit):
            return limit <= 1
        case Aggregate(keys=keys):
            return not keys
        case Values(rows=rows):
            return len(rows) <= 1
    return False


def _unwrapped(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Subquery | exp.Paren) and not any(
        tree.args.get(key) for key in ("with_", "order", "limit", "offset")
    ):
        tree = tree.this
    return tree


def _without_order(tree: exp.Expr) -> exp.Expr:
    """A query of which only matters whether it has rows: no order, and no limit above zero."""
    tree = _unwrapped(tree).copy()
    if tree.args.get("offset"):
        return tree
    limit = tree.args.get("limit")
    number = limit.expression if limit is not None else None
    if isinstance(number, exp.Literal) and number.is_int and int(number.this) > 0:
        tree.set("limit", None)
    if not tree.args.get("limit"):
        tree.set("order", None)
    return tree


def _negation(node: exp.Expr) -> exp.Not | None:
    """The NOT right above an expression, if there is one."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return above if isinstance(above, exp.Not) else None


def _with_inner_nots(tree: exp.Expr) -> exp.Expr:
    """The same condition with every NOT moved inwards over AND and OR, as Spark does before it looks at subqueries."""

    def inward(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Not):
            return node
        match node.this.unnest():
            case exp.And() | exp.Or() as both:
                kind = exp.Or if isinstance(both, exp.And) else exp.And
                sides = [exp.not_(exp.paren(side.copy())) for side in (both.left, both.right)]
                return exp.paren(kind(this=sides[0], expression=sides[1]))
            case exp.Not(this=inner):
                return exp.paren(inner.copy())
        return node

    return tree.transform(inward)


def _generates(tree: exp.Select) -> bool:
    return any(
        functions.function_name(f) in functions.GENERATORS for e in tree.expressions for f in e.find_all(exp.Func)
    )


def _aggregates(tree: exp.Select) -> bool:
    clauses = tree.args.get("group") is not None or tree.args.get("having") is not None
    return clauses or any(contains(e) for e in tree.expressions if not isinstance(e, exp.Star))


def _extras(tree: exp.Select) -> bool:
    """Whether a SELECT has what an aggregate in a subquery cannot have here."""
    return len(tree.expressions) != 1 or any(
        tree.args.get(key) for key in ("having", "qualify", "distinct", "limit", "offset", "with_")
    )


def _is_equation(condition: exp.Expr, mine: set[str]) -> bool:
    plain = condition.unnest()
    if not isinstance(plain, exp.EQ):
        return False
    a, b = names_in(plain.left), names_in(plain.right)
    return (a <= mine and not b & mine) or (b <= mine and not a & mine)


def _with_outer(condition: exp.Expr, mine: set[str], rewrite: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A condition whose columns of the query around are those of its groups, if it grouped."""
    wrapped = exp.paren(condition.copy())
    for node in [c for c in wrapped.find_all(exp.Column) if c.name not in mine]:
        node.replace(rewrite(node.copy()))
    return wrapped.this


def _crossed(source: Operator, one: Operator) -> Operator:
    """The source beside a relation of one row."""
    if isinstance(source, Join):
        return Join((*source.inputs, one), source.conditions)
    return Join((source, one), ())
