"""The law of the rules, without Spark: evaluate(post) = evaluate(pre) + delta, for every operator and trees of them.

Relations are small and full of NULLs, duplicates, NaN, both zeros and ties; they have no keys.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from relations import Rows, counted
from trees import TYPES, Maker, Typed

from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.clock import Clock, timing
from penstock.ivm import rules
from penstock.ivm.in_memory import NO_SPARK, ChangedTable, Held, Memory, NeedsSpark, types_of, without_spark
from penstock.ivm.node import maintained_node
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Operator, walk
from penstock.sql.trees import column

SEEDS, TREES = 12, 340
STEPS = 100_000 // SEEDS
"""Of each seed. A step is the evaluation or the change of one operator."""


class Told:
    """What was checked."""

    def __init__(self) -> None:
        self.steps = 0
        self.by: Counter[str] = Counter()
        self.left: Counter[str] = Counter()


OPERATORS = {
    "Scan", "Values", "Project", "Filter", "Join", "SidedJoin", "Union", "Generate", "Aggregate", "Distinct", "Window",
    "TopK", "Sessions",
}  # fmt: skip


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_relation_after_a_change_is_the_one_before_and_the_change(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TAIL_LEAST_ROWS", 0)
    told = Told()
    with without_spark():
        for number in range(TREES):
            _check_tree(seed * TREES + number, told)
    assert {name for name in told.by if told.by[name] >= 5} >= OPERATORS
    assert told.steps >= STEPS
    assert sum(told.left.values()) * 50 <= TREES, f"left to Spark: {told.left.most_common(5)}"


def _check_tree(seed: int, told: Told) -> None:
    """A chain of nodes: each stateful one becomes a relation that the next tree reads."""
    maker = Maker(seed)
    try:
        with timing(Clock()):
            _check_chain(maker, seed, told)
    except NeedsSpark as problem:
        told.left[str(problem)] += 1


def _check_chain(maker: Maker, seed: int, told: Told) -> None:
    for _ in range(maker.chance.choice([1, 1, 2])):
        plain = maker.stateless(maker.chance.randint(2, 4))
        _count(plain.op, told)
        _check_stateless(plain.op, Memory(maker.tables), seed)
        stateful = maker.stateful(maker.chance.randint(2, 4))
        _count(stateful.op, told)
        made = _check_stateful(stateful, Memory(maker.tables), seed)
        name = f"node{len(maker.kinds)}"
        if made is not None:
            maker.kinds[name], maker.tables[name] = made


def _count(op: Operator, told: Told) -> None:
    for inner in walk(op):
        told.by[type(inner).__name__] += 1
        told.steps += 3  # before, after, and the change


def _check_stateless(op: Operator, memory: Memory, seed: int) -> None:
    before, after = (rules.evaluate(op, memory, moment) for moment in ("pre", "post"))
    change = rules.delta(op, memory)
    expected = counted(after.frame, weighted=after.weighted)
    found = counted(before.frame, weighted=before.weighted)
    if change is not None:
        found.update(counted(change.frame, weighted=True))
    assert +found == expected, f"seed {seed}: {op}"
    assert not -found, f"seed {seed}: {op}"


def _check_stateful(made: Typed, memory: Memory, seed: int) -> tuple[list[str], ChangedTable] | None:
    plan = NodePlan(
        name="node", body=made.op, outputs=tuple((_shown(name), column(name)) for name in made.op.columns), hidden=True
    )
    node = maintained_node(plan, types_of(made.op, memory))
    before, after = (node.evaluate(memory, moment).rows() for moment in ("pre", "post"))
    if before is None or after is None:
        raise NeedsSpark
    change = node.delta(memory, Held(before))
    held = _counted(before)
    if change is not None:
        held.update(counted(change, weighted=True))
    assert +held == _counted(after), f"seed {seed}: {made.op}"
    assert not -held, f"seed {seed}: {made.op}"
    return _as_relation(made, before, after)


def _shown(name: str) -> str:
    """What a column is called in the node's table."""
    return name.removeprefix("__")


def _counted(rows: pa.Table) -> Rows:
    return counted(ArrowFrame.of(NO_SPARK, rows), weighted=False)


def _as_relation(made: Typed, before: pa.Table, after: pa.Table) -> tuple[list[str], ChangedTable] | None:
    """The node's table as the next tree reads it: the columns of types that trees know."""
    known = [name for name in made.op.columns if made.types.get(name) in TYPES]
    names, kinds = [_shown(name) for name in known], [made.types[name] for name in known]
    if not names or any(before.schema.field(n).type != TYPES[k][0] for n, k in zip(names, kinds, strict=True)):
        return None
    called = [f"c{i}" for i in range(len(names))]
    return kinds, ChangedTable(*(table.select(names).rename_columns(called) for table in (before, after)))
