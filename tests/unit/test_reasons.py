"""Every construct without an incremental rule has a reason code, and words that name it."""

from __future__ import annotations

import pytest
from plan_text import plan

from penstock.plan import Unsupported
from penstock.plan.check import non_deterministic
from penstock.sql.query import parse_query

REASONS = [
    ("SELECT a FROM t LIMIT 1", "LIMIT", "LIMIT"),
    ("SELECT a FROM t ORDER BY a LIMIT 1 OFFSET 2", "LIMIT", "LIMIT"),
    ("SELECT a FROM t OFFSET 2", "LIMIT", "OFFSET"),
    ("SELECT a FROM t UNION ALL SELECT a FROM w LIMIT 3", "LIMIT", "LIMIT"),
    ("SELECT a FROM t LEFT JOIN u USING (k)", "OUTER_JOIN", "LEFT JOIN"),
    ("SELECT a FROM t RIGHT OUTER JOIN u USING (k)", "OUTER_JOIN", "RIGHT JOIN"),
    ("SELECT a FROM t FULL OUTER JOIN u USING (k)", "OUTER_JOIN", "FULL JOIN"),
    ("SELECT a FROM t LEFT SEMI JOIN u USING (k)", "SEMI_JOIN", "SEMI JOIN"),
    ("SELECT a FROM t ANTI JOIN u USING (k)", "SEMI_JOIN", "ANTI JOIN"),
    ("SELECT a FROM t WHERE k IN (SELECT k FROM u)", "SUBQUERY", "subquery"),
    ("SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u)", "SUBQUERY", "subquery"),
    ("SELECT (SELECT MAX(k) FROM u) AS m FROM t", "SUBQUERY", "subquery"),
    ("SELECT a FROM t GROUP BY a HAVING COUNT(*) > (SELECT 1)", "SUBQUERY", "subquery"),
    ("SELECT a FROM t JOIN u ON t.k = (SELECT 1)", "SUBQUERY", "subquery"),
    ("SELECT a FROM t INTERSECT SELECT k FROM u", "SET_OPERATION", "INTERSECT"),
    ("SELECT a FROM t EXCEPT ALL SELECT k FROM u", "SET_OPERATION", "EXCEPT"),
    ("SELECT a FROM t UNION ALL BY NAME SELECT k AS a FROM u", "SET_OPERATION", "BY NAME"),
    ("SELECT ROW_NUMBER() OVER (ORDER BY a) AS n FROM t", "WINDOW_FUNCTION", "ROW_NUMBER"),
    ("SELECT SUM(a) OVER (PARTITION BY b) AS s FROM t", "WINDOW_FUNCTION", "SUM"),
    ("SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1", "WINDOW_FUNCTION", "QUALIFY"),
    ("SELECT COUNT(DISTINCT a) AS n FROM t", "DISTINCT_AGGREGATE", "COUNT(DISTINCT"),
    ("SELECT SUM(DISTINCT a) AS n FROM t", "DISTINCT_AGGREGATE", "SUM(DISTINCT"),
    ("SELECT COUNT(a, b) AS n FROM t", "AGGREGATE_FUNCTION", "COUNT of several arguments"),
    ("SELECT STDDEV(a) AS x FROM t", "AGGREGATE_FUNCTION", "STDDEV"),
    ("SELECT FIRST(a) AS x FROM t GROUP BY b", "AGGREGATE_FUNCTION", "FIRST"),
    ("SELECT ANY_VALUE(a) AS x FROM t", "AGGREGATE_FUNCTION", "ANY_VALUE"),
    ("SELECT REGR_SLOPE(a, b) AS x FROM t", "AGGREGATE_FUNCTION", "REGR_SLOPE"),
    ("SELECT TRY_SUM(a) AS x FROM t", "AGGREGATE_FUNCTION", "TRY_SUM"),
    ("SELECT SUM(a) FILTER (WHERE b > 1) AS x FROM t", "AGGREGATE_FILTER", "FILTER"),
    ("SELECT a, SUM(b) AS s FROM t GROUP BY ROLLUP (a)", "GROUPING_SETS", "ROLLUP"),
    ("SELECT a, SUM(b) AS s FROM t GROUP BY a WITH CUBE", "GROUPING_SETS", "CUBE"),
    ("SELECT a, b FROM t GROUP BY GROUPING SETS ((a), (b))", "GROUPING_SETS", "GROUPING SETS"),
    ("SELECT EXPLODE(ARRAY(a)) AS e FROM t", "GENERATOR", "EXPLODE"),
    ("SELECT STACK(2, a, b) FROM t", "GENERATOR", "STACK"),
    ("SELECT e FROM t LATERAL VIEW EXPLODE(ARRAY(a)) x AS e", "GENERATOR", "LATERAL VIEW"),
    ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "NON_DETERMINISTIC", "TABLESAMPLE"),
    ("SELECT a + RAND() AS x FROM t", "NON_DETERMINISTIC", "rand"),
    ("SELECT MY_UDF(a) AS x FROM t", "UNKNOWN_FUNCTION", "my_udf"),
    ("SELECT 1 AS one", "NO_SOURCE", "without FROM"),
    ("SELECT a FROM VALUES (1) AS x(a)", "TABLE_FORM", "VALUES"),
    ("SELECT id FROM range(3)", "TABLE_FORM", "in FROM"),
    ("SELECT a FROM t, LATERAL (SELECT c FROM u WHERE u.k = t.k)", "TABLE_FORM", "LATERAL"),
    ("SELECT * FROM t PIVOT (SUM(b) FOR a IN (1, 2))", "PIVOT", "PIVOT"),
    ("SELECT WINDOW(a, '1 minute') AS x FROM t", "TIME_WINDOW", "WINDOW"),
    ("SELECT * REPLACE (1 AS a) FROM t", "QUERY_FORM", "REPLACE"),
    ("SELECT STRUCT(*) AS s FROM t", "QUERY_FORM", "star"),
    ("SELECT a FROM t VERSION AS OF 1", "QUERY_FORM", "VERSION"),
    ("SELECT :p AS x FROM t", "EXPRESSION", "parameter"),
    (
        "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 3) SELECT x FROM r",
        "RECURSIVE_CTE",
        "recursive",
    ),
]


@pytest.mark.parametrize(("query", "code", "words"), REASONS)
def test_the_reason(query: str, code: str, words: str) -> None:
    with pytest.raises(Unsupported) as caught:
        plan(query)
    assert caught.value.code == code
    assert words in caught.value.construct


@pytest.mark.parametrize(("query", "code", "words"), REASONS[:30:4])
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
    ["COLLECT_LIST(a)", "MAX_BY(a, b)", "PERCENTILE(a, 0.5)", "LISTAGG(a)", "BOOL_AND(a)", "APPROX_COUNT_DISTINCT(a)"],
)
def test_the_construct_is_named_as_spark_names_it(name: str) -> None:
    with pytest.raises(Unsupported) as caught:
        plan(f"SELECT {name} AS x FROM t")
    assert caught.value.code == "AGGREGATE_FUNCTION"
    assert name.partition("(")[0] in caught.value.construct.upper()


@pytest.mark.parametrize(
    "expression",
    [
        "RAND()", "RANDN(3)", "UUID()", "CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()", "CURRENT_DATE", "NOW()", "CURDATE()",  # noqa: E501
        "LOCALTIMESTAMP()", "UNIX_TIMESTAMP()", "MONOTONICALLY_INCREASING_ID()", "SPARK_PARTITION_ID()", "INPUT_FILE_NAME()",  # noqa: E501
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
