"""Clauses about time: when a view refreshes, how old it may get; and what is refused, never ignored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import SqlError
from penstock.sql import statements as s
from penstock.sql.clauses import trigger_of
from penstock.sql.parser import parse
from penstock.sql.triggers import Trigger
from penstock.vocabulary import When

M = 60 * 10**6
TRIGGERS = {
    "REFRESH MANUAL": Trigger(),
    "REFRESH ON COMMIT": Trigger(when=When.ON_COMMIT),
    "REFRESH INCREMENTAL": Trigger(when=When.ON_COMMIT),
    "TRIGGER ON UPDATE": Trigger(when=When.ON_COMMIT),
    "TRIGGER ON UPDATE AT MOST EVERY INTERVAL 1 MINUTE": Trigger(when=When.ON_COMMIT, length=M),
    "TRIGGER ON UPDATE AT MOST EVERY INTERVAL '90 seconds'": Trigger(when=When.ON_COMMIT, length=3 * M // 2),
    "REFRESH EVERY 5 SECONDS": Trigger(when=When.EVERY, length=M // 12),
    "REFRESH EVERY 1 MINUTE": Trigger(when=When.EVERY, length=M),
    "REFRESH EVERY HOUR": Trigger(when=When.EVERY, length=60 * M),
    "REFRESH EVERY 2 DAYS": Trigger(when=When.EVERY, length=2 * 24 * 60 * M),
    "REFRESH EVERY 1 WEEK": Trigger(when=When.EVERY, length=7 * 24 * 60 * M),
    "SCHEDULE EVERY 1 HOUR": Trigger(when=When.EVERY, length=60 * M),
    "SCHEDULE REFRESH EVERY 6 HOURS": Trigger(when=When.EVERY, length=6 * 60 * M),
    "REFRESH CRON '0  * * * *'": Trigger(when=When.CRON, cron="0 * * * *"),
    "SCHEDULE CRON '0 0 6 ? * MON-FRI' AT TIME ZONE 'Europe/Berlin'": Trigger(
        when=When.CRON, cron="0 0 6 ? * MON-FRI", zone="Europe/Berlin"
    ),
}


@pytest.mark.parametrize("clause", TRIGGERS)
def test_when_a_view_refreshes(clause: str) -> None:
    """Before AS and after the query, among other clauses, in any case of letters; and read again from its own text."""
    wanted = TRIGGERS[clause]
    for text in (
        f"AS SELECT a FROM t {clause}", f"{clause} AS SELECT a FROM t", f"COMMENT 'c' {clause} AS SELECT a FROM t",
        f"AS SELECT a FROM t WITH NO DATA {clause} REFRESH POLICY AUTO PRIORITY 3",
    ):  # fmt: skip
        found = parse(f"CREATE MATERIALIZED VIEW v {text}")
        assert isinstance(found, s.CreateView)
        assert (found.trigger, found.query) == (wanted, "SELECT a FROM t")
    assert trigger_of(str(wanted)) == wanted
    for words in ("", "ADD ", "ALTER ") if not clause.startswith("REFRESH") else ("",):
        altered = parse(f"ALTER MATERIALIZED VIEW v {words}{clause}")
        assert altered == s.AlterView(altered.text, name="v", trigger=wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SUSPEND", s.SuspendView("", "v", True)),
        ("RESUME", s.SuspendView("", "v", False)),
        ("DROP SCHEDULE", s.AlterView("", name="v", trigger=Trigger())),
        ("drop trigger", s.AlterView("", name="v", trigger=Trigger())),
        ("DROP TARGET LAG", s.AlterView("", name="v", lag=s.NONE)),
        ("TARGET LAG '5 minutes'", s.AlterView("", name="v", lag=5 * M)),
        ("TARGET LAG DOWNSTREAM", s.AlterView("", name="v", lag="DOWNSTREAM")),
        (
            "SET TBLPROPERTIES ('team' = 'sales', 'penstock.state' = 'beside')",
            s.AlterView("", name="v", properties=(("team", "sales"), ("penstock.state", "beside"))),
        ),
        ("UNSET TBLPROPERTIES ('team', 'b')", s.AlterView("", name="v", properties=(("team", None), ("b", None)))),
        ("PRIORITY 7", s.AlterView("", name="v", priority=7)),
        ("PRIORITY 0", s.AlterView("", name="v", priority=0)),
        ("PRIORITY -2", s.AlterView("", name="v", priority=-2)),
    ],
)
def test_what_can_be_altered(text: str, wanted: s.Statement) -> None:
    found = parse(f"ALTER MATERIALIZED VIEW v {text}")
    assert replace(found, text="") == wanted


def test_or_refresh_is_or_replace() -> None:
    found = parse("create or refresh materialized view v as select a from t")
    assert isinstance(found, s.CreateView)
    assert found.or_replace


def test_lags_and_priorities() -> None:
    found = parse("CREATE MATERIALIZED VIEW v TARGET LAG '5 minutes' AS SELECT a FROM t PRIORITY 2")
    assert isinstance(found, s.CreateView)
    assert (found.options.lag, found.options.priority) == (5 * M, 2)
    assert str(found.options) == "TARGET LAG '5 minutes' PRIORITY 2"


def test_immediate() -> None:
    found = parse("CREATE MATERIALIZED VIEW v AS SELECT a FROM t REFRESH IMMEDIATE")
    assert isinstance(found, s.CreateView)
    assert str(found.trigger) == "IMMEDIATE"


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("REFRESH CRON '61 * * * *'", "no cron expression"),
        ("REFRESH CRON '0 0 30 2 *'", "no cron expression"),
        ("REFRESH CRON '0 6 * * *' AT TIME ZONE 'Mars/Olympus'", "time zone 'Mars/Olympus' is unknown"),
        ("REFRESH EVERY 6000 WEEKS", "between a second and a century; .*, found '6000'"),
        ("REFRESH EVERY 0 MINUTES", "between a second and a century; or write REFRESH ON COMMIT, or MANUAL, found '0'"),
        ("TARGET LAG '0 minutes'", "expected a lag"),
        ("TARGET LAG '6000 weeks'", "expected a lag"),
        ("TRIGGER ON UPDATE AT MOST EVERY INTERVAL '99999999999 weeks'", "expected an interval"),
        ("REFRESH ON COMMIT REFRESH MANUAL", "a second time"),
        ("REFRESH EVERY 1 HOUR SCHEDULE CRON '0 6 * * *'", "a second time"),
        ("TARGET LAG '1 hour' TARGET LAG DOWNSTREAM", "a second time"),
    ],
)
def test_what_cannot_be(clause: str, said: str) -> None:
    for text in (f"AS SELECT a FROM t {clause}", f"{clause} AS SELECT a FROM t"):
        with pytest.raises(SqlError, match=said):
            parse(f"CREATE MATERIALIZED VIEW v {text}")


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
