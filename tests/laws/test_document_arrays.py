"""JSON arrays that are patched equal those that are aggregated again, byte for byte, change after change."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.names import WEIGHT
from penstock.ivm import document_arrays
from penstock.ivm.in_memory import NO_SPARK, ChangedTable, Held, Memory, types_of, without_spark
from penstock.ivm.node import Maintained, maintained_node
from penstock.plan.build import build
from penstock.plan.nodes import split
from penstock.sql.query import parse_query

SCHEMA = pa.schema(
    [("k", pa.int64()), ("id", pa.string()), ("n", pa.int32()), ("f", pa.float64()), ("a", pa.string()),
     ("doc", pa.string())]
)  # fmt: skip
TEXTS = ["", "a", "b", 'q"uote\\', "é", "😀", "\u2028", "line\n", ",", "[]", "zz,]", None]
DOCUMENTS = [
    "{}",
    "[]",
    '{"a":[1,{"b":null}]}',
    '"text"',
    "1",
    '{"é":"😀,]"}',
    '{"d":{"d":{"d":{"d":[[],[1]]}}}}',
    None,
]

QUERIES = [
    "SELECT jsonb_build_object('posts', jsonb_agg(__json(doc) ORDER BY id)) AS data FROM t",
    "SELECT jsonb_agg(jsonb_build_object('é\"', a, 'n', n, 'in', __json(doc), 'l', jsonb_build_array(f, NULL)) "
    "ORDER BY n DESC, f, id NULLS LAST) AS data FROM t",
    "SELECT k, jsonb_build_object('k', k, 'one', jsonb_agg(a ORDER BY f DESC NULLS FIRST, n), 'more', "
    "jsonb_agg(__json(doc)) FILTER (WHERE n > 1), 'end', 'é') AS data FROM t GROUP BY k",
    "SELECT k AS pk, to_json(named_struct('l', collect_list(__json(doc)), 'n', 1)) AS data FROM t GROUP BY k",
]  # fmt: skip


def _row(chance: random.Random) -> dict[str, Any]:
    return {
        "k": chance.choice([1, 1, 2, 3, None]), "id": chance.choice(TEXTS), "n": chance.choice([0, 1, 2, 3, None]),
        "f": chance.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), None]), "a": chance.choice(TEXTS),
        "doc": chance.choice(DOCUMENTS),
    }  # fmt: skip


def _changed(rows: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    """Some rows go, come twice, or become others: in their document, or in what they are sorted by."""
    left = [row for row in rows if chance.random() > 0.15]
    for row in chance.sample(left, min(len(left), 3)):
        fresh = _row(chance)
        left[left.index(row)] = {
            **row,
            **{name: fresh[name] for name in chance.sample(["id", "n", "f", "a", "doc"], 2)},
        }
    return left + [_row(chance) for _ in range(chance.randint(0, 4))] + left[: chance.randint(0, 2)]


@pytest.mark.parametrize("query", QUERIES)
def test_a_patched_array_is_the_one_that_is_aggregated(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATCHED_ELEMENTS", 0)
    patched = _counting(monkeypatch)
    with without_spark():
        for seed in range(60):
            chance = random.Random(seed)
            rows = [_row(chance) for _ in range(chance.choice([1, 5, 40]))]
            _follow(query, rows, chance)
    assert patched() >= 60


def _counting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often a change was made by patching; nothing else is different."""
    made: list[bool] = []
    real = document_arrays.delta

    def counted(*arguments: Any) -> Any:
        found = real(*arguments)
        made.append(found is not None)
        return found

    monkeypatch.setattr(document_arrays, "delta", counted)
    return lambda: sum(made)


def _follow(query: str, rows: list[dict[str, Any]], chance: random.Random) -> None:
    """Several changes, each on what the one before has left in the table."""
    nodes = split(build(parse_query(query), {"t": tuple(SCHEMA.names)}), "query")
    (plan,) = nodes
    stored: pa.Table | None = None
    for _ in range(4):
        after = _changed(rows, chance)
        memory = Memory({"t": ChangedTable(*(pa.Table.from_pylist(one, SCHEMA) for one in (rows, after)))})
        node = maintained_node(plan, types_of(plan.body, memory))
        stored = node.evaluate(memory, "pre").arrow() if stored is None else stored
        stored = _applied(stored, node, memory)
        wanted = node.evaluate(memory, "post").arrow()
        visible = [name for name, _ in plan.outputs]
        assert _listed(stored, visible) == _listed(wanted, visible)
        rows = after


def _applied(stored: pa.Table, node: Maintained, memory: Memory) -> pa.Table:
    change = node.delta(memory, Held(stored))
    if change is None:
        return stored
    table = stored.append_column(WEIGHT, pa.array([1] * stored.num_rows, pa.int64()))
    both = pa.concat_tables([table, change.arrow().select(table.column_names).cast(table.schema)])
    return ArrowFrame.of(NO_SPARK, both).consolidated().copies().arrow()


def _listed(table: pa.Table, names: list[str]) -> list[Any]:
    return sorted(map(str, table.select(names).to_pylist()))
