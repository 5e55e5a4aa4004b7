"""Rows of odd types in the formats that the server writes."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.serve.results import ARROW, CSV, JSON, NDJSON, Rows, written

LISTS = pa.map_(pa.list_(pa.int32()), pa.int32())
STRUCTS = pa.map_(pa.struct([("a", pa.int32())]), pa.int32())


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (LISTS, [([1], 2)], [[[1], 2]]),
        (STRUCTS, [({"a": 1}, 2)], [[{"a": 1}, 2]]),
        (pa.list_(LISTS), [[([1], 2)]], [[[[1], 2]]]),
        (pa.struct([("m", LISTS)]), {"m": [([1], 2)]}, {"m": [[[1], 2]]}),
        (pa.map_(pa.string(), LISTS), [("k", [([1], 2)])], [["k", [[[1], 2]]]]),
        (pa.map_(pa.int32(), pa.string()), [(1, "x")], {"1": "x"}),
    ],
)
def test_a_map_whose_keys_no_object_has_is_told_as_pairs(kind: pa.DataType, value: Any, told: Any) -> None:
    table = pa.table({"m": pa.array([value, None], kind)})

    def asked(form: str) -> bytes:
        return b"".join(written(Rows.of(["m"], table), form, 10, {"user": "local"}))

    assert json.loads(asked(JSON))["result"] == [{"m": told}, {"m": None}]
    assert [json.loads(line) for line in asked(NDJSON).splitlines()] == [{"m": told}, {"m": None}]
    assert asked(CSV).startswith(b"m\r\n")
    assert pa.ipc.open_stream(io.BytesIO(asked(ARROW))).read_all().equals(table)
