"""Random stories for the oracle: tables, views over views, and changes, as SQL text that can be read and run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queries import TYPES, VALUES, Column, QueryAuthor, Relation

SMALLEST = {
    "UNCOMPILED_ROWS": 0, "LOCAL_ROWS": 0, "ASKED_ROWS": 0, "DECIMAL_ROWS": 0, "JOINED_PAIRS": 3,
    "CHANGE_ROWS": -1, "SMALL_CHANGE_BYTES": 0, "READ_ROWS": -1, "LOOKUP_LEAST_ROWS": 1, "LOOKUP_MOST_ROWS": 3,
    "TAIL_LEAST_ROWS": 0,
    "LOOKUP_KEYS": 2, "LOOKUP_FOUND": 1, "LOOKUP_COMBINATIONS": 1, "LOOKUP_FEW_VALUES": 0, "KNOWN_KEYS": 0,
    "CONDITION_VALUES": 1, "CONDITION_COMBINATIONS": 1, "SMALL_TABLE_ROWS": 0, "LOCAL_TABLE_ROWS": -1,
    "LOCATED_ROWS": 0, "NEARBY_ROWS": -1, "SCANNED_GROUP_ROWS": -1, "LOOKED_UP_GROUP_ROWS": -1, "COMPACTED_ROWS": 2,
    "FEW_PLACES": 0, "MANY_PLACES": -1, "VECTOR_WORDS": 0,
}  # fmt: skip
"""Limits that few rows pass, so that both sides of each are reached."""


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
    limits: tuple[tuple[str, int], ...] = ()
    """Sizes of ``frames.limits`` that are so small in this story that what is done for large tables is done here."""
    patch: bool = False
    """Whether large view tables are patched and never rewritten."""

    def script(self) -> str:
        """The story as SQL, to be read by whoever must find out why it failed."""
        sizes = " ".join(f"{name}={size}" for name, size in self.limits)
        lines = [f"-- {sizes} patch={self.patch}", *self.tables]
        lines += [f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in self.views]
        for step in self.steps:
            lines += [*step.changes, f"-- refresh {step.refresh or 'all'}"]
        return ";\n".join(lines)


@dataclass
class Author(QueryAuthor):
    """Makes up stories by asking ``random`` for every decision. ``external`` is a directory for unmanaged tables."""

    external: str = ""

    def story(self) -> Story:
        tables = [self._table(f"t{i}") for i in range(1, self.random.randint(1, 3) + 1)]
        statements = tuple(statement for _, made in tables for statement in made)
        self.relations = [relation for relation, _ in tables]
        views = []
        for i in range(1, self.random.randint(2, 4) + 1):
            query, columns = self.query(depth=self.random.randint(1, 4))
            views.append((f"v{i}", query))
            self.relations.append(Relation(f"v{i}", columns))
        sources = [relation for relation, _ in tables]
        steps = tuple(self._step(sources, [name for name, _ in views]) for _ in range(self.random.randint(2, 3)))
        sizes = tuple((name, size) for name, size in SMALLEST.items() if self._maybe(0.3))
        return Story(statements, tuple(views), steps, sizes, self._maybe(0.5))

    # -- tables and changes -------------------------------------------------------------------------------------------

    def _table(self, name: str) -> tuple[Relation, list[str]]:
        kinds = ["int", *self._some([*TYPES, "int", "decimal", "string"], 1, 3)]
        columns = tuple(Column("k" if i == 0 else f"a{i}", kind) for i, kind in enumerate(kinds))
        declared = ", ".join(f"{c.name} {self._one(TYPES[c.kind])}" for c in columns)
        relation = Relation(name, columns)
        create = f"CREATE TABLE {name} ({declared}){self._storage(name)}"
        return relation, [create, f"INSERT INTO {name} VALUES {self._rows(relation, 6)}"]

    def _storage(self, name: str) -> str:
        """Managed, or external: without change feed, with deletion vectors only; partitioned, with mapped columns."""
        place = f" LOCATION '{self.external}/{name}'"
        vectors = " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        mapped = " TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"
        parts = " PARTITIONED BY (k)"
        return self._one(("", "", parts, mapped, place, parts + place, vectors + place, parts + mapped + place))

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
