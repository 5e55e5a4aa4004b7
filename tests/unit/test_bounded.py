"""Bounds of reads: every row with a touched key must fulfil them."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from penstock.frames import limits
from penstock.frames.bounded import Span, superset
from penstock.ivm.touched import span_of
from penstock.plan.operators import render
from penstock.sql.query import parse_query


@pytest.mark.parametrize(
    ("values", "bound"),
    [
        ([1, 2, 2, None], "`c` IN (1, 2) OR `c` IS NULL"),
        ([None, None], "FALSE OR `c` IS NULL"),
        (list(range(limits.CONDITION_VALUES + 1)), f"`c` >= 0 AND `c` <= {limits.CONDITION_VALUES}"),
        ([2**40], f"`c` IN ({2**40}L)"),
        (["it's"], r"`c` IN ('it\'s')"),
        ([Decimal("1.50")], "`c` IN (1.50BD)"),
        ([date(2024, 2, 29)], "`c` IN (DATE'2024-02-29')"),
        ([datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)], "`c` IN (TIMESTAMP_MICROS(1000000L))"),
        ([True], "`c` IN (TRUE)"),
    ],
)
def test_bounds(values: list[Any], bound: str) -> None:
    column = pa.array(values, pa.int64()) if set(values) == {None} else pa.array(values)
    found = superset(pa.table({"k": column}), {"k": Span("c")})
    assert found is not None
    assert render(found) == bound


@pytest.mark.parametrize(
    "values", [[1.5], ["${x}"], ["a\\b"], [b"x"], [[1]], [f"s{i}" for i in range(limits.CONDITION_VALUES + 1)]]
)
def test_what_cannot_be_bounded_is_not(values: list[Any]) -> None:
    assert superset(pa.table({"k": pa.array(values)}), {"k": Span("c")}) is None


@pytest.mark.parametrize(
    ("expression", "span"),
    [
        ("c1", Span("c1")),
        ("DATE_TRUNC('hour', c1)", Span("c1", "4 HOUR")),
        ("DATE_TRUNC('quarter', c1)", Span("c1", "6 MONTH")),
        ("CAST(c1 AS DATE)", Span("c1", "2 DAY")),
        ("c1 + 1", None),
        ("UPPER(c1)", None),
    ],
)
def test_spans(expression: str, span: Span | None) -> None:
    assert span_of(sqlglot.parse_one(expression, dialect="spark")) == span


def test_the_span_of_a_tumbling_window() -> None:
    query = parse_query("SELECT 1 AS one FROM t GROUP BY TUMBLE(c1, INTERVAL '1 minute')")
    assert span_of(query.args["group"].expressions[0]) == Span("c1", "120000000 MICROSECOND")
