"""Every construct without an incremental rule has a reason code, and words that name it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from plan_text import plan

from operators_page import CODES
from penstock.plan import Unsupported
from penstock.plan.check import non_deterministic
from penstock.sql.query import parse_query

REASONS = [
    ("SELECT a FROM (SELECT a FROM t ORDER BY b) LIMIT 1", "LIMIT", "LIMIT without ORDER BY"),
    ("SELECT SUM(a) OVER w AS s FROM t WINDOW w AS (PARTITION BY k) LIMIT 1", "LIMIT", "LIMIT without ORDER BY"),
    ("SELECT a FROM t OFFSET 2", "LIMIT", "OFFSET"),
    ("(SELECT a FROM t ORDER BY b) LIMIT 3", "LIMIT", "LIMIT without ORDER BY"),
    ("SELECT DISTINCT a FROM t ORDER BY b LIMIT 3", "LIMIT", "not selected"),
    ("SELECT a FROM t ORDER BY a LIMIT 1 + 1", "LIMIT", "other than a number"),
    ("SELECT a FROM t LIMIT 1 + 1", "LIMIT", "other than a number"),
    ("SELECT a FROM t JOIN u ON t.k = (SELECT MAX(k) FROM u)", "SUBQUERY", "subquery"),
    ("SELECT a FROM t WHERE a > ALL (SELECT k FROM u)", "SUBQUERY", "ALL"),
    ("SELECT a FROM t WHERE (a, b) NOT IN (SELECT k, c FROM u)", "SUBQUERY", "several columns"),
    ("SELECT a FROM t WHERE a = (SELECT k FROM u)", "SCALAR_SUBQUERY", "not a single aggregate"),
    ("SELECT a FROM t WHERE a = (SELECT SIZE(COLLECT_LIST(c)) FROM u WHERE u.k = t.k)", "SCALAR_SUBQUERY", "COLLECT_LIST"),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM w WHERE w.a = t.a))",
     "CORRELATED_SUBQUERY", "further out"),
    ("SELECT a FROM t WHERE a IN (SELECT MAX(c) FROM u WHERE u.d < t.b GROUP BY k)", "CORRELATED_SUBQUERY", "equality"),
    ("SELECT a FROM t WHERE EXISTS (SELECT MAX(c) FROM u WHERE u.k = t.k)", "CORRELATED_SUBQUERY", "without GROUP BY"),
    ("SELECT a FROM t WHERE a IN (SELECT c + t.b FROM u)", "CORRELATED_SUBQUERY", "outside its WHERE"),
    ("SELECT a FROM t UNION ALL BY NAME SELECT k AS a FROM u", "SET_OPERATION", "BY NAME"),
    ("SELECT COLLECT_LIST(a) OVER (ORDER BY b) AS n FROM t", "WINDOW_FUNCTION", "COLLECT_LIST"),
    ("SELECT MODE(a) OVER (PARTITION BY b) AS n FROM t", "WINDOW_FUNCTION", "MODE"),
    ("SELECT COUNT(DISTINCT a) OVER (PARTITION BY b) AS n FROM t", "WINDOW_FUNCTION", "DISTINCT"),
    ("SELECT LAST_VALUE(a) OVER (PARTITION BY b) AS n FROM t", "WINDOW_FUNCTION", "without ORDER BY"),
    ("SELECT a FROM t WHERE ROW_NUMBER() OVER (ORDER BY a) = 1", "WINDOW_FUNCTION", "in this place"),
    ("SELECT SUM(DISTINCT a, b) AS n FROM t", "DISTINCT_AGGREGATE", "SUM(DISTINCT"),
    ("SELECT FIRST(a) AS x FROM t GROUP BY b", "AGGREGATE_FUNCTION", "FIRST"),
    ("SELECT ANY_VALUE(a) AS x FROM t", "AGGREGATE_FUNCTION", "ANY_VALUE"),
    ("SELECT MODE(a) AS x FROM t", "AGGREGATE_FUNCTION", "MODE"),
    ("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a) AS x FROM t", "AGGREGATE_FUNCTION", "PERCENTILE"),
    ("SELECT a, GROUPING(b) AS g FROM t GROUP BY ROLLUP (a)", "GROUPING_SETS", "GROUPING"),
    ("SELECT STACK(2, a, b) FROM t", "GENERATOR", "STACK"),
    ("SELECT EXPLODE(ARRAY(a)) AS e, EXPLODE(ARRAY(b)) AS f FROM t", "GENERATOR", "two generators"),
    ("SELECT INLINE(ARRAY(STRUCT(a, b))) FROM t", "GENERATOR", "INLINE"),
    ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "NON_DETERMINISTIC", "TABLESAMPLE"),
    ("SELECT a + RAND() AS x FROM t", "NON_DETERMINISTIC", "rand"),
    ("SELECT MY_UDF(a) AS x FROM t", "UNKNOWN_FUNCTION", "my_udf"),
    ("SELECT id FROM range(3)", "TABLE_FORM", "in FROM"),
    ("SELECT a FROM t LEFT JOIN LATERAL EXPLODE(a) AS l(e) ON l.e > 1", "LATERAL", "generator with a condition"),
    ("SELECT a FROM t, LATERAL (SELECT MAX(c) AS c FROM u WHERE u.k = t.k GROUP BY ROLLUP (d))", "LATERAL", "GROUPING SETS"),
    ("SELECT a FROM t, LATERAL (WITH q AS (SELECT c FROM u WHERE u.k = t.k) SELECT c FROM q)", "UNRESOLVED_NAME", "t.k"),
    ("SELECT * FROM t PIVOT (SUM(b) FOR a IN (1, 2))", "PIVOT", "PIVOT"),
    ("SELECT WINDOW(a, '1 minute') AS x FROM t", "TIME_WINDOW", "WINDOW"),
    ("SELECT COUNT(*) AS n FROM t GROUP BY SESSION_WINDOW(a, b)", "TIME_WINDOW", "SESSION_WINDOW"),
    ("SELECT COUNT(*) AS n FROM t GROUP BY SESSION_WINDOW(a, '1 hour').start", "TIME_WINDOW", "another expression"),
    ("SELECT SESSION_WINDOW(a, '1 hour') AS w FROM t", "TIME_WINDOW", "SESSION_WINDOW"),
    ("SELECT b FROM t GROUP BY ROLLUP (b, SESSION_WINDOW(a, '1 hour'))", "TIME_WINDOW", "GROUPING SETS"),
    ("SELECT * REPLACE (1 AS a) FROM t", "QUERY_FORM", "REPLACE"),
    ("SELECT STRUCT(*) AS s FROM t", "QUERY_FORM", "star"),
    ("SELECT a FROM t VERSION AS OF 1", "QUERY_FORM", "VERSION"),
    ("SELECT :p AS x FROM t", "EXPRESSION", "parameter"),
    ("SELECT a FROM t RIGHT SEMI JOIN u ON t.k = u.k", "JOIN", "RIGHT SEMI"),
    ("SELECT nothing FROM t", "UNRESOLVED_NAME", "nothing"),
    ("WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 3) SELECT x FROM r", "RECURSIVE_CTE",
     "recursive"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "words"), REASONS)
def test_the_reason(query: str, code: str, words: str) -> None:
    with pytest.raises(Unsupported) as caught:
        plan(query)
    assert caught.value.code == code
    assert words in caught.value.construct


@pytest.mark.parametrize(("query", "code", "words"), REASONS[::5])
@pytest.mark.parametrize(
    "around",
    [
        "SELECT * FROM ({}) AS q",
        "WITH q AS ({}) SELECT * FROM q",
        "SELECT a FROM t UNION ALL ({})",
        "SELECT DISTINCT * FROM ({})",
    ],
)
def test_the_reason_is_found_below_the_top(query: str, code: str, words: str, around: str) -> None:
    with pytest.raises(Unsupported) as caught:
        plan(around.format(query))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "name",
    ["LISTAGG(a)", "MODE(a)", "PERCENTILE_APPROX(a, 0.5)", "HISTOGRAM_NUMERIC(a, 3)", "LAST(a)", "HLL_SKETCH_AGG(a)"],
)
def test_the_construct_is_named_as_spark_names_it(name: str) -> None:
    with pytest.raises(Unsupported) as caught:
        plan(f"SELECT {name} AS x FROM t")
    assert caught.value.code == "AGGREGATE_FUNCTION"
    assert name.partition("(")[0] in caught.value.construct.upper()


@pytest.mark.parametrize(
    "expression",
    [
        "RAND()", "RANDN(3)", "UUID()", "CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()", "CURRENT_DATE", "NOW()", "CURDATE()",
        "LOCALTIMESTAMP()", "UNIX_TIMESTAMP()", "MONOTONICALLY_INCREASING_ID()", "SPARK_PARTITION_ID()", "INPUT_FILE_NAME()",
        "SHUFFLE(ARRAY(a))", "CURRENT_USER()", "a + CAST(RAND() AS INT)", "CASE WHEN RAND() > 0.5 THEN a END",
        "DATE_TRUNC('day', CURRENT_TIMESTAMP)", "RANDOM()", "UNIFORM(1, 2)", "VERSION()", "CURRENT_TIME()",
        "SESSION_USER()", "CURRENT_CATALOG()", "USER()", "CURRENT_USER", "RANDSTR(3)",
    ],
)  # fmt: skip
def test_functions_whose_value_changes_by_itself(expression: str) -> None:
    for query in (
        f"SELECT {expression} AS x FROM t",
        f"SELECT a FROM t WHERE {expression} IS NOT NULL",
        f"SELECT a FROM t LEFT JOIN (SELECT {expression} AS x FROM u) AS q ON true",
    ):
        assert non_deterministic(parse_query(query)) is not None, query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a AS now, b AS rand FROM t",
        "SELECT UNIX_TIMESTAMP(a) AS x FROM t",
        "SELECT 'RAND()' AS x FROM t",
        "SELECT HASH(a) AS h, XXHASH64(a) AS x, MD5(a) AS m FROM t",
    ],
)
def test_what_only_looks_like_them(query: str) -> None:
    assert non_deterministic(parse_query(query)) is None
    plan(query)


def test_every_code_is_explained_and_asserted() -> None:
    """No reason without words for it in the documentation, and none that no test has seen."""
    source = Path(__file__).parents[2] / "src" / "penstock"
    raised = set()
    for path in [*source.glob("plan/*.py"), *source.glob("engine/*.py")]:
        raised |= set(re.findall(r"""Unsupported\(\s*"([A-Z_]+)""", path.read_text()))
    elsewhere = {"POLICY_FULL", "PLAN_MISMATCH", "SOURCE_COLUMN"}
    asserted = {code for _, code, _ in REASONS} | elsewhere | {"AGGREGATE_FILTER"}  # which Spark lets nobody write
    assert raised <= asserted
    assert raised <= set(CODES)
