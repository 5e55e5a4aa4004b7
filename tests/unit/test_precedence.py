"""Operators group as in Spark's grammar, and trees are written so that Spark reads them as they are."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from penstock.sql.dialect import SparkSql
from penstock.sql.query import round_trip, spark_text

GROUPS = [
    ("a = b < c", "(a = b) < c"),
    ("a <=> b = c", "(a <=> b) = c"),
    ("a <> b >= c", "(a <> b) >= c"),
    ("a = b IS NULL", "(a = b) IS NULL"),
    ("a < b IN (c)", "(a < b) IN (c)"),
    ("a BETWEEN b AND c = d", "a BETWEEN b AND (c = d)"),
    ("a LIKE b = c", "a LIKE (b = c)"),
    ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
    ("a || b + c", "(a || b) + c"),
    ("a + b || c", "(a + b) || c"),
    ("a << b + c", "a << (b + c)"),
    ("a & b << c", "a & (b << c)"),
    ("a | b ^ c & d", "a | (b ^ (c & d))"),
    ("a & b = c", "(a & b) = c"),
    ("a + b COLLATE UNICODE", "a + (b COLLATE UNICODE)"),
    ("-a COLLATE UNICODE", "-(a COLLATE UNICODE)"),
    ("-1::STRING", "CAST(-1 AS STRING)"),
    ("-a::STRING", "-CAST(a AS STRING)"),
    ("a DIV b * c", "(a DIV b) * c"),
    ("NOT a = b AND c", "(NOT (a = b)) AND c"),
    ("!a = b", "NOT (a = b)"),
    ("a !< b !> c", "(a >= b) <= c"),
    ("a >>> b >> c", "SHIFTRIGHTUNSIGNED(a, b) >> c"),
    ("a - INTERVAL 1 DAY -2 HOURS", "a - (INTERVAL '1' DAY + INTERVAL '-2' HOURS)"),
    ("a + INTERVAL 1 DAY + 2", "(a + INTERVAL '1' DAY) + 2"),
    ("ANY(a) = b", "(ANY(a)) = b"),
    ("~~a", "~(~a)"),
]


@pytest.mark.parametrize(("text", "grouped"), GROUPS)
def test_operators_group_as_in_spark(text: str, grouped: str) -> None:
    tree, wanted = (sqlglot.parse_one(t, dialect=SparkSql) for t in (text, grouped))
    assert _bare(tree) == _bare(wanted)


def _bare(tree: exp.Expr) -> exp.Expr:
    holder = exp.Paren(this=exp.Paren(this=tree.copy()))
    for brackets in list(holder.find_all(exp.Paren))[:0:-1]:
        brackets.replace(brackets.this)
    return holder.this


@pytest.mark.parametrize(("text", "grouped"), GROUPS)
def test_a_tree_without_brackets_is_written_with_those_it_needs(text: str, grouped: str) -> None:
    tree = _bare(sqlglot.parse_one(grouped, dialect=SparkSql))
    again = sqlglot.parse_one(tree.sql(dialect=SparkSql), dialect=SparkSql)
    assert _bare(again) == tree


def test_a_composed_tree_keeps_its_meaning() -> None:
    a, b = exp.column("a"), exp.column("b")
    either = exp.Or(this=a, expression=b)
    written = {
        exp.Not(this=exp.Is(this=either, expression=exp.Null())): "(a OR b) IS NOT NULL",
        exp.Sub(this=a, expression=exp.Sub(this=b, expression=a)): "a - (b - a)",
        exp.Dot(this=exp.Add(this=a, expression=b), expression=exp.to_identifier("x")): "(a + b).x",
        exp.Neg(this=exp.Add(this=a, expression=b)): "-(a + b)",
        exp.EQ(this=exp.Not(this=a), expression=exp.In(this=b, expressions=[either])): "(NOT a) = (b IN (a OR b))",
        exp.And(this=either, expression=exp.Not(this=either)): "(a OR b) AND NOT (a OR b)",
    }
    for tree, text in written.items():
        assert tree.sql(dialect=SparkSql) == text


def test_only_what_spark_does_not_know_is_replaced_in_the_text() -> None:
    text = "select  TO_CHAR(MAX(d), 'yyyy') y, /* kept */ Collect_List( x ) AS l, LISTAGG(s) WITHIN GROUP (ORDER BY s) from t"  # noqa: E501
    assert spark_text(text) == text.replace("Collect_List( x )", "ARRAY_SORT((Collect_List( x )))")


def test_operands_are_what_the_user_wrote() -> None:
    text = "SELECT MIN_BY(s, a OR b) FILTER (WHERE c -- why\n OR d) AS m FROM t"
    assert spark_text(text) == (
        "SELECT MIN(IF((c -- why\n OR d) AND (a OR b) IS NOT NULL, STRUCT((a OR b) AS by, s AS value), NULL)).value AS m FROM t"  # noqa: E501
    )


def test_calls_within_calls_are_replaced_too() -> None:
    text = "SELECT COLLECT_LIST(TUMBLE_START(ts, INTERVAL '1 second')) AS l, MAX(x), 'MAX_BY(a, b)' FROM t"
    assert spark_text(text) == (
        "SELECT ARRAY_SORT((COLLECT_LIST(DATE_ADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST(ts AS TIMESTAMP)), 1000000), ts)))) AS l, "  # noqa: E501
        "MAX(x), 'MAX_BY(a, b)' FROM t"
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT MAX_BY(s, v, 2) AS m FROM t",
        "SELECT MAX_BY(s, v) OVER (PARTITION BY k) AS m FROM t",
        "SELECT COLLECT_LIST(s) OVER (PARTITION BY k ORDER BY v) AS m FROM t",
        "SELECT max_by, collect_list FROM t",
        "SELECT 'TUMBLE(ts, INTERVAL 1 DAY)' AS x FROM t -- MIN_BY(a, b)",
    ],
)
def test_what_looks_alike_is_left_alone(query: str) -> None:
    assert spark_text(query) == query


def test_hops_are_added_before_where() -> None:
    hop = "HOP(at - x, INTERVAL '1 hour', INTERVAL '2 hours')"
    text = spark_text(f"SELECT COUNT(*) AS n FROM t, u WHERE a = b < c GROUP BY {hop}")
    assert text.startswith("SELECT COUNT(*) AS n FROM t, u  LATERAL VIEW EXPLODE(")
    assert text.endswith(" WHERE a = b < c GROUP BY __hop_start")
    assert "CAST((at - x) AS TIMESTAMP)" in text
    assert "(a = b) < c" not in round_trip(f"SELECT COUNT(*) AS n FROM t, u WHERE a = b < c GROUP BY {hop}")
