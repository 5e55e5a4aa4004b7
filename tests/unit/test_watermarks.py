"""How watermarks move and propagate, without Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.graph import Dag
from penstock.graph.watermarks import advanced, propagate

NOON = 1_767_268_800_000_000
EARLIER = NOON - 300_000_000


def test_a_watermark_never_moves_back() -> None:
    assert advanced(None, None) is None
    assert advanced(None, EARLIER) == EARLIER
    assert advanced(NOON, None) == NOON
    assert advanced(NOON, EARLIER) == NOON
    assert advanced(EARLIER, NOON) == NOON


def test_a_view_is_as_far_as_its_slowest_input() -> None:
    graph = Dag({"bars": ["trades"], "minutes": ["bars"], "priced": ["minutes", "quotes"], "named": ["bars", "names"]})
    known = propagate(graph, {"trades": NOON, "quotes": EARLIER})
    assert known == {
        "trades": NOON, "quotes": EARLIER, "bars": NOON, "minutes": NOON, "priced": EARLIER,
    }  # fmt: skip


def test_unknown_stays_unknown_all_the_way() -> None:
    graph = Dag({"a": ["t"], "b": ["a", "s"], "c": ["b"]})
    assert propagate(graph, {"t": NOON}) == {"t": NOON, "a": NOON}


@given(st.lists(st.one_of(st.none(), st.integers()), min_size=1, max_size=6))
def test_the_least_of_all_sources_through_a_chain(seen: list[int | None]) -> None:
    sources = {f"s{i}": at for i, at in enumerate(seen)}
    graph = Dag({"first": list(sources), "second": ["first"], "third": ["second"]})
    known = propagate(graph, sources)
    expected = None if None in seen else min(at for at in seen if at is not None)
    assert known.get("third") == expected
