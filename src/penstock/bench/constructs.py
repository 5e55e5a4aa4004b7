"""Constructs of SQL, each as a view over the same few tables: for docs/operators.md and the workload driver.

A construct is maintained incrementally unless it names the reason code of what it is refused with.
"""

from __future__ import annotations

from dataclasses import dataclass

TABLES = {
    "t": (
        "CREATE TABLE t (id INT, k STRING, g INT, x INT, y DECIMAL(10,2), d DOUBLE, ts TIMESTAMP, arr ARRAY<INT>, "
        "m MAP<STRING, INT>, s STRUCT<a: INT, b: STRING>, j STRING)"
    ),
    "u": "CREATE TABLE u (id INT, k STRING, v INT, w DECIMAL(8,3))",
    "r": "CREATE TABLE r (g INT, name STRING, lo INT, hi INT)",
}


def t_row(i: int) -> str:
    """A row of ``t`` with NULLs, ties, NaN and -0.0 among its values."""
    k = "NULL" if i % 7 == 3 else f"'{'abcd'[i % 4]}'"
    g = "NULL" if i % 11 == 5 else str(i % 3)
    x = "NULL" if i % 5 == 2 else str((i * 7) % 10 - 3)
    y = "NULL" if i % 6 == 4 else f"{(i * 13) % 50}.{i % 100:02d}"
    d = ["NULL", "DOUBLE('NaN')", "-0.0D", "0.0D", "1.5D", "2.25D", "-7.125D"][i % 7]
    ts = f"TIMESTAMP'2024-01-{i % 4 + 1:02d} 0{i % 6}:30:00'"
    arr = ["NULL", "ARRAY()", "ARRAY(1, 2)", "ARRAY(3, NULL, 3)"][i % 4]
    m = ["NULL", "MAP('p', 1, 'q', 2)", "MAP()"][i % 3]
    s = "NULL" if i % 8 == 1 else f"NAMED_STRUCT('a', {i % 3}, 'b', 'z{i % 2}')"
    j = ["NULL", '\'{"a": 1, "b": "x"}\'', "'not json'", "'{\"a\": 2}'"][i % 4]
    return f"({i}, {k}, {g}, {x}, {y}, {d}, {ts}, {arr}, {m}, {s}, {j})"


def u_row(i: int) -> str:
    k = "NULL" if i % 5 == 4 else f"'{'abce'[i % 4]}'"
    v = "NULL" if i % 6 == 2 else str((i * 3) % 8)
    return f"({i // 2}, {k}, {v}, {i % 4}.{i % 10}25)"


ROWS = {
    "t": [t_row(i) for i in range(24)],
    "u": [u_row(i) for i in range(14)],
    "r": ["(0, 'zero', -5, 2)", "(1, 'one', 0, 4)", "(2, 'two', 3, 9)", "(NULL, 'none', NULL, 1)", "(1, 'uno', 1, 1)"],
}

ROUNDS: list[list[str]] = [
    [f"INSERT INTO t VALUES {', '.join(t_row(i) for i in (24, 25, 26, 27))}",
     f"INSERT INTO u VALUES {u_row(3)}, {u_row(17)}", "UPDATE r SET hi = 12, name = 'deux' WHERE g = 2",
     "UPDATE t SET k = 'b', g = 1, x = 6 WHERE id IN (0, 3, 9)", "DELETE FROM t WHERE id IN (5, 13) OR (k = 'c' AND x > 3)"],
    ["DELETE FROM u WHERE k = 'a' OR k IS NULL", "INSERT OVERWRITE u SELECT * FROM u WHERE v > 100", "DELETE FROM r WHERE g = 1",
     f"INSERT INTO t VALUES {t_row(28)}, {t_row(31)}",
     "UPDATE t SET j = 'same for the others', x = x + 1, y = y - 1 WHERE id IN (2, 4, 7, 10)"],
]  # fmt: skip
"""Statements between two refreshes: inserts, key changes and deletes; then a table is emptied."""


@dataclass(frozen=True)
class Construct:
    section: str
    name: str
    query: str
    code: str | None = None


def _(section: str, *entries: tuple[str, ...]) -> list[Construct]:
    return [Construct(section, *entry) for entry in entries]


CONSTRUCTS: list[Construct] = [
    *_(
        "Rows",
        ("SELECT, WHERE", "SELECT id, x + 1 AS x1, UPPER(k) AS k FROM t WHERE x > 0 OR k = 'a'"),
        (
            "CASE, COALESCE, casts",
            "SELECT id, CASE WHEN x > 2 THEN 'big' WHEN x IS NULL THEN '?' ELSE 'small' END AS c, "
            "COALESCE(y, 0) AS y, CAST(x AS STRING) AS s, TRY_CAST(j AS INT) AS n FROM t",
        ),
        (
            "date and time arithmetic",
            "SELECT id, DATE_TRUNC('DAY', ts) AS day, DATE_ADD(CAST(ts AS DATE), x) AS later, "
            "ts + INTERVAL 2 HOURS AS then, DATEDIFF(DATE'2024-02-01', CAST(ts AS DATE)) AS days FROM t",
        ),
        (
            "struct, array and map columns",
            "SELECT id, s, s.a AS a, arr, GET(arr, 0) AS first, m, ELEMENT_AT(m, 'p') AS p, SIZE(arr) AS n FROM t",
        ),
        (
            "higher-order functions",
            "SELECT id, TRANSFORM(arr, e -> e + 1) AS up, EXISTS(arr, e -> e > 2) AS any_big, "
            "FILTER(arr, e -> e IS NOT NULL) AS known FROM t",
        ),
        (
            "from_json, get_json_object",
            "SELECT id, FROM_JSON(j, 'a INT, b STRING') AS o, GET_JSON_OBJECT(j, '$.a') AS a FROM t",
        ),
        ("VARIANT", "SELECT id, TRY_PARSE_JSON(j) AS v, TRY_VARIANT_GET(TRY_PARSE_JSON(j), '$.a', 'INT') AS a FROM t"),
        ("DISTINCT", "SELECT DISTINCT k, g FROM t"),
        (
            "CTEs and derived tables",
            "WITH a AS (SELECT k, x FROM t WHERE x > 0), b AS (SELECT k, MAX(x) AS m FROM a GROUP BY k) "
            "SELECT a.k, a.x, b.m FROM a JOIN (SELECT * FROM b WHERE m > 1) b ON a.k = b.k",
        ),
    ),
    *_(
        "Generators",
        ("explode in the select list", "SELECT id, EXPLODE(arr) AS e FROM t"),
        ("explode_outer", "SELECT id, EXPLODE_OUTER(arr) AS e FROM t"),
        ("posexplode", "SELECT id, POSEXPLODE(arr) AS (p, e) FROM t"),
        ("LATERAL VIEW", "SELECT id, e, e * x AS ex FROM t LATERAL VIEW EXPLODE(arr) l AS e WHERE e > 1"),
        ("LATERAL VIEW OUTER of a map", "SELECT id, n, v FROM t LATERAL VIEW OUTER EXPLODE(m) l AS n, v"),
        (
            "LATERAL VIEW of a LATERAL VIEW",
            "SELECT id, a.e, b.e AS f FROM t LATERAL VIEW EXPLODE(arr) a AS e "
            "LATERAL VIEW EXPLODE(ARRAY(a.e, x)) b AS e",
        ),
        ("LATERAL generator", "SELECT t.id, l.e FROM t, LATERAL EXPLODE(t.arr) AS l(e)"),
        ("inline", "SELECT id, a, b FROM t LATERAL VIEW INLINE(ARRAY(s)) l AS a, b"),
        ("json_tuple", "SELECT id, JSON_TUPLE(j, 'a', 'b') AS (a, b) FROM t"),
        (
            "an aggregate of generated rows",
            "SELECT e, COUNT(*) AS n, SUM(x) AS x FROM t LATERAL VIEW EXPLODE(arr) l AS e GROUP BY e",
        ),
    ),
    *_(
        "Joins",
        ("inner join", "SELECT t.id, u.v FROM t JOIN u ON t.k = u.k"),
        ("three tables", "SELECT t.id, u.v, r.name FROM t JOIN u ON t.k = u.k JOIN r ON t.g = r.g WHERE u.v > 0"),
        ("self join", "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.k = b.k AND a.id < b.id"),
        ("CROSS JOIN", "SELECT t.id, r.name FROM t CROSS JOIN r"),
        ("a range join", "SELECT t.id, r.name FROM t JOIN r ON t.x BETWEEN r.lo AND r.hi"),
        ("an as-of join", "SELECT t.id, MAX(u.id) AS at FROM t JOIN u ON t.k = u.k AND u.id <= t.id GROUP BY t.id"),
        ("USING", "SELECT k, t.id, u.v FROM t JOIN u USING (k)"),
        ("NATURAL JOIN", "SELECT k, v, x FROM t NATURAL JOIN u"),
        ("LEFT JOIN", "SELECT t.id, u.v, u.w FROM t LEFT JOIN u ON t.k = u.k"),
        (
            "LEFT JOIN with a condition on the left",
            "SELECT t.id, u.v FROM t LEFT JOIN u ON t.k = u.k AND t.x > 2 AND u.v > 1",
        ),
        ("LEFT JOIN by a range", "SELECT t.id, r.name FROM t LEFT JOIN r ON t.x > r.lo AND t.x <= r.hi"),
        ("RIGHT JOIN", "SELECT t.id, u.k, u.v FROM t RIGHT JOIN u ON t.k = u.k"),
        ("FULL OUTER JOIN", "SELECT t.id, u.v, u.id AS uid FROM t FULL OUTER JOIN u ON t.k = u.k"),
        ("FULL OUTER JOIN USING", "SELECT k, t.x, u.v FROM t FULL OUTER JOIN u USING (k)"),
        (
            "several outer joins in a row",
            "SELECT t.id, u.v, r.name FROM t LEFT JOIN u ON t.k = u.k LEFT JOIN r ON r.g = t.g",
        ),
        (
            "an outer join over aggregates",
            "SELECT a.k, a.n, b.total FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) a "
            "FULL OUTER JOIN (SELECT k, SUM(w) AS total FROM u GROUP BY k) b ON a.k = b.k",
        ),
        (
            "an inner join over an outer join",
            "SELECT t.id, u.v, r.name FROM t LEFT JOIN u ON t.k = u.k JOIN r ON r.g = t.g",
        ),
        ("LEFT SEMI JOIN", "SELECT t.id, t.k FROM t LEFT SEMI JOIN u ON t.k = u.k AND t.x < u.v"),
        ("LEFT ANTI JOIN", "SELECT t.id, t.k FROM t LEFT ANTI JOIN u ON t.k = u.k"),
        (
            "an aggregate of an outer join",
            "SELECT t.g, COUNT(u.v) AS n, COUNT(*) AS all FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.g",
        ),
    ),
    *_(
        "Subqueries",
        ("EXISTS", "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v > t.x)"),
        ("NOT EXISTS", "SELECT id FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.k = t.k)"),
        ("EXISTS without correlation", "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE v > 6)"),
        ("IN", "SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE v > 1)"),
        ("IN of two columns", "SELECT id FROM t WHERE (k, g) IN (SELECT k, v FROM u)"),
        ("NOT IN", "SELECT id FROM t WHERE x NOT IN (SELECT v FROM u WHERE v > 3)"),
        ("NOT IN with NULLs", "SELECT id FROM t WHERE x NOT IN (SELECT v FROM u)"),
        ("NOT IN, correlated", "SELECT id FROM t WHERE x NOT IN (SELECT v FROM u WHERE u.k = t.k)"),
        ("IN under OR", "SELECT id FROM t WHERE x > 4 OR k IN (SELECT k FROM u WHERE v < 4)"),
        (
            "EXISTS in the select list",
            "SELECT id, EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS known FROM t",
        ),
        (
            "EXISTS under OR and NOT",
            "SELECT id FROM t WHERE NOT (x > 2 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v = t.x))",
        ),
        ("a scalar subquery", "SELECT id FROM t WHERE x > (SELECT AVG(v) FROM u)"),
        ("a scalar subquery in the select list", "SELECT id, x - (SELECT MIN(v) FROM u) AS above FROM t"),
        ("a correlated aggregate", "SELECT id, (SELECT SUM(v) FROM u WHERE u.k = t.k) AS total FROM t"),
        ("a correlated COUNT", "SELECT id, (SELECT COUNT(*) FROM u WHERE u.k = t.k) AS n FROM t"),
        ("a correlated aggregate in WHERE", "SELECT id FROM t WHERE x > (SELECT AVG(v) FROM u WHERE u.k = t.k)"),
        ("correlation by a range", "SELECT id, (SELECT COUNT(*) FROM r WHERE r.lo <= t.x AND r.hi >= t.x) AS n FROM t"),
        ("a subquery in HAVING", "SELECT k, SUM(x) AS s FROM t GROUP BY k HAVING SUM(x) > (SELECT AVG(v) FROM u)"),
        ("IN over a grouped subquery", "SELECT id FROM t WHERE k IN (SELECT k FROM u GROUP BY k HAVING COUNT(*) > 2)"),
        (
            "subqueries in subqueries",
            "SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE v > (SELECT MIN(lo) FROM r) "
            "AND EXISTS (SELECT 1 FROM r WHERE r.g = u.id))",
        ),
        ("ORDER BY .. LIMIT 1 as a value", "SELECT id FROM t WHERE x = (SELECT v FROM u ORDER BY v DESC, id LIMIT 1)"),
    ),
    *_(
        "Set operations",
        ("UNION ALL", "SELECT k, x FROM t UNION ALL SELECT k, v FROM u"),
        ("UNION", "SELECT k, x FROM t UNION SELECT k, v FROM u"),
        ("INTERSECT", "SELECT k FROM t INTERSECT SELECT k FROM u"),
        ("INTERSECT ALL", "SELECT k FROM t INTERSECT ALL SELECT k FROM u"),
        ("EXCEPT", "SELECT k, x FROM t EXCEPT SELECT k, v FROM u"),
        ("EXCEPT ALL", "SELECT k FROM t EXCEPT ALL SELECT k FROM u"),
        ("types that differ between the sides", "SELECT y AS n FROM t UNION ALL SELECT v FROM u UNION SELECT w FROM u"),
    ),
    *_(
        "Aggregates",
        (
            "COUNT, SUM, AVG, MIN, MAX, COUNT_IF",
            "SELECT k, COUNT(*) AS n, COUNT(x) AS c, SUM(y) AS s, AVG(x) AS a, MIN(ts) AS lo, "
            "MAX(y) AS hi, COUNT_IF(x > 1) AS i FROM t GROUP BY k",
        ),
        ("without GROUP BY", "SELECT COUNT(*) AS n, SUM(v) AS s, MAX(w) AS m FROM u"),
        ("HAVING", "SELECT g, SUM(x) AS s FROM t GROUP BY g HAVING COUNT(*) > 3 AND SUM(x) IS NOT NULL"),
        ("sums of floating-point numbers", "SELECT k, SUM(d) AS s, AVG(d) AS a FROM t GROUP BY k"),
        (
            "FILTER",
            "SELECT k, SUM(x) FILTER (WHERE g = 1) AS s, COUNT(*) FILTER (WHERE x > 0) AS n, "
            "COUNT(DISTINCT g) FILTER (WHERE x > 0) AS c FROM t GROUP BY k",
        ),
        ("COUNT(DISTINCT)", "SELECT k, COUNT(DISTINCT x) AS n FROM t GROUP BY k"),
        (
            "COUNT(DISTINCT) beside others",
            "SELECT k, COUNT(DISTINCT x) AS n, COUNT(DISTINCT g) AS m, SUM(y) AS s, COUNT(*) AS c FROM t GROUP BY k",
        ),
        (
            "COUNT(DISTINCT) without GROUP BY",
            "SELECT COUNT(DISTINCT k) AS n, COUNT(DISTINCT k, g) AS m, SUM(x) AS s FROM t",
        ),
        ("SUM(DISTINCT), AVG(DISTINCT)", "SELECT g, SUM(DISTINCT x) AS s, AVG(DISTINCT x) AS a FROM t GROUP BY g"),
        ("STDDEV, VARIANCE", "SELECT g, STDDEV(x) AS s, VAR_POP(y) AS v FROM t GROUP BY g"),
        ("CORR and its like", "SELECT g, CORR(x, id) AS c, COVAR_POP(x, id) AS v FROM t GROUP BY g"),
        ("MIN_BY, MAX_BY", "SELECT g, MAX_BY(k, x) AS top, MIN_BY(id, y) AS low FROM t GROUP BY g"),
        (
            "BOOL_AND, BOOL_OR",
            "SELECT g, BOOL_AND(x > 0) AS a, BOOL_OR(x > 5) AS o, EVERY(k = 'a') AS e FROM t GROUP BY g",
        ),
        (
            "COLLECT_LIST, COLLECT_SET, ARRAY_AGG",
            "SELECT g, COLLECT_LIST(x) AS l, COLLECT_SET(k) AS s, ARRAY_AGG(id) AS i FROM t GROUP BY g",
        ),
        ("APPROX_COUNT_DISTINCT", "SELECT g, APPROX_COUNT_DISTINCT(k) AS n FROM t GROUP BY g"),
        (
            "PERCENTILE, MEDIAN",
            "SELECT g, PERCENTILE(x, 0.25) AS q, MEDIAN(y) AS m, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) AS p "
            "FROM t GROUP BY g",
        ),
        ("BIT_AND, BIT_OR", "SELECT g, BIT_AND(id) AS a, BIT_OR(id) AS o FROM t GROUP BY g"),
        (
            "ROLLUP",
            "SELECT k, g, SUM(x) AS s, GROUPING(k) AS gk, GROUPING_ID(k, g) AS gid FROM t GROUP BY ROLLUP (k, g)",
        ),
        ("CUBE", "SELECT k, g, COUNT(*) AS n, COUNT(DISTINCT x) AS d FROM t GROUP BY CUBE (k, g)"),
        ("GROUPING SETS", "SELECT k, g, SUM(y) AS s FROM t GROUP BY GROUPING SETS ((k, g), (k), ())"),
        ("WITH ROLLUP", "SELECT COALESCE(k, 'all') AS k, COUNT(*) AS n FROM t GROUP BY k WITH ROLLUP"),
        (
            "nested aggregates",
            "SELECT n, COUNT(*) AS groups, MAX(s) AS top FROM (SELECT k, g, COUNT(*) AS n, SUM(x) AS s FROM t "
            "GROUP BY k, g) GROUP BY n",
        ),
        (
            "nested three deep",
            "SELECT MAX(c) AS most FROM (SELECT m, COUNT(*) AS c FROM (SELECT k, MIN(x) AS m FROM t GROUP BY k) "
            "GROUP BY m)",
        ),
    ),
    *_(
        "Windows and top-k",
        ("ROW_NUMBER", "SELECT id, k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, id) AS n FROM t"),
        (
            "RANK, DENSE_RANK",
            "SELECT id, RANK() OVER (PARTITION BY g ORDER BY x) AS r, DENSE_RANK() OVER (PARTITION BY g ORDER BY x) AS d FROM t",
        ),
        (
            "PERCENT_RANK, CUME_DIST, NTILE",
            "SELECT id, PERCENT_RANK() OVER (PARTITION BY g ORDER BY x) AS p, "
            "CUME_DIST() OVER (PARTITION BY g ORDER BY x) AS c, NTILE(3) OVER (PARTITION BY g ORDER BY id) AS n FROM t",
        ),
        (
            "LAG, LEAD",
            "SELECT id, LAG(x) OVER (PARTITION BY k ORDER BY id) AS l, LEAD(x, 2, -1) OVER (PARTITION BY k ORDER BY id) AS m FROM t",
        ),
        (
            "FIRST_VALUE, LAST_VALUE, NTH_VALUE",
            "SELECT id, FIRST_VALUE(x) OVER (PARTITION BY k ORDER BY id) AS f, "
            "LAST_VALUE(x) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS l, "
            "NTH_VALUE(x, 2) OVER (PARTITION BY k ORDER BY id) AS n FROM t",
        ),
        (
            "ROWS frames",
            "SELECT id, SUM(x) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM t",
        ),
        (
            "RANGE frames",
            "SELECT id, COUNT(*) OVER (PARTITION BY g ORDER BY x RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS n FROM t",
        ),
        (
            "several windows",
            "SELECT id, SUM(x) OVER (PARTITION BY k) AS sk, COUNT(*) OVER (PARTITION BY g) AS ng, "
            "x - AVG(x) OVER (PARTITION BY k) AS above FROM t",
        ),
        ("without PARTITION BY", "SELECT id, SUM(x) OVER (ORDER BY id) AS running, COUNT(*) OVER () AS n FROM t"),
        ("a WINDOW clause", "SELECT id, MAX(x) OVER w AS m, MIN(x) OVER w AS n FROM t WINDOW w AS (PARTITION BY k)"),
        (
            "windows over aggregates",
            "SELECT k, SUM(x) AS s, RANK() OVER (ORDER BY SUM(x) DESC) AS r, SUM(SUM(x)) OVER () AS total "
            "FROM t GROUP BY k",
        ),
        (
            "an aggregate of a window",
            "SELECT g, MAX(n) AS most FROM (SELECT g, ROW_NUMBER() OVER (PARTITION BY g ORDER BY id) AS n FROM t) GROUP BY g",
        ),
        ("QUALIFY", "SELECT id, k FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x, id) = 1"),
        (
            "the first rows of each group",
            "SELECT id, k, x FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC, id) AS n FROM t) "
            "WHERE n <= 2",
        ),
        ("ORDER BY .. LIMIT", "SELECT id, x FROM t ORDER BY x DESC, id LIMIT 5"),
        ("ORDER BY .. LIMIT .. OFFSET", "SELECT id FROM t ORDER BY y NULLS LAST, id LIMIT 4 OFFSET 3"),
        ("LIMIT of an aggregate", "SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY COUNT(*) DESC, k LIMIT 2"),
        (
            "LIMIT without ORDER BY",
            "SELECT a.id, a.k, u.v FROM (SELECT id, k FROM t LIMIT 6 OFFSET 1) a JOIN u ON a.k = u.k",
        ),
        (
            "LIMIT in a derived table",
            "SELECT a.id, u.v FROM (SELECT id, k FROM t ORDER BY id DESC LIMIT 6) a JOIN u ON a.k = u.k",
        ),
    ),
    *_(
        "LATERAL",
        (
            "an aggregate for each row",
            "SELECT t.id, l.v, l.n FROM t, LATERAL (SELECT MAX(v) AS v, COUNT(*) AS n FROM u WHERE u.k = t.k) l",
        ),
        (
            "an aggregate by a comparison",
            "SELECT t.id, l.s FROM t JOIN LATERAL (SELECT SUM(v) AS s FROM u WHERE u.v < t.x) l ON TRUE",
        ),
        (
            "groups for each row",
            "SELECT t.id, l.v, l.n FROM t LEFT JOIN LATERAL (SELECT v, COUNT(*) AS n FROM u WHERE u.k = t.k GROUP BY v) l ON TRUE",
        ),
        (
            "the first rows for each row",
            "SELECT t.id, l.v FROM t LEFT JOIN LATERAL (SELECT v FROM u WHERE u.k = t.k ORDER BY v DESC LIMIT 2) l ON TRUE",
        ),
        (
            "rows and expressions",
            "SELECT t.id, a.twice, b.v FROM t, LATERAL (SELECT t.x * 2 AS twice) a, LATERAL (SELECT u.v + t.x AS v FROM u WHERE u.k = t.k) b",
        ),
        (
            "columns as rows",
            "SELECT t.id, l.name, l.v FROM t, LATERAL (SELECT 'x' AS name, t.x AS v UNION ALL SELECT 'g', t.g) l",
        ),
    ),
    *_(
        "Rows that stand in the query",
        (
            "VALUES",
            "SELECT t.id, m.label FROM t JOIN (VALUES (0, 'nil'), (1, 'single')) AS m(g, label) ON t.g = m.g",
        ),
        ("SELECT without FROM", "SELECT k, x FROM t UNION ALL SELECT 'one more', 1"),
    ),
    *_(
        "Windows of time",
        (
            "TUMBLE",
            "SELECT TUMBLE_START(ts, INTERVAL 1 DAY) AS day, LAST_VALUE(x) AS x FROM t GROUP BY TUMBLE(ts, INTERVAL 1 DAY)",
        ),
        (
            "HOP",
            "SELECT HOP_START(ts, INTERVAL 1 DAY, INTERVAL 2 DAYS) AS day, k, COUNT(*) AS n FROM t "
            "GROUP BY HOP(ts, INTERVAL 1 DAY, INTERVAL 2 DAYS), k",
        ),
        ("window(..)", "SELECT window.start, window.end, SUM(y) AS y FROM t GROUP BY window(ts, '6 hours')"),
        (
            "SESSION",
            "SELECT k, SESSION_START(ts, INTERVAL 2 HOURS) AS s, MAX(x) AS x FROM t GROUP BY k, SESSION(ts, INTERVAL 2 HOURS)",
        ),
        (
            "session_window(..)",
            "SELECT g, session_window, COUNT(DISTINCT k) AS n FROM t GROUP BY g, session_window(ts, '1 hour')",
        ),
    ),
    *_(
        "Always recomputed",
        ("LIMIT without ORDER BY of a map", "SELECT COUNT(*) AS n FROM (SELECT m FROM t LIMIT 3)", "LIMIT"),
        (
            "recursive CTE",
            "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT c.n, t.id FROM c JOIN t ON t.g = c.n",
            "RECURSIVE_CTE",
        ),
        (
            "aggregates that depend on order",
            "SELECT k, MODE(g) AS m FROM t WHERE g = 1 GROUP BY k",
            "AGGREGATE_FUNCTION",
        ),
        ("PIVOT", "SELECT * FROM (SELECT k, g, x FROM t) PIVOT (SUM(x) FOR g IN (0 AS g0, 1 AS g1))", "PIVOT"),
        ("table functions", "SELECT r.id, t.x FROM RANGE(3) AS r JOIN t ON t.id = r.id", "TABLE_FORM"),
    ),
]
