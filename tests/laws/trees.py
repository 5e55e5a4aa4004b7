"""Random relations, random changes of them, and random trees of operators over them; all of it follows from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
from sqlglot import exp

from penstock.ivm.in_memory import ChangedTable
from penstock.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Kind,
    Operator,
    Project,
    Scan,
    Sessions,
    SidedJoin,
    TopK,
    Union,
    Values,
    Window,
)
from penstock.sql.trees import Named, column, tree

Row = tuple[Any, ...]
_EPOCH = datetime(2024, 1, 1, tzinfo=timezone.utc)

TYPES: dict[str, tuple[pa.DataType, Callable[[Random], Any]]] = {
    "i": (pa.int32(), lambda chance: chance.choice([None, 0, 1, 1, 2, 3, -1, 7])),
    "l": (pa.int64(), lambda chance: chance.choice([None, 0, 1, 2, 2, 10**12, -5])),
    "s": (pa.string(), lambda chance: chance.choice([None, "", "a", "a", "b", "é", "B"])),
    "d": (pa.decimal128(10, 2), lambda chance: chance.choice([None, *map(Decimal, ("0.00", "1.50", "-2.25"))])),
    "f": (pa.float64(), lambda chance: chance.choice([None, 0.0, -0.0, 1.5, math.nan, math.inf, -1.5])),
    "b": (pa.bool_(), lambda chance: chance.choice([None, True, False])),
    "t": (pa.timestamp("us", "UTC"), lambda chance: chance.choice([None, *(_EPOCH + timedelta(seconds=30 * n) for n in
                                                                          (0, 0, 1, 2, 5, 9))])),
}  # fmt: skip
"""A letter for each type that relations have, and its values: with NULL, duplicates, NaN and both zeros."""


@dataclass(frozen=True)
class Typed:
    """An operator, and the type of each of its columns."""

    op: Operator
    types: dict[str, str]

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.types.items() if kind in kinds]


_BY_ROWS = (
    "UNBOUNDED PRECEDING AND CURRENT ROW", "2 PRECEDING AND CURRENT ROW", "UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "1 PRECEDING AND 1 FOLLOWING", "UNBOUNDED PRECEDING AND 1 PRECEDING",
)  # fmt: skip


class Maker:
    """Makes everything from one seed."""

    def __init__(self, seed: int):
        self.chance = Random(seed)
        self.tables: dict[str, ChangedTable] = {}
        self.kinds: dict[str, list[str]] = {}
        self._names = 0
        for name in ("r", "q"):
            self.kinds[name] = [self.chance.choice("ilsdfbt") for _ in range(self.chance.randint(2, 4))]
            self.tables[name] = self._relation(self.kinds[name])

    # -- relations ----------------------------------------------------------------------------------------------------

    def _relation(self, kinds: Sequence[str]) -> ChangedTable:
        rows = [self._row(kinds) for _ in range(self.chance.randint(0, 9))]
        gone = [row for row in rows if self.chance.random() < 0.3]
        new = [self._row(kinds) for _ in range(self.chance.randint(0, 4))]
        left = list(rows)
        for row in gone:
            left.remove(row)
        if self.chance.random() < 0.4:  # nothing but new rows, maybe at the end of an order
            left, gone = list(rows), []
            new = self._later(kinds, rows, new) if self.chance.random() < 0.7 else new
        if self.chance.random() < 0.15:
            left, new = list(rows), []
        return ChangedTable(_table(kinds, rows), _table(kinds, [*left, *new]))

    def _later(self, kinds: Sequence[str], rows: Sequence[Row], new: Sequence[Row]) -> list[Row]:
        """The new rows with the greatest value of a column that is there, or their own if that is greater."""
        at = self.chance.randrange(len(kinds))
        known = [row[at] for row in rows if row[at] is not None]
        if not known or kinds[at] == "f":
            return list(new)
        last = [max([*known, *([row[at]] if row[at] is not None else [])]) for row in new]
        return [(*row[:at], value, *row[at + 1 :]) for row, value in zip(new, last, strict=True)]

    def _row(self, kinds: Sequence[str]) -> Row:
        return tuple(TYPES[kind][1](self.chance) for kind in kinds)

    # -- operators ----------------------------------------------------------------------------------------------------

    def name(self) -> str:
        self._names += 1
        return f"__c{self._names}"

    def scan(self, relation: str | None = None) -> Typed:
        chosen = relation or self.chance.choice(list(self.kinds))
        stored = [(self.name(), f"c{i}") for i in range(len(self.kinds[chosen]))]
        return Typed(Scan(chosen, tuple(stored)), {n: k for (n, _), k in zip(stored, self.kinds[chosen], strict=True)})

    def stateless(self, depth: int) -> Typed:
        """A tree without operators that have a table of their own."""
        if depth <= 1:
            return self.scan()
        kind = self.chance.choice(["project", "filter", "join", "sided", "union", "generate", "scan", "values"])
        return getattr(self, f"_{kind}")(depth)

    def _scan(self, depth: int) -> Typed:
        return self.scan()

    def _values(self, depth: int) -> Typed:
        rows = [(tree(str(self.chance.randint(0, 3))), tree(f"'{self.chance.choice('ab')}'")) for _ in range(2)]
        names = (self.name(), self.name())
        return Typed(Values(tuple(rows), names), {names[0]: "i", names[1]: "s"})

    def _project(self, depth: int) -> Typed:
        child = self.stateless(depth - 1)
        made = [self.expression(child) for _ in range(self.chance.randint(1, 3))]
        outputs = [(self.name(), e, kind) for e, kind in made]
        return Typed(Project(child.op, tuple((n, e) for n, e, _ in outputs)), {n: k for n, _, k in outputs})

    def _filter(self, depth: int) -> Typed:
        child = self.stateless(depth - 1)
        return Typed(Filter(child.op, self.condition(child)), child.types)

    def _join(self, depth: int) -> Typed:
        inputs = [self.stateless(depth - 1) for _ in range(self.chance.choice([2, 2, 3]))]
        conditions = [c for one, two in pairwise(inputs) for c in self._meeting(one, two)]
        types = {name: kind for one in inputs for name, kind in one.types.items()}
        return Typed(Join(tuple(one.op for one in inputs), tuple(conditions)), types)

    def _sided(self, depth: int) -> Typed:
        left, right = self.stateless(depth - 1), self.stateless(depth - 1)
        kind: Kind = self.chance.choice(["left", "full", "semi", "anti", "mark"])
        conditions = tuple(self._meeting(left, right, some=True))
        mark = self.name() if kind == "mark" else None
        types = {**left.types, **(right.types if kind in ("left", "full") else {}), **({mark: "b"} if mark else {})}
        return Typed(SidedJoin(kind=kind, left=left.op, right=right.op, conditions=conditions, mark=mark), types)

    def _union(self, depth: int) -> Typed:
        one = self.stateless(depth - 1)
        other = Typed(one.op, one.types) if self.chance.random() < 0.3 else self._alike(one)
        names = {self.name(): kind for kind in one.types.values()}
        return Typed(Union((one.op, other.op), tuple(names)), names)

    def _generate(self, depth: int) -> Typed:
        child = self.stateless(depth - 1)
        new = self.name()
        return Typed(Generate(child.op, tree("EXPLODE(ARRAY(0, 1, 1))"), (new,)), {**child.types, new: "i"})

    def _alike(self, other: Typed) -> Typed:
        """Another relation with columns of the same types."""
        name = f"more{len(self.kinds)}"
        self.kinds[name] = list(other.types.values())
        self.tables[name] = self._relation(self.kinds[name])
        return self.scan(name)

    def _meeting(self, one: Typed, two: Typed, *, some: bool = False) -> list[exp.Expr]:
        pairs = [(a, b) for a in one.types for b in two.types if one.types[a] == two.types[b] and one.types[a] != "f"]
        self.chance.shuffle(pairs)
        operators = ["=", "=", "<=>", "<"] if pairs else []
        chosen = pairs[: self.chance.choice([1, 1, 2])]
        found = [tree(f"x {self.chance.choice(operators)} y", x=column(a), y=column(b)) for a, b in chosen]
        return found or ([exp.Boolean(this=True)] if some and self.chance.random() < 0.5 else [])

    # -- operators that have a table of their own ---------------------------------------------------------------------

    def stateful(self, depth: int) -> Typed:
        child = self.stateless(depth - 1)
        makers = [self._aggregate, self._aggregate, self._distinct, self._window, self._window, self._top_k]
        if child.of("t"):
            makers.append(self._sessions)
        return self.chance.choice(makers)(child)

    def _distinct(self, child: Typed) -> Typed:
        return Typed(Distinct(child.op), child.types)

    def _aggregate(self, child: Typed) -> Typed:
        chosen = self.chance.sample(list(child.types), k=min(len(child.types), self.chance.choice([0, 1, 1, 2])))
        keys = [(self.name(), column(name), child.types[name]) for name in chosen]
        measures = [(self.name(), e, kind) for e, kind in self._measures(child)]
        op = Aggregate(child.op, tuple((n, e) for n, e, _ in keys), tuple((n, e) for n, e, _ in measures))
        return Typed(op, {n: kind for n, _, kind in (*keys, *measures)})

    def _measures(self, child: Typed) -> list[tuple[exp.Expr, str]]:
        found: list[tuple[exp.Expr, str]] = [(tree("COUNT(*)"), "l")]
        for name, kind in child.types.items():
            x = column(name)
            found.append((tree("COUNT(x)", x=x), "l"))
            found += [(tree(f"{f}(x)", x=x), kind) for f in ("MIN", "MAX") if kind != "f"]
            found += [(tree("SUM(x)", x=x), {"i": "l"}.get(kind, "?"))] if kind in "ild" else []
            found += [(tree("COUNT_IF(x)", x=x), "l"), (tree("BOOL_AND(x)", x=x), "b")] if kind == "b" else []
        return self.chance.sample(found, k=min(len(found), self.chance.randint(1, 4)))

    def _window(self, child: Typed) -> Typed:
        by = self.chance.sample(list(child.types), k=min(len(child.types), self.chance.choice([0, 1, 1])))
        order = self.chance.choice(list(child.types))
        ways = self.chance.choice(["", "", " DESC", " NULLS LAST", " DESC NULLS FIRST"])
        over = f"{'PARTITION BY ' + by[0] if by else ''} ORDER BY {order}{ways}"
        calls = self._calls(child, order)
        functions, types = [], dict(child.types)
        for text, kind in self.chance.sample(calls, k=self.chance.choice([1, 1, 2, 3])):
            call, _, frame = text.partition(" OVER ")
            functions.append((self.name(), tree(f"{call} OVER ({over} {frame})")))
            types[functions[-1][0]] = kind
        return Typed(Window(child.op, tuple(by), tuple(functions)), types)

    def _calls(self, child: Typed, order: str) -> list[tuple[str, str]]:
        """Window functions with their frames, and the types that they give; none that depends on the order of ties."""
        x, kind = self.chance.choice(list(child.types.items()))
        found = [(text, "?") for text in ("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(2)", "COUNT(*)")]
        found += [(text, child.types[order]) for text in (f"LAG({order})", f"LEAD({order}, 2)")]
        found += [(text, kind) for text in (f"LAG({x}, 2, {x})", f"LAG({x}) IGNORE NULLS", f"LEAD({x}) IGNORE NULLS")]
        frame = f" OVER ROWS BETWEEN {self.chance.choice(_BY_ROWS)}"
        found += [(f"{text}{frame}", kind) for text in (f"FIRST_VALUE({x})", f"LAST_VALUE({x}) IGNORE NULLS")]
        frames = ["", frame]
        if child.types[order] in "ilt":
            amount = "INTERVAL 60 SECOND" if child.types[order] == "t" else "2"
            frames += [
                f" OVER RANGE BETWEEN {amount} PRECEDING AND {end}" for end in ("CURRENT ROW", f"{amount} FOLLOWING")
            ]
        chosen = self.chance.choice(frames)
        found.append((f"COUNT({x}){chosen}", "?"))
        found += [(f"{f}({x}){chosen}", "?") for f in ("MIN", "MAX") if kind != "f"]
        found += (
            [(f"SUM({x}){chosen}", "?"), (f"SUM({x}) FILTER (WHERE {x} > 0){chosen}", "?")] if kind in "ild" else []
        )
        return found

    def _top_k(self, child: Typed) -> Typed:
        key = self.chance.choice(list(child.types))
        down, first = self.chance.random() < 0.5, self.chance.random() < 0.5
        order = exp.Ordered(this=column(key), desc=down, nulls_first=first)
        offset = self.chance.choice([0, 0, 0, 1])
        return Typed(TopK(child.op, (order,), self.chance.randint(1, 4), offset), child.types)

    def _sessions(self, child: Typed) -> Typed:
        time = child.of("t")[0]
        by = [name for name in child.types if name != time][: self.chance.choice([0, 1])]
        keys: list[Named] = [(self.name(), column(name)) for name in by]
        session = (self.name(), tree("session_window(x, '60 seconds')", x=column(time)))
        count = (self.name(), tree("COUNT(*)"))
        types = {**{n: child.types[c] for (n, _), c in zip(keys, by, strict=True)}, session[0]: "?", count[0]: "l"}
        return Typed(Sessions(child.op, (*keys, session), (count,)), types)

    # -- expressions --------------------------------------------------------------------------------------------------

    def expression(self, child: Typed) -> tuple[exp.Expr, str]:
        name, kind = self.chance.choice(list(child.types.items()))
        x = column(name)
        made: list[tuple[exp.Expr, str]] = [(x, kind), (x, kind), (tree("x IS NULL", x=x), "b")]
        if kind in "il":
            made += [(tree("IF(x > 1, x, NULL)", x=x), kind), (tree("COALESCE(x, 0)", x=x), kind)]
        if kind == "s":
            made += [(tree("UPPER(x)", x=x), "s"), (tree("x || 'z'", x=x), "s")]
        if kind == "t":
            made.append((tree("DATE_TRUNC('MINUTE', x)", x=x), "t"))
        return self.chance.choice(made)

    def condition(self, child: Typed) -> exp.Expr:
        name, kind = self.chance.choice(list(child.types.items()))
        x = column(name)
        made = [tree("x IS NOT NULL", x=x)]
        made += [tree("x > 0", x=x), tree("NOT x IN (1, 7)", x=x)] if kind in "il" else []
        made += [tree("x >= 'a'", x=x), tree("x LIKE '%a'", x=x)] if kind == "s" else []
        made += [x, tree("NOT x", x=x)] if kind == "b" else []
        return self.chance.choice(made)


def _table(kinds: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    arrays = [pa.array([row[i] for row in rows], TYPES[kind][0]) for i, kind in enumerate(kinds)]
    return pa.table(arrays, names=[f"c{i}" for i in range(len(kinds))])
