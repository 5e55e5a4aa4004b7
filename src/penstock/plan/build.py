"""From a query's syntax tree to operators.

Names are resolved by Spark's rules against the schemas of the catalog. What has no operator raises ``Unsupported``,
which makes the view FULL; Spark has analysed the query before, so a query that reaches this place is valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from penstock.plan import aggregates
from penstock.plan.check import check_expression
from penstock.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Named,
    Operator,
    Project,
    Scan,
    Union,
    column,
    conjuncts,
)
from penstock.plan.prune import prune
from penstock.plan.scope import Scope
from penstock.plan.unsupported import Unsupported

Schema = Mapping[str, tuple[str, ...]]
"""Relation (lower case) to its column names."""

_IGNORED = {"with_", "expressions", "from_", "joins", "where", "group", "having", "distinct", "order", "sort",
            "cluster", "distribute", "hint", "kind"}  # fmt: skip
_CODES = {
    "limit": ("LIMIT", "LIMIT"), "offset": ("LIMIT", "OFFSET"), "laterals": ("GENERATOR", "LATERAL VIEW"),
    "qualify": ("WINDOW_FUNCTION", "QUALIFY"), "windows": ("WINDOW_FUNCTION", "a WINDOW clause"),
    "pivots": ("PIVOT", "PIVOT"), "sample": ("NON_DETERMINISTIC", "TABLESAMPLE"),
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A query as operators, and its visible columns: pairs of the user's name and the internal name."""

    root: Operator
    outputs: tuple[tuple[str, str], ...]


def build(tree: exp.Query, schemas: Schema) -> Plan:
    """The operators of a query.

    >>> from penstock.sql.query import parse_query
    >>> plan = build(parse_query("SELECT a FROM t WHERE b > 1"), {"t": ("a", "b", "c")})
    >>> type(plan.root).__name__, plan.outputs
    ('Project', (('a', '__c4'),))
    """
    plan = _Builder(schemas).query(tree, {})
    return Plan(prune(plan.root), plan.outputs)


class _Builder:
    def __init__(self, schemas: Schema):
        self._schemas = schemas
        self._numbers = count(1)

    def _fresh(self) -> str:
        return f"__c{next(self._numbers)}"

    def query(self, tree: exp.Expr, ctes: dict[str, exp.Expr]) -> Plan:
        with_ = tree.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise Unsupported("RECURSIVE_CTE", "a recursive CTE")
            for cte in with_.expressions:
                ctes = {**ctes, cte.alias.lower(): _Cte(cte, ctes)}
        match tree:
            case exp.Select():
                return self._select(tree, ctes)
            case exp.Union():
                return self._union(tree, ctes)
            case exp.SetOperation():
                raise Unsupported("SET_OPERATION", type(tree).__name__.upper())
            case exp.Subquery() | exp.Paren():
                self._refuse_extras(tree, {"this", "alias", "with_", "order"})
                return self.query(tree.this, ctes)
        raise Unsupported("QUERY_FORM", f"the form {type(tree).__name__.upper()}")

    def _union(self, tree: exp.Union, ctes: dict[str, exp.Expr]) -> Plan:
        if tree.args.get("by_name"):
            raise Unsupported("SET_OPERATION", "UNION BY NAME")
        self._refuse_extras(tree, {"this", "expression", "distinct", "with_", "order"})
        left, right = self.query(tree.left, ctes), self.query(tree.right, ctes)
        names = tuple(self._fresh() for _ in left.outputs)
        root: Operator = Union((_only(left), _only(right)), names)
        if tree.args.get("distinct"):
            root = Distinct(root)
        return Plan(root, tuple((name, new) for (name, _), new in zip(left.outputs, names, strict=True)))

    def _refuse_extras(self, tree: exp.Expr, known: set[str]) -> None:
        for key, value in tree.args.items():
            if value and key not in known:
                code, construct = _CODES.get(key, ("QUERY_FORM", f"the clause {key.upper().rstrip('_')}"))
                raise Unsupported(code, construct)

    def _select(self, tree: exp.Select, ctes: dict[str, exp.Expr]) -> Plan:
        self._refuse_extras(tree, _IGNORED)
        if tree.args.get("kind"):
            raise Unsupported("QUERY_FORM", f"SELECT AS {tree.args['kind']}")
        if tree.args.get("from_") is None:
            raise Unsupported("NO_SOURCE", "a SELECT without FROM")
        source, scope = self._from(tree, ctes)
        where = tree.args.get("where")
        if where is not None:
            source = _filtered(source, self._resolve(where.this, scope, {}))
        items = self._items(tree, scope)
        group, having = tree.args.get("group"), tree.args.get("having")
        if group is not None or having is not None or any(aggregates.contains(e) for _, e in items):
            source, items = self._grouped(tree, source, scope, items)
        outputs = tuple((name, self._fresh(), e) for name, e in items)
        root: Operator = Project(source, tuple((internal, e) for _, internal, e in outputs))
        distinct = tree.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                raise Unsupported("QUERY_FORM", "DISTINCT ON")
            root = Distinct(root)
        return Plan(root, tuple((name, internal) for name, internal, _ in outputs))

    def _from(self, tree: exp.Select, ctes: dict[str, exp.Expr]) -> tuple[Operator, Scope]:
        root, scope = self._relation(tree.args["from_"].this, ctes)
        for join in tree.args.get("joins") or ():
            root, scope = self._join(root, scope, join, ctes)
        return root, scope

    def _join(self, left: Operator, scope: Scope, join: exp.Join, ctes: dict[str, exp.Expr]) -> tuple[Operator, Scope]:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if side in ("LEFT", "RIGHT", "FULL") and kind not in ("SEMI", "ANTI"):
            raise Unsupported("OUTER_JOIN", f"a {side} JOIN")
        if kind in ("SEMI", "ANTI"):
            raise Unsupported("SEMI_JOIN", f"a {kind} JOIN")
        if kind not in ("", "INNER", "CROSS") or side:
            raise Unsupported("JOIN", f"a {side} {kind} JOIN")
        right, right_scope = self._relation(join.this, ctes)
        using = self._using(join, scope, right_scope)
        conditions: list[exp.Expr] = []
        for name in using:
            a, b = scope.lookup(name), right_scope.lookup(name)
            if a is None or b is None:
                raise Unsupported("UNRESOLVED_NAME", f"the column {name!r} of USING")
            conditions.append(exp.EQ(this=column(a), expression=column(b)))
        both = scope.joined(right_scope, using)
        if join.args.get("on") is not None:
            conditions.extend(conjuncts(self._resolve(join.args["on"], both, {})))
        inputs = (*left.inputs, right) if isinstance(left, Join) else (left, right)
        before = left.conditions if isinstance(left, Join) else ()
        return Join(inputs, before + tuple(conditions)), both

    @staticmethod
    def _using(join: exp.Join, left: Scope, right: Scope) -> list[str]:
        if (join.args.get("method") or "").upper() == "NATURAL":
            theirs = {c.name.lower() for c in right.columns}
            return [name for name, _ in left.star() if name.lower() in theirs]
        return [identifier.name for identifier in join.args.get("using") or ()]

    def _relation(self, node: exp.Expr, ctes: dict[str, exp.Expr]) -> tuple[Operator, Scope]:
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                if node.args.get("sample"):
                    raise Unsupported(*_CODES["sample"])
                self._refuse_extras(node, {"this", "alias", "joins"})
                return self._joined(node, self._table(node, ctes), ctes)
            case exp.Subquery():
                self._refuse_extras(node, {"this", "alias", "with_", "joins"})
                if isinstance(node.this, exp.Table):
                    return self._relation(node.this, ctes)
                plan = self.query(node.this, ctes)
                return self._joined(node, self._aliased(plan, node), ctes)
        raise Unsupported("TABLE_FORM", f"the table form {type(node).__name__.upper()} in FROM")

    def _joined(
        self, node: exp.Expr, start: tuple[Operator, Scope], ctes: dict[str, exp.Expr]
    ) -> tuple[Operator, Scope]:
        """Joins that hang on a table in brackets: ``(a JOIN b ..)``."""
        root, scope = start
        for join in node.args.get("joins") or ():
            root, scope = self._join(root, scope, join, ctes)
        return root, scope

    def _table(self, node: exp.Table, ctes: dict[str, exp.Expr]) -> tuple[Operator, Scope]:
        name = node.name.lower()
        if name in ctes:
            cte = ctes[name]
            assert isinstance(cte, _Cte)
            plan = self.query(cte.tree.this, cte.visible)
            renamed = _rename(plan, [c.name for c in cte.tree.args["alias"].columns])
            return self._aliased(renamed, node)
        if name not in self._schemas:
            raise Unsupported("UNRESOLVED_NAME", f"the unknown table {node.name!r}")
        stored = tuple((self._fresh(), stored) for stored in self._schemas[name])
        return self._aliased(Plan(Scan(name, stored), tuple((s, i) for i, s in stored)), node)

    def _aliased(self, plan: Plan, node: exp.Expr) -> tuple[Operator, Scope]:
        alias = node.args.get("alias")
        renamed = _rename(plan, [c.name for c in alias.columns] if alias is not None else [])
        relation = node.alias_or_name or None
        return renamed.root, Scope.of(relation, renamed.outputs)

    def _items(self, tree: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
        """The select list: names and resolved expressions, stars written out, earlier aliases usable in later items."""
        items: list[tuple[str, exp.Expr]] = []
        aliases: dict[str, exp.Expr] = {}
        for node in tree.expressions:
            star = _star_relation(node, scope)
            if star is not None:
                items.extend(_expand_star(node, star[0], scope))
                continue
            resolved = self._resolve(node.unalias(), scope, aliases)
            name = node.alias if isinstance(node, exp.Alias) else _default_name(node)
            items.append((name, resolved))
            if isinstance(node, exp.Alias):
                aliases[name.lower()] = resolved
        return items

    def _grouped(
        self, tree: exp.Select, source: Operator, scope: Scope, items: list[tuple[str, exp.Expr]]
    ) -> tuple[Operator, list[tuple[str, exp.Expr]]]:
        """Aggregate the source; the items and HAVING then read keys and measures instead of rows."""
        keys: list[Named] = []
        for key in self._group_keys(tree, scope, items):
            if all(aggregates.bare(key) != aggregates.bare(known) for _, known in keys):
                keys.append((self._fresh(), key))
        extractor = aggregates.Extractor(keys, self._fresh)
        new_items = [(name, extractor.rewrite(e)) for name, e in items]
        having = tree.args.get("having")
        condition = None
        if having is not None:
            condition = extractor.rewrite(self._resolve_having(having.this, scope, items))
        root: Operator = Aggregate(source, tuple(keys), tuple(extractor.measures))
        if condition is not None:
            root = Filter(root, condition)
        return root, new_items

    def _group_keys(self, tree: exp.Select, scope: Scope, items: list[tuple[str, exp.Expr]]) -> list[exp.Expr]:
        group = tree.args.get("group")
        if group is None:
            return []
        self._refuse_grouping_sets(group)
        if group.args.get("all"):
            return [e for _, e in items if not aggregates.contains(e)]
        aliases = {name.lower(): e for name, e in items}
        keys = []
        for node in group.expressions:
            if isinstance(node, exp.Literal) and node.is_int:
                keys.append(items[int(node.this) - 1][1])
            else:
                keys.append(self._resolve(node, scope, aliases))
        return keys

    @staticmethod
    def _refuse_grouping_sets(group: exp.Group) -> None:
        nested = any(isinstance(e, (exp.GroupingSets, exp.Rollup, exp.Cube)) for e in group.expressions)
        if nested or any(group.args.get(key) for key in ("grouping_sets", "rollup", "cube", "totals")):
            raise Unsupported("GROUPING_SETS", "GROUPING SETS, ROLLUP or CUBE")

    def _resolve_having(self, node: exp.Expr, scope: Scope, items: list[tuple[str, exp.Expr]]) -> exp.Expr:
        """In HAVING an alias of the select list comes before a column, except inside an aggregate function."""
        aliases = {name.lower(): e for name, e in items}

        def outside(inner: exp.Expr) -> exp.Expr:
            if isinstance(inner, exp.Column) and len(inner.parts) == 1 and not inner.find_ancestor(exp.AggFunc):
                return exp.paren(aliases[inner.name.lower()].copy()) if inner.name.lower() in aliases else inner
            return inner

        check_expression(node)
        wrapped = exp.paren(node.copy())
        marked = {id(c) for c in wrapped.find_all(exp.Column)}
        result = wrapped.transform(outside, copy=False)
        pending = [c for c in result.find_all(exp.Column) if id(c) in marked]
        return _replace_columns(result, pending, scope, {}).this

    def _resolve(self, node: exp.Expr, scope: Scope, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
        """The expression over internal columns; a name that is no column may be an earlier alias."""
        check_expression(node)
        wrapped = exp.paren(node.copy())
        return _replace_columns(wrapped, list(wrapped.find_all(exp.Column)), scope, aliases).this


class _Cte(exp.Expr):
    """A CTE with the CTEs that it can see. It lives only while a query is built."""

    def __init__(self, tree: exp.CTE, visible: dict[str, exp.Expr]):
        super().__init__()
        self.tree = tree
        self.visible = visible


def _replace_columns(
    root: exp.Expr, columns: list[exp.Column], scope: Scope, aliases: Mapping[str, exp.Expr]
) -> exp.Expr:
    for node in columns:
        new = scope.resolve(node)
        if new is None and node.parts[0].name.lower() in aliases:
            if len(node.parts) > 1:
                raise Unsupported("UNRESOLVED_NAME", f"the field {node.sql()!r} of an alias")
            new = exp.paren(aliases[node.name.lower()].copy())
        if new is None:
            raise Unsupported("UNRESOLVED_NAME", f"the unknown name {node.sql()!r}")
        node.replace(new)
    return root


def _filtered(source: Operator, condition: exp.Expr) -> Operator:
    """WHERE; over a join its parts become conditions of the join."""
    if isinstance(source, Join):
        return replace(source, conditions=source.conditions + conjuncts(condition))
    return Filter(source, condition)


def _only(plan: Plan) -> Operator:
    """The plan's visible columns, in order, and no others."""
    wanted = tuple(internal for _, internal in plan.outputs)
    if plan.root.columns == wanted:
        return plan.root
    return Project(plan.root, tuple((name, column(name)) for name in wanted))


def _rename(plan: Plan, names: list[str]) -> Plan:
    if not names:
        return plan
    return Plan(plan.root, tuple((new, internal) for new, (_, internal) in zip(names, plan.outputs, strict=True)))


def _default_name(node: exp.Expr) -> str:
    """The name that Spark gives a column or field; what it calls other expressions is not predicted here."""
    return node.name if isinstance(node, exp.Column | exp.Dot) else ""


def _star_relation(node: exp.Expr, scope: Scope) -> tuple[str | None] | None:
    if isinstance(node, exp.Star):
        return (None,)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        if not scope.has_relation(node.table):
            raise Unsupported("QUERY_FORM", "a star over a struct")
        return (node.table,)
    return None


def _expand_star(node: exp.Expr, relation: str | None, scope: Scope) -> list[tuple[str, exp.Expr]]:
    star = node if isinstance(node, exp.Star) else node.this
    if star.args.get("replace") or star.args.get("rename"):
        raise Unsupported("QUERY_FORM", "a star with REPLACE or RENAME")
    left_out = {c.name.lower() for c in star.args.get("except_") or ()}
    return [(name, column(internal)) for name, internal in scope.star(relation) if name.lower() not in left_out]
