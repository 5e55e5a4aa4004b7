"""The tables that a query reads, and their names replaced in its text without touching anything else."""

from __future__ import annotations

import pytest

from penstock.catalog import World
from penstock.errors import NotFoundError, NotSupportedError, SqlError
from penstock.sql.query import parse_query, spark_text, substitute_tables, table_names


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM t", ["t"]),
        ("SELECT * FROM T JOIN t AS x USING (k)", ["T"]),
        ("SELECT * FROM b, a CROSS JOIN c", ["b", "a", "c"]),
        ("SELECT (SELECT MAX(x) FROM u) FROM t WHERE k IN (SELECT k FROM v)", ["u", "t", "v"]),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", ["t", "u"]),
        ("SELECT * FROM (SELECT * FROM t) AS u", ["t"]),
        ("SELECT a FROM t UNION ALL SELECT a FROM u EXCEPT SELECT a FROM t", ["t", "u"]),
        ("WITH u AS (SELECT * FROM t) SELECT * FROM u", ["t"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b", ["b"]),
        ("WITH u AS (SELECT 1 AS x) SELECT * FROM t WHERE x IN (SELECT x FROM U)", ["t"]),
        ("SELECT * FROM (WITH u AS (SELECT * FROM t) SELECT * FROM u) AS s JOIN u USING (k)", ["t", "u"]),
        ("WITH u AS (WITH u AS (SELECT * FROM t) SELECT * FROM u) SELECT * FROM u", ["t"]),
        ("SELECT 'FROM x', `from` FROM t -- FROM y\n/* JOIN z */", ["t"]),
        ("SELECT * FROM `odd name` JOIN `select`", ["odd name", "select"]),
        ("SELECT t.x.y FROM t", ["t"]),
        ("SELECT x FROM range(10) AS r(x)", []),
        ("SELECT e FROM t LATERAL VIEW explode(xs) v AS e", ["t"]),
        ("(SELECT a FROM t) UNION (SELECT a FROM u)", ["t", "u"]),
        ("FROM t SELECT a", ["t"]),
        ("SELECT * FROM s.t JOIN S.T AS x JOIN default.t", ["s.t", "t"]),
        ("SELECT * FROM `we ird`.`näme.1`, `s.t`", ["`we ird`.`näme.1`", "`s.t`"]),
        ("WITH t AS (SELECT 1 AS a) SELECT * FROM t JOIN s.t JOIN default.t", ["s.t", "t"]),
        ("SELECT * FROM Penstock.Views", ["penstock.views"]),
        ("SELECT /*+ BROADCAST(x), MERGE(t) */ * FROM t JOIN u AS x USING (k)", ["t", "u"]),
    ],
)
def test_table_names(query: str, names: list[str]) -> None:
    assert table_names(parse_query(query)) == names


@pytest.mark.parametrize(
    ("query", "replaced"),
    [
        ("SELECT t.a FROM t", "SELECT t.a FROM x_t AS `t`"),
        ("select  a\n  from t  -- from t\n where b = 't'", "select  a\n  from x_t AS `t`  -- from t\n where b = 't'"),
        ("SELECT a FROM t AS u JOIN u AS t ON u.k = t.k", "SELECT a FROM x_t AS u JOIN x_u AS t ON u.k = t.k"),
        ("SELECT a FROM t u", "SELECT a FROM x_t u"),
        ("SELECT a FROM t, t AS b", "SELECT a FROM x_t AS `t`, x_t AS b"),
        ("SELECT t FROM t WHERE t.t = 't'", "SELECT t FROM x_t AS `t` WHERE t.t = 't'"),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", "WITH t AS (SELECT * FROM x_t AS `t`) SELECT * FROM t"),
        ("SELECT a FROM t AS s(a, b)", "SELECT a FROM x_t AS s(a, b)"),
        (
            "SELECT x FROM t WHERE x IN (SELECT y FROM u)",
            "SELECT x FROM x_t AS `t` WHERE x IN (SELECT y FROM x_u AS `u`)",
        ),
        ("SELECT 'é', '日本' FROM t", "SELECT 'é', '日本' FROM x_t AS `t`"),
        ("SELECT t.a FROM s . t JOIN `s`.`u v` w", "SELECT t.a FROM x_s.t AS `t` JOIN x_s.`u v` w"),
        ("SELECT a FROM s.`t``u`", "SELECT a FROM x_s.`t``u` AS `t``u`"),
        ("SELECT 1 /* t */ FROM t /* t */", "SELECT 1 /* t */ FROM x_t AS `t` /* t */"),
    ],
)
def test_substitute_tables(query: str, replaced: str) -> None:
    assert substitute_tables(query, lambda name: f"x_{name}") == replaced


def test_a_quoted_name_is_replaced_with_its_backticks() -> None:
    seen: list[str] = []

    def replace(name: str) -> str:
        seen.append(name)
        return "y"

    assert substitute_tables("SELECT a FROM `odd name`", replace) == "SELECT a FROM y AS `odd name`"
    assert seen == ["odd name"]


def test_names_of_three_parts() -> None:
    assert table_names(parse_query("WITH c AS (SELECT 1) SELECT * FROM a.`b`.c JOIN c")) == ["a.b.c"]
    with pytest.raises(NotSupportedError, match="two parts"):
        table_names(parse_query("SELECT * FROM a.b.c.d"))


def test_a_path_must_be_registered() -> None:
    here = World(tables={}, views={}, nodes={}, frontiers={}, epoch=1)
    (name,) = table_names(parse_query("SELECT * FROM delta.`/tmp/t`"))
    with pytest.raises(NotFoundError, match=r"'/tmp/t' is a path.*CREATE TABLE some_name LOCATION '/tmp/t'"):
        here.resolve(name)


@pytest.mark.parametrize(
    ("query", "line", "column"),
    [
        ("SELECT a FROM t WHERE", 1, 22),
        ("SELECT a,\n  FROM t WHERE )", 2, 16),
        ("SELECT a FROM t\nGROUP a", 2, 1),
        ("SELECT (a FROM t", 1, 11),
    ],
)
def test_errors_point_at_the_place(query: str, line: int, column: int) -> None:
    with pytest.raises(SqlError) as caught:
        parse_query(query)
    assert caught.value.line == line
    assert abs((caught.value.column or 0) - column) <= 6, caught.value


@pytest.mark.parametrize("query", ["INSERT INTO t VALUES (1)", "DROP TABLE t", "CREATE TABLE t (a INT)"])
def test_what_is_no_query_is_refused(query: str) -> None:
    with pytest.raises(SqlError, match="expected a query"):
        parse_query(query)


def test_an_empty_query_is_refused() -> None:
    with pytest.raises(SqlError):
        parse_query("  -- nothing")


def test_spark_gets_the_text_as_it_was_written() -> None:
    text = "select  a  -- why\nFROM t"
    assert spark_text(text) == text


@pytest.mark.parametrize("query", ["VALUES (1), (2)", "TABLE t"])
def test_values_is_a_query(query: str) -> None:
    assert table_names(parse_query(query)) == (["t"] if "t" in query else [])
