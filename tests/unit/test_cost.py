"""Maintain or recompute: the arithmetic, without Spark."""

from __future__ import annotations

import pytest

from penstock.engine.cost import EITHER, NEVER_RECOMPUTED, PER_MILLION, Estimate, Work, estimate
from penstock.engine.measured import Measured


@pytest.mark.parametrize("kind", PER_MILLION)
def test_a_small_change_is_maintained_and_half_a_table_recomputed(kind: str) -> None:
    rows = 10_000_000
    small = Work(kinds=(kind,), changed=rows // 10_000, rows=rows, stored=rows // 10)
    large = Work(kinds=(kind,), changed=rows // 2, rows=rows, stored=rows // 10)
    assert estimate(small).choice == "INCREMENTAL"
    assert estimate(large).choice == "FULL"


def test_what_recomputing_costs_the_readers_counts_for_maintaining() -> None:
    assert Estimate(incremental=7.0, full=4.0).choice == "FULL"
    assert Estimate(incremental=7.0, full=4.0, readers=3.0).choice == "INCREMENTAL"
    work = Work(kinds=("rows",), changed=6_000_000, rows=10_000_000, stored=5_000_000)
    follows, recomputes_as_well = Estimate(incremental=0.2, full=500.0), Estimate(incremental=0.2, full=1.0)
    assert estimate(work, readers=[follows]).readers == pytest.approx(2 * 5), "two versions are compared"
    assert estimate(work, readers=[follows, follows]).readers == pytest.approx(2 * 5), "once for all of them"
    assert estimate(work, readers=[recomputes_as_well]).readers == pytest.approx(0.8)
    assert estimate(work, readers=[EITHER]).readers == 0, "a reader that recomputes anyway has nothing to lose"
    assert estimate(work, readers=[NEVER_RECOMPUTED, EITHER]).readers == pytest.approx(2 * 5)
    deeper = Estimate(incremental=0.2, full=1.0, readers=100.0)
    assert estimate(work, readers=[deeper]).readers == pytest.approx(2 * 5), "and what it costs the readers of readers"


def test_what_recomputing_took_corrects_the_estimate() -> None:
    work = Work(kinds=("groups",), changed=300_000, rows=1_000_000, stored=1_000, whole=False)
    assert estimate(work).choice == "FULL"
    raw = estimate(work).raw
    past = [("FULL", 3 * raw["FULL"], {"estimate": {"raw": raw}}), ("INCREMENTAL", raw["INCREMENTAL"], {})]
    measured = Measured.of(past)
    assert measured.factor("FULL") == pytest.approx(3.0)
    assert 1 < measured.factor("INCREMENTAL") < measured.factor("FULL"), "the machine may be slow for both"
    both = Measured.of([("INCREMENTAL", raw["INCREMENTAL"] / 4, {"estimate": {"raw": raw}}), *past])
    assert estimate(work, both).incremental == pytest.approx(raw["INCREMENTAL"] / 4)


def test_what_maintaining_took_is_taken_as_it_is_and_only_the_difference_estimated() -> None:
    def work(changed: int) -> Work:
        return Work(kinds=("rows",), changed=changed, rows=2_000_000, stored=200_000)

    def took(seconds: float, changed: int) -> tuple[str, float, dict[str, object]]:
        return "INCREMENTAL", seconds, {"estimate": {"raw": estimate(work(changed)).raw}}

    slow = Measured.of([took(0.6, 200)])
    assert estimate(work(20_000), slow).choice == "INCREMENTAL", "most of the 0.6 seconds is there for any change"
    assert estimate(work(20_000), slow).incremental < 0.7
    assert estimate(work(2), slow).incremental <= 0.6
    assert estimate(work(2_000), Measured.of([took(12.5, 2_000)])).choice == "INCREMENTAL", "once may be chance"
    assert estimate(work(2_000), Measured.of([took(12.5, 2_000)] * 2)).choice == "FULL"


def test_the_estimates_of_a_views_nodes_add_up() -> None:
    one = Estimate(incremental=1.0, full=2.0, raw={"INCREMENTAL": 1.0, "FULL": 2.0})
    assert one + one == Estimate(incremental=2.0, full=4.0, raw={"INCREMENTAL": 2.0, "FULL": 4.0})
