"""Queries as people write them: each is read as Spark reads it, and maintained."""

from __future__ import annotations

import pytest

import penstock

TABLES = (
    "CREATE TABLE t (id INT, k STRING, g INT, x INT, y DECIMAL(10,2), d DOUBLE, ts TIMESTAMP, day DATE, arr ARRAY<INT>, "
    "m MAP<STRING, INT>, s STRUCT<a: INT, b: STRING>, j STRING, big BIGINT, flag BOOLEAN)",
    "CREATE TABLE u (id INT, k STRING, v INT, w DECIMAL(8,3))",
)
VALUES = {
    "units of time": "DATE_TRUNC('M', ts) AS a, DATE_TRUNC('mon', ts) AS b, DATE_TRUNC('mm', ts) AS c, DATE_TRUNC('YYYY', ts) AS "
    "d1, DATE_TRUNC('QTR', ts) AS e, DATE_TRUNC('Q', ts) AS f, DATE_TRUNC('D', ts) AS h, DATE_TRUNC('wEEk', ts) AS i, "
    "DATE_TRUNC(k, ts) AS l, DATE_TRUNC('hour', day) AS n",
    "units of dates": "TRUNC(day, 'Q') AS a, TRUNC(day, 'M') AS b, TRUNC(day, 'mon') AS c, TRUNC(ts, 'year') AS d1, "
    "TRUNC(day, k) AS e, TRUNC(day, 'WEEK') AS f",
    "parts of time": "EXTRACT(YEAR FROM ts) AS a, EXTRACT(DOW FROM day) AS b, DATE_PART('MONTH', ts) AS c, WEEKDAY(day) AS d1, "
    "EXTRACT(SECONDS FROM ts) AS e, DAYOFYEAR(day) AS f, QUARTER(ts) AS h, HOUR(ts) AS i, MONTHNAME(day) AS l",
    "intervals": "ts + INTERVAL 1 DAY AS a, ts - INTERVAL '1' HOUR AS b, ts + INTERVAL '1 02:03:04' DAY TO SECOND AS c, "
    "day - INTERVAL 2 MONTHS AS d1, INTERVAL 1 DAY * x + ts AS e, ts - ts > INTERVAL 1 HOUR AS f, MAKE_DT_INTERVAL(1) + ts AS h",
    "differences": "DATEDIFF(day, DATE'2024-01-01') AS a, DATEDIFF(HOUR, ts, ts) AS b, TIMESTAMPDIFF(MINUTE, ts, ts) AS c, "
    "DATEADD(MONTH, 1, day) AS d1, ADD_MONTHS(day, 1) AS e, MONTHS_BETWEEN(day, ts) AS f, UNIX_DATE(day) AS h",
    "times from text": "TO_DATE(k) AS a, TO_DATE(k, 'yyyy-MM-dd') AS b, TO_TIMESTAMP(k, 'yyyyMMdd') AS c, UNIX_TIMESTAMP(k) AS "
    "d1, FROM_UNIXTIME(big, 'yyyy') AS e, DATE_FORMAT(ts, 'yyyy-MM') AS f, CAST(TIME'01:02:03' AS STRING) AS h",
    "zones": "TO_UTC_TIMESTAMP(ts, 'Asia/Tokyo') AS a, FROM_UTC_TIMESTAMP(ts, 'America/New_York') AS b, "
    "CONVERT_TIMEZONE('UTC', 'Europe/Berlin', ts::TIMESTAMP_NTZ) AS c, CURRENT_TIMEZONE() AS d1",
    "casts": "ts::DATE AS a, k::INT AS b, x::DECIMAL(5,1) AS c, TRY_CAST(k AS INT) AS d1, STRING(x) AS e, DATE(ts) AS f, "
    "CAST(arr AS ARRAY<STRING>) AS h, x::STRING || '-' || k AS i, CAST(x AS VARCHAR(5)) AS l",
    "cases": "CASE k WHEN 'a' THEN 1 ELSE 2 END AS a, IF(x > 1, 1, 0) AS b, NULLIF(x, 1) AS c, NVL2(x, 1, 2) AS d1, "
    "DECODE(k, 'a', 1, 'b', 2, 3) AS e, IFNULL(x, 3) AS f, ZEROIFNULL(x) AS h, GREATEST(x, g, 0) AS i",
    "equal or both NULL": "x <=> g AS a, NOT x <=> g AS b, x IS DISTINCT FROM g AS c, x IS NOT DISTINCT FROM g AS d1, "
    "EQUAL_NULL(x, g) AS e, x == g AS f, x != g AS h, !flag AS i, flag IS NOT FALSE AS l",
    "elements": "arr[0] AS a, ELEMENT_AT(arr, 1) AS b, m['p'] AS c, m.p AS d1, s.a AS e, s['b'] AS f, GET(arr, 0) AS h, "
    "STRUCT(x, k) AS i, NAMED_STRUCT('p', x) AS l, MAP('a', x) AS n, (s).b AS o",
    "lambdas": "TRANSFORM(arr, e -> e + 1) AS a, FILTER(arr, (e, i) -> e > i) AS b, EXISTS(arr, e -> e IS NULL) AS c, "
    "AGGREGATE(arr, 0, (acc, e) -> acc + e) AS d1, REDUCE(arr, 0, (acc, e) -> acc + e, acc -> acc * 2) AS e, "
    "ZIP_WITH(arr, arr, (p, q) -> p + q) AS f, MAP_FILTER(m, (p, q) -> q > 1) AS h, ARRAY_SORT(arr, (p, q) -> q - p) AS i",
    "arrays": "SIZE(arr) AS a, CARDINALITY(m) AS b, ARRAY_SIZE(arr) AS c, SORT_ARRAY(arr, false) AS d1, arr || arr AS e, "
    "SPLIT(k, '[,;]')[0] AS f, STR_TO_MAP(k) AS h, ARRAY_INSERT(arr, 1, 5) AS i, SEQUENCE(1, g) AS l, ARRAY_COMPACT(arr) AS n",
    "texts": "SUBSTRING(k FROM 2 FOR 1) AS a, POSITION('a' IN k) AS b, TRIM(BOTH 'x' FROM k) AS c, LTRIM('x', k) AS d1, "
    "OVERLAY(k PLACING 'z' FROM 1) AS e, REGEXP_REPLACE(k, 'a', 'b') AS f, TO_CHAR(y, '999.99') AS h, CHAR(65) AS i, "
    "COLLATE(k, 'UTF8_LCASE') = 'x' AS l, LEVENSHTEIN(k, 'abc', 2) AS n, 'it''s' AS o, 'a' 'b' AS p, r'a\\b' AS q",
    "numbers": "LOG(d) AS a, LOG(2, d) AS b, LN(d) AS c, CEILING(y, 1) AS d1, BROUND(d, 0) AS e, x DIV 2 AS f, PMOD(x, 3) AS h, "
    "x & 1 AS i, ~x AS l, x << 1 AS n, SHIFTRIGHT(x, 1) AS o, TRY_DIVIDE(x, g) AS p, 1e3 AS q, 2L AS r, 3.14BD AS v, 10Y AS w",
    "json": "GET_JSON_OBJECT(j, '$.a') AS a, FROM_JSON(j, 'a INT, b STRING').a AS b, TO_JSON(s) AS c, "
    "VARIANT_GET(PARSE_JSON(j), '$.a', 'int') AS d1, JSON_ARRAY_LENGTH(j) AS e",
}  # fmt: skip
QUERIES = {
    "COUNT_IF with <=>": "SELECT g, COUNT_IF(x <=> id) AS n, COUNT_IF(id <=> g) AS o FROM t GROUP BY g HAVING COUNT_IF(x <=> 1) > 0",
    "FILTER": "SELECT k, SUM(x) FILTER (WHERE g = 1) AS a, COUNT(*) FILTER (WHERE x <=> id) AS b, "
    "COUNT(DISTINCT x) FILTER (WHERE flag) AS c FROM t GROUP BY k",
    "aggregates": "SELECT k, COUNT(DISTINCT x, g) AS a, MEDIAN(x) AS b, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) AS c, "
    "EVERY(flag) AS d, ANY(flag) AS e, STD(d) AS f, MEAN(x) AS h, MAX(STRUCT(x, id)).id AS i FROM t GROUP BY ALL",
    "ordinals": "SELECT k, g, COUNT(*) AS n FROM t GROUP BY 1, 2 HAVING n > 1 ORDER BY 3 DESC",
    "aliases": "SELECT k AS kk, g % 2 AS gg, SUM(x) AS total FROM t GROUP BY kk, gg HAVING total > 1",
    "earlier aliases": "SELECT id, x + 1 AS x1, x1 * 2 AS x2 FROM t",
    "WITH ROLLUP": "SELECT k, g, SUM(x) AS n FROM t GROUP BY k, g WITH ROLLUP",
    "USING": "SELECT id, k, x, v FROM t FULL OUTER JOIN u USING (id, k)",
    "NATURAL": "SELECT id, v FROM t NATURAL LEFT JOIN u",
    "SEMI and ANTI": "SELECT id FROM t LEFT SEMI JOIN u USING (id) MINUS SELECT id FROM t ANTI JOIN u ON t.k = u.k",
    "brackets": "SELECT a.id FROM (t AS a JOIN u AS b ON a.id = b.id) JOIN u AS c ON c.id = a.id",
    "column aliases": "WITH a(p, q) AS (SELECT id, x FROM t) SELECT b.r FROM (SELECT p, q FROM a) AS b(r, o) WHERE r > 0",
    "a CTE in a derived table": "SELECT * FROM (WITH a AS (SELECT id FROM t) SELECT * FROM a)",
    "FROM first": "FROM t SELECT id, x WHERE x > 1",
    "LIKE ANY": "SELECT id FROM t WHERE k LIKE ANY ('a%', '%b') AND k NOT LIKE ALL ('x%', 'y%') OR k ILIKE 'A_'",
    "ESCAPE": "SELECT id FROM t WHERE k LIKE '%!%%' ESCAPE '!' OR k RLIKE '^a' OR k NOT REGEXP 'b'",
    "IN and BETWEEN": "SELECT id FROM t WHERE x NOT BETWEEN 1 AND 3 AND k IN ('a', NULL) AND (g, x) IN ((1, 2), (2, 3))",
    "subqueries": "SELECT id FROM t WHERE (id, k) IN (SELECT id, k FROM u) AND x > (SELECT AVG(v) FROM u WHERE u.k = t.k)",
    "EXCEPT": "SELECT * EXCEPT (arr, m, s) FROM t",
    "LATERAL VIEW": "SELECT id, p, e FROM t LATERAL VIEW OUTER POSEXPLODE(arr) q AS p, e",
    "LATERAL generators": "SELECT id, q.e, r.f FROM t LEFT JOIN LATERAL EXPLODE(arr) AS q(e) ON TRUE JOIN LATERAL EXPLODE(ARRAY(q.e)) AS r(f), "
    "LATERAL EXPLODE(ARRAY(r.f)) AS p(h) JOIN LATERAL EXPLODE(ARRAY(p.h)) AS o ON TRUE",
    "STACK": "SELECT id, c1, c2 FROM t LATERAL VIEW STACK(2, 1, x, 2, g) q AS c1, c2",
    "QUALIFY": "SELECT id, RANK() OVER (PARTITION BY k ORDER BY x) AS r FROM t QUALIFY r <= 2",
    "windows": "SELECT id, LAG(x, 1, 0) OVER w AS a, LAST_VALUE(x, true) OVER w AS b, SUM(x) FILTER (WHERE g = 1) OVER "
    "(PARTITION BY k) AS c, AVG(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS d "
    "FROM t WINDOW w AS (PARTITION BY g ORDER BY id)",
    "VALUES in brackets": "SELECT y.a FROM (VALUES (1), (2) AS x(a)) y JOIN t ON t.id = y.a",
    "hints and comments": "SELECT /*+ BROADCAST(u) */ t.id FROM t JOIN u ON t.id = u.id -- all of them",
    "SORT BY": "SELECT id FROM t DISTRIBUTE BY k SORT BY x",
}  # fmt: skip


@pytest.fixture(scope="module")
def t(spark: object, tmp_path_factory: pytest.TempPathFactory) -> penstock.Database:
    with penstock.connect(tmp_path_factory.mktemp("spellings") / "warehouse") as db:
        for statement in TABLES:
            db.sql(statement)
        yield db


@pytest.mark.parametrize("name", VALUES)
def test_expressions(t: penstock.Database, name: str) -> None:
    explained = t.explain(f"CREATE MATERIALIZED VIEW v AS SELECT id, {VALUES[name]} FROM t")
    assert explained.reason_code is None, explained.reason


@pytest.mark.parametrize("name", QUERIES)
def test_queries(t: penstock.Database, name: str) -> None:
    explained = t.explain(f"CREATE MATERIALIZED VIEW v AS {QUERIES[name]}")
    assert explained.reason_code is None, explained.reason


def test_a_sample_is_refused_in_words_or_recomputed(t: penstock.Database) -> None:
    """The alias of a table stands behind TABLESAMPLE in Spark's grammar."""
    with pytest.raises(penstock.DefinitionError, match="changes by itself"):
        t.create_view("v", "SELECT t.id FROM t TABLESAMPLE (5 ROWS)")
    t.create_view("sampled", "SELECT t.id FROM t TABLESAMPLE (5 ROWS)", policy="FULL")
