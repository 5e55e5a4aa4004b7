"""LATERAL subqueries: a query that is computed for each row of what stands before it in FROM.

| the subquery                                        | becomes                                                       |
|-----------------------------------------------------|---------------------------------------------------------------|
| rows, joined with INNER or CROSS                    | the rows before it joined with those that the subquery reads   |
| one aggregate without GROUP BY                      | left join with a group for each of the values that it asks for |
| groups, DISTINCT, LIMIT, windows, or any LEFT JOIN  | computed for each of these values, then joined by them         |

The values that it asks for are the distinct ones of the columns that it uses of the rows before it. Groups, partitions
and limits are those of each value, whatever relates the two: equality, another comparison, or an expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan import functions
from penstock.plan.aggregates import contains, name_of
from penstock.plan.build import Beside, Ctes, Plan
from penstock.plan.grouping import aggregated
from penstock.plan.operators import Distinct, Join, Named, Operator, Project, SidedJoin, column, conjuncts
from penstock.plan.scope import NotedScope
from penstock.plan.unsupported import Unsupported
from penstock.vocabulary import Reason

if TYPE_CHECKING:
    from penstock.plan.build import Builder
    from penstock.plan.relations import From

_LISTS = frozenset("array_agg collect_list collect_set".split())


def beside(builder: Builder, ctes: Ctes, left: From, lateral: exp.Lateral, on: exp.Expr | None, *, outer: bool) -> From:
    """What stands before a LATERAL subquery, joined with it. ``outer``: rows for which it gives none stay."""
    rows, scope = left
    noted = NotedScope.noting(scope)
    tree = lateral.this
    trial = builder.query(tree, ctes, beside=Beside(rows, noted, rows, rows.columns))
    if not noted.used:
        return _joined(left, builder.query(tree, ctes), lateral, on, (), outer=outer)
    if not outer and _is_plain(tree):
        return _narrowed(left, trial, lateral, on)
    copies = {name: builder.fresh() for name in rows.columns if name in noted.used}
    values = Distinct(Project(rows, tuple((copy, column(name)) for name, copy in copies.items())))
    if _is_single(tree) and is_true(on) and not (outer and tree.this.args.get("having")):
        single = builder.query(tree, ctes, beside=Beside(values, scope.renamed(copies), rows, tuple(copies)))
        return _narrowed(left, single, lateral, None)
    plan = builder.query(tree, ctes, beside=Beside(values, scope.renamed(copies), values, values.columns))
    found = tuple(
        exp.NullSafeEQ(this=column(name), expression=column(copy)) for name, copy in zip(copies, plan.kept, strict=True)
    )
    return _joined(left, plan, lateral, on, found, outer=outer)


def for_each(builder: Builder, around: Beside, source: Operator, keys: list[Named], measures: list[Named]) -> Operator:
    """An aggregate without GROUP BY: a row for each row around, also where there is nothing to aggregate."""
    found = [(builder.fresh(), e) for _, e in keys]
    values = [(builder.fresh(), e) for _, e in measures]
    groups = aggregated(builder, source, found, values)
    same = tuple(
        exp.NullSafeEQ(this=column(name), expression=column(key))
        for name, (key, _) in zip(around.called, found, strict=True)
    )
    return Project(
        SidedJoin(kind="left", left=around.each, right=groups, conditions=same),
        (
            *((name, column(name)) for name in around.each.columns),
            *((key, column(name)) for (key, _), name in zip(keys, around.called, strict=True)),
            *((name, _of_nothing(e, column(value))) for (name, e), (value, _) in zip(measures, values, strict=True)),
        ),
    )


def _of_nothing(function: exp.Expr, value: exp.Expr) -> exp.Expr:
    """The value of an aggregate, also where there was no row to aggregate."""
    name = name_of(function)
    if name in functions.ZERO_OF_NOTHING:
        return exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])
    if name in _LISTS:
        return exp.Coalesce(this=value, expressions=[exp.Anonymous(this="ARRAY", expressions=[])])
    if name not in functions.ORDER_FREE:
        raise Unsupported(Reason.LATERAL, f"{name.upper()} in a LATERAL subquery")
    return value


def _narrowed(left: From, plan: Plan, lateral: exp.Lateral, on: exp.Expr | None) -> From:
    """A plan that has the rows before it in it."""
    from penstock.plan.relations import aliased, filtered, resolved

    root, found = aliased(plan, lateral)
    scope = left[1].renamed(dict(zip(left[0].columns, plan.kept, strict=True))).joined(found, {})
    return filtered(root, () if is_true(on) else conjuncts(resolved(on, scope))), scope  # type: ignore[arg-type]


def _joined(
    left: From, plan: Plan, lateral: exp.Lateral, on: exp.Expr | None, found: tuple[exp.Expr, ...], *, outer: bool
) -> From:
    from penstock.plan.relations import aliased, resolved

    rows, scope = left
    root, added = aliased(plan, lateral)
    both = scope.joined(added, {})
    conditions = found if is_true(on) else (*found, *conjuncts(resolved(on, both)))  # type: ignore[arg-type]
    if outer:
        return SidedJoin(kind="left", left=rows, right=root, conditions=conditions), both
    inputs, before = (rows.inputs, rows.conditions) if isinstance(rows, Join) else ((rows,), ())
    return Join((*inputs, root), before + conditions), both


def is_true(on: exp.Expr | None) -> bool:
    """Whether a join has no condition."""
    return on is None or (isinstance(on.unnest(), exp.Boolean) and bool(on.unnest().this))


def _is_plain(tree: exp.Expr) -> bool:
    """Whether a query only joins, filters and computes, so that it may do so for all rows at once."""
    match tree:
        case exp.Subquery() | exp.Paren():
            return not _has(tree, "with_", "limit", "offset") and _is_plain(tree.this)
        case exp.Union():
            whole = not _has(tree, "with_", "limit", "offset", "distinct")
            return whole and _is_plain(tree.left) and _is_plain(tree.right)
        case exp.Select():
            return (
                not _has(tree, "group", "having", "distinct", "limit", "offset", "qualify", "with_")
                and not any(contains(e) or e.find(exp.Window) for e in tree.expressions)
                and not _in_derived(tree)
            )
    return False


def _in_derived(tree: exp.Select) -> bool:
    source = tree.args.get("from_")
    return source is not None and isinstance(source.this, exp.Subquery) and not _is_plain(source.this)


def _is_single(tree: exp.Expr) -> bool:
    """Whether a query is one aggregate without GROUP BY, and nothing behind it."""
    select = tree.this if isinstance(tree, exp.Subquery) else tree
    if not isinstance(select, exp.Select) or _has(tree, "with_", "limit", "offset"):
        return False
    if _has(select, "group", "distinct", "limit", "offset", "qualify", "with_"):
        return False
    aggregates = any(contains(e) for e in select.expressions) or _has(select, "having")
    return aggregates and not any(e.find(exp.Window) for e in select.expressions)


def _has(tree: exp.Expr, *clauses: str) -> bool:
    return any(tree.args.get(clause) for clause in clauses)
