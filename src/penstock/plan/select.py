"""One SELECT, in the order in which SQL evaluates it: from FROM and WHERE to DISTINCT and ORDER BY .. LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from penstock.plan import aggregates, functions, grouping, windows
from penstock.plan.build import Beside, Ctes, Plan, only, refuse_extras
from penstock.plan.check import check_expression, is_session
from penstock.plan.lateral import for_each
from penstock.plan.operators import (
    Distinct,
    Filter,
    Generate,
    Named,
    Operator,
    Project,
    TopK,
    Window,
    column,
    conjuncts,
    found_by,
    names_in,
)
from penstock.plan.relations import FromReader, default_columns, filtered
from penstock.plan.scope import Scope, resolve_columns
from penstock.plan.subqueries import Subqueries
from penstock.plan.unsupported import Unsupported
from penstock.vocabulary import Reason

if TYPE_CHECKING:
    from penstock.plan.build import Builder

Item = tuple[str, exp.Expr]
"""A name of the select list and its expression."""

_KNOWN = {"with_", "expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "windows",
          "distinct", "order", "sort", "cluster", "distribute", "limit", "offset", "hint"}  # fmt: skip


class Select:
    """Reads one SELECT from its source up. ``outer``: the names of the query around, for a subquery.

    ``beside``: the rows that a LATERAL subquery is computed for. Their columns are kept in all that is done: groups,
    partitions and limits are those of each of these rows.
    """

    def __init__(
        self, builder: Builder, tree: exp.Select, ctes: Ctes, outer: Scope | None = None, beside: Beside | None = None
    ):
        refuse_extras(tree, _KNOWN)
        self._builder = builder
        self._tree = tree
        reader = FromReader(builder, ctes, beside)
        source, scope = reader.read(tree)
        self.source: Operator = source
        self._scope = scope.within(outer if beside is None else beside.scope)
        self._beside = beside
        self._kept = reader.kept
        self._subqueries = Subqueries(builder, ctes)
        self._sessions = tree.args.get("group") is not None
        self._named = {w.this.name.lower(): w for w in tree.args.get("windows") or ()}
        self.conditions: list[exp.Expr] = []
        """What relates the rows to the query around: over columns of the source and of that query."""

    def plan(self) -> Plan:
        self.restrict()
        items = self.items()
        visible = len(items)
        order = self._order_keys(items)
        if self.is_grouped(items):
            items = self.group(items)
        return self._finish(self._functions(items), visible, order)

    # -- WHERE --------------------------------------------------------------------------------------------------------

    def restrict(self) -> None:
        where = self._tree.args.get("where")
        if where is None:
            return
        own, nested = [], []
        for condition in conjuncts(self._resolve(where.this, {})):
            if any(name.startswith(aggregates.SUBQUERY) for name in names_in(condition)):
                nested.append(condition)
            elif names_in(condition) <= set(self.source.columns):
                own.append(condition)
            else:
                self.conditions.append(condition)
        self.source = filtered(self.source, tuple(own))
        for condition in nested:
            self.source = self._subqueries.restrict(self.source, condition)

    # -- the select list ----------------------------------------------------------------------------------------------

    def items(self) -> list[Item]:
        """The select list: names and resolved expressions, stars written out, earlier aliases usable in later items."""
        items: list[Item] = []
        aliases: dict[str, exp.Expr] = {}
        for node in self._tree.expressions:
            star = _star_relation(node, self._scope)
            if star is not None:
                items.extend(_expand_star(node, star[0], self._scope))
                continue
            if _generator(node) is not None:
                items.extend(self._generated(node))
                continue
            resolved = self._resolve(node.unalias(), aliases, windows=True)
            name = node.alias if isinstance(node, exp.Alias) else _default_name(node)
            items.append((name, resolved))
            if isinstance(node, exp.Alias):
                aliases[name.lower()] = resolved
        return items

    def _generated(self, node: exp.Expr) -> list[Item]:
        """A generator in the select list stands for its columns; where it is applied, they get their names."""
        function = _generator(node)
        assert function is not None
        if isinstance(node, exp.Aliases):
            names = [i.name for i in node.expressions]
        elif isinstance(node, exp.Alias):
            names = [node.alias]
        else:
            names = default_columns(function)
        call = self._resolve(function, {}, generator=True)
        return [(name, _GeneratorColumn(this=call, place=place)) for place, name in enumerate(names)]

    def is_grouped(self, items: list[Item]) -> bool:
        clauses = any(self._tree.args.get(key) is not None for key in ("group", "having"))
        return clauses or any(aggregates.contains(e) for _, e in items)

    # -- GROUP BY and HAVING ------------------------------------------------------------------------------------------

    def group(self, items: list[Item]) -> list[Item]:
        """Aggregate the source; the items and HAVING then read keys and measures instead of rows."""
        keys, sets = self._keys(items)
        keys = self._correlated_keys(keys)
        kept: list[Named] = [(self._builder.fresh(), column(name)) for name in self._kept]
        keys = [*keys, *kept]
        extractor = aggregates.Extractor(keys, self._builder.fresh)
        new_items = [(name, extractor.rewrite(e)) for name, e in items]
        having, qualify = self._tree.args.get("having"), self._tree.args.get("qualify")
        known = [aggregates.bare(e) for _, e in keys]
        conditions: tuple[exp.Expr, ...] = ()
        if having is not None:
            conditions = conjuncts(extractor.rewrite(self._resolve_late(having.this, items, known.__contains__)))
        if qualify is not None:
            late = self._resolve_late(qualify.this, items, known.__contains__, windows=True)
            self._qualify = extractor.rewrite(late)
        below = self._subqueries.attach_all
        self.source, key_values = below(self.source, [e for _, e in keys])
        self.source, measure_values = below(self.source, [e for _, e in extractor.measures])
        keys = [(name, e) for (name, _), e in zip(keys, key_values, strict=True)]
        measures = [(name, e) for (name, _), e in zip(extractor.measures, measure_values, strict=True)]
        self._check_local([e for _, e in keys + measures])
        if any(is_session(node) for _, e in keys + measures for node in e.walk()):
            if sets is not None or self.conditions or self._beside is not None:
                raise Unsupported(Reason.TIME_WINDOW, "SESSION_WINDOW in GROUPING SETS or a correlated subquery")
            self.source = grouping.in_sessions(self._builder, self.source, keys, measures)
        elif self._beside is not None and self._tree.args.get("group") is None:
            self.source = for_each(self._builder, self._beside, self.source, kept, measures)
            self._kept = self._beside.each.columns
        elif sets is None:
            self.source = grouping.aggregated(self._builder, self.source, keys, measures)
        elif self._beside is not None:
            raise Unsupported(Reason.LATERAL, "GROUPING SETS in a LATERAL subquery")
        else:
            self.source = grouping.grouped_by_sets(self._builder, self.source, keys, measures, sets)
        if self._tree.args.get("group") is not None:
            self._kept = tuple(name for name, _ in kept)
        self._subqueries.rewrite = extractor.rewrite
        for condition in conditions:
            self.source = self._subqueries.restrict(self.source, condition)
        return new_items

    def _keys(self, items: list[Item]) -> tuple[list[Named], list[set[str]] | None]:
        """The keys, each once, and the sets of them that GROUPING SETS asks for."""
        group = self._tree.args.get("group")
        keys: list[Named] = []

        def key(e: exp.Expr) -> str:
            plain = aggregates.bare(e)
            for name, known in keys:
                if aggregates.bare(known) == plain:
                    return name
            keys.append((self._builder.fresh(), e))
            return keys[-1][0]

        if group is None:
            return keys, None
        if group.args.get("all"):
            for _, e in items:
                if not aggregates.contains(e):
                    key(e)
            return keys, None
        sets = grouping.grouping_sets(group)
        if sets is None:
            for node in group.expressions:
                key(self._key(node, items))
            return keys, None
        return keys, [{key(self._key(node, items)) for node in members} for members in sets]

    def _key(self, node: exp.Expr, items: list[Item]) -> exp.Expr:
        if isinstance(node, exp.Literal) and node.is_int:
            return items[int(node.this) - 1][1]
        return self._resolve(node, {name.lower(): e for name, e in items})

    def _correlated_keys(self, keys: list[Named]) -> list[Named]:
        """In a subquery that aggregates, what it is compared by becomes a key: one group for each outer value."""
        if self.conditions and self._tree.args.get("group") is None:  # it has a row also for values without rows
            raise Unsupported(Reason.CORRELATED_SUBQUERY, "an aggregate without GROUP BY behind EXISTS or IN")
        kept: list[exp.Expr] = []
        for condition in self.conditions:
            inner, outer = self._equality(condition)
            name = self._builder.fresh()
            keys = [*keys, (name, inner)]
            kept.append(found_by(name, outer))
        self.conditions = kept
        return keys

    def _equality(self, condition: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
        """An equation between the source and the query around, as its two sides."""
        plain = condition.unnest()
        mine = set(self.source.columns)
        if isinstance(plain, exp.EQ):
            for a, b in ((plain.left, plain.right), (plain.right, plain.left)):
                if names_in(a) <= mine and not names_in(b) & mine:
                    return a, b
        raise Unsupported(Reason.CORRELATED_SUBQUERY, "an aggregate related to the query around by more than equality")

    def _resolve_late(
        self, node: exp.Expr, items: list[Item], first: Callable[[exp.Expr], bool], *, windows: bool = False
    ) -> exp.Expr:
        """Behind the select list a name may be an alias of it, except inside an aggregate.

        ``first``: which columns come before an alias of the same name. In HAVING that is a key, in QUALIFY a key or, in
        a query that does not group, any column; in ORDER BY none.
        """
        aliases = {name.lower(): e for name, e in items}
        node = self._nested(node.copy(), aliases)

        def outside(inner: exp.Expr) -> exp.Expr:
            if not isinstance(inner, exp.Column) or len(inner.parts) != 1 or inner.name.lower() not in aliases:
                return inner
            own = self._scope.resolve(inner)
            if own is not None and first(own):
                return inner
            above = inner.parent
            while above is not None and not aggregates.is_aggregate(above):
                above = above.parent
            return inner if above is not None else exp.paren(aliases[inner.name.lower()].copy())

        check_expression(node, windows=windows, sessions=self._sessions)
        wrapped = exp.paren(node)
        marked = {id(c) for c in wrapped.find_all(exp.Column) if not c.name.startswith(aggregates.SUBQUERY)}
        result = wrapped.transform(outside, copy=False)
        resolve_columns(result, [c for c in result.find_all(exp.Column) if id(c) in marked], self._scope, {})
        return result.this

    # -- window functions, QUALIFY, generators ------------------------------------------------------------------------

    _qualify: exp.Expr | None = None

    def _functions(self, items: list[Item]) -> list[Item]:
        qualify = self._tree.args.get("qualify")
        if qualify is not None and self._qualify is None:
            self._qualify = self._resolve_late(qualify.this, items, lambda own: True, windows=True)
        values = [e for _, e in items] + ([self._qualify] if self._qualify is not None else [])
        self.source, values = self._subqueries.attach_all(self.source, values)
        before = set(self.source.columns)
        self.source, values = windows.extract(self._builder, self.source, values, self._kept)
        if self.conditions and set(self.source.columns) != before:
            raise Unsupported(Reason.CORRELATED_SUBQUERY, "a window function in a correlated subquery")
        if self._qualify is not None:
            self.source = Filter(self.source, values.pop())
        values = self._generate(values)
        return [(name, e) for (name, _), e in zip(items, values, strict=True)]

    def _generate(self, values: list[exp.Expr]) -> list[exp.Expr]:
        calls = [v for v in values if isinstance(v, _GeneratorColumn)]
        if not calls:
            return values
        width = sum(1 for v in calls if v.this == calls[0].this)
        if width != len(calls):
            raise Unsupported(Reason.GENERATOR, "two generators in one select list")
        outputs = tuple(self._builder.fresh() for _ in range(width))
        self.source = Generate(self.source, calls[0].this.copy(), outputs)
        return [column(outputs[v.args["place"]]) if isinstance(v, _GeneratorColumn) else v for v in values]

    # -- the end ------------------------------------------------------------------------------------------------------

    def _order_keys(self, items: list[Item]) -> list[tuple[exp.Expr, int]]:
        """ORDER BY before a LIMIT: each key, and the item that it sorts by; one that is not selected is added."""
        order, visible = self._tree.args.get("order"), list(items)
        if order is None or not self._is_limited:
            return []
        if is_all(order):
            if self._scope.lookup("all") is not None:
                raise Unsupported(Reason.LIMIT, "ORDER BY ALL beside a column called all")
            return [(order.expressions[0], place) for place in range(len(visible))]
        keys = []
        for key in order.expressions:
            by = key.this
            named = [i for i, (name, _) in enumerate(visible) if isinstance(by, exp.Column) and _is_called(by, name)]
            if isinstance(by, exp.Literal) and by.is_int:
                place = int(by.this) - 1
            elif named:
                place = named[0]
            else:
                place = len(items)
                items.append(("", self._resolve_late(by, visible, lambda own: False, windows=True)))
            keys.append((key, place))
        if len(items) > len(visible) and self._tree.args.get("distinct") is not None:
            raise Unsupported(Reason.LIMIT, "LIMIT behind an ORDER BY of something that is not selected")
        return keys

    @property
    def _is_limited(self) -> bool:
        return bool(self._tree.args.get("limit") or self._tree.args.get("offset"))

    def _finish(self, items: list[Item], visible: int, order: list[tuple[exp.Expr, int]]) -> Plan:
        self._check_local([e for _, e in items])
        names = [self._builder.fresh() for _ in items]
        # The query around compares with columns of the source: they are carried along.
        carried = sorted({n for c in self.conditions for n in names_in(c) if n in self.source.columns})
        values: list[Named] = [(name, e) for name, (_, e) in zip(names, items, strict=True)]
        root: Operator = Project(self.source, (*values, *((n, column(n)) for n in (*carried, *self._kept))))
        distinct = self._tree.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                raise Unsupported(Reason.QUERY_FORM, "DISTINCT ON")
            root = Distinct(root)
        if self._is_limited:
            if self.conditions:
                raise Unsupported(Reason.CORRELATED_SUBQUERY, "LIMIT in a correlated subquery")
            keys = []
            for key, place in order:
                keys.append(key.copy())
                keys[-1].set("this", column(names[place]))
            root = limited(self._builder, self._tree, root, keys, self._kept)
        outputs = tuple((name, internal) for (name, _), internal in zip(items[:visible], names, strict=False))
        return Plan(root, outputs, tuple(self.conditions), self._kept)

    # -- expressions --------------------------------------------------------------------------------------------------

    def _resolve(
        self, node: exp.Expr, aliases: Mapping[str, exp.Expr], *, windows: bool = False, generator: bool = False
    ) -> exp.Expr:
        """The expression over internal columns; a name that is no column may be an earlier alias."""
        node = self._nested(node.copy(), aliases)
        check_expression(node, windows=windows, generator=generator, sessions=self._sessions)
        wrapped = exp.paren(node)
        columns = [c for c in wrapped.find_all(exp.Column) if not c.name.startswith(aggregates.SUBQUERY)]
        resolve_columns(wrapped, columns, self._scope, aliases)
        return wrapped.this

    def _nested(self, node: exp.Expr, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
        """The expression with named windows written out, and columns in the place of subqueries."""
        node = windows.inline_named(node, self._named)
        return self._subqueries.take_out(node, self._scope, lambda operand: self._resolve(operand, aliases))

    def _check_local(self, values: list[exp.Expr]) -> None:
        for value in values:
            if not names_in(value) <= set(self.source.columns):
                raise Unsupported(Reason.CORRELATED_SUBQUERY, "a subquery that uses the query around outside its WHERE")


class _GeneratorColumn(exp.Expression):
    """A column of a generator of the select list, until the generator is applied."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "place": True}


def is_all(order: exp.Expr) -> bool:
    """Whether it is ORDER BY ALL."""
    key = order.expressions[0].this
    return len(order.expressions) == 1 and isinstance(key, exp.Var) and key.name.upper() == "ALL"


def limited(
    builder: Builder, tree: exp.Expr, root: Operator, order: list[exp.Expr], kept: tuple[str, ...] = ()
) -> Operator:
    """ORDER BY .. LIMIT .. OFFSET as top-k; for each value of the kept columns, if there are any, as row numbers."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    if limit is None or not order:
        raise Unsupported(Reason.LIMIT, "LIMIT without ORDER BY" if limit is not None else "OFFSET without LIMIT")
    numbers = [
        clause.expression.unnest() if clause is not None else exp.Literal.number(0) for clause in (limit, offset)
    ]
    if any(not isinstance(n, exp.Literal) or not n.is_int for n in numbers):
        raise Unsupported(Reason.LIMIT, "LIMIT of something other than a number")
    most, skipped = (int(number.this) for number in numbers)
    return TopK(root, tuple(order), most, skipped) if not kept else _numbered(builder, root, order, most, skipped, kept)


def _numbered(
    builder: Builder, root: Operator, order: list[exp.Expr], most: int, skipped: int, kept: tuple[str, ...]
) -> Operator:
    """The first rows of each partition."""
    place = builder.fresh()
    by = [column(name) for name in kept]
    number = exp.Window(this=exp.RowNumber(), partition_by=by, order=exp.Order(expressions=order))
    between = exp.Between(
        this=column(place), low=exp.Literal.number(skipped + 1), high=exp.Literal.number(skipped + most)
    )
    return only(Filter(Window(root, kept, ((place, number),)), between), root.columns)


def _generator(node: exp.Expr) -> exp.Expr | None:
    """The generator of a select item, if it is one."""
    inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    if isinstance(inner, exp.Func) and functions.function_name(inner) in functions.GENERATORS:
        return inner
    return None


def _is_called(node: exp.Column, name: str) -> bool:
    return len(node.parts) == 1 and node.name.lower() == name.lower()


def _default_name(node: exp.Expr) -> str:
    """The name that Spark gives a column or field; what it calls other expressions is not predicted here."""
    return node.name if isinstance(node, exp.Column | exp.Dot) else ""


def _star_relation(node: exp.Expr, scope: Scope) -> tuple[str | None] | None:
    if isinstance(node, exp.Star):
        return (None,)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        if not scope.has_relation(node.table):
            raise Unsupported(Reason.QUERY_FORM, "a star over a struct")
        return (node.table,)
    return None


def _expand_star(node: exp.Expr, relation: str | None, scope: Scope) -> list[Item]:
    star = node if isinstance(node, exp.Star) else node.this
    if star.args.get("replace") or star.args.get("rename"):
        raise Unsupported(Reason.QUERY_FORM, "a star with REPLACE or RENAME")
    left_out = {c.name.lower() for c in star.args.get("except_") or ()}
    return [(name, column(internal)) for name, internal in scope.star(relation) if name.lower() not in left_out]
