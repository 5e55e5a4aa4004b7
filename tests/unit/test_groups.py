"""Diamonds, consistency groups, what a failure keeps back, lags that follow from readers, and shards of schedulers."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.ten_thousand.made_up import made_up
from penstock.graph import Dag
from penstock.graph.groups import FASTEST, SLOWEST, Group, diamonds, due, groups, policy_of, withheld
from penstock.graph.lags import TargetLag, effective_lags
from penstock.graph.shards import sharded

Reads = dict[str, list[str]]

SIMPLE: Reads = {"a": ["t"], "b": ["t"], "v": ["a", "b"]}


def grouped(reads: Reads, free: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [group.members for group in groups(Dag(reads), set(reads), free) if len(group.members) > 1]


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        pytest.param({"a": ["t"], "b": ["a"], "c": ["b"]}, [], id="a line"),
        pytest.param({"a": ["t"], "b": ["s"], "v": ["a", "b"]}, [], id="different roots"),
        pytest.param({"a": ["t", "s"], "b": ["t", "s"]}, [], id="two roots, nothing meets"),
        pytest.param(SIMPLE, [("a", "b", "v")], id="a diamond"),
        pytest.param({"a": ["t"], "v": ["a", "t"]}, [("a", "v")], id="one path is direct"),
        pytest.param({"x": ["t"], "a": ["x"], "b": ["x"], "v": ["a", "b"]}, [("a", "b", "v")], id="from a view"),
        pytest.param(
            {"a": ["t"], "b": ["a"], "c": ["b"], "d": ["t"], "v": ["c", "d"]}, [("a", "d", "b", "c", "v")], id="deep"
        ),
        pytest.param(
            {"a": ["t"], "b": ["t"], "x": ["a", "b"], "c": ["x"], "d": ["x"], "v": ["c", "d"]},
            [("a", "b", "x"), ("c", "d", "v")],
            id="one after the other",
        ),
        pytest.param(
            {"a": ["t"], "b": ["t"], "x": ["a", "b"], "c": ["t"], "v": ["x", "c"]},
            [("a", "b", "c", "x", "v")],
            id="nested",
        ),
        pytest.param(
            {"a": ["t"], "b": ["t"], "c": ["t"], "v": ["a", "b"], "w": ["b", "c"]},
            [("a", "b", "c", "v", "w")],
            id="overlapping, two convergences",
        ),
        pytest.param(
            {"a": ["t"], "b": ["t"], "v": ["a", "b"], "c": ["t"], "d": ["t"], "w": ["c", "d"]},
            [("a", "b", "v"), ("c", "d", "w")],
            id="side by side",
        ),
        pytest.param(
            {"x": ["t"], "a": ["t", "x"], "b": ["x"], "v": ["a", "b"]}, [("x", "a", "b", "v")], id="a fork in a diamond"
        ),
        pytest.param(
            {"a": ["t"], "b": ["t"], "c": ["t"], "d": ["t"], "v": ["a", "b", "c", "d"]},
            [("a", "b", "c", "d", "v")],
            id="four ways",
        ),
        pytest.param(
            {"a": ["t", "s"], "b": ["t", "s"], "v": ["a", "b"]}, [("a", "b", "v")], id="two roots, both shared"
        ),
    ],
)
def test_groups(reads: Reads, expected: list[tuple[str, ...]]) -> None:
    assert grouped(reads) == expected


def test_a_diamond_knows_its_fork_and_its_convergence() -> None:
    reads: Reads = {"x": ["t"], "a": ["x"], "b": ["x"], "v": ["a", "b"], "after": ["v"]}
    (diamond,) = diamonds(Dag(reads), set(reads))
    assert (diamond.convergence, diamond.forks, diamond.members) == ("v", ("x",), ("a", "b", "v"))
    alone = [group for group in groups(Dag(reads), set(reads)) if len(group.members) == 1]
    assert alone == [Group(("x",)), Group(("after",))]


def test_a_view_that_is_free_is_in_no_group() -> None:
    assert grouped(SIMPLE, free=("v",)) == []
    assert grouped(SIMPLE, free=("a",)) == [("b", "v")]


@pytest.mark.parametrize(
    ("failed", "group", "downstream"),
    [("a", {"b"}, {"v", "after", "beside"}), ("v", {"a", "b"}, {"after", "beside"}), ("after", set(), set())],
)
def test_what_a_failure_keeps_back(failed: str, group: set[str], downstream: set[str]) -> None:
    reads: Reads = {**SIMPLE, "after": ["v"], "beside": ["b"], "other": ["t"]}
    graph = Dag(reads)
    kept = withheld(graph, groups(graph, set(reads)), [failed])
    assert (kept.group, kept.downstream) == (group, downstream)


def test_slowest_wins_and_says_when_a_group_is_due() -> None:
    group = Group(("a", "v", "w"), ("v", "w"))
    assert policy_of(group, {"v": FASTEST, "w": SLOWEST}) == SLOWEST
    assert policy_of(group, {"a": SLOWEST}) == FASTEST
    assert policy_of(group, {}, default=SLOWEST) == SLOWEST
    assert due(FASTEST, {"a": True, "b": False})
    assert not due(SLOWEST, {"a": True, "b": False})


@st.composite
def small_graphs(draw: st.DrawFn) -> Reads:
    names = ["t", "s"]
    reads: Reads = {}
    for number in range(draw(st.integers(1, 7))):
        reads[f"v{number}"] = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        names.append(f"v{number}")
    return reads


@given(small_graphs())
def test_diamonds_are_two_paths_that_share_nothing_in_between(reads: Reads) -> None:
    """Against all pairs of paths, spelled out."""

    def paths(start: str, end: str) -> list[tuple[str, ...]]:
        if start == end:
            return [(end,)]
        return [(*path, end) for read in reads.get(end, ()) for path in paths(start, read)]

    found = {diamond.convergence: diamond for diamond in diamonds(Dag(reads), set(reads))}
    for view in reads:
        forks, members = set(), set()
        for fork in ["t", "s", *reads]:
            for one, other in itertools.combinations(paths(fork, view), 2):
                if not set(one[1:-1]) & set(other[1:-1]):
                    forks.add(fork)
        for fork in forks:
            members |= {name for path in paths(fork, view) for name in path[1:]}
        assert (view in found) == bool(forks)
        if forks:
            assert set(found[view].forks) == forks
            assert set(found[view].members) == members


def test_a_graph_of_a_thousand_views() -> None:
    reads: Reads = {}
    for number in range(250):
        reads |= {f"a{number}": ["t"], f"b{number}": ["t"], f"c{number}": ["t"]}
        reads[f"v{number}"] = [f"a{number}", f"b{number}", f"c{number}"]
    assert [len(members) for members in grouped(reads)] == [4] * 250


@given(small_graphs(), st.data())
def test_a_lag_of_downstream_is_the_least_of_all_readers(reads: Reads, data: st.DataObject) -> None:
    """Against asking every reader of every view."""
    lengths = st.sampled_from([None, *(timedelta(minutes=n) for n in (1, 5, 60))])
    lags = {key: TargetLag(data.draw(lengths)) for key in reads if data.draw(st.booleans())}
    graph, least = Dag(reads), timedelta(seconds=7)
    for key, found in effective_lags(lags, graph, least).items():
        said = [own.length for r in graph.descendants([key]) if (own := lags.get(r)) is not None and own.length]
        assert found.length == (lags[key].length or min(said, default=least))
        assert found.said_by is None or lags[found.said_by].length == found.length


@given(small_graphs(), st.integers(1, 5))
def test_every_view_is_in_one_shard_and_a_group_in_the_same(reads: Reads, count: int) -> None:
    graph = Dag(reads)
    found = sharded(graph, reads, groups(graph, reads), count)
    assert found.keys() == reads.keys()
    assert all(shard.of == count and 1 <= shard.number <= count for shard in found.values())
    assert all(len({found[key] for key in group.members}) == 1 for group in groups(graph, reads))


def test_shards_of_ten_thousand_views() -> None:
    """They are about as large as each other, and few views are refreshed for a reader that is another's."""
    made = made_up(10_000, 1_000)
    graph = made.graph()
    found = sharded(graph, made.views, groups(graph, made.views), 8)
    sizes = Counter(shard.number for shard in found.values())
    assert len(sizes) == 8
    assert max(sizes.values()) < 2 * min(sizes.values())
    cut = sum(read in found and found[read] != found[key] for key, view in made.views.items() for read in view.reads)
    assert 0 < cut < 100
