"""Rows at the end of a window's order: the change is right, and the child is not read for it.

Partitions have ties, NULLs, NaN and both zeros; the node's table is the only thing that is read, and of a large one
only the last rows are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from relations import Rows, counted

from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.clock import Clock, timing
from penstock.frames.frame import Frame
from penstock.frames.zset import ZSet, matching
from penstock.ivm.context import Moment, Stored
from penstock.ivm.in_memory import NO_SPARK, ChangedTable, Held, Memory, without_spark
from penstock.ivm.node import Maintained, maintained_node
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Scan, Window
from penstock.sql.trees import column, tree

KINDS = {
    "k": pa.int32(), "t": pa.int64(), "day": pa.date32(), "g": pa.float64(), "x": pa.int32(), "f": pa.float64(),
    "d": pa.decimal128(10, 2), "s": pa.string(), "b": pa.bool_(),
}  # fmt: skip
NAMES = tuple(KINDS)
_DAY = date(2024, 1, 1)

VALUES = {
    "k": lambda chance: chance.choice([None, 1, 2, 3]),
    "x": lambda chance: chance.choice([None, 0, 1, 1, 2, -3]),
    "f": lambda chance: chance.choice([None, 0.1, 0.7, -1e17, 1e17, 3.3, math.nan, math.inf]),
    "d": lambda chance: chance.choice([*map(Decimal, ("0.00", "1.50", "-2.25", "99999999.99"))]),
    "s": lambda chance: chance.choice([None, "", "a", "b", "é"]),
    "b": lambda chance: chance.choice([None, True, False]),
}

FUNCTIONS = (
    "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "LAG(x)", "LAG(f, 2, 0D)", "LEAD(s)", "LEAD(x, 2, k)", "LAG(d, -1)",
    "LAG(x) IGNORE NULLS", "COUNT(*)", "COUNT(x)", "SUM(x)", "SUM(d)", "MIN(f)", "MAX(s)", "SUM(x) FILTER (WHERE b)",
    "COUNT_IF(b)", "BOOL_AND(b)", "BOOL_OR(b)", "FIRST_VALUE(x)", "MAX(b)",
)  # fmt: skip
FRAMED = (
    "SUM(x)", "SUM(d)", "SUM(f)", "MIN(f)", "MAX(s)", "COUNT(*)", "COUNT(x)", "LAST_VALUE(s)",
    "LAST_VALUE(x) IGNORE NULLS", "FIRST_VALUE(x) IGNORE NULLS", "SUM(f) FILTER (WHERE b)", "BOOL_OR(b)", "MIN(d)",
)  # fmt: skip
SLIDING = ("AVG(x)", "AVG(f)", "NTH_VALUE(s, 2)", "FIRST_VALUE(s)")
GROWING = (
    "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
)  # fmt: skip
BY_ROWS = (
    "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING", "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
)  # fmt: skip
BY_AMOUNT = {
    "t": ("RANGE BETWEEN 2 PRECEDING AND CURRENT ROW", "RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING"),
    "day": ("RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND CURRENT ROW",
            "RANGE BETWEEN INTERVAL 2 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING"),
    "g": ("RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",),
}  # fmt: skip
EXACT = ("SUM(x)", "SUM(d)", "MIN(d)", "MAX(s)", "COUNT(*)", "COUNT(x)")
"""Whose value over peers does not depend on their order."""

Row = tuple[Any, ...]


class Unread(Memory):
    """Inputs of which only the change may be asked for."""

    def read(self, scan: Scan, moment: Moment) -> ZSet:
        raise AssertionError("the child is read")


class Before(Memory):
    """Inputs that may be read as they were, for columns that are not stored, but not as they are."""

    def read(self, scan: Scan, moment: Moment) -> ZSet:
        assert moment == "pre", "the child is read"
        return super().read(scan, moment)


@dataclass(frozen=True)
class Searched(Held):
    """A node's table in which rows are found by their keys, as in a large one; ``seen``: rows that are read whole."""

    whole: pa.Table | None = None
    seen: list[int] = field(default_factory=list)

    def read(self, *, located: bool = False) -> Frame:
        if self.whole is None:
            self.seen.append(self.table.num_rows)
        return super().read(located=located)

    def only(self, columns: Sequence[str]) -> Stored:
        return replace(self, table=self.table.select(list(columns)), whole=self.table)

    def near(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored:
        return self.looked_up(keys, columns) or self

    def looked_up(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored | None:
        if keys is None:
            return None
        sought = ArrowFrame.of(NO_SPARK, keys).renamed({key: name for name, key in columns.items()})
        rows = ArrowFrame.of(NO_SPARK, self.table if self.whole is None else self.whole)
        found = matching(rows, sought, [name for name in columns if name in sought.columns])
        return replace(self, table=found.only(self.table.column_names).rows())


class Story:
    """A window, a table before and after rows came to the end of its order."""

    def __init__(self, seed: int):
        self.chance = Random(seed)
        self.key = self.chance.choice(["t", "t", "day", "g"])
        self.down, self.nulls_first = self.chance.random() < 0.4, self.chance.random() < 0.5
        more = self.chance.choice(["", "", ", s", ", x DESC"])
        nulls = "FIRST" if self.nulls_first else "LAST"
        self.order = f"{self.key} {'DESC' if self.down else 'ASC'} NULLS {nulls}{more}"
        self.one_key = not more
        self.partition = self.chance.choice([("k",), ("k",), ("k", "b"), ()])
        self.functions = [self.function() for _ in range(self.chance.choice([1, 1, 2, 4]))]
        self.steps = [None, *range(6)] if self.nulls_first else [*range(6), None]

    def function(self) -> str:
        by = f"PARTITION BY {', '.join(self.partition)} " if self.partition else ""
        kinds = ["any", "growing", "rows", "range"] if self.one_key else ["any", "growing", "rows"]
        match self.chance.choice(kinds):
            case "any":
                what, frame = self.chance.choice(FUNCTIONS), ""
            case "growing":
                what, frame = self.chance.choice(FRAMED), self.chance.choice(GROWING)
            case "rows":
                what, frame = self.chance.choice((*FRAMED, *SLIDING)), self.chance.choice(BY_ROWS)
            case _:
                what, frame = self.chance.choice(EXACT), self.chance.choice(BY_AMOUNT[self.key])
        return f"{what} OVER ({by}ORDER BY {self.order} {frame})"

    def relation(self) -> ChangedTable:
        """Rows of the first steps of the order, then rows of the last of those or of later ones; few in the middle."""
        last = self.chance.randint(0, len(self.steps) - 1)
        old = [self.row(self.chance.randint(0, last)) for _ in range(self.chance.randint(0, 14))]
        far = self.chance.choice([last, last, min(last + 1, len(self.steps) - 1)])
        new = [self.row(self.chance.randint(far, len(self.steps) - 1)) for _ in range(self.chance.randint(1, 3))]
        new += self.chance.sample(old, k=min(len(old), self.chance.choice([0, 0, 0, 1])))
        return ChangedTable(table(old), table([*old, *new]))

    def row(self, step: int) -> Row:
        at = self.steps[step]
        at = None if at is None else (5 - at if self.down else at)
        made: dict[str, Any] = {name: make(self.chance) for name, make in VALUES.items()}
        made["t"] = at if self.key == "t" else 0
        made["day"] = None if at is None else _DAY + timedelta(days=at)
        made["g"] = None if at is None else math.nan if at == 5 else float(at)
        return tuple(made[name] for name in NAMES)

    def node(self, hidden: Sequence[str] = ()) -> Maintained:
        scan = Scan("r", tuple((name, name) for name in NAMES))
        functions = tuple((f"w{i}", tree(text)) for i, text in enumerate(self.functions))
        op = Window(scan, self.partition, functions)
        outputs = tuple((f"o_{name}", column(name)) for name in op.columns if name not in hidden)
        return maintained_node(NodePlan(name="node", body=op, outputs=outputs, hidden=True), {})


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.table({name: pa.array([row[i] for row in rows], KINDS[name]) for i, name in enumerate(NAMES)})


def rows_of(frame: Frame | pa.Table) -> Rows:
    return counted(ArrowFrame.of(NO_SPARK, frame) if isinstance(frame, pa.Table) else frame, weighted=False)


def check(node: Maintained, relation: ChangedTable, context: type[Memory] = Unread) -> list[int]:
    """The law; gives how many rows of the node's table were read, one number for each reading."""
    plain = Memory({"r": relation})
    before, after = (node.evaluate(plain, moment).rows() for moment in ("pre", "post"))
    assert before is not None
    assert after is not None
    held = Searched(before)
    change = node.delta(context({"r": relation}), held)
    found = rows_of(before)
    found.update(counted(change, weighted=True) if change is not None else {})
    assert +found == rows_of(after), node.plan
    assert not -found, node.plan
    return held.seen


@pytest.fixture(autouse=True)
def on_the_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(limits, "TAIL_LEAST_ROWS", 0)
    with without_spark(), timing(Clock()):
        yield


@pytest.mark.parametrize("seed", range(0, 100, 25))
def test_rows_at_the_end_are_told_by_the_nodes_own_table(seed: int) -> None:
    for story in map(Story, range(seed, seed + 25)):
        check(story.node(), story.relation())


@pytest.mark.parametrize("seed", range(200, 300, 25))
def test_of_a_large_table_the_last_rows_are_looked_up(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 0)
    for story in map(Story, range(seed, seed + 25)):
        check(story.node(), story.relation())


ROWS_READ = {
    "LAG(x) OVER (PARTITION BY k ORDER BY t)": 1,
    "LAG(x, 3) OVER (PARTITION BY k ORDER BY t)": 3,
    "LEAD(x, 2) OVER (PARTITION BY k ORDER BY t)": 2,
    "LAG(x) IGNORE NULLS OVER (PARTITION BY k ORDER BY t)": 2,
    "SUM(f) OVER (PARTITION BY k ORDER BY t)": 1,
    "RANK() OVER (PARTITION BY k ORDER BY t)": 1,
    "SUM(f) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)": 6,
    "AVG(f) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)": 4,
    "MAX(x) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)": 3,
    "MAX(x) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN 4 PRECEDING AND CURRENT ROW)": 4,
    "LAST_VALUE(s) OVER (PARTITION BY k ORDER BY t)": 0,
}


@pytest.mark.parametrize("text", ROWS_READ)
def test_no_more_rows_are_read_than_matter(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 0)
    story = Story(0)
    story.partition, story.functions = ("k",), [text]
    old = [(k, t, None, 0.0, t % 3, t * 0.1, Decimal("1.00"), "a", True) for k in (1, 2, 3) for t in range(100)]
    new = [(2, 100, None, 0.0, 1, 0.7, Decimal("1.00"), "b", True)]
    seen = check(story.node(), ChangedTable(table(old), table([*old, *new])))
    assert seen == [ROWS_READ[text]]


HIDING = (
    "LAST_VALUE(x) IGNORE NULLS OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING)",
    "LEAD(x) OVER (PARTITION BY k ORDER BY t)", "SUM(x) OVER (PARTITION BY k ORDER BY t)",
    "LAST_VALUE(x) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING)",
    "LEAD(x, 3, 7) OVER (PARTITION BY k ORDER BY t)",
    "MAX(x) FILTER (WHERE b) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING)",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_a_column_that_is_not_stored_may_not_matter(seed: int) -> None:
    """What a function takes of a new row, or had of old ones in its stored value; but not if two rows tie."""
    story = Story(seed)
    story.partition, story.key, story.down, story.nulls_first, story.steps = ("k",), "t", False, True, [*range(30)]
    story.functions = story.chance.sample(HIDING, k=2)
    old = [story.row(at) for at in story.chance.sample(range(20), k=12)]
    new = [story.row(at) for at in story.chance.sample(range(20, 30), k=3)]
    node = story.node(hidden=("x", "b"))
    check(node, ChangedTable(table(old), table([*old, *new])))
    anywhere = [story.row(story.chance.randint(0, 29)) for _ in range(3)]
    check(node, ChangedTable(table(old), table([*old, *anywhere])), Memory)


NEEDING = (
    "LAG(x) OVER (PARTITION BY k ORDER BY t)", "LAG(f, 3) OVER (PARTITION BY k ORDER BY t)",
    "AVG(f) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "SUM(x) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN 4 PRECEDING AND CURRENT ROW)",
    "MAX(x) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)",
    "LAG(x) IGNORE NULLS OVER (PARTITION BY k ORDER BY t)",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_a_column_that_is_not_stored_is_taken_from_the_child(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 0 if seed % 2 else limits.LOOKUP_LEAST_ROWS)
    story = Story(seed)
    story.partition, story.key, story.down, story.nulls_first, story.steps = ("k",), "t", False, True, [*range(30)]
    story.functions = [*story.chance.sample(NEEDING, k=2), story.chance.choice(HIDING)]
    places = story.chance.sample(range(20), k=16)
    old, late = [story.row(at) for at in places[:14]], [story.row(at) for at in places[14:]]
    new = [story.row(at) for at in story.chance.sample(range(20, 30), k=3)]
    node = story.node(hidden=("x", "f", "b"))
    check(node, ChangedTable(table(old), table([*old, *new])), Before)
    check(node, ChangedTable(table(old), table([*old, *new, *late])), Before)
    check(node, ChangedTable(table(old), table([*old, *new, story.row(places[0])])), Memory)


NAMED_ONLY = ("EVERY(b)", "SOME(b)", "ANY(x > 0)", "SOME(b) FILTER (WHERE x > 0)")
"""Functions that the parser does not know: it has their name where others have their argument."""


@pytest.mark.parametrize("what", NAMED_ONLY)
@pytest.mark.parametrize("frame", ["", *GROWING, *BY_ROWS])
def test_functions_that_the_parser_knows_by_their_names_only(what: str, frame: str) -> None:
    for seed in range(3):
        story = Story(seed)
        story.functions = [f"{what} OVER (PARTITION BY k ORDER BY {story.order} {frame})"]
        story.partition = ("k",)
        check(story.node(), story.relation())


@pytest.mark.parametrize("seed", range(50))
def test_what_is_not_certain_is_made_anew(seed: int) -> None:
    """Zeros of both signs that tie, sums of decimals without values, rows that go, columns that are hidden."""
    story = Story(seed)
    chance, relation = story.chance, story.relation()
    zeros = [chance.choice([0.0, -0.0]) for _ in range(relation.post.num_rows)]
    sums = [chance.choice([None, None, Decimal("1.00")]) for _ in zeros]
    post = relation.post.set_column(5, "f", pa.array(zeros)).set_column(6, "d", pa.array(sums, KINDS["d"]))
    pre = post.slice(0, relation.pre.num_rows)
    gone = post.slice(chance.choice([0, 0, 1]))
    check(story.node(chance.choice([(), (), ("x",), ("f", "s")])), ChangedTable(pre, gone), Memory)
