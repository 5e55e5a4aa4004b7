"""From a query's syntax tree to operators.

Names are resolved by Spark's rules against the schemas of the catalog. What has no operator raises ``Unsupported``,
which makes the view FULL; Spark has analysed the query before, so a query that reaches this place is valid.

``select`` reads one SELECT, ``relations`` its FROM clause, ``grouping``, ``windows`` and ``subqueries`` what their
names say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from penstock.plan.operators import Aggregate, Distinct, Filter, Generate, Named, Operator, Project, Union, column
from penstock.plan.prune import prune
from penstock.plan.scope import Scope
from penstock.plan.unsupported import Unsupported
from penstock.vocabulary import Reason

Schema = Mapping[str, tuple[str, ...]]
"""Relation (lower case) to its column names."""

_CODES = {
    "pivots": (Reason.PIVOT, "PIVOT"), "sample": (Reason.NON_DETERMINISTIC, "TABLESAMPLE"),
    "limit": (Reason.LIMIT, "LIMIT"), "offset": (Reason.LIMIT, "OFFSET"),
    "laterals": (Reason.GENERATOR, "LATERAL VIEW"), "match": (Reason.QUERY_FORM, "MATCH"),
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A query as operators, and its visible columns: pairs of the user's name and the internal name."""

    root: Operator
    outputs: tuple[tuple[str, str], ...]
    conditions: tuple[exp.Expr, ...] = ()
    """For a subquery: what relates its rows to the query around it."""
    kept: tuple[str, ...] = ()
    """For a LATERAL subquery: the columns of the rows that it stands beside."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(internal for _, internal in self.outputs)

    def renamed(self, names: list[str]) -> Plan:
        if not names:
            return self
        return replace(self, outputs=tuple(zip(names, self.names, strict=True)))


@dataclass(frozen=True)
class Cte:
    """A CTE with the CTEs that it can see."""

    tree: exp.CTE
    visible: Ctes


Ctes = Mapping[str, Cte]


@dataclass(frozen=True)
class Beside:
    """What a LATERAL subquery stands beside; it is computed for each of these rows.

    What it reads is joined with ``rows``, whose columns are kept through all that it does. An aggregate without
    GROUP BY has a row for each of ``each``, where the columns of ``rows`` are called ``called``, in the same order.
    """

    rows: Operator
    scope: Scope
    each: Operator
    called: tuple[str, ...]


def build(tree: exp.Query, schemas: Schema) -> Plan:
    """The operators of a query.

    >>> from penstock.sql.query import parse_query
    >>> plan = build(parse_query("SELECT a FROM t WHERE b > 1"), {"t": ("a", "b", "c")})
    >>> type(plan.root).__name__, plan.outputs
    ('Project', (('a', '__c4'),))
    """
    plan = Builder(schemas).query(tree, {})
    return Plan(prune(only(plan.root, plan.names)), plan.outputs)


class Builder:
    """Builds one query: gives out internal names, and knows the schemas of what it reads."""

    def __init__(self, schemas: Schema):
        self.schemas = schemas
        self._numbers = count(1)

    def fresh(self) -> str:
        return f"__c{next(self._numbers)}"

    def query(self, tree: exp.Expr, ctes: Ctes, outer: Scope | None = None, beside: Beside | None = None) -> Plan:
        """Any query. ``outer``: the names of the query around, for a subquery in an expression.

        ``beside``: the rows that it is computed for, if it is a LATERAL subquery.
        """
        from penstock.plan.select import Select

        with_ = tree.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise Unsupported(Reason.RECURSIVE_CTE, "a recursive CTE")
            for cte in with_.expressions:
                ctes = {**ctes, cte.alias.lower(): Cte(cte, ctes)}
        match tree:
            case exp.Select():
                return Select(self, tree, ctes, outer, beside).plan()
            case exp.SetOperation():
                return self._ordered(tree, self._set_operation(tree, ctes, beside))
            case exp.Subquery() | exp.Paren():
                refuse_extras(tree, {"this", "alias", "with_", "order", "limit", "offset"})
                return self._ordered(tree, self.query(tree.this, ctes, outer, beside))
        raise Unsupported(Reason.QUERY_FORM, f"the form {type(tree).__name__.upper()}")

    def _ordered(self, tree: exp.Expr, plan: Plan) -> Plan:
        """ORDER BY .. LIMIT behind brackets or a set operation."""
        from penstock.plan.select import is_all, limited

        if not (tree.args.get("limit") or tree.args.get("offset")):
            return plan
        if plan.conditions:
            raise Unsupported(Reason.CORRELATED_SUBQUERY, "LIMIT in a correlated subquery")
        scope = Scope.of(None, plan.outputs)
        order = tree.args.get("order")
        keys = []
        items = order.expressions if order is not None else []
        if order is not None and is_all(order):
            items = [_by_place(items[0], place) for place in range(1, len(plan.outputs) + 1)]
        for item in items:
            by = item.this
            if isinstance(by, exp.Literal) and by.is_int:
                internal: str | None = plan.names[int(by.this) - 1]
            else:
                internal = scope.lookup(by.name) if isinstance(by, exp.Column) and len(by.parts) == 1 else None
            if internal is None:
                raise Unsupported(Reason.LIMIT, "LIMIT behind an ORDER BY of something that is not selected")
            key = item.copy()
            key.set("this", column(internal))
            keys.append(key)
        root = only(plan.root, plan.names + plan.kept)
        return replace(plan, root=limited(self, tree, root, keys, plan.kept))

    # -- set operations -----------------------------------------------------------------------------------------------

    def _set_operation(self, tree: exp.SetOperation, ctes: Ctes, beside: Beside | None) -> Plan:
        if tree.args.get("by_name"):
            raise Unsupported(Reason.SET_OPERATION, f"{type(tree).__name__.upper()} BY NAME")
        refuse_extras(tree, {"this", "expression", "distinct", "with_", "order", "limit", "offset"})
        left, right = (self.query(side, ctes, beside=beside) for side in (tree.left, tree.right))
        outputs = tuple((name, self.fresh()) for name, _ in left.outputs)
        kept = tuple(self.fresh() for _ in left.kept)
        names = (*(internal for _, internal in outputs), *kept)
        inputs = (only(left.root, left.names + left.kept), only(right.root, right.names + right.kept))
        if not isinstance(tree, exp.Union):
            return Plan(self._counted(tree, inputs, names), outputs, kept=kept)
        root: Operator = Union(inputs, names)
        return Plan(Distinct(root) if tree.args.get("distinct") else root, outputs, kept=kept)

    def _counted(self, tree: exp.SetOperation, inputs: tuple[Operator, Operator], names: tuple[str, ...]) -> Operator:
        """INTERSECT and EXCEPT by counting each row on both sides."""
        in_left, in_right, a, b = (self.fresh() for _ in range(4))
        sides = tuple(
            Project(
                child,
                (*((name, column(name)) for name in child.columns),
                 (self.fresh(), _number(int(i == 0))), (self.fresh(), _number(int(i == 1)))),
            )
            for i, child in enumerate(inputs)
        )  # fmt: skip
        stacked = tuple(self.fresh() for _ in names)
        both = Union(sides, (*stacked, in_left, in_right))
        keys = tuple((name, column(old)) for name, old in zip(names, stacked, strict=True))
        # Counts, and no sums: that there are never fewer than none is checked of what counts.
        counts: tuple[Named, ...] = tuple(
            (n, _parsed(f"COUNT_IF({of} = 1)")) for n, of in ((a, in_left), (b, in_right))
        )
        counted = Aggregate(both, keys, counts)
        minimum = isinstance(tree, exp.Intersect)
        if tree.args.get("distinct"):
            wanted = f"{a} > 0 AND {b} > 0" if minimum else f"{a} > 0 AND {b} = 0"
            return only(Filter(counted, _parsed(wanted)), names)
        copies = f"LEAST({a}, {b})" if minimum else f"GREATEST({a} - {b}, 0)"
        generator = _parsed(f"EXPLODE(ARRAY_REPEAT(1, CAST({copies} AS INT)))")
        return only(Generate(counted, generator, (self.fresh(),)), names)


def _by_place(item: exp.Expr, place: int) -> exp.Expr:
    key = item.copy()
    key.set("this", _number(place))
    return key


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _parsed(text: str) -> exp.Expr:
    return exp.maybe_parse(text, dialect="spark")


def refuse_extras(tree: exp.Expr, known: set[str]) -> None:
    """Raise ``Unsupported`` for a clause that is not among the known ones."""
    for key, value in tree.args.items():
        if value and key not in known:
            code, construct = _CODES.get(key, (Reason.QUERY_FORM, f"the clause {key.upper().rstrip('_')}"))
            raise Unsupported(code, construct)


def only(op: Operator, names: tuple[str, ...]) -> Operator:
    """These columns of an operator, in order, and no others."""
    if op.columns == names:
        return op
    return Project(op, tuple((name, column(name)) for name in names))
