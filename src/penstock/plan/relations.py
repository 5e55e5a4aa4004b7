"""The FROM clause: tables, derived tables, CTEs, VALUES, joins of every kind, and LATERAL VIEW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan import functions
from penstock.plan.build import Beside, Ctes, Plan, only, refuse_extras
from penstock.plan.check import check_expression
from penstock.plan.lateral import beside, is_true
from penstock.plan.operators import (
    Filter,
    Generate,
    Join,
    Kind,
    Named,
    Operator,
    Project,
    Scan,
    SidedJoin,
    Values,
    column,
    conjuncts,
    names_in,
)
from penstock.plan.scope import Scope, resolve_columns
from penstock.plan.unsupported import Unsupported
from penstock.sql.dialect import SparkSql
from penstock.sql.names import key_of
from penstock.sql.query import name_of
from penstock.vocabulary import Reason

if TYPE_CHECKING:
    from penstock.plan.build import Builder

From = tuple[Operator, Scope]

_SIDED: dict[tuple[str, str], Kind] = {
    ("LEFT", ""): "left", ("LEFT", "OUTER"): "left", ("RIGHT", ""): "left", ("RIGHT", "OUTER"): "left",
    ("FULL", ""): "full", ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi", ("", "SEMI"): "semi", ("LEFT", "ANTI"): "anti", ("", "ANTI"): "anti",
}  # fmt: skip


class FromReader:
    """Reads the FROM clause of one SELECT."""

    def __init__(self, builder: Builder, ctes: Ctes, beside: Beside | None = None):
        self._builder = builder
        self._ctes = ctes
        self._beside = beside
        self.kept: tuple[str, ...] = ()
        """The columns of the rows that a LATERAL subquery stands beside."""

    def read(self, tree: exp.Select) -> From:
        first = tree.args.get("from_")
        root, scope = self._first(first.this, tree) if first is not None else self._nothing()
        for join in tree.args.get("joins") or ():
            root, scope = self._join(root, scope, join)
        for lateral in tree.args.get("laterals") or ():
            root, scope = self._lateral(root, scope, lateral)
        if self._beside is None or self.kept:
            return root, scope
        self.kept = self._beside.rows.columns
        inputs, conditions = (root.inputs, root.conditions) if isinstance(root, Join) else ((root,), ())
        return Join((self._beside.rows, *inputs), conditions), scope

    # -- relations ----------------------------------------------------------------------------------------------------

    def _first(self, node: exp.Expr, tree: exp.Select) -> From:
        """The first relation. In a LATERAL subquery it may be a derived table that uses the names around, too."""
        try:
            return self._relation(node)
        except Unsupported as problem:
            sides = {(join.side or "").upper() for join in tree.args.get("joins") or ()}
            if self._beside is None or problem.code != Reason.UNRESOLVED_NAME or sides & {"RIGHT", "FULL"}:
                raise
            if not isinstance(node, exp.Subquery) or node.args.get("joins") or isinstance(node.this, exp.Table):
                raise
            plan = self._builder.query(_unaliased(node), self._ctes, beside=self._beside)
            self.kept = plan.kept
            return self._more(node, aliased(plan, node))

    def _relation(self, node: exp.Expr) -> From:
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                if node.args.get("sample"):
                    raise Unsupported(Reason.NON_DETERMINISTIC, "TABLESAMPLE")
                refuse_extras(node, {"this", "db", "catalog", "alias", "joins", "laterals"})
                return self._more(node, self._table(node))
            case exp.Subquery():
                refuse_extras(node, {"this", "alias", "with_", "joins", "laterals", "order", "limit", "offset"})
                if isinstance(node.this, exp.Table):
                    inner = self._relation(node.this)
                    return self._more(node, _under_alias(inner, node))
                plan = self._builder.query(_unaliased(node), self._ctes)
                return self._more(node, aliased(plan, node))
            case exp.Values():
                refuse_extras(node, {"expressions", "alias", "joins", "laterals"})
                return self._more(node, self._values(node))
        raise Unsupported(Reason.TABLE_FORM, f"the table form {type(node).__name__.upper()} in FROM")

    def _more(self, node: exp.Expr, start: From) -> From:
        """What hangs on a table or bracket: ``(a JOIN b ..)``, ``a LATERAL VIEW ..``."""
        root, scope = start
        for join in node.args.get("joins") or ():
            root, scope = self._join(root, scope, join)
        for lateral in node.args.get("laterals") or ():
            root, scope = self._lateral(root, scope, lateral)
        return root, scope

    def _table(self, node: exp.Table) -> From:
        name = key_of(name_of(node))
        if node.name.lower() in self._ctes and not node.args.get("db"):
            cte = self._ctes[node.name.lower()]
            plan = self._builder.query(cte.tree.this, cte.visible)
            return aliased(plan.renamed([c.name for c in cte.tree.args["alias"].columns]), node)
        if name not in self._builder.schemas:
            raise Unsupported(Reason.UNRESOLVED_NAME, f"the unknown table {node.name!r}")
        stored = tuple((self._builder.fresh(), stored) for stored in self._builder.schemas[name])
        return aliased(Plan(Scan(name, stored), tuple((s, i) for i, s in stored)), node)

    def _values(self, node: exp.Values) -> From:
        rows = tuple(tuple(row.expressions) for row in node.expressions)
        for value in (value for row in rows for value in row):
            check_expression(value)
        names = tuple(self._builder.fresh() for _ in rows[0])
        visible = tuple((f"col{i}", name) for i, name in enumerate(names, start=1))
        return aliased(Plan(Values(rows, names), visible), node)

    def _nothing(self) -> From:
        """What SELECT without FROM reads: one row, of which nothing can be named."""
        if self._beside is not None:
            self.kept = self._beside.rows.columns
            return self._beside.rows, Scope()
        return Values(((exp.Literal.number(1),),), (self._builder.fresh(),)), Scope()

    # -- joins --------------------------------------------------------------------------------------------------------

    def _join(self, left: Operator, scope: Scope, join: exp.Join) -> From:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if isinstance(join.this, exp.Lateral):
            if isinstance(join.this.this, exp.Subquery):
                return self._lateral_query(left, scope, join)
            if (
                side not in ("", "LEFT")
                or kind not in ("", "CROSS", "INNER", "OUTER")
                or not is_true(join.args.get("on"))
            ):
                raise Unsupported(Reason.LATERAL, "a LATERAL join of a generator with a condition")
            return self._lateral(left, scope, join.this, outer=side == "LEFT")
        right, right_scope = self._relation(join.this)
        if (side, kind) in _SIDED:
            return self._sided(_SIDED[side, kind], (left, scope), (right, right_scope), join, swapped=side == "RIGHT")
        if kind not in ("", "INNER", "CROSS") or side:
            raise Unsupported(Reason.JOIN, f"a {side} {kind} JOIN")
        using = self._using(join, scope, right_scope)
        both = scope.joined(right_scope, {name: a for name, (a, _) in using.items()})
        conditions = self._conditions(join, using, both)
        inputs = (*left.inputs, right) if isinstance(left, Join) else (left, right)
        before = left.conditions if isinstance(left, Join) else ()
        return Join(inputs, before + conditions), both

    def _sided(self, kind: Kind, left: From, right: From, join: exp.Join, *, swapped: bool) -> From:
        """An outer, semi or anti join. A RIGHT join is a LEFT join with the sides exchanged."""
        using = self._using(join, left[1], right[1])
        both = left[1].joined(right[1], {name: (b if swapped else a) for name, (a, b) in using.items()})
        conditions = self._conditions(join, using, both)
        if swapped:
            return SidedJoin(kind=kind, left=right[0], right=left[0], conditions=conditions), both
        root: Operator = SidedJoin(kind=kind, left=left[0], right=right[0], conditions=conditions)
        if kind in ("semi", "anti"):
            return root, left[1]
        if kind == "full" and using:
            merged = {name: self._builder.fresh() for name in using}
            found: tuple[Named, ...] = tuple(
                (merged[name], exp.Coalesce(this=column(a), expressions=[column(b)])) for name, (a, b) in using.items()
            )
            root = Project(root, (*((name, column(name)) for name in root.columns), *found))
            both = left[1].joined(right[1], merged)
        return root, both

    def _using(self, join: exp.Join, left: Scope, right: Scope) -> dict[str, tuple[str, str]]:
        """The columns that USING or NATURAL compares: name to internal names on both sides."""
        if (join.args.get("method") or "").upper() == "NATURAL":
            theirs = {c.name.lower() for c in right.columns}
            names = [name for name, _ in left.star() if name.lower() in theirs]
        else:
            names = [identifier.name for identifier in join.args.get("using") or ()]
        found = {}
        for name in names:
            a, b = left.lookup(name), right.lookup(name)
            if a is None or b is None:
                raise Unsupported(Reason.UNRESOLVED_NAME, f"the column {name!r} of USING")
            found[name] = (a, b)
        return found

    @staticmethod
    def _conditions(join: exp.Join, using: dict[str, tuple[str, str]], both: Scope) -> tuple[exp.Expr, ...]:
        conditions: list[exp.Expr] = [exp.EQ(this=column(a), expression=column(b)) for a, b in using.values()]
        if join.args.get("on") is not None:
            conditions.extend(conjuncts(resolved(join.args["on"], both)))
        return tuple(conditions)

    def _lateral_query(self, left: Operator, scope: Scope, join: exp.Join) -> From:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if side not in ("", "LEFT") or kind not in ("", "CROSS", "INNER", "OUTER"):
            raise Unsupported(Reason.LATERAL, f"a {side} {kind} JOIN with LATERAL")
        on = join.args.get("on")
        return beside(self._builder, self._ctes, (left, scope), join.this, on, outer=side == "LEFT")

    # -- generators ---------------------------------------------------------------------------------------------------

    def _lateral(self, root: Operator, scope: Scope, lateral: exp.Lateral, *, outer: bool = False) -> From:
        """LATERAL VIEW [OUTER] generator t AS columns, and LATERAL generator AS t(columns)."""
        function = lateral.this
        if isinstance(function, exp.Query | exp.Subquery):
            return beside(self._builder, self._ctes, (root, scope), lateral, None, outer=False)
        name = functions.function_name(function)
        if name not in functions.GENERATORS:
            raise Unsupported(Reason.GENERATOR, f"the table function {name or function.sql(dialect='spark')}")
        alias = lateral.args.get("alias")
        names = [c.name for c in alias.columns] if alias is not None else []
        names = names or default_columns(function)
        internal = tuple(self._builder.fresh() for _ in names)
        call = generator_call(resolved(function, scope, generator=True), outer=outer or bool(lateral.args.get("outer")))
        added = Scope.of(alias.name if alias is not None else None, list(zip(names, internal, strict=True)))
        return Generate(root, call, internal), scope.joined(added, {})


_ALWAYS_ONE_ROW = ("json_tuple", "stack")


def generator_call(function: exp.Expr, *, outer: bool) -> exp.Expr:
    """The generator, in its form that keeps rows without elements if that was asked for."""
    name = functions.function_name(function)
    if not outer or name is None or name.endswith("_outer") or name in _ALWAYS_ONE_ROW:
        return function
    return exp.func(f"{name}_outer", *(e.copy() for e in function.iter_expressions()), dialect=SparkSql)


def default_columns(function: exp.Expr) -> list[str]:
    """The names that Spark gives a generator's columns. What depends on types is not predicted here."""
    name = functions.function_name(function) or ""
    match name.removesuffix("_outer"):
        case "explode":
            return ["col"]
        case "posexplode":
            return ["pos", "col"]
        case "json_tuple":
            return [f"c{i}" for i in range(len(list(function.iter_expressions())) - 1)]
    raise Unsupported(Reason.GENERATOR, f"the generator {name.upper()} without names for its columns")


def resolved(node: exp.Expr, scope: Scope, *, generator: bool = False) -> exp.Expr:
    """An expression of the FROM clause over internal columns."""
    check_expression(node, generator=generator)
    wrapped = exp.paren(node.copy())
    resolve_columns(wrapped, list(wrapped.find_all(exp.Column)), scope, {})
    return wrapped.this


def filtered(source: Operator, conditions: tuple[exp.Expr, ...]) -> Operator:
    """WHERE, as deep as it is right: into an inner join, and below the side of a join that keeps its rows."""
    if not conditions:
        return source
    if isinstance(source, Join):
        return Join(source.inputs, source.conditions + conditions)
    if isinstance(source, SidedJoin) and source.kind != "full":
        mine = tuple(c for c in conditions if names_in(c) <= set(source.left.columns))
        rest = tuple(c for c in conditions if c not in mine)
        if mine:
            below = SidedJoin(
                kind=source.kind,
                left=filtered(source.left, mine),
                right=source.right,
                conditions=source.conditions,
                mark=source.mark,
            )
            return filtered(below, rest)
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = exp.And(this=_operand(whole), expression=_operand(condition))
    return Filter(source, whole)


def _operand(condition: exp.Expr) -> exp.Expr:
    return exp.paren(condition.copy()) if isinstance(condition, exp.Or) else condition.copy()


def aliased(plan: Plan, node: exp.Expr) -> From:
    """A query's rows under the names of its alias."""
    alias = node.args.get("alias")
    named = plan.renamed([c.name for c in alias.columns] if alias is not None else [])
    names = named.names + named.kept
    root = only(named.root, names) if len(named.root.columns) != len(names) else named.root
    return root, Scope.of(node.alias_or_name or None, named.outputs)


def _under_alias(inner: From, node: exp.Expr) -> From:
    """A bracketed table under the bracket's own alias, if it has one."""
    if not node.alias:
        return inner
    root, scope = inner
    return root, Scope.of(node.alias, scope.star())


def _unaliased(node: exp.Subquery) -> exp.Expr:
    """A derived table's query with the LIMIT that stands behind its bracket, if there is one."""
    if not any(node.args.get(key) for key in ("order", "limit", "offset", "with_")):
        return node.this
    bare = node.copy()
    for key in ("alias", "joins", "laterals"):
        bare.set(key, None)
    return bare
