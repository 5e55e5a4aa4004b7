"""What comes in later work is read, so that mistakes in it are found, and then refused; never ignored."""

from __future__ import annotations

import pytest

from penstock.errors import NotSupportedError, SqlError
from penstock.sql.parser import parse

CLAUSES = [
    "REFRESH ON COMMIT",
    "REFRESH INCREMENTAL",
    "REFRESH IMMEDIATE",
    "REFRESH EVERY 5 SECONDS",
    "REFRESH EVERY 1 MINUTE",
    "REFRESH EVERY HOUR",
    "REFRESH EVERY 2 DAYS",
    "REFRESH CRON '0 * * * *'",
    "REFRESH CRON '0 * * * *' AT TIME ZONE 'Europe/Berlin'",
    "TARGET LAG '5 minutes'",
    "TARGET LAG DOWNSTREAM",
]


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_clause_of_a_later_release(clause: str) -> None:
    for text in (clause, f"{clause} REFRESH POLICY AUTO", f"WITH NO DATA {clause}", clause.lower()):
        with pytest.raises(NotSupportedError, match="is not supported yet"):
            parse(f"CREATE MATERIALIZED VIEW v AS SELECT a FROM t {text}")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER MATERIALIZED VIEW v SUSPEND",
        "ALTER MATERIALIZED VIEW v RESUME",
        "ALTER MATERIALIZED VIEW v REFRESH ON COMMIT",
        "ALTER MATERIALIZED VIEW v REFRESH EVERY 5 MINUTES",
        "ALTER MATERIALIZED VIEW v TARGET LAG '5 minutes'",
        "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT a FROM t REFRESH ON COMMIT",
    ],
)
def test_a_statement_of_a_later_release(text: str) -> None:
    with pytest.raises(NotSupportedError, match="is not supported yet"):
        parse(text)


@pytest.mark.parametrize(
    "clause",
    [
        "REFRESH ON MONDAY",
        "REFRESH EVERY 5 PARSECS",
        "REFRESH CRON hourly",
        "TARGET LAG soon",
        "EMIT AFTER LUNCH",
        "EMIT PERIODICALLY '5 seconds'",
        "ALLOW LATENESS 5",
        "SCHEDULE POLICY LAZY",
        "TARGET LAG '5 minutes' AND MORE",
    ],
)
def test_a_mistake_in_such_a_clause_is_a_syntax_error(clause: str) -> None:
    with pytest.raises(SqlError):
        parse(f"CREATE MATERIALIZED VIEW v AS SELECT a FROM t {clause}")


@pytest.mark.parametrize("clause", ["EMIT NEVER", "EMIT AFTER WATERMARK EMIT ON UPDATE"])
def test_the_choices_of_emit_are_named(clause: str) -> None:
    with pytest.raises(SqlError, match="AFTER WATERMARK, ON UPDATE or PERIODICALLY INTERVAL"):
        parse(f"CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t GROUP BY a {clause}")
    parse("CREATE MATERIALIZED VIEW v AS SELECT emit FROM t WHERE emit > 1 EMIT ON UPDATE")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t SELECT * FROM v AS OF EPOCH 1",
        "CREATE TABLE t AS SELECT * FROM v AS OF EPOCH 1",
        "MERGE INTO t USING v AS OF EPOCH 3 x ON t.a = x.a WHEN MATCHED THEN DELETE",
        "DELETE FROM t WHERE a IN (SELECT a FROM v AS OF TIMESTAMP '2026-01-01')",
    ],
)
def test_the_past_is_for_queries(statement: str) -> None:
    with pytest.raises(SqlError, match="AS OF is for queries, and this statement writes"):
        parse(statement)
    parse("INSERT INTO t SELECT * FROM u VERSION AS OF 3")


def test_a_column_called_watermark_is_a_column() -> None:
    parse("CREATE TABLE t (watermark INT, other INT)")
