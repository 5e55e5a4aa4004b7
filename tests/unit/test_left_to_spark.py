"""Windows and aggregates that the driver leaves to Spark: what may overflow, what has no order, what takes too long."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.aggregates import aggregated
from penstock.frames.arrow.expressions.values import Rows, parsed
from penstock.frames.arrow.groups import Groups, normalised
from penstock.frames.arrow.windows import all_placed, placed
from penstock.frames.frame import NotHere
from penstock.frames.settings import Settings

ROWS = Rows(
    {
        "k": pa.array(["a", "a", "b", None]),
        "i": pa.array([1, 2, 2**31 - 1, None], pa.int32()),
        "l": pa.array([2**62, 2**62, -1, 0], pa.int64()),
        "f": pa.array([0.0, -0.0, math.nan, 1.5]),
        "t": pa.array([0, 1, 2, 3], pa.int64()).cast(pa.timestamp("us", "UTC")),
    },
    4,
)  # fmt: skip


def window(text: str) -> exp.Window:
    found = parsed(text)
    assert isinstance(found, exp.Window)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "SUM(l) OVER (ORDER BY i)", "SUM(i) OVER (ORDER BY i RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING)",
        "SUM(i) OVER (ORDER BY i RANGE BETWEEN 1.5 PRECEDING AND CURRENT ROW)", "SUM(i) OVER (ROWS 2 PRECEDING)",
        "SUM(i) OVER (ORDER BY i, l RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)", "LAG(i, l) OVER (ORDER BY i)",
        "RANK() OVER (PARTITION BY k)", "ROW_NUMBER() OVER (ORDER BY i ROWS UNBOUNDED PRECEDING)",
        "COUNT(DISTINCT i) OVER (PARTITION BY k)", "LAG(i, 1, 'a') OVER (ORDER BY i)", "NTILE(0) OVER (ORDER BY i)",
        "FIRST(i) FILTER (WHERE i > 1) OVER (ORDER BY i)", "STDDEV(i) OVER (ORDER BY i)", "SUM(k) OVER (ORDER BY i)",
        "COUNT(*) OVER (ORDER BY t RANGE BETWEEN INTERVAL '1 2' DAY TO HOUR PRECEDING AND CURRENT ROW)",
    ],
)  # fmt: skip
def test_windows_that_are_spark_s(text: str) -> None:
    with pytest.raises(NotHere):
        placed(window(text), ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "SUM(l)", "COLLECT_SET(f)", "MEDIAN(f)", "SUM(DISTINCT f)", "AVG(DISTINCT l)", "STDDEV(DISTINCT i)",
        "PERCENTILE(i, 1.5)", "PERCENTILE(i, l)", "MODE(i)", "CORR(f, f)", "APPROX_COUNT_DISTINCT(i)", "SUM(k)",
        "COLLECT_LIST(i) RESPECT NULLS", "AVG(t)", "BIT_AND(f)", "BOOL_AND(i)", "MAX_BY(i, l)", "COUNT(DISTINCT *)",
    ],
)  # fmt: skip
def test_aggregates_that_are_spark_s(text: str) -> None:
    with pytest.raises(NotHere):
        aggregated(parsed(text), ROWS, Groups([ROWS.column("k")], ROWS.count), {})


def test_a_variance_of_one_value_is_spark_s_if_the_session_says_that_it_is_nan() -> None:
    groups, legacy = Groups([], 4), Settings.of({"spark.sql.legacy.statisticalAggregate": "true"})
    with pytest.raises(NotHere):
        aggregated(parsed("VARIANCE(i)"), Rows(ROWS.columns, 4, legacy), groups, {})


def test_days_of_other_zones_may_have_23_hours() -> None:
    text = "COUNT(*) OVER (ORDER BY t RANGE BETWEEN INTERVAL {} PRECEDING AND CURRENT ROW)"
    berlin = Rows(ROWS.columns, 4, Settings.of({"spark.sql.session.timeZone": "Europe/Berlin"}))
    assert placed(window(text.format("23 HOURS")), berlin).to_pylist() == [1, 2, 3, 4]
    for span in ("24 HOURS", "1 DAY", "1 MONTH"):
        assert placed(window(text.format(span)), ROWS).to_pylist() == [1, 2, 3, 4]
        with pytest.raises(NotHere):
            placed(window(text.format(span)), berlin)


def test_wide_frames_of_doubles_are_spark_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FRAME_STEPS", 6)
    rows = Rows({"f": pa.array([1.0, 2.0, 3.0, 4.0])}, 4)
    assert placed(window("SUM(f) OVER (ORDER BY f)"), rows).to_pylist() == [1, 3, 6, 10]
    assert placed(window("SUM(f) OVER (ORDER BY f ROWS BETWEEN CURRENT ROW AND CURRENT ROW)"), rows).to_pylist()
    with pytest.raises(NotHere):
        placed(window("SUM(f) OVER (ORDER BY f ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"), rows)


def test_functions_of_several_windows_at_once() -> None:
    texts = ["LAG(i) OVER (PARTITION BY k ORDER BY i)", "RANK() OVER (ORDER BY f)", "COUNT(*) OVER (PARTITION BY k)"]
    together = all_placed([window(text) for text in texts], ROWS)
    assert [values.to_pylist() for values in together] == [placed(window(text), ROWS).to_pylist() for text in texts]


def test_keys_that_are_equal_become_one() -> None:
    values = pa.array([{"a": 0.0}, {"a": -0.0}, {"a": math.nan}, {"a": None}, None], pa.struct([("a", pa.float64())]))
    assert str(normalised(values[1:]).to_pylist()) == str([{"a": 0.0}, {"a": math.nan}, {"a": None}, None])
    assert Groups([normalised(values)], 5).count == 4
