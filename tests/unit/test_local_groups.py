"""Values on the driver become numbers: the same for the same value, and in the order of values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.frames.arrow.groups import Groups, codes, consolidated, ranks, together

WHOLE = st.sampled_from([0, 1, -1, 5, 2**60, -(2**60), 2**62, -(2**62), 2**63 - 1, -(2**63)])
DECIMALS = st.sampled_from(["0.00", "-0.01", "1.50", "9999999999999999.99", "-9999999999999999.99"]).map(Decimal)
COLUMNS = {
    pa.int64(): WHOLE,
    pa.int32(): st.sampled_from([0, 7, 2**31 - 1, -(2**31)]),
    pa.decimal128(18, 2): DECIMALS,
    pa.decimal128(38, 2): DECIMALS,
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.string(): st.sampled_from(["", "a", "b", "é"]),
}


@st.composite
def tables(draw: st.DrawFn) -> list[pa.Array]:
    rows = draw(st.integers(0, 8))
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))
    return [
        pa.array(draw(st.lists(st.none() | COLUMNS[kind], min_size=rows, max_size=rows)), kind) for kind in kinds
    ]  # fmt: skip


def _sortable(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """NULL comes before all others."""
    return [(value is not None, value if value is not None else 0) for value in row]


@given(tables(), st.integers(0, 3))
def test_codes_and_ranks(columns: list[pa.Array], cut: int) -> None:
    columns = [column[cut:] for column in columns]
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    same, order = together([codes(column) for column in columns]), together([ranks(column) for column in columns])
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert (same[i] == same[j]) == (one == other)
            assert (order[i] < order[j]) == (_sortable(one) < _sortable(other))


NESTED = {
    pa.list_(pa.field("element", pa.int32())): st.lists(st.none() | st.integers(0, 2), max_size=3),
    pa.list_(pa.list_(pa.string())): st.lists(st.none() | st.lists(st.sampled_from("ab"), max_size=2), max_size=2),
    pa.map_(pa.string(), pa.int32()): st.lists(
        st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 1)), max_size=2
    ),
    pa.struct([("x", pa.list_(pa.int8())), ("y", pa.int8())]): st.fixed_dictionaries(
        {"x": st.none() | st.lists(st.integers(0, 1), max_size=2), "y": st.none() | st.integers(0, 1)}
    ),
}


@given(st.data(), st.sampled_from(list(NESTED)), st.integers(0, 3))
def test_codes_of_arrays_and_maps(data: st.DataObject, kind: pa.DataType, cut: int) -> None:
    values = data.draw(st.lists(st.none() | NESTED[kind], max_size=8))
    found = codes(pa.array(values, kind)[cut:])
    for i, one in enumerate(values[cut:]):
        for j, other in enumerate(values[cut:]):
            assert (found[i] == found[j]) == (one == other), (one, other)


def test_what_stands_beside_a_row_comes_from_one_of_its_copies() -> None:
    rows = pa.table(
        {"x": [1, 1, 1, 2], "w": [-1, -1, 1, 1], "file": ["a", "b", None, None], "place": [9, 3, None, None]}
    )
    found = consolidated(rows, "w", ("file", "place")).to_pylist()
    assert found[0] in ({"x": 1, "w": -1, "file": "a", "place": 9}, {"x": 1, "w": -1, "file": "b", "place": 3})
    assert found[1] == {"x": 2, "w": 1, "file": None, "place": None}


KINDS = [pa.int32(), pa.int64(), pa.decimal128(12, 2), pa.decimal128(38, 2)]
SUMMED = st.integers(-(10**6), 10**6) | st.sampled_from([2**31 - 1, -(2**31)])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.none() | SUMMED, st.booleans())),
    st.sampled_from(KINDS),
    st.integers(0, 3),
)
def test_sums_of_some_rows(rows: list[tuple[str, int | None, bool]], kind: pa.DataType, cut: int) -> None:
    """Sums are exact, and NULL for a group without values, or without any row among the chosen."""
    scaled = [
        value if value is None or pa.types.is_integer(kind) else Decimal(value).scaleb(-2) for _, value, _ in rows
    ]
    keys, values = pa.array([key for key, _, _ in rows], pa.string())[cut:], pa.array(scaled, kind)[cut:]
    groups, chosen = Groups([keys], len(keys)), np.flatnonzero([kept for _, _, kept in rows[cut:]])
    found = groups.among(chosen).sum(values.take(pa.array(chosen, pa.int64()))).to_pylist()
    expected: dict[str, Any] = dict.fromkeys(keys.to_pylist())
    for place in chosen:
        key, value = keys[int(place)].as_py(), values[int(place)].as_py()
        if value is not None:
            expected[key] = value + (expected[key] or 0)
    assert found == [expected[keys[int(first)].as_py()] for first in groups.first]
