"""From a query to operators: which column every name means."""

from __future__ import annotations

import pytest
from plan_text import columns, conditions, plan

from penstock.plan import Unsupported
from penstock.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Operator,
    Project,
    Scan,
    SidedJoin,
    Union,
    expressions,
    names_in,
    walk,
)


@pytest.mark.parametrize(
    ("query", "meanings"),
    [
        ("SELECT a FROM t", {"a": "t.a"}),
        ("SELECT T.A, x.B FROM t CROSS JOIN t AS x", {"A": "t.a", "B": "t2.b"}),
        ("SELECT MIXED, mixed AS m FROM w", {"MIXED": "w.Mixed", "m": "w.Mixed"}),
        ("SELECT `a` FROM `t`", {"a": "t.a"}),
        ("SELECT * FROM t", {"a": "t.a", "b": "t.b", "k": "t.k"}),
        ("SELECT u.*, t.a FROM t, u", {"k": "u.k", "c": "u.c", "d": "u.d", "a": "t.a"}),
        ("SELECT * EXCEPT (A, k) FROM t", {"b": "t.b"}),
        ("SELECT t.* EXCEPT (b) FROM t", {"a": "t.a", "k": "t.k"}),
        ("SELECT x, y FROM t AS s(x, y, z)", {"x": "t.a", "y": "t.b"}),
        ("SELECT * FROM t AS s(x, y, z)", {"x": "t.a", "y": "t.b", "z": "t.k"}),
        # USING and NATURAL: the common columns come first and once
        ("SELECT * FROM t JOIN u USING (k)", {"k": "t.k", "a": "t.a", "b": "t.b", "c": "u.c", "d": "u.d"}),
        ("SELECT k, t.k AS tk, u.k AS uk FROM t JOIN u USING (k)", {"k": "t.k", "tk": "t.k", "uk": "u.k"}),
        ("SELECT * FROM t NATURAL JOIN w", {"a": "t.a", "k": "t.k", "b": "t.b", "Mixed": "w.Mixed"}),
        ("SELECT K FROM t JOIN u USING (K)", {"K": "t.k"}),
        (
            "SELECT * FROM t JOIN w USING (a) JOIN u ON u.k = t.k",
            {"a": "t.a", "b": "t.b", "k": "u.k", "Mixed": "w.Mixed", "c": "u.c", "d": "u.d"},
        ),
        # an earlier alias can be used in a later item; a column of the table comes first
        ("SELECT a + 1 AS x, x * 2 AS y FROM t", {"x": "t.a + 1", "y": "(t.a + 1) * 2"}),
        ("SELECT a AS b, b + 1 AS c FROM t", {"b": "t.a", "c": "t.b + 1"}),
        ("SELECT SUM(a) AS s, s + 1 AS n FROM t", {"s": "SUM(t.a)", "n": "(SUM(t.a)) + 1"}),
        # CTEs, derived tables
        ("WITH q AS (SELECT a AS z FROM t) SELECT z FROM q", {"z": "t.a"}),
        ("WITH q(z) AS (SELECT a FROM t) SELECT Z FROM Q", {"Z": "t.a"}),
        ("WITH t AS (SELECT c AS a FROM u) SELECT a FROM t", {"a": "u.c"}),
        ("WITH t AS (SELECT a AS z FROM t) SELECT z FROM t", {"z": "t.a"}),
        ("WITH q AS (SELECT a FROM t), r AS (SELECT a AS z FROM q) SELECT z FROM r", {"z": "t.a"}),
        ("WITH q AS (SELECT a FROM t) SELECT x.a, y.a AS b FROM q AS x, q AS y", {"a": "t.a", "b": "t2.a"}),
        ("SELECT z FROM (SELECT a AS z FROM t) AS q", {"z": "t.a"}),
        ("SELECT q.x FROM (SELECT a FROM t) AS q(x)", {"x": "t.a"}),
        ("SELECT a FROM (SELECT a FROM t)", {"a": "t.a"}),
        ("SELECT a FROM (t JOIN u USING (k))", {"a": "t.a"}),
        ("SELECT a FROM ((SELECT a FROM t))", {"a": "t.a"}),
        # groups
        ("SELECT a, COUNT(*) AS n FROM t GROUP BY a", {"a": "t.a", "n": "COUNT(*)"}),
        ("SELECT a + 1 AS x, SUM(b) AS s FROM t GROUP BY 1", {"x": "t.a + 1", "s": "SUM(t.b)"}),
        ("SELECT a + 1 AS x, SUM(b) AS s FROM t GROUP BY x", {"x": "t.a + 1", "s": "SUM(t.b)"}),
        ("SELECT a + 1 AS x, SUM(b) AS s FROM t GROUP BY ALL", {"x": "t.a + 1", "s": "SUM(t.b)"}),
        ("SELECT (a + 1) * 2 AS x FROM t GROUP BY a + 1", {"x": "(t.a + 1) * 2"}),
        ("SELECT SUM(b) / COUNT(b) AS m FROM t GROUP BY a", {"m": "SUM(t.b) / COUNT(t.b)"}),
        ("SELECT T.A FROM t GROUP BY a", {"A": "t.a"}),
        ("SELECT 1 AS one, COUNT(*) AS n FROM t", {"one": "1", "n": "COUNT(*)"}),
        # unions, by position, names of the first
        ("SELECT a FROM t UNION ALL SELECT c FROM u", {"a": "t.a | u.c"}),
        ("SELECT a, b FROM t UNION ALL (SELECT c, d FROM u)", {"a": "t.a | u.c", "b": "t.b | u.d"}),
    ],
)
def test_what_names_mean(query: str, meanings: dict[str, str]) -> None:
    assert list(columns(query).items()) == list(meanings.items())


def test_the_newest_using_columns_stand_before_older_ones() -> None:
    found = columns("SELECT * FROM t JOIN w USING (a) JOIN u ON u.c = b")
    assert list(found)[:1] == ["a"]
    found = columns("SELECT * FROM t JOIN (SELECT a, c AS e FROM w CROSS JOIN u) AS x USING (a) JOIN u USING (k)")
    assert list(found) == ["k", "a", "b", "e", "c", "d"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT a FROM t WHERE b > 1", ["t.b > 1"]),
        ("SELECT a FROM t WHERE b > 1 AND k = 2", ["t.b > 1 AND t.k = 2"]),
        ("SELECT 1 FROM t JOIN u ON t.k = u.k AND a < c WHERE d = 1", ["t.k = u.k", "t.a < u.c", "u.d = 1"]),
        ("SELECT 1 FROM t, u WHERE t.k = u.k", ["t.k = u.k"]),
        ("SELECT 1 FROM t JOIN u USING (k)", ["t.k = u.k"]),
        ("SELECT 1 FROM t AS x JOIN t AS y ON x.a = y.b", ["t.a = t2.b"]),
        ("SELECT 1 FROM t JOIN u USING (k) JOIN w USING (k)", ["t.k = u.k", "t.k = w.k"]),
        ("SELECT 1 FROM t NATURAL JOIN w", ["t.a = w.a", "t.k = w.k"]),
        ("SELECT 1 FROM t CROSS JOIN u", []),
        ("SELECT a AS z FROM t WHERE a > 1 OR NOT b IN (1, 2)", ["t.a > 1 OR NOT t.b IN (1, 2)"]),
        ("SELECT a FROM t GROUP BY a HAVING SUM(b) > 1", ["SUM(t.b) > 1"]),
        ("SELECT a, SUM(b) AS s FROM t GROUP BY a HAVING s > 1", ["(SUM(t.b)) > 1"]),
        ("SELECT a FROM t GROUP BY a HAVING a > 1", ["t.a > 1"]),
        ("SELECT COUNT(*) AS n FROM t HAVING MAX(b) > 1", ["MAX(t.b) > 1"]),
    ],
)
def test_conditions(query: str, found: list[str]) -> None:
    assert conditions(query) == found


def test_equal_measures_are_computed_once() -> None:
    aggregate = next(op for op in walk(plan("SELECT SUM(a) AS x, SUM(a) + 1 AS y, sum(A) AS z FROM t").root)
                     if isinstance(op, Aggregate))  # fmt: skip
    assert len(aggregate.measures) == 1


def test_equal_keys_are_grouped_once() -> None:
    aggregate = next(op for op in walk(plan("SELECT a FROM t GROUP BY a, (A), t.a").root) if isinstance(op, Aggregate))
    assert len(aggregate.keys) == 1


def test_a_join_of_many_tables_is_one_operator() -> None:
    found = plan("SELECT 1 AS one FROM t JOIN u USING (k) JOIN w USING (k) JOIN t AS x ON x.k = u.k")
    joins = [op for op in walk(found.root) if isinstance(op, Join)]
    assert [len(join.inputs) for join in joins] == [4]


def test_scans_read_only_what_is_used() -> None:
    scans = [op for op in walk(plan("SELECT a FROM t JOIN u USING (k) WHERE d > 1").root) if isinstance(op, Scan)]
    assert [[name for _, name in scan.stored] for scan in scans] == [["a", "k"], ["k", "d"]]


def test_a_scan_of_which_nothing_is_used_keeps_a_column() -> None:
    scan = next(op for op in walk(plan("SELECT COUNT(*) AS n FROM t").root) if isinstance(op, Scan))
    assert len(scan.stored) == 1


@pytest.mark.parametrize(
    ("query", "operators"),
    [
        ("SELECT a FROM t WHERE b > 1", [Project, Filter, Scan]),
        ("SELECT DISTINCT a FROM t", [Distinct, Project, Scan]),
        ("SELECT a FROM t UNION SELECT c FROM u", [Distinct, Union, Project, Scan, Project, Scan]),
        ("SELECT a FROM t GROUP BY a HAVING COUNT(*) > 1", [Project, Filter, Aggregate, Scan]),
        ("SELECT a FROM t ORDER BY b", [Project, Scan]),
        ("SELECT COUNT(*) AS n FROM t", [Project, Aggregate, Scan]),
    ],
)
def test_the_shape(query: str, operators: list[type]) -> None:
    assert [type(op) for op in walk(plan(query).root)] == operators


def test_internal_names_are_unique() -> None:
    found = plan("SELECT x.a, y.a AS b FROM t AS x JOIN t AS y ON x.k = y.k UNION ALL SELECT a, b FROM t")
    scans = [name for op in walk(found.root) if isinstance(op, Scan) for name in op.columns]
    assert len(scans) == len(set(scans))


@pytest.mark.parametrize("query", ["SELECT k FROM t JOIN u ON true", "SELECT nope FROM t", "SELECT x.a FROM t"])
def test_what_spark_would_refuse_is_not_guessed(query: str) -> None:
    with pytest.raises(Unsupported) as caught:
        plan(query)
    assert caught.value.code == "UNRESOLVED_NAME"


def shape(query: str) -> str:
    """The operators of a query, outermost first; projections are left out."""

    def text(op: Operator) -> str:
        inner = ", ".join(text(child) for child in op.children)
        match op:
            case Project(child=child):
                return text(child)
            case Scan(relation=relation):
                return relation
            case SidedJoin(kind=kind):
                return f"{kind}({inner})"
        return f"{type(op).__name__.lower()}({inner})"

    return text(plan(query).root)


@pytest.mark.parametrize(
    ("query", "operators"),
    [
        ("SELECT a FROM t LEFT JOIN u USING (k)", "left(t, u)"),
        ("SELECT a FROM t RIGHT JOIN u USING (k)", "left(u, t)"),
        ("SELECT k FROM t FULL JOIN u USING (k)", "full(t, u)"),
        ("SELECT a FROM t SEMI JOIN u USING (k) ANTI JOIN w USING (a)", "anti(semi(t, u), w)"),
        ("SELECT a FROM t LEFT JOIN u USING (k) WHERE a > 1 AND c > 2", "filter(left(filter(t), u))"),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", "semi(t, u)"),
        ("SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.c > t.b)", "anti(t, u)"),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u)", "semi(t, distinct(u))"),
        ("SELECT a FROM t WHERE a IN (SELECT c FROM u)", "semi(t, u)"),
        ("SELECT a FROM t WHERE a NOT IN (SELECT c FROM u)", "anti(anti(t, u), distinct(u))"),
        ("SELECT a FROM t WHERE b > 1 OR a IN (SELECT c FROM u)", "filter(mark(t, u))"),
        ("SELECT a FROM t WHERE a > (SELECT MAX(c) FROM u)", "join(t, aggregate(u))"),
        ("SELECT a FROM t WHERE a > (SELECT MAX(c) FROM u WHERE u.k = t.k)", "filter(left(t, aggregate(u)))"),
        (
            "SELECT (SELECT COUNT(*) FROM u WHERE u.c < t.a) AS n FROM t",
            "left(t, aggregate(join(distinct(t), u)))",
        ),
        (
            "SELECT a FROM t GROUP BY a HAVING SUM(b) > (SELECT MAX(c) FROM u)",
            "join(aggregate(t), aggregate(u))",
        ),
        ("SELECT a FROM t INTERSECT SELECT k FROM u", "filter(aggregate(union(t, u)))"),
        ("SELECT a FROM t EXCEPT ALL SELECT k FROM u", "generate(aggregate(union(t, u)))"),
        ("SELECT a, COUNT(DISTINCT b) AS n FROM t GROUP BY a", "aggregate(distinct(t))"),
        (
            "SELECT a, COUNT(DISTINCT b) AS n, SUM(k) AS s FROM t GROUP BY a",
            "join(aggregate(t), aggregate(distinct(t)))",
        ),
        ("SELECT a, SUM(b) AS s FROM t GROUP BY ROLLUP (a)", "aggregate(generate(t))"),
        ("SELECT a, SUM(b) OVER (PARTITION BY k) AS s FROM t", "window(t)"),
        (
            "SELECT SUM(b) OVER (PARTITION BY k) AS s, MAX(b) OVER (PARTITION BY a) AS m FROM t",
            "window(window(t))",
        ),
        ("SELECT a, RANK() OVER (ORDER BY SUM(b)) AS r FROM t GROUP BY a", "window(aggregate(t))"),
        ("SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY b) = 1", "filter(window(t))"),
        ("SELECT a FROM t QUALIFY RANK() OVER w = 1 WINDOW w AS (PARTITION BY k ORDER BY b)", "filter(window(t))"),
        ("SELECT a FROM t ORDER BY SUM(b) OVER w LIMIT 2 WINDOW w AS (PARTITION BY k)", "topk(window(t))"),
        ("SELECT a FROM t ORDER BY b DESC LIMIT 3 OFFSET 1", "topk(t)"),
        ("SELECT a, COUNT(*) AS n FROM t GROUP BY a ORDER BY SUM(b) LIMIT 3", "topk(aggregate(t))"),
        ("SELECT EXPLODE(ARRAY(a, b)) AS e FROM t", "generate(t)"),
        ("SELECT e FROM t LATERAL VIEW EXPLODE(ARRAY(a)) x AS e WHERE e > 1", "filter(generate(t))"),
    ],
)
def test_operators(query: str, operators: str) -> None:
    assert shape(query) == operators
    used = {name for op in walk(plan(query).root) for e in expressions(op) for name in names_in(e)}
    assert all(name.startswith("__c") for name in used), "every name is resolved"
