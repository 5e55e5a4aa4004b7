"""sql and refresh: statements in, tables and JSON out, errors with their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlglot
from command import Run

import penstock

VALUES = """
    SELECT 1 AS n, 'a [b]' AS s, CAST(1.50 AS DECIMAL(4,2)) AS d, DATE '2026-01-02' AS day,
        TIMESTAMP '2026-01-02 03:04:05.5' AS at, CAST(NULL AS STRING) AS missing, 2 AS n, X'0aff' AS raw,
        array(1.5BD, NULL) AS list, struct(1 AS a, DATE '2026-01-03' AS b) AS pair, map(7, double('NaN')) AS m,
        true AS t
"""


def test_rows_as_a_table(run: Run, db: penstock.Database, warehouse: Path) -> None:
    shown = run("sql", VALUES, "-w", warehouse)
    assert shown.exit_code == 0
    header, row, caption = shown.stdout.splitlines()
    assert header.split() == "n s d day at missing n raw list pair m t".split()
    assert row.split("  ")[0] == "1"
    for text in ("a [b]", "1.50", "2026-01-02 03:04:05.5", "NULL", "0aff", "[1.5, null]", "{1, 2026-01-03}", "true"):
        assert text in row
    assert caption == "(1 row)"


def test_numbers_are_on_the_right_and_text_on_the_left(run: Run, db: penstock.Database, warehouse: Path) -> None:
    statement = "SELECT * FROM VALUES (1, 'a'), (1000, 'bcd') AS t(number, letters) ORDER BY number"
    assert run("sql", statement, "-w", warehouse).stdout.splitlines()[:3] == [
        "number  letters",
        "     1  a      ",
        "  1000  bcd    ",
    ]


def test_rows_as_json(run: Run, db: penstock.Database, warehouse: Path) -> None:
    shown = run("sql", VALUES, "--json", "-w", warehouse)
    assert json.loads(shown.stdout) == [
        {
            "n": 1, "s": "a [b]", "d": "1.50", "day": "2026-01-02", "at": "2026-01-02 03:04:05.5", "missing": None,
            "n_2": 2, "raw": "0aff", "list": ["1.5", None], "pair": {"a": 1, "b": "2026-01-03"}, "m": {"7": "NaN"},
            "t": True,
        }
    ]  # fmt: skip


def test_what_is_not_shown_is_counted(run: Run, db: penstock.Database, warehouse: Path) -> None:
    shown = run("sql", "SELECT id FROM range(1250) ORDER BY id", "--limit", "3", "-w", warehouse)
    assert shown.stdout.split()[:4] == ["id", "0", "1", "2"]
    assert "(3 rows shown, 1,247 more" in shown.stdout
    assert len(json.loads(run("sql", "--json", "SELECT id FROM range(250)", "-w", warehouse).stdout)) == 250
    assert len(json.loads(run("sql", "--json", "-n", 5, "SELECT id FROM range(250)", "-w", warehouse).stdout)) == 5


def test_a_script_from_a_file_and_from_the_standard_input(
    run: Run, db: penstock.Database, warehouse: Path, tmp_path: Path
) -> None:
    (tmp_path / "make.sql").write_text("-- a table;\nCREATE TABLE t (s STRING);\nINSERT INTO t VALUES ('a;b')\n;\n")
    assert run("sql", "-f", "make.sql", "-w", warehouse).exit_code == 0
    piped = run("sql", "--json", "-w", warehouse, input="SELECT s FROM t; DELETE FROM t;")
    rows, done = (json.loads(line) for line in piped.stdout.splitlines())
    assert rows == [{"s": "a;b"}]
    assert done["rows"] == 1


def test_the_first_failing_statement_ends_the_run_and_says_where_it_is(
    run: Run, db: penstock.Database, warehouse: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.sql").write_text("SELECT 1 AS one;\n\nSELECT 1 / 0;\nCREATE TABLE never (id INT)")
    shown = run("sql", "-f", "bad.sql", "-w", warehouse)
    assert shown.exit_code == 1
    assert "one" in shown.stdout
    assert shown.stderr.startswith("error: in statement 2, which begins in line 3 of bad.sql: ")
    assert "DIVIDE_BY_ZERO" in shown.stderr
    assert db.graph().nodes == ()


def test_statements_are_read_before_the_first_one_runs(run: Run, tmp_path: Path) -> None:
    shown = run("sql", "CREATE TABLE t (id INT);\nSELEC 1")
    assert shown.exit_code == 1
    assert shown.stderr.startswith("error: in statement 2, which begins in line 2: ")
    assert not (tmp_path / "warehouse").exists()


def test_nothing_to_run(run: Run, tmp_path: Path) -> None:
    assert run("sql", " ; ").exit_code == 1
    assert run("sql", input="-- nothing\n").exit_code == 0
    assert run("sql", "SELECT 1", "-f", "x.sql").exit_code == 2
    missing = run("sql", "-f", "x.sql")
    assert missing.exit_code == 1
    assert missing.stderr == "error: the file 'x.sql' cannot be read: No such file or directory.\n"
    assert not (tmp_path / "warehouse").exists()


def test_refresh_tells_what_it_did_to_each_view(run: Run, db: penstock.Database, warehouse: Path) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("CREATE MATERIALIZED VIEW doubled AS SELECT a * 2 AS b FROM t")
    db.sql("INSERT INTO t VALUES (1), (2)")
    header, line = run("refresh", "-w", warehouse).stdout.splitlines()
    assert header.split() == "view action strategy reason +rows -rows seconds".split()
    assert line.split()[:6] == "doubled INCREMENTAL APPEND CHANGED 2 0".split()
    report = json.loads(run("refresh", "doubled", "--full", "--json", "-w", warehouse).stdout)
    assert [(v["action"], v["reason"]) for v in report["views"]] == [("FULL", "REQUESTED")]
    assert report["epoch"] == db.history(limit=1)[0].epoch


def test_a_failed_view_is_told_and_the_others_are_refreshed(run: Run, db: penstock.Database, warehouse: Path) -> None:
    db.sql("CREATE TABLE t (a STRING)")
    db.sql("CREATE MATERIALIZED VIEW numbers AS SELECT CAST(a AS INT) AS n FROM t")
    db.sql("CREATE MATERIALIZED VIEW texts AS SELECT a FROM t")
    db.sql("INSERT INTO t VALUES ('x')")
    shown = run("refresh", "-w", warehouse)
    assert shown.exit_code == 1
    outcome = {line.split()[0]: line.split()[-1] for line in shown.stdout.splitlines()}
    assert outcome == {"view": "status", "numbers": "FAILED", "texts": "SUCCEEDED"}
    assert shown.stderr.startswith("error: view 'numbers' failed to refresh: [CAST_INVALID_INPUT]")
    again = run("refresh", "--json", "-w", warehouse)
    assert again.exit_code == 1
    assert {v["name"]: v["status"] for v in json.loads(again.stdout)["views"]}["numbers"] == "FAILED"
    by_statement = run("sql", "REFRESH MATERIALIZED VIEW numbers", "-w", warehouse)
    assert by_statement.exit_code == 1
    assert by_statement.stderr.startswith("error: view 'numbers' failed to refresh: [CAST_INVALID_INPUT]")


def test_creating_views_by_a_script_parses_each_text_once(
    run: Run, db: penstock.Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though every statement is read before the first one runs."""
    db.sql("CREATE TABLE parsed (id INT)")
    queries = [f"SELECT id + {number} AS counted FROM parsed" for number in (91, 92)]
    texts: list[str] = []
    parse = sqlglot.parse

    def counted(text: str, *arguments: object, **options: object) -> object:
        texts.append(text)
        return parse(text, *arguments, **options)

    monkeypatch.setattr(sqlglot, "parse", counted)
    script = "; ".join(f"CREATE MATERIALIZED VIEW v{i} AS {text}" for i, text in enumerate(queries))
    assert run("sql", script, "-w", warehouse).exit_code == 0
    assert [text for text in texts if any(query in text for query in queries)] == queries
