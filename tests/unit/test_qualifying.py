"""Names made complete at the door: the current schema before those without one, columns by what tables are called."""

from __future__ import annotations

import pytest

from penstock.sql import statements as s
from penstock.sql.parser import parse
from penstock.sql.qualifying import qualified
from penstock.sql.query import parse_query, table_names


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("SELECT * FROM t", "SELECT * FROM `g`.t"),
        ("TABLE t", "SELECT * FROM `g`.t"),
        ("SELECT t.x FROM T AS t -- t", "SELECT t.x FROM `g`.T AS t -- t"),
        ("SELECT x FROM t JOIN default.t u JOIN s.t", "SELECT x FROM `g`.t JOIN default.t u JOIN s.t"),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t, u", "WITH t AS (SELECT * FROM `g`.t) SELECT * FROM t, `g`.u"),
        ("SELECT (SELECT MAX(x) FROM u) FROM `t`", "SELECT (SELECT MAX(x) FROM `g`.u) FROM `g`.`t`"),
        ("SELECT name FROM penstock.views", "SELECT name FROM penstock.views"),
        ("SELECT x FROM range(3) JOIN t", "SELECT x FROM range(3) JOIN `g`.t"),
        ("SELECT 'FROM t', e FROM t LATERAL VIEW explode(t.a) v AS e",
         "SELECT 'FROM t', e FROM `g`.t LATERAL VIEW explode(t.a) v AS e"),
        ("SELECT g.t.x, t.y FROM t", "SELECT `t`.x, t.y FROM `g`.t"),
        ("SELECT x FROM t AS OF EPOCH 3 JOIN s.t AS OF EPOCH 3 o",
         "SELECT x FROM `g`.t AS OF EPOCH 3 JOIN s.t AS OF EPOCH 3 o"),
        ("SELECT g.t.x FROM t AS OF EPOCH 3 JOIN s.t FOR VERSION AS OF 3",
         "SELECT `g.t`.x FROM `g`.t AS OF EPOCH 3 AS `g.t` JOIN s.t FOR VERSION AS OF 3 AS `s.t`"),
        ("SELECT /*+ BROADCAST(t) */ t.x, s.t.y FROM t JOIN s.t",
         "SELECT /*+ BROADCAST(t) */ `g.t`.x, `s.t`.y FROM `g`.t AS `g.t` JOIN s.t AS `s.t`"),
        ("no query at all (", "no query at all ("),
    ],
)  # fmt: skip
def test_the_current_schema(query: str, meant: str) -> None:
    assert qualified(query, "g") == meant


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("SELECT a.b FROM t", "SELECT a.b FROM t"),
        ("SELECT 'a.b.c', 1.5 FROM t", "SELECT 'a.b.c', 1.5 FROM t"),
        ("SELECT s.t.x FROM s.t WHERE S.T.y = `s`.`t`.z", "SELECT `t`.x FROM s.t WHERE `t`.y = `t`.z"),
        ("SELECT s.t.* FROM s.t", "SELECT `t`.* FROM s.t"),
        ("SELECT default.t.x FROM t", "SELECT `t`.x FROM t"),
        ("SELECT s.t.struct.field.more FROM s.t", "SELECT `t`.struct.field.more FROM s.t"),
        ("SELECT t.struct.field FROM s.t", "SELECT t.struct.field FROM s.t"),
        ("SELECT s.t.x FROM s.t AS t", "SELECT s.t.x FROM s.t AS t"),
        (
            "SELECT a.t.x, t.y FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE b.t.k = a.t.k AND t.z = 1)",
            "SELECT `a.t`.x, `a.t`.y FROM a.t AS `a.t` "
            "WHERE EXISTS (SELECT 1 FROM b.t AS `b.t` WHERE `b.t`.k = `a.t`.k AND `b.t`.z = 1)",
        ),
        ("SELECT c.s.t.x, s.t.y, t.z FROM c.s.t", "SELECT `t`.x, `t`.y, t.z FROM c.s.t"),
        ("SELECT C.S.T.x.more, `c`.s.t.* FROM c.s.t", "SELECT `t`.x.more, `t`.* FROM c.s.t"),
        ("SELECT c.s.t.x, s.t.x FROM c.s.t JOIN s.u", "SELECT `t`.x, `t`.x FROM c.s.t JOIN s.u"),
        (
            "SELECT c.s.t.x, s.t.y FROM c.s.t JOIN d.r.t ON d.r.t.k = c.s.t.k",
            "SELECT `s.t`.x, `s.t`.y FROM c.s.t AS `s.t` JOIN d.r.t AS `r.t` ON `r.t`.k = `s.t`.k",
        ),
        ("WITH t AS (SELECT 1 AS x) SELECT t.x, c.s.t.x FROM t, c.s.t",
         "WITH t AS (SELECT 1 AS x) SELECT t.x, `s.t`.x FROM t, c.s.t AS `s.t`"),
        ("SELECT a.t.x, t.y FROM a.t JOIN b.t", "SELECT `a.t`.x, t.y FROM a.t AS `a.t` JOIN b.t AS `b.t`"),
        ("SELECT a.t.x, t.y FROM a.t JOIN t", "SELECT `a.t`.x, `default.t`.y FROM a.t AS `a.t` JOIN t AS `default.t`"),
        ("SELECT a.t.x FROM a.t JOIN a.t", "SELECT a.t.x FROM a.t JOIN a.t"),
        ("WITH t AS (SELECT 1 AS x) SELECT t.x, a.t.x FROM t, a.t",
         "WITH t AS (SELECT 1 AS x) SELECT t.x, `a.t`.x FROM t, a.t AS `a.t`"),
        ("SELECT t.x, a.t.x FROM (SELECT 1 AS x) t, a.t", "SELECT t.x, `a.t`.x FROM (SELECT 1 AS x) t, a.t AS `a.t`"),
        ("SELECT a.t.x FROM a.t TABLESAMPLE (1 ROWS) JOIN b.t",
         "SELECT `a.t`.x FROM a.t TABLESAMPLE (1 ROWS) AS `a.t` JOIN b.t AS `b.t`"),
        ("SELECT x FROM t WHERE EXISTS (SELECT 1 FROM a.t WHERE x = default.t.x)",
         "SELECT x FROM t AS `default.t` WHERE EXISTS (SELECT 1 FROM a.t WHERE x = `default.t`.x)"),
        ("SELECT x FROM a.t WHERE EXISTS (SELECT 1 FROM VALUES (1) AS t(x) WHERE t.x = a.t.x)",
         "SELECT x FROM a.t AS `a.t` WHERE EXISTS (SELECT 1 FROM VALUES (1) AS t(x) WHERE t.x = `a.t`.x)"),
        ("SELECT a.t.x FROM a.t LATERAL VIEW explode(z) t AS y",
         "SELECT `a.t`.x FROM a.t AS `a.t` LATERAL VIEW explode(z) t AS y"),
        ("SELECT x FROM a.t WHERE EXISTS (WITH t AS (SELECT 1 AS x) SELECT 1 FROM t WHERE t.x = a.t.x)",
         "SELECT x FROM a.t AS `a.t` WHERE EXISTS (WITH t AS (SELECT 1 AS x) SELECT 1 FROM t WHERE t.x = `a.t`.x)"),
        ("SELECT a.t.x, `a.t`.y FROM a.t JOIN `a.t` JOIN t",
         "SELECT `a.t_`.x, `a.t`.y FROM a.t AS `a.t_` JOIN `a.t` JOIN t AS `default.t`"),
        ("SELECT a.`t``s`.x FROM a.`t``s`", "SELECT `t``s`.x FROM a.`t``s`"),
    ],
)  # fmt: skip
def test_columns_told_by_schema(query: str, meant: str) -> None:
    assert qualified(query, "default") == meant


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CREATE TABLE t AS SELECT * FROM u", "g.t"),
        ("CREATE MATERIALIZED VIEW t AS SELECT * FROM u REFRESH ON COMMIT", "g.t"),
        ("CREATE VIEW `default`.t AS SELECT * FROM u", "t"),
        ("CREATE VIEW `odd one`.t AS SELECT * FROM u", "`odd one`.t"),
    ],
)
def test_what_is_created_is_in_the_current_schema(text: str, name: str) -> None:
    statement = parse(text, "g")
    assert isinstance(statement, s.CreateTable | s.CreateView | s.CreatePlainView)
    assert statement.name == name
    assert table_names(parse_query(statement.query or "")) == ["g.u"]


@pytest.mark.parametrize(
    ("text", "target", "rest"),
    [
        ("INSERT INTO t SELECT * FROM u", "g.t", " SELECT * FROM `g`.u"),
        ("UPDATE s . t SET x = (SELECT MAX(x) FROM u)", "s.t", " SET x = (SELECT MAX(x) FROM `g`.u)"),
        ("DELETE FROM `a.b` WHERE g.`a.b`.x = 1", "g.`a.b`", " WHERE `a.b`.x = 1"),
        ("MERGE INTO t USING s.t ON g.t.x = s.t.x WHEN MATCHED THEN DELETE", "g.t",
         " AS `g.t` USING s.t AS `s.t` ON `g.t`.x = `s.t`.x WHEN MATCHED THEN DELETE"),
        ("OPTIMIZE t", "g.t", ""),
        ("DESCRIBE HISTORY t", "g.t", ""),
    ],
)  # fmt: skip
def test_statements_on_tables(text: str, target: str, rest: str) -> None:
    statement = parse(text, "g")
    assert isinstance(statement, s.TableStatement)
    assert (statement.target, statement.text[statement.target_span[1] :]) == (target, rest)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE SCHEMA g", s.CreateSchema("", "g")),
        ("create schema if not exists `a b`", s.CreateSchema("", "a b", True)),
        ("DROP SCHEMA g", s.DropSchema("", "g")),
        ("DROP SCHEMA IF EXISTS g RESTRICT", s.DropSchema("", "g", True)),
        ("DROP SCHEMA g CASCADE", s.DropSchema("", "g", False, True)),
        ("USE g", s.UseSchema("", "g")),
        ("USE SCHEMA g", s.UseSchema("", "g")),
        ("USE schema", s.UseSchema("", "schema")),
        ("SHOW SCHEMAS", s.ShowSchemas("")),
        ("SHOW TABLES", s.ShowTables("")),
        ("SHOW TABLES IN g", s.ShowTables("", "g")),
        ("SHOW VIEWS FROM `a b`", s.ShowPlainViews("", "a b")),
        ("SHOW MATERIALIZED VIEWS IN g", s.ShowViews("", "g")),
        ("SHOW READ MODELS IN g", s.ShowModels("", "g")),
        ("SHOW REFRESH HISTORY FOR g.t LIMIT 3", s.ShowHistory("", "g.t", 3)),
        ("DROP MATERIALIZED VIEW g.`a.b` CASCADE", s.DropView("", "g.`a.b`", False, True)),
        ("REPLAY LATE ROWS FOR g.t", s.ReplayLate("", "g.t")),
    ],
)
def test_forms(text: str, statement: s.Statement) -> None:
    found = parse(text)
    assert {**vars(found), "text": ""} == vars(statement)
    assert type(found) is type(statement)
