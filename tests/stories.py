"""Random stories for the oracle: tables, views over views, and changes, all as SQL text that can be read and run again.

Values come from tiny pools, so that keys meet, rows repeat and groups empty. Doubles are sums of powers of two, so that
their sums do not depend on the order of rows; what an AVG of integers or doubles gives is never summed again.
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
_TYPES = {
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


@dataclass(frozen=True)
class Step:
    """Some changes, then a refresh of one view, or of all."""

    changes: tuple[str, ...]
    refresh: str | None


@dataclass(frozen=True)
class Story:
    tables: tuple[str, ...]
    views: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    rewrite: bool = False
    """Whether view tables count as large, so that only touched files are rewritten."""
    cached: bool = False
    """Whether changes count as large, so that they are cached instead of sent to the driver."""
    spark_writes: bool = False
    """Whether Spark writes all files, also the small ones."""

    def script(self) -> str:
        """The story as SQL, to be read by whoever must find out why it failed."""
        lines = [f"-- rewrite={self.rewrite} cached={self.cached} spark_writes={self.spark_writes}", *self.tables]
        lines += [f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in self.views]
        for step in self.steps:
            lines += [*step.changes, f"-- refresh {step.refresh or 'all'}"]
        return ";\n".join(lines)


@dataclass
class Author:
    """Makes up stories by asking ``random`` for every decision. ``external`` is a directory for unmanaged tables."""

    random: Random
    external: str
    relations: list[Relation] = field(default_factory=list)
    _names: int = 0

    def story(self) -> Story:
        tables = [self._table(f"t{i}") for i in range(1, self.random.randint(1, 3) + 1)]
        statements = tuple(statement for _, made in tables for statement in made)
        self.relations = [relation for relation, _ in tables]
        views = []
        for i in range(1, self.random.randint(2, 4) + 1):
            query, columns = self.query(depth=2)
            views.append((f"v{i}", query))
            self.relations.append(Relation(f"v{i}", columns))
        sources = [relation for relation, _ in tables]
        steps = tuple(self._step(sources, [name for name, _ in views]) for _ in range(self.random.randint(2, 3)))
        return Story(statements, tuple(views), steps, self._maybe(0.3), self._maybe(0.2), self._maybe(0.3))

    # -- tables and changes -------------------------------------------------------------------------------------------

    def _table(self, name: str) -> tuple[Relation, list[str]]:
        kinds = ["int", *self._some([*_TYPES, "int", "decimal", "string"], 1, 3)]
        columns = tuple(Column("k" if i == 0 else f"a{i}", kind) for i, kind in enumerate(kinds))
        declared = ", ".join(f"{c.name} {self._one(_TYPES[c.kind])}" for c in columns)
        relation = Relation(name, columns)
        create = f"CREATE TABLE {name} ({declared}){self._storage(name)}"
        return relation, [create, f"INSERT INTO {name} VALUES {self._rows(relation, 6)}"]

    def _storage(self, name: str) -> str:
        """Managed, or external: without change feed, partitioned, with deletion vectors only."""
        place = f" LOCATION '{self.external}/{name}'"
        vectors = " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        return self._one(("", "", "", place, f" PARTITIONED BY (k){place}", vectors + place))

    def _rows(self, relation: Relation, most: int) -> str:
        rows = []
        for _ in range(self.random.randint(1, most)):
            rows.append(f"({', '.join(self._literal(c.kind) for c in relation.columns)})")
        return ", ".join(rows)

    def _step(self, tables: Sequence[Relation], views: Sequence[str]) -> Step:
        changes = tuple(self._change(self._one(tables)) for _ in range(self.random.randint(1, 3)))
        return Step(changes, self._one(views) if self._maybe(0.25) else None)

    def _change(self, table: Relation) -> str:
        scope = list(table.columns)
        target = self._one(scope)
        where = f" WHERE {self.predicate(scope)}"
        match self.random.randint(0, 9):
            case 0 | 1 | 2:
                return f"INSERT INTO {table.name} VALUES {self._rows(table, 3)}"
            case 3:
                return f"INSERT INTO {table.name} SELECT * FROM {table.name}{where}"
            case 4 | 5:
                return f"UPDATE {table.name} SET {target.name} = {self.expression(scope, target.kind)}{where}"
            case 6 | 7:
                return f"DELETE FROM {table.name}{where}"
            case 8:
                return f"INSERT OVERWRITE {table.name} VALUES {self._rows(table, 4)}"
        return self._one((f"TRUNCATE TABLE {table.name}", f"OPTIMIZE {table.name}", self._merge(table)))

    def _merge(self, table: Relation) -> str:
        target = self._one(table.columns[1:])
        values = ", ".join(self._literal(c.kind) for c in table.columns)
        return (
            f"MERGE INTO {table.name} AS t USING (SELECT {self._one(VALUES['int'][1:])} AS k) AS s ON t.k = s.k "
            f"WHEN MATCHED THEN UPDATE SET {target.name} = {self._literal(target.kind)} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(c.name for c in table.columns)}) VALUES ({values})"
        )

    # -- queries ------------------------------------------------------------------------------------------------------

    def query(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        shape = self.random.randint(0, 9)
        if shape <= 2:
            return self._rows_query(depth, distinct=False)
        if shape == 3:
            return self._rows_query(depth, distinct=True)
        if shape == 4:
            return self._union(depth)
        return self._groups_query(depth, keys=self.random.randint(0, 2) if shape > 5 else 1)

    def _rows_query(self, depth: int, *, distinct: bool) -> tuple[str, tuple[Column, ...]]:
        source, scope = self._from(depth)
        columns, items = [], []
        for _ in range(self.random.randint(1, 4)):
            kind = self._one(scope).kind
            items.append(self.expression(scope, kind))
            columns.append(Column(self._fresh(), kind))
        listed = self._listed(items, columns)
        where = f" WHERE {self.predicate(scope)}" if self._maybe(0.3) else ""
        return f"SELECT {'DISTINCT ' if distinct else ''}{listed} FROM {source}{where}", tuple(columns)

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
        where = f" WHERE {self.predicate(scope)}" if self._maybe(0.3) else ""
        grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
        having = ""
        if self._maybe(0.3):
            measure, kind = self.aggregate(scope)
            having = f" HAVING {measure} {self._one(('>', '<=', '<>'))} {self._one(VALUES[kind][-2:])}"
            having = self._one((having, f"{having} OR COUNT(*) = 2"))
        return f"SELECT {self._listed(items, columns)} FROM {source}{where}{grouped}{having}", tuple(columns)

    def _union(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        first, columns = self._rows_query(depth - 1, distinct=False)
        source, scope = self._from(depth - 1)
        second = ", ".join(self.expression(scope, c.kind) for c in columns)
        where = f" WHERE {self.predicate(scope)}" if self._maybe(0.3) else ""
        word = self._one(("UNION ALL", "UNION ALL", "UNION ALL", "UNION"))
        return f"{first} {word} SELECT {second} FROM {source}{where}", columns

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
                source = f"{source} JOIN {other} ON {a} {operator} {b}{extra}"
            scope = scope + more
        return source, scope

    def _factor(self, depth: int) -> tuple[str, list[Column]]:
        self._names += 1
        alias = f"r{self._names}"
        if depth > 0 and self._maybe(0.2):
            query, columns = self.query(depth - 1)
            return f"({query}) AS {alias}", [Column(f"{alias}.{c.name}", c.kind) for c in columns]
        relation = self._one([*self.relations, self.relations[-1]])
        return f"{relation.name} AS {alias}", [Column(f"{alias}.{c.name}", c.kind) for c in relation.columns]

    # -- expressions --------------------------------------------------------------------------------------------------

    def aggregate(self, scope: Sequence[Column]) -> tuple[str, str]:
        numbers = [c for c in scope if c.kind in ("int", "decimal", "double")]
        choice = self._one(("COUNT", "COUNT_IF", "MIN", "MAX", "SUM", "AVG", "SUM", "AVG", "MIN", "MAX"))
        if choice == "COUNT_IF":
            return f"COUNT_IF({self.predicate(scope)})", "int"
        if choice == "COUNT":
            return self._one(("COUNT(*)", f"COUNT({self._one(scope).name})")), "int"
        if choice in ("MIN", "MAX"):
            kind = self._one(scope).kind
            return f"{choice}({self.expression(scope, kind)})", kind
        if not numbers:
            return "COUNT(1)", "int"
        kind = self._one(numbers).kind
        argument = self.expression(scope, kind)
        return f"{choice}({argument})", kind if choice == "SUM" or kind == "decimal" else "average"

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
