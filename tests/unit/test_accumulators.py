"""Which aggregate functions are kept from the change alone, with what state; and the columns of a node's table."""

from __future__ import annotations

import pytest
from plan_text import nodes
from sqlglot import exp, parse_one

from penstock.ivm.accumulators import ROWS, choose
from penstock.ivm.layout import Layout, layout_of
from penstock.plan.operators import names_in


def function(text: str) -> exp.Expression:
    return parse_one(text, dialect="spark")


@pytest.mark.parametrize(
    ("text", "argument", "value", "state"),
    [
        ("COUNT(*)", "int", "bigint", []),
        ("COUNT(1)", "int", "bigint", []),
        ("COUNT(a)", "string", "bigint", ["count"]),
        ("COUNT_IF(a)", "boolean", "bigint", ["count"]),
        ("SUM(a)", "tinyint", "bigint", ["sum", "count"]),
        ("SUM(a)", "bigint", "bigint", ["sum", "count"]),
        ("SUM(a)", "decimal(10,2)", "decimal(20,2)", ["sum", "count"]),
        ("SUM(a)", "decimal(28,10)", "decimal(38,10)", ["sum", "count"]),
        ("AVG(a)", "int", "double", ["sum", "count"]),
        ("AVG(a)", "bigint", "double", ["sum", "count"]),
        ("AVG(a)", "decimal(10,2)", "decimal(14,6)", ["sum", "count"]),
        ("MIN(a)", "string", "string", ["value"]),
        ("MAX(a)", "double", "double", ["value"]),
        ("MAX(a)", "struct<at:timestamp,value:int>", "struct<at:timestamp,value:int>", ["value"]),
    ],
)
def test_self_maintainable(text: str, argument: str, value: str, state: list[str]) -> None:
    found = choose(function(text), "x", argument, value)
    assert found is not None
    assert [part.suffix for part in found.parts] == state
    assert {part.merge for part in found.parts} <= {"SUM", "MIN", "MAX"}
    used = {name.name for name in parse_one(found.value, dialect="spark").find_all(exp.Column)}
    assert used <= {"s_rows", *(f"s_{suffix}" for suffix in state)}
    assert (found.removed is not None) == text.startswith(("MIN", "MAX"))


@pytest.mark.parametrize(
    ("text", "argument", "value"),
    [
        ("SUM(a)", "double", "double"),
        ("SUM(a)", "float", "double"),
        ("AVG(a)", "double", "double"),
        ("SUM(a)", "interval day to second", "interval day to second"),
        ("SUM(a)", "decimal(38,18)", "decimal(38,18)"),
        ("AVG(a)", "decimal(38,18)", "decimal(38,22)"),
        ("STDDEV(a)", "double", "double"),
    ],
)
def test_recomputed(text: str, argument: str, value: str) -> None:
    assert choose(function(text), "x", argument, value) is None


@pytest.mark.parametrize("text", ["SUM(a)", "AVG(a)", "COUNT(a)", "COUNT_IF(a)"])
def test_what_is_removed_is_subtracted(text: str) -> None:
    kind = "boolean" if text.startswith("COUNT_IF") else "int"
    found = choose(function(text), "x", kind, "bigint")
    assert found is not None
    assert all("__weight" in names_in(part.partial) and part.merge == "SUM" for part in found.parts)


def layout(query: str, **types: str) -> Layout:
    return layout_of(nodes(query)[-1], types)


def test_a_visible_key_and_sum_serve_as_state() -> None:
    found = layout(
        "SELECT a, SUM(b) AS s, COUNT(*) AS n FROM t GROUP BY a", x0="int", v0="bigint", x1="int", v1="bigint"
    )
    assert found.visible == ("a", "s", "n")
    assert found.key_names == ("a",)
    assert found.mergeable
    assert found.stored[:4] == ("a", "s", "n", ROWS)
    hidden = found.stored[3:]
    assert all(name.startswith("__") for name in hidden)
    assert len(found.stored) == len(set(found.stored))


def test_keys_that_are_not_shown_are_stored_as_state() -> None:
    found = layout("SELECT COUNT(*) AS n FROM t GROUP BY a, b + 1", x0="int", v0="bigint")
    assert found.visible == ("n",)
    assert len(found.key_names) == 2
    assert all(name.startswith("__") for name in found.key_names)
    assert set(found.key_names) <= set(found.stored)


def test_a_key_that_is_shown_through_an_expression_is_stored_too() -> None:
    found = layout("SELECT a + 1 AS x, COUNT(*) AS n FROM t GROUP BY a", x0="int", v0="bigint")
    assert found.key_names != ("x",)


def test_one_measure_that_cannot_be_merged_makes_the_node_recompute() -> None:
    found = layout("SELECT a, SUM(b) AS s, MAX(k) AS m FROM t GROUP BY a", x0="double", v0="double", x1="int", v1="int")
    assert not found.mergeable
    assert found.stored == ("a", "s", "m")


def test_distinct_counts_its_rows() -> None:
    found = layout("SELECT DISTINCT a, b FROM t")
    assert found.key_names == ("a", "b")
    assert found.stored == ("a", "b", ROWS)
    assert found.mergeable


def test_an_ungrouped_aggregate_has_no_key() -> None:
    found = layout("SELECT MIN(a) AS m FROM t", x0="int", v0="int")
    assert found.key_names == ()
    assert found.stored == ("m", ROWS)


def test_the_same_key_shown_twice_is_one_key() -> None:
    found = layout("SELECT a AS x, a AS y FROM t GROUP BY a")
    assert found.key_names in (("x",), ("y",))
    assert found.visible == ("x", "y")
