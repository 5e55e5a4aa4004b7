"""Random queries over the whole list of operators, as SQL text that can be read and run again.

Values come from tiny pools, so that keys meet, rows repeat and groups empty. Doubles are sums of powers of two, so that
their sums do not depend on the order of rows; what an AVG of integers or doubles gives is never summed again. Where the
order of rows would decide, all columns are sorted by, so that rows which tie are the same row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

VALUES = {
    "int": ("NULL", "-1", "0", "1", "2", "3"),
    "decimal": ("NULL", "-2.50", "0.0", "0.33", "1.10", "1.15", "7.0"),
    "date": ("NULL", "DATE'2024-02-28'", "DATE'2024-02-29'", "DATE'1969-12-31'"),
    "string": ("NULL", "''", "'a'", "'b'", "'A'", "'it\\'s'"),
    "double": ("NULL", "0D", "-0.0D", "0.5D", "1.25D", "-2.75D", "double('NaN')"),
    "boolean": ("NULL", "TRUE", "FALSE"),
    "average": ("0.5D", "1D"),
}
TYPES = {
    "int": ("INT", "BIGINT", "SMALLINT"),
    "decimal": ("DECIMAL(10,2)", "DECIMAL(5,0)", "DECIMAL(18,6)", "DECIMAL(38,10)"),
    "date": ("DATE",),
    "string": ("STRING",),
    "double": ("DOUBLE", "FLOAT"),
    "boolean": ("BOOLEAN",),
}


@dataclass(frozen=True)
class Column:
    """A name and the class of its type: expressions mix the types of one class freely."""

    name: str
    kind: str


@dataclass(frozen=True)
class Relation:
    name: str
    columns: tuple[Column, ...]


@dataclass
class QueryAuthor:
    """Makes up queries by asking ``random`` for every decision."""

    random: Random
    relations: list[Relation] = field(default_factory=list)
    _names: int = 0

    # -- queries ------------------------------------------------------------------------------------------------------

    def query(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        shape = self.random.randint(0, 15)
        if shape <= 2:
            return self._rows_query(depth, distinct=False)
        if shape == 3:
            return self._rows_query(depth, distinct=True)
        if shape <= 5:
            return self._set_operation(depth)
        if shape <= 7:
            return self._windows_query(depth)
        if shape == 8:
            return self._first_rows(depth)
        if shape == 9:
            return self._generated(depth)
        return self._groups_query(depth, keys=self.random.randint(0, 2) if shape > 11 else 1)

    def _rows_query(self, depth: int, *, distinct: bool) -> tuple[str, tuple[Column, ...]]:
        source, scope = self._from(depth)
        columns, items = [], []
        for _ in range(self.random.randint(1, 4)):
            kind = self._one(scope).kind
            items.append(self.expression(scope, kind))
            columns.append(Column(self._fresh(), kind))
        if not distinct and self._maybe(0.15):
            value, kind = self._value_of_subquery(scope)
            items.append(value)
            columns.append(Column(self._fresh(), kind))
        return (
            f"SELECT {'DISTINCT ' if distinct else ''}{self._listed(items, columns)} FROM {source}{self._where(scope)}",
            tuple(columns),
        )

    def _groups_query(self, depth: int, keys: int) -> tuple[str, tuple[Column, ...]]:
        source, scope = self._from(depth)
        columns, items, groups = [], [], []
        for _ in range(keys):
            kind = self._one(scope).kind
            column = self._one(_of(scope, kind)).name
            key = f"COALESCE({column}, {self.expression(scope, kind)})" if self._maybe(0.2) else column
            groups.append(key)
            if self._maybe(0.85):
                items.append(key)
                columns.append(Column(self._fresh(), kind))
        for _ in range(self.random.randint(0 if items else 1, 3)):
            measure, kind = self.aggregate(scope)
            items.append(measure)
            columns.append(Column(self._fresh(), kind))
        grouped = f" GROUP BY {self._grouping(groups)}" if groups else ""
        having = ""
        if self._maybe(0.3):
            measure, kind = self.aggregate(scope)
            if kind in VALUES:
                having = f" HAVING {measure} {self._one(('>', '<=', '<>'))} {self._one(VALUES[kind][-2:])}"
                having = self._one((having, f"{having} OR COUNT(*) = 2"))
        return f"SELECT {self._listed(items, columns)} FROM {source}{self._where(scope)}{grouped}{having}", tuple(
            columns
        )

    def _grouping(self, groups: list[str]) -> str:
        listed = ", ".join(groups)
        if len(set(groups)) < len(groups) or self._maybe(0.85):
            return listed
        sets = ", ".join(f"({g})" for g in groups)
        return self._one((f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), {sets}, ())"))

    def _set_operation(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        first, columns = self._rows_query(depth - 1, distinct=False)
        source, scope = self._from(depth - 1)
        second = ", ".join(self.expression(scope, c.kind) for c in columns)
        word = self._one(
            ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS")
        )
        return f"{first} {word} SELECT {second} FROM {source}{self._where(scope)}", columns

    def _windows_query(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        source, scope = self._from(depth)
        kept = [self._one(scope) for _ in range(self.random.randint(1, 2))]
        columns = [Column(self._fresh(), c.kind) for c in kept]
        items = [c.name for c in kept]
        for _ in range(self.random.randint(1, 2)):
            function, kind = self._window_function(scope)
            items.append(function)
            columns.append(Column(self._fresh(), kind))
        return f"SELECT {self._listed(items, columns)} FROM {source}{self._where(scope)}", tuple(columns)

    def _window_function(self, scope: Sequence[Column]) -> tuple[str, str]:
        partition = self._one(("", f"PARTITION BY {self._one(scope).name}", f"PARTITION BY {self._one(scope).name}"))
        by = self._one(scope)
        order = f"{partition} ORDER BY {by.name}{self._one(('', ' DESC', ' NULLS LAST'))}".strip()
        total = f"{partition} ORDER BY {', '.join(c.name for c in scope)}".strip()
        numbers = [c.name for c in scope if c.kind == "int"] or ["1"]
        value = self._one(scope)
        frame = self._one(
            ("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")
        )
        return self._one(
            (
                (f"ROW_NUMBER() OVER ({total})", "int"), (f"RANK() OVER ({order})", "int"),
                (f"DENSE_RANK() OVER ({order})", "int"), (f"COUNT(*) OVER ({order})", "int"),
                (f"SUM({self._one(numbers)}) OVER ({partition})", "int"),
                (f"SUM({self._one(numbers)}) OVER ({order})", "int"),
                (f"MIN({value.name}) OVER ({partition})", value.kind),
                (f"LAG({value.name}) OVER ({total})", value.kind),
                (f"LEAD({value.name}, 2) OVER ({total})", value.kind),
                (f"SUM({self._one(numbers)}) OVER ({total} {frame})", "int"),
                (f"FIRST_VALUE({value.name}) OVER ({total})", value.kind),
            )
        )  # fmt: skip

    def _first_rows(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        query, columns = self._rows_query(depth, distinct=self._maybe(0.3))
        names = [c.name for c in columns]
        order = ", ".join(f"{name}{self._one(('', ' DESC', ' DESC NULLS FIRST'))}" for name in names)
        offset = self._one(("", "", " OFFSET 1"))
        return f"{query} ORDER BY {order} LIMIT {self.random.randint(1, 4)}{offset}", columns

    def _generated(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        source, scope = self._factor(depth)
        kind = self._one(scope).kind
        values = ", ".join(self._one(_of(scope, kind)).name for _ in range(self.random.randint(1, 3)))
        array = self._one((f"ARRAY({values})", f"IF({self.predicate(scope)}, ARRAY({values}), NULL)"))
        name, element = self._fresh(), self._fresh()
        kept = self._one(scope)
        outer = self._one(("", "OUTER "))
        text = (
            f"SELECT {kept.name} AS {name}, {element} FROM {source} LATERAL VIEW {outer}EXPLODE({array}) AS {element}"
        )
        return f"{text}{self._where(scope)}", (Column(name, kept.kind), Column(element, kind))

    def _where(self, scope: Sequence[Column]) -> str:
        return f" WHERE {self.condition(scope)}" if self._maybe(0.4) else ""

    def _from(self, depth: int) -> tuple[str, list[Column]]:
        source, scope = self._factor(depth)
        for _ in range(self._one((0, 0, 0, 1, 1, 2))):
            other, more = self._factor(depth - 1)
            pairs = [(a.name, b.name) for a in scope for b in more if a.kind == b.kind]
            keys = [pair for pair in pairs if pair[0].endswith(".k") and pair[1].endswith(".k")]
            pairs = keys if keys and self._maybe(0.6) else pairs
            if not pairs:
                source = f"{source} CROSS JOIN {other}"
            else:
                a, b = self._one(pairs)
                operator = self._one(("=", "=", "=", "=", "<=>", "<"))
                extra = f" AND {self.predicate(scope + more)}" if self._maybe(0.2) else ""
                word = self._one(
                    ("JOIN",) * 4 + ("LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
                )
                source = f"{source} {word} {other} ON {a} {operator} {b}{extra}"
                if word in ("SEMI JOIN", "ANTI JOIN"):
                    continue
            scope = scope + more
        return source, scope

    def _factor(self, depth: int) -> tuple[str, list[Column]]:
        alias = self._alias()
        if depth > 0 and self._maybe(0.25):
            query, columns = self.query(depth - 1)
            return f"({query}) AS {alias}", [Column(f"{alias}.{c.name}", c.kind) for c in columns]
        relation = self._one([*self.relations, self.relations[-1]])
        return f"{relation.name} AS {alias}", [Column(f"{alias}.{c.name}", c.kind) for c in relation.columns]

    def _alias(self) -> str:
        self._names += 1
        return f"r{self._names}"

    # -- subqueries ---------------------------------------------------------------------------------------------------

    def condition(self, scope: Sequence[Column]) -> str:
        """A predicate that may hold a subquery."""
        if self._maybe(0.65):
            return self.predicate(scope)
        tested = self._subquery_test(scope)
        return self._one(
            (tested, tested, f"({tested} OR {self.predicate(scope)})", f"{self.predicate(scope)} AND {tested}")
        )

    def _subquery_test(self, scope: Sequence[Column]) -> str:
        alias = self._alias()
        relation = self._one(self.relations)
        inner = [Column(f"{alias}.{c.name}", c.kind) for c in relation.columns]
        shared = [(a, b) for a in scope for b in inner if a.kind == b.kind]
        if not shared:
            test = f"EXISTS (SELECT 1 FROM {relation.name} AS {alias} WHERE {self.predicate(inner)})"
            return self._one((test, f"NOT {test}"))
        a, b = self._one(shared)
        more = f" AND {self.predicate(inner)}" if self._maybe(0.4) else ""
        source = f"FROM {relation.name} AS {alias}"
        c, d = self._one(shared)
        return self._one(
            (
                f"EXISTS (SELECT 1 {source} WHERE {b.name} = {a.name}{more})",
                f"NOT EXISTS (SELECT 1 {source} WHERE {b.name} = {a.name}{more})",
                f"EXISTS (SELECT 1 {source} WHERE {b.name} = {a.name} AND {d.name} <> {c.name})",
                f"{a.name} IN (SELECT {b.name} {source} WHERE TRUE{more})",
                f"{a.name} NOT IN (SELECT {b.name} {source} WHERE TRUE{more})",
                f"{a.name} NOT IN (SELECT {b.name} {source} WHERE {d.name} = {c.name})",
                f"{a.name} > (SELECT MAX({b.name}) {source} WHERE TRUE{more})",
                f"{a.name} >= (SELECT MIN({b.name}) {source} WHERE {d.name} = {c.name})",
                f"(SELECT COUNT(*) {source} WHERE {d.name} = {c.name}{more}) < 2",
            )
        )

    def _value_of_subquery(self, scope: Sequence[Column]) -> tuple[str, str]:
        alias = self._alias()
        relation = self._one(self.relations)
        inner = [Column(f"{alias}.{c.name}", c.kind) for c in relation.columns]
        shared = [(a.name, b.name) for a in scope for b in inner if a.kind == b.kind]
        value = self._one(inner)
        source = f"FROM {relation.name} AS {alias}"
        if not shared or self._maybe(0.3):
            return f"(SELECT MAX({value.name}) {source})", value.kind
        a, b = self._one(shared)
        where = f"WHERE {b} {self._one(('=', '=', '=', '<'))} {a}"
        return self._one(
            (
                (f"(SELECT MIN({value.name}) {source} {where})", value.kind),
                (f"(SELECT COUNT(*) {source} {where})", "int"),
            )
        )

    # -- expressions --------------------------------------------------------------------------------------------------

    def aggregate(self, scope: Sequence[Column]) -> tuple[str, str]:
        numbers = [c for c in scope if c.kind in ("int", "decimal", "double")]
        choice = self._one(
            ("COUNT", "COUNT_IF", "MIN", "MAX", "SUM", "AVG", "SUM", "AVG", "MIN", "MAX", "OTHER", "OTHER")
        )
        if choice == "OTHER":
            return self._other_aggregate(scope)
        if choice == "COUNT_IF":
            return f"COUNT_IF({self.predicate(scope)})", "int"
        if choice == "COUNT":
            return self._one(("COUNT(*)", f"COUNT({self._one(scope).name})")), "int"
        filtered = f" FILTER (WHERE {self.predicate(scope)})" if self._maybe(0.15) else ""
        if choice in ("MIN", "MAX"):
            kind = self._one(scope).kind
            return f"{choice}({self.expression(scope, kind)}){filtered}", kind
        if not numbers:
            return "COUNT(1)", "int"
        kind = self._one(numbers).kind
        argument = self.expression(scope, kind)
        return f"{choice}({argument}){filtered}", kind if choice == "SUM" or kind == "decimal" else "average"

    def _other_aggregate(self, scope: Sequence[Column]) -> tuple[str, str]:
        a, b = self._one(scope), self._one(scope)
        whole = [c.name for c in scope if c.kind == "int"] or ["1"]
        return self._one(
            (
                (f"COUNT(DISTINCT {a.name})", "int"), (f"COUNT(DISTINCT {a.name}, {b.name})", "int"),
                (f"SUM(DISTINCT {self._one(whole)})", "int"), (f"BOOL_AND({self.predicate(scope)})", "boolean"),
                (f"BOOL_OR({self.predicate(scope)})", "boolean"), (f"MAX_BY({a.name}, {b.name})", a.kind),
                (f"MIN_BY({a.name}, {b.name})", a.kind), (f"SIZE(COLLECT_SET({a.name}))", "int"),
                (f"CONCAT_WS(',', COLLECT_LIST(CAST({self._one(whole)} AS STRING)))", "string"),
                (f"APPROX_COUNT_DISTINCT({a.name})", "int"), (f"MEDIAN({self._one(whole)})", "average"),
                (f"COUNT(DISTINCT {a.name}) FILTER (WHERE {self.predicate(scope)})", "int"),
            )
        )  # fmt: skip

    def expression(self, scope: Sequence[Column], kind: str, depth: int = 2) -> str:
        known = _of(scope, kind)
        if known and (depth == 0 or self._maybe(0.6)):
            return self._one(known).name
        if depth == 0 or kind == "average" or self._maybe(0.15):
            return self._one(known).name if known and kind == "average" else self._literal(kind)

        def more(other: str = kind) -> str:
            return self.expression(scope, other, depth - 1)

        general = (
            f"COALESCE({more()}, {more()})",
            f"CASE WHEN {self.predicate(scope, 0)} THEN {more()} ELSE {more()} END",
        )
        special = {
            "int": (f"({more()} + {more()})", f"(- {more()})", f"({more()} % 3)", f"LENGTH({more('string')})",
                    f"({more()} DIV 2)", f"({more()} - 1)"),
            "decimal": (f"({more()} + {more()})", f"({more()} * 2)", f"ROUND({more()}, 1)", f"ABS({more()})"),
            "date": (f"DATE_ADD({more()}, 1)", f"{more()}"),
            "string": (f"CONCAT({more()}, {more()})", f"UPPER({more()})", f"CAST({more('int')} AS STRING)"),
            "double": (f"({more()} + {more()})", f"({more()} * 0.5D)", f"CAST({more('int')} AS DOUBLE)"),
            "boolean": (self.predicate(scope, 0), f"NOT ({more()})"),
        }[kind]  # fmt: skip
        return self._one(general + special)

    def predicate(self, scope: Sequence[Column], depth: int = 1) -> str:
        column = self._one(scope)
        literal = self._one([v for v in VALUES[column.kind] if v != "NULL"])
        other = self._one(_of(scope, column.kind)).name
        simple = self._one(
            (
                f"{column.name} = {literal}", f"{column.name} > {literal}", f"{column.name} >= {literal}",
                f"{column.name} <= {literal}", f"{column.name} <> {literal}", f"{column.name} <> {other}",
                f"{column.name} IS NULL", f"{column.name} IS NOT NULL", f"{column.name} <=> {other}",
                f"{column.name} IN ({literal}, {self._literal(column.kind)})",
            )
        )  # fmt: skip
        if depth == 0 or self._maybe(0.6):
            return simple
        return self._one((f"NOT ({simple})", f"({simple} OR {self.predicate(scope, 0)})", f"({simple} AND TRUE)"))

    # -- decisions ----------------------------------------------------------------------------------------------------

    def _literal(self, kind: str) -> str:
        value = self._one(VALUES[kind])
        return f"CAST(NULL AS {'DECIMAL(10,2)' if kind == 'decimal' else kind.upper()})" if value == "NULL" else value

    def _listed(self, items: Sequence[str], columns: Sequence[Column]) -> str:
        return ", ".join(f"{item} AS {column.name}" for item, column in zip(items, columns, strict=True))

    def _fresh(self) -> str:
        self._names += 1
        return f"x{self._names}"

    def _one(self, choices: Sequence):  # type: ignore[no-untyped-def,type-arg]
        return choices[self.random.randrange(len(choices))]

    def _some(self, choices: Sequence[str], least: int, most: int) -> list[str]:
        return [self._one(choices) for _ in range(self.random.randint(least, most))]

    def _maybe(self, chance: float) -> bool:
        return self.random.random() < chance


def _of(scope: Sequence[Column], kind: str) -> list[Column]:
    return [column for column in scope if column.kind == kind]
