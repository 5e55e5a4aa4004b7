"""The graph of names: order, ancestors, descendants, cycles; also when it is large."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.graph import CycleError, Dag

DIAMOND = {"left": ["top"], "right": ["top"], "bottom": ["left", "right"]}


def test_inputs_come_first() -> None:
    order = Dag(DIAMOND).order()
    assert order[0] == "top"
    assert order[-1] == "bottom"
    assert len(order) == 4


def test_order_of_some() -> None:
    assert Dag(DIAMOND).order(["bottom", "top"]) == ["top", "bottom"]
    assert Dag(DIAMOND).order([]) == []


def test_who_reads_whom() -> None:
    dag = Dag(DIAMOND)
    assert dag.inputs("bottom") == ("left", "right")
    assert dag.readers("top") == ("left", "right")
    assert dag.inputs("top") == dag.readers("bottom") == dag.inputs("unknown") == ()
    assert "top" in dag
    assert "unknown" not in dag


def test_ancestors_and_descendants() -> None:
    dag = Dag(DIAMOND)
    assert dag.ancestors(["bottom"]) == {"left", "right", "top"}
    assert dag.descendants(["top"]) == {"left", "right", "bottom"}
    assert dag.ancestors(["left", "right"]) == {"top"}
    assert dag.descendants(["bottom"]) == set()


def test_reading_one_thing_twice_is_one_edge() -> None:
    dag = Dag({"b": ["a", "a"]})
    assert (dag.inputs("b"), dag.readers("a")) == (("a",), ("b",))


@pytest.mark.parametrize(
    "edges", [{"a": ["a"]}, {"a": ["b"], "b": ["a"]}, {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"], "x": []}]
)
def test_a_cycle_is_walked_once(edges: dict[str, list[str]]) -> None:
    with pytest.raises(CycleError) as caught:
        Dag(edges).order()
    path = caught.value.path
    assert path[0] == path[-1]
    assert len(set(path)) == len(path) - 1
    pairs = set(itertools.pairwise(path))
    reads = {(name, read) for name, inputs in edges.items() for read in inputs}
    assert pairs <= reads or {(b, a) for a, b in pairs} <= reads
    assert str(caught.value) == " -> ".join(path)


def test_a_thousand_nodes() -> None:
    chance = random.Random(7)
    edges = {f"n{i}": [f"n{j}" for j in chance.sample(range(i), min(i, 5))] for i in range(1000)}
    names = list(edges)
    chance.shuffle(names)
    dag = Dag({name: edges[name] for name in names})
    place = {name: position for position, name in enumerate(dag.order())}
    assert len(place) == 1000
    assert all(place[read] < place[name] for name, inputs in edges.items() for read in inputs)
    assert len(dag.descendants(["n0"])) > 900


def test_a_chain_of_a_thousand_does_not_exhaust_the_stack() -> None:
    dag = Dag({f"n{i}": [f"n{i - 1}"] for i in range(1, 1001)})
    assert dag.order() == [f"n{i}" for i in range(1001)]
    assert len(dag.ancestors(["n1000"])) == 1000


@given(st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=3), max_size=10))
def test_any_graph_is_ordered_or_has_a_cycle(numbers: dict[int, list[int]]) -> None:
    edges = {str(name): [str(read) for read in inputs] for name, inputs in numbers.items()}
    dag = Dag(edges)
    circular = any(name in dag.ancestors([name]) for name in edges)
    if circular:
        with pytest.raises(CycleError):
            dag.order()
        return
    order = dag.order()
    assert len(order) == len(set(order))
    assert all(order.index(read) < order.index(name) for name, inputs in edges.items() for read in inputs)
