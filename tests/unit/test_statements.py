"""Statements: every form that is supported becomes the right value."""

from __future__ import annotations

import pytest

from penstock.errors import SqlError
from penstock.sql import statements as s
from penstock.sql.parser import parse
from penstock.sql.triggers import Trigger
from penstock.vocabulary import Policy


def view(text: str) -> s.CreateView:
    statement = parse(text)
    assert isinstance(statement, s.CreateView)
    return statement


@pytest.mark.parametrize(
    "text",
    ["SELECT 1", "select a from t;", "WITH a AS (SELECT 1) SELECT * FROM a", "VALUES (1), (2)", "(SELECT 1) UNION (SELECT 2)",  # noqa: E501
     "FROM t SELECT a", "TABLE t", "-- why\nSELECT 1", "/* why */ SELECT 1"],
)  # fmt: skip
def test_queries(text: str) -> None:
    assert isinstance(parse(text), s.Query)


@pytest.mark.parametrize(
    ("text", "verb", "target", "rows"),
    [
        ("INSERT INTO t VALUES (1)", "INSERT", "t", False),
        ("INSERT INTO TABLE t VALUES (1)", "INSERT", "t", False),
        ("INSERT OVERWRITE t SELECT * FROM u", "INSERT", "t", False),
        ("INSERT OVERWRITE TABLE t SELECT * FROM u", "INSERT", "t", False),
        ("insert into `Odd Name` (a, b) values (1, 2)", "INSERT", "Odd Name", False),
        ("UPDATE t SET a = 1 WHERE b = 2", "UPDATE", "t", False),
        ("UPDATE t AS x SET x.a = 1", "UPDATE", "t", False),
        ("DELETE FROM t WHERE a = 1", "DELETE", "t", False),
        ("MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN DELETE", "MERGE", "t", False),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING u ON t.k = u.k WHEN MATCHED THEN DELETE", "MERGE", "t", False),
        ("TRUNCATE TABLE t", "TRUNCATE", "t", False),
        ("ALTER TABLE t ADD COLUMN c INT", "ALTER", "t", False),
        ("OPTIMIZE t", "OPTIMIZE", "t", True),
        ("RESTORE TABLE t TO VERSION AS OF 1", "RESTORE", "t", True),
        ("RESTORE t TO VERSION AS OF 1", "RESTORE", "t", True),
        ("VACUUM t RETAIN 0 HOURS", "VACUUM", "t", True),
        ("DESCRIBE HISTORY t", "DESCRIBE HISTORY", "t", True),
        ("DESCRIBE DETAIL t", "DESCRIBE DETAIL", "t", True),
        ("DESC HISTORY t", "DESCRIBE HISTORY", "t", True),
        ("DESCRIBE EXTENDED t", "DESCRIBE", "t", True),
        ("DESC TABLE EXTENDED t", "DESCRIBE", "t", True),
        ("DESCRIBE TABLE t", "DESCRIBE", "t", True),
        ("DESC t", "DESCRIBE", "t", True),
        ("SHOW TBLPROPERTIES t", "SHOW TBLPROPERTIES", "t", True),
    ],
)
def test_statements_on_a_table(text: str, verb: str, target: str, rows: bool) -> None:
    statement = parse(text)
    assert isinstance(statement, s.TableStatement)
    assert (statement.verb, statement.target, statement.returns_rows) == (verb, target, rows)
    start, end = statement.target_span
    assert statement.text[start:end].strip("`") == target
    assert statement.writes == (verb.split()[0] not in ("DESCRIBE", "SHOW"))


def test_create_table() -> None:
    statement = parse("CREATE TABLE IF NOT EXISTS t (a INT NOT NULL, b DECIMAL(10,2) COMMENT 'x, y')")
    assert statement == s.CreateTable(
        "CREATE TABLE IF NOT EXISTS t (a INT NOT NULL, b DECIMAL(10,2) COMMENT 'x, y')", name="t", if_not_exists=True,
        columns="a INT NOT NULL, b DECIMAL(10,2) COMMENT 'x, y'", options="", query=None, location=None,
    )  # fmt: skip


def test_create_table_with_everything() -> None:
    statement = parse(
        "CREATE TABLE t (a INT, b STRING) USING delta PARTITIONED BY (b) COMMENT 'hm' "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false') LOCATION '/data/t'"
    )
    assert isinstance(statement, s.CreateTable)
    assert statement.location == "/data/t"
    assert statement.options == (
        "PARTITIONED BY (b) COMMENT 'hm' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')"
    )
    assert (statement.if_not_exists, statement.query) == (False, None)


@pytest.mark.parametrize("text", ["CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE t USING delta AS SELECT 1 AS a"])
def test_create_table_as(text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, s.CreateTable)
    assert (statement.name, statement.query, statement.columns) == ("t", "SELECT 1 AS a", "")


def test_register_a_table() -> None:
    statement = parse("CREATE TABLE t LOCATION '/data/it''s'")
    assert isinstance(statement, s.CreateTable)
    assert (statement.location, statement.columns) == ("/data/it's", "")


@pytest.mark.parametrize(
    ("text", "if_exists", "cascade"),
    [("DROP TABLE t", False, False), ("DROP TABLE IF EXISTS t", True, False), ("DROP TABLE t CASCADE", False, True)],
)
def test_drop_table(text: str, if_exists: bool, cascade: bool) -> None:
    assert parse(text) == s.DropTable(text, "t", if_exists, cascade)


def test_create_view_in_short() -> None:
    text = "CREATE MATERIALIZED VIEW v AS SELECT a FROM t"
    assert view(text) == s.CreateView(text, name="v", query="SELECT a FROM t")


def test_create_view_with_every_clause_that_is_supported() -> None:
    found = view(
        "CREATE OR REPLACE MATERIALIZED VIEW v (a COMMENT 'the a', `b c`) COMMENT 'it''s' TBLPROPERTIES ('x.y' = 'z', n = 3) "  # noqa: E501
        "AS SELECT a, b FROM t WHERE c = 'REFRESH POLICY' REFRESH MANUAL REFRESH POLICY INCREMENTAL STRICT WITH NO DATA;"  # noqa: E501
    )
    assert found.columns == (("a", "the a"), ("b c", None))
    assert (found.comment, found.properties) == ("it's", (("x.y", "z"), ("n", "3")))
    assert found.query == "SELECT a, b FROM t WHERE c = 'REFRESH POLICY'"
    assert (found.trigger, found.policy, found.initialize) == (Trigger(), "INCREMENTAL STRICT", False)
    assert (found.or_replace, found.if_not_exists) == (True, False)


def test_create_view_if_not_exists() -> None:
    found = view("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT a FROM t")
    assert (found.or_replace, found.if_not_exists) == (False, True)


def test_or_replace_and_if_not_exists_exclude_each_other() -> None:
    with pytest.raises(SqlError, match="exclude"):
        parse("CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT a FROM t")


@pytest.mark.parametrize("policy", list(Policy))
def test_policies(policy: str) -> None:
    assert view(f"CREATE MATERIALIZED VIEW v AS SELECT a FROM t REFRESH POLICY {policy}").policy == policy


@pytest.mark.parametrize(
    "query",
    [
        "SELECT refresh FROM t",
        "SELECT a AS refresh FROM t",
        "SELECT a FROM t refresh",
        "SELECT a FROM t target",
        "SELECT refresh, policy, target, lag, emit, consistency, schedule, buckets, cron FROM t",
        "SELECT t.refresh FROM t ORDER BY refresh",
        "SELECT buckets FROM t WHERE buckets > 3",
        "SELECT a FROM t WHERE x IN (SELECT refresh FROM u)",
        "SELECT 'REFRESH MANUAL' AS a FROM t",
        "SELECT a FROM t -- REFRESH MANUAL",
        "SELECT `refresh` manual FROM t",
        "WITH no AS (SELECT 1 AS data) SELECT data FROM no",
        "SELECT a FROM emit JOIN target ON emit.on = target.lag",
        "SELECT target lag, a FROM t",
        "(SELECT a FROM t)",
    ],
)
@pytest.mark.parametrize("clauses", ["", " REFRESH MANUAL", "\nREFRESH POLICY FULL\nWITH NO DATA"])
def test_columns_named_like_clause_words(query: str, clauses: str) -> None:
    if "--" in query and not clauses.startswith("\n"):
        clauses = clauses.replace(" ", "\n", 1)
    found = view(f"CREATE MATERIALIZED VIEW v AS {query}{clauses}")
    assert found.query == query.split(" --")[0]
    assert found.policy == ("FULL" if "FULL" in clauses else "AUTO")
    assert found.initialize == ("NO DATA" not in clauses)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("REFRESH MATERIALIZED VIEW v", s.RefreshView("", "v", False)),
        ("REFRESH MATERIALIZED VIEW `my v` FULL", s.RefreshView("", "my v", True)),
        ("ALTER MATERIALIZED VIEW v REFRESH POLICY FULL", s.AlterView("", name="v", policy="FULL")),
        ("ALTER MATERIALIZED VIEW v REFRESH MANUAL", s.AlterView("", name="v", trigger=Trigger())),
        ("DROP MATERIALIZED VIEW v", s.DropView("", "v", False, False)),
        ("DROP MATERIALIZED VIEW IF EXISTS v RESTRICT", s.DropView("", "v", True, False)),
        ("DROP MATERIALIZED VIEW v CASCADE", s.DropView("", "v", False, True)),
        ("SHOW TABLES", s.ShowTables("")),
        ("SHOW MATERIALIZED VIEWS", s.ShowViews("")),
        ("SHOW DEPENDENCIES FOR v", s.ShowDependencies("", "v")),
        ("SHOW REFRESH HISTORY", s.ShowHistory("", None, None)),
        ("SHOW REFRESH HISTORY FOR v LIMIT 5", s.ShowHistory("", "v", 5)),
        ("show refresh history limit 2", s.ShowHistory("", None, 2)),
        ("DESCRIBE MATERIALIZED VIEW v", s.DescribeView("", "v")),
        ("DESC MATERIALIZED VIEW v", s.DescribeView("", "v")),
        ("DESCRIBE MATERIALIZED VIEW EXTENDED v", s.DescribeView("", "v")),
        ("SHOW CREATE MATERIALIZED VIEW v", s.ShowCreate("", "v", True)),
        ("show create table `my t`", s.ShowCreate("", "my t", False)),
        ("EXPLAIN MATERIALIZED VIEW v", s.ExplainView("", "v")),
        ("EXPLAIN SELECT 1", s.ExplainQuery("", "SELECT 1", "simple")),
        ("EXPLAIN EXTENDED SELECT 1", s.ExplainQuery("", "SELECT 1", "extended")),
    ],
)
def test_other_statements(text: str, statement: s.Statement) -> None:
    found = parse(text)
    assert type(found) is type(statement)
    assert {**vars(found), "text": ""} == vars(statement)


@pytest.mark.parametrize(
    ("text", "only_reads"),
    [
        ("SELECT 1", True),
        ("SHOW CHECKPOINTS", True),
        ("DESCRIBE t", True),
        ("DESCRIBE HISTORY t", True),
        ("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1 AS a", True),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 AS a", False),
        ("INSERT INTO t VALUES (1)", False),
        ("OPTIMIZE t", False),
        ("VACUUM", False),
        ("SET retention = '1 day'", False),
        ("ALTER TABLE t DROP WATERMARK", False),
        ("REFRESH MATERIALIZED VIEW v", False),
    ],
)
def test_whether_a_statement_changes_anything(text: str, only_reads: bool) -> None:
    assert parse(text).only_reads == only_reads


def test_explain_create() -> None:
    found = parse("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT a FROM t REFRESH POLICY FULL")
    assert isinstance(found, s.ExplainCreate)
    assert (found.create.name, found.create.query, found.create.policy) == ("v", "SELECT a FROM t", "FULL")


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("FOO", 1, 1, "found 'FOO'"),
        ("CREATE INDEX v AS SELECT 1", 1, 1, "found 'CREATE'"),
        (
            "CREATE MATERIALIZED VIEW v SELECT 1",
            1,
            28,
            "expected AS and a query, or a clause such as COMMENT",
        ),
        ("CREATE MATERIALIZED VIEW v AS", 1, 30, "expected a query"),
        ("CREATE MATERIALIZED\nVIEW 5 AS SELECT 1", 2, 6, "the name of the view"),
        ("CREATE MATERIALIZED VIEW a.b.c.d AS SELECT 1", 1, 26, "two parts"),
        ("CREATE MATERIALIZED VIEW a. AS SELECT 1", 1, 32, "expected AS"),
        ("CREATE MATERIALIZED VIEW v (a b) AS SELECT 1", 1, 31, "expected )"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 FROM t REFRESH EVERY 5 PARSECS", 1, 63, "expected SECOND"),
        ("CREATE MATERIALIZED VIEW v AS\nSELECT 1 FROM t\n  REFRESH POLICY FAST", 3, 18, "expected AUTO"),
        ("CREATE MATERIALIZED VIEW v AS SELECT a FROM t TARGET LAG 5", 1, 58, "expected a lag"),
        ("CREATE TABLE t (a INT) USING parquet", 1, 30, "Delta"),
        ("CREATE TABLE t (a INT) SORTED BY (a)", 1, 24, "expected LOCATION"),
        ("CREATE TABLE t (a INT", 1, 22, "expected )"),
        ("DROP MATERIALIZED VIEW v SOON", 1, 26, "does not belong here"),
        ("DROP TABLE t FORCE", 1, 14, "does not belong here"),
        ("REFRESH MATERIALIZED VIEW", 1, 26, "the name of the view"),
        ("ALTER MATERIALIZED VIEW v", 1, 26, "expected REFRESH"),
        ("ALTER MATERIALIZED VIEW v MOVE TO w", 1, 27, "found 'MOVE'"),
        ("SHOW REFRESH HISTORY LIMIT many", 1, 28, "a whole number"),
        ("SHOW DEPENDENCIES v", 1, 1, "expected SHOW DEPENDENCIES FOR"),
        ("SELECT 1;\n SELECT 2", 2, 2, "one statement at a time"),
        ("EXPLAIN", 1, 8, "expected MATERIALIZED VIEW and a name, or a query"),
    ],
)
def test_syntax_errors_point_at_the_place(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in str(caught.value)
    shown, pointer = str(caught.value).splitlines()[1:]
    assert shown == "  " + text.splitlines()[line - 1]
    assert pointer == "  " + " " * (column - 1) + "^"


@pytest.mark.parametrize("text", ["", "  \n", ";", "-- a comment", "/* a */;"])
def test_an_empty_statement(text: str) -> None:
    with pytest.raises(SqlError, match="empty"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SELCT 1", "SELECT"),
        ("CREATE MATERIALISED VIEW v AS SELECT 1", "CREATE MATERIALIZED VIEW"),
        ("DROP MATERIALIZED VEIW v", "DROP MATERIALIZED VIEW"),
        ("DROP VEW v", "DROP VIEW"),
        ("DELET FROM t", "DELETE FROM"),
    ],
)
def test_a_misspelled_statement_is_told_what_is_meant(text: str, meant: str) -> None:
    with pytest.raises(SqlError, match=rf"^line 1, column 1: .*, found '\w+'\. Did you mean {meant}\?\n"):
        parse(text)


@pytest.mark.parametrize("text", ["GRANT x", "SHOW", "CREATE INDEX i ON t (a)"])
def test_nothing_is_suggested_where_nothing_is_alike(text: str) -> None:
    with pytest.raises(SqlError, match="expected a query, or a statement on tables or materialized views"):
        parse(text)
