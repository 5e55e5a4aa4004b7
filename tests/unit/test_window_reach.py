"""How far window functions look: what is read back, what is touched ahead, and what the stored row before tells."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from penstock.frames.arrow.expressions.values import Rows, parsed
from penstock.frames.arrow.windows import placed
from penstock.plan.window_reach import ANYWHERE, HERE, PEERS, WHOLE, Distance, Reach, reach_of


def window(text: str) -> exp.Window:
    found = sqlglot.parse_one(text, dialect="spark")
    assert isinstance(found, exp.Window)
    return found


def rows(number: int) -> Distance:
    return Distance(rows=number)


def within(*amounts: str) -> Distance:
    return Distance(peers=True, within=tuple(sqlglot.parse_one(a, dialect="spark") for a in amounts))


CASES = {
    "ROW_NUMBER() OVER (ORDER BY t)": Reach(resumes=True),
    "RANK() OVER (ORDER BY t)": Reach(resumes=True, peers_before=True),
    "DENSE_RANK() OVER (ORDER BY t)": Reach(resumes=True),
    "NTILE(4) OVER (ORDER BY t)": WHOLE,
    "PERCENT_RANK() OVER (ORDER BY t)": WHOLE,
    "CUME_DIST() OVER (ORDER BY t)": WHOLE,
    "LAG(x) OVER (ORDER BY t)": Reach(back=rows(1)),
    "LAG(x, 3, 0) OVER (ORDER BY t)": Reach(back=rows(3)),
    "LAG(x, -2) OVER (ORDER BY t)": Reach(ahead=rows(2)),
    "LEAD(x, 2) OVER (ORDER BY t)": Reach(ahead=rows(2)),
    "LEAD(x) RESPECT NULLS OVER (ORDER BY t)": Reach(ahead=rows(1)),
    "LAG(x) IGNORE NULLS OVER (ORDER BY t)": Reach(back=rows(1), resumes=True),
    "LAG(x, 1, y) IGNORE NULLS OVER (ORDER BY t)": WHOLE,
    "LAG(x, 2) IGNORE NULLS OVER (ORDER BY t)": WHOLE,
    "LEAD(x) IGNORE NULLS OVER (ORDER BY t)": WHOLE,
    "SUM(x) OVER (ORDER BY t)": Reach(PEERS, PEERS, resumes=True),
    "SUM(x) FILTER (WHERE b) OVER (ORDER BY t)": Reach(PEERS, PEERS, resumes=True),
    "SUM(x) OVER (PARTITION BY k)": WHOLE,
    "SUM(x) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING)": Reach(resumes=True),
    "AVG(x) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING)": Reach(ANYWHERE, HERE),
    "MAX(x) OVER (ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)": Reach(back=rows(2), resumes=True),
    "MAX(x) OVER (ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING)": Reach(ahead=rows(2), resumes=True),
    "SUM(x) OVER (ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)": WHOLE,
    "SUM(x) OVER (ORDER BY t ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)": WHOLE,
    "AVG(x) OVER (ORDER BY t ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)": Reach(back=rows(6)),
    "AVG(x) OVER (ORDER BY t ROWS 6 PRECEDING)": Reach(back=rows(6)),
    "AVG(x) OVER (ORDER BY t ROWS BETWEEN 2 PRECEDING AND 3 FOLLOWING)": Reach(back=rows(2), ahead=rows(3)),
    "AVG(x) OVER (ORDER BY t ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)": Reach(ahead=rows(3)),
    "AVG(x) OVER (ORDER BY t ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING)": Reach(back=rows(5)),
    "SUM(x) OVER (ORDER BY t RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW)":
        Reach(within("INTERVAL 1 HOUR"), PEERS),
    "SUM(x) OVER (ORDER BY t RANGE BETWEEN 2 PRECEDING AND 3 FOLLOWING)": Reach(within("2"), within("3")),
    "SUM(x) OVER (ORDER BY t RANGE BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING)": Reach(ANYWHERE, HERE),
    "SUM(x) OVER (ORDER BY t RANGE BETWEEN CURRENT ROW AND CURRENT ROW)": Reach(PEERS, PEERS),
    "FIRST_VALUE(x) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING)": Reach(resumes=True),
    "FIRST_VALUE(x) OVER (ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)": Reach(ANYWHERE, HERE),
    "LAST_VALUE(x) OVER (ORDER BY t)": Reach(PEERS, PEERS),
    "LAST_VALUE(x) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING)": Reach(),
    "LAST_VALUE(x) IGNORE NULLS OVER (ORDER BY t ROWS UNBOUNDED PRECEDING)": Reach(resumes=True),
    "LAST_VALUE(x) FILTER (WHERE b) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING)": Reach(ANYWHERE, HERE),
    "FIRST_VALUE(x) FILTER (WHERE b) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING)": Reach(ANYWHERE, HERE),
    "NTH_VALUE(x, 2) OVER (ORDER BY t)": Reach(ANYWHERE, PEERS),
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_reach_of_one_function(text: str) -> None:
    assert reach_of([window(text)]) == CASES[text]


def test_several_functions_reach_as_far_as_the_furthest() -> None:
    texts = [
        "LAG(x, 3) OVER (ORDER BY t)", "LEAD(x) OVER (ORDER BY t)", "RANK() OVER (ORDER BY t)",
        "SUM(x) OVER (ORDER BY t RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)",
    ]  # fmt: skip
    found = reach_of(map(window, texts))
    assert found.back == Distance(3, peers=True, within=(exp.Literal.number(2),))
    assert found.ahead == Distance(1, peers=True)
    assert found.resumes
    assert found.peers_before
    assert found.is_tail
    assert not reach_of(map(window, [*texts, "AVG(x) OVER (ORDER BY t)"])).is_tail


def test_several_orders_have_no_common_end() -> None:
    one, other = window("LAG(x) OVER (ORDER BY t)"), window("LAG(x) OVER (ORDER BY t DESC)")
    assert reach_of([one, other]) == WHOLE
    assert reach_of([one, one.copy()]).is_tail


class Partition:
    """Rows in the order of ``t``, some of them new and at the end, and what a window function gives for them."""

    def __init__(self, chance: random.Random):
        self.t = sorted(chance.randint(0, 8) for _ in range(chance.randint(1, 9)))
        self.old = len(self.t)
        self.t += sorted(self.t[-1] + chance.choice([0, 0, 1, 3]) for _ in range(chance.randint(1, 3)))
        self.x = [chance.choice([None, 1, 2, 3]) for _ in self.t]

    def values(self, text: str, first: int = 0, end: int | None = None) -> list[Any]:
        columns = {"t": self.t[first:end], "x": self.x[first:end], "b": [True] * len(self.t[first:end])}
        kinds = {"t": pa.int32(), "x": pa.int32(), "b": pa.bool_()}
        arrays = {name: pa.array(values, kinds[name]) for name, values in columns.items()}
        parsed_window = parsed(text)
        assert isinstance(parsed_window, exp.Window)
        return placed(parsed_window, Rows(arrays, len(columns["t"]))).to_pylist()

    def before(self, place: int, far: Distance) -> int:
        """The first place that is no further than that before a place."""
        near = max(place - far.rows, 0)
        if far.peers:
            near = min(near, self.t.index(self.t[place]))
        least = min((self.t[place] - int(str(amount.this)) for amount in far.within), default=self.t[-1])
        return min([near, *(at for at, t in enumerate(self.t) if t >= least and far.within)])


@pytest.mark.parametrize("text", [text for text, reach in CASES.items() if reach.is_tail and "INTERVAL" not in text])
def test_rows_at_the_end_touch_and_need_no_more_than_the_reach(text: str) -> None:
    reach, chance = CASES[text], random.Random(text)
    for _ in range(60):
        rows_ = Partition(chance)
        pre, post = rows_.values(text, end=rows_.old), rows_.values(text)
        touched = rows_.before(rows_.old, reach.ahead)
        assert pre[:touched] == post[:touched], (rows_.t, rows_.x)
        if not reach.resumes:
            needed = rows_.before(touched, reach.back)
            assert rows_.values(text, first=needed)[touched - needed :] == post[touched:], (rows_.t, rows_.x)


@pytest.mark.parametrize(
    "text", [text for text, reach in CASES.items() if reach.resumes and text[:3] in ("SUM", "MAX")]
)
def test_a_stored_value_stands_for_all_rows_before(text: str) -> None:
    reach, chance = CASES[text], random.Random(text)
    merge: Callable[[list[int]], int] = sum if text.startswith("SUM") else max
    for _ in range(60):
        rows_ = Partition(chance)
        post = rows_.values(text)
        touched = rows_.before(rows_.old, reach.ahead)
        if touched <= reach.back.rows:
            continue
        needed = rows_.before(touched, reach.back)
        anew = rows_.values(text, first=needed)[touched - needed :]
        merged = [[v for v in (post[touched - 1], value) if v is not None] for value in anew]
        assert [merge(parts) if parts else None for parts in merged] == post[touched:], (rows_.t, rows_.x)
