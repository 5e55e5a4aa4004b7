"""status, graph, history and explain: what they print, for people and for machines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import Run

import penstock

COMMANDS = (("status",), ("graph",), ("history",), ("explain", "totals"))


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_status_tells_how_each_view_is_maintained_and_what_became_of_its_last_refresh(run: Run, stocked: Path) -> None:
    shown = run("status", "-w", stocked)
    assert shown.exit_code == 0
    rows = {line.split()[0]: line for line in lines(shown.stdout)}
    assert rows["totals"].startswith("totals Orders incrementally INCREMENTAL")
    assert rows["whole"].startswith("whole Orders full: POLICY_FULL FULL")
    assert rows["shares"].startswith("shares totals, large incrementally")
    assert rows["Notes"].startswith("Notes Orders incrementally FAILED")
    assert "cannot be cast" in rows["Notes:"]


def test_status_for_machines(run: Run, stocked: Path) -> None:
    views = {view["name"]: view for view in json.loads(run("status", "--json", "-w", stocked).stdout)}
    assert views["totals"]["last_action"] == "INCREMENTAL"
    assert views["Notes"]["last_status"] == "FAILED"
    assert views["totals"]["frontier"]["Orders"] == views["Notes"]["frontier"]["Orders"] + 1


def test_graph_shows_a_view_under_each_of_its_inputs_and_marks_the_second_time(run: Run, stocked: Path) -> None:
    shown = run("graph", "-w", stocked).stdout
    assert re.sub(r", [0-9][^,]* old", ", fresh", shown).splitlines() == [
        "Orders  table",
        "├── totals  view, fresh",
        "│   ├── large  view, fresh",
        "│   │   └── shares  view, fresh, also reads totals",
        "│   └── shares  view, fresh, also reads large  (again)",
        "├── whole  view, fresh",
        "└── Notes  view, its last refresh failed",
    ]


def test_graph_for_machines(run: Run, stocked: Path) -> None:
    graph = json.loads(run("graph", "--json", "-w", stocked).stdout)
    assert ["totals", "shares"] in graph["edges"]
    table, *views = graph["nodes"]
    assert {name: table[name] for name in ("name", "kind", "reads", "readers")} == {
        "name": "Orders", "kind": "table", "reads": [], "readers": ["totals", "whole", "Notes"],
    }  # fmt: skip
    assert [view["name"] for view in views if view["failed"]] == ["Notes"]


def test_history_is_newest_first_and_limited(run: Run, stocked: Path) -> None:
    shown = lines(run("history", "NOTES", "-w", stocked).stdout)
    assert shown[0].startswith("epoch view started action")
    assert " Notes " in shown[1]
    assert "FAILED - ERROR 0 0" in shown[1]
    assert "FULL OVERWRITE INITIAL 3 0" in shown[2]
    assert "cannot be cast" in shown[3]
    cut = run("history", "--limit", "2", "-w", stocked).stdout
    assert "There are older refreshes" in cut
    newest = json.loads(run("history", "--limit", "2", "--json", "-w", stocked).stdout)
    assert [record["view"] for record in newest] == ["Notes", "whole"]
    assert newest[0]["started_at"].endswith("+00:00")


def test_explain_shows_rules_and_inputs_and_the_reason_for_full(run: Run, stocked: Path) -> None:
    shown = run("explain", "shares", "-w", stocked).stdout
    assert lines(shown)[0] == "shares: maintained incrementally (policy AUTO)"
    assert "rule join" in lines(shown)
    assert "inputs totals, large" in lines(shown)
    full = json.loads(run("explain", "whole", "--json", "-w", stocked).stdout)
    assert full["reason_code"] == "POLICY_FULL"
    assert full["verdict"] == "recomputed in full at every refresh, because of the policy FULL (POLICY_FULL)"
    assert full["constructs"] == [], "a policy is no construct"


def test_what_is_too_long_for_the_terminal_goes_on_below_itself(
    run: Run, stocked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = run("explain", "totals", "-w", stocked).stdout
    last = shown[shown.index("last refresh") :].splitlines()
    assert all(len(line) <= 60 for line in last)
    assert any(line.startswith(" " * len("last refresh  ")) for line in last), "something was too long"
    assert all(line.startswith(("last refresh  ", "  ", "advice  ")) for line in last)


def test_what_refreshes_cost_and_what_epochs_were(run: Run, stocked: Path) -> None:
    costs = lines(run("history", "--costs", "--limit", "50", "-w", stocked).stdout)
    assert costs[0] == "epoch view started action seconds jobs where the time went due by"
    assert any(" totals " in line and "computing" in line for line in costs)
    told = run("history", "--epochs", "-w", stocked).stdout
    first = told[told.index("epoch 1 ") :].splitlines()
    assert re.fullmatch(r"epoch 1  [0-9:]{8}", first[0].strip())
    assert re.match(r"  totals +FULL \(INITIAL\), \+3 -0 rows, [0-9.]+ s", first[1])
    assert first[2].split() == ["read", "Orders", "1"]
    newest = json.loads(run("history", "--epochs", "--limit", "1", "--json", "-w", stocked).stdout)[0]
    assert (newest["sources"], newest["restored"], len(newest["run"])) == ({"Orders": 2}, None, 12)
    assert [line.split(",")[0] for line in newest["work"] if line.startswith("Notes")] == ["Notes: FAILED (ERROR)"]


def test_each_command_is_told_in_a_line_of_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = run("--help").stdout.partition("Commands:")[2].strip().splitlines()
    assert len(told) >= 15
    assert all(line.endswith(".") and not line.endswith("...") for line in told), told


def test_top(run: Run, stocked: Path) -> None:
    shown = run("top", "--once", "-w", stocked).stdout
    assert "5 views, 0 being refreshed" in shown
    views, did = shown.split("at ", 1)
    assert re.search(r"Notes .* FAILED", views)
    assert re.search(r"[0-9:]{8} +Notes +FAILED", did)
    assert "NO_DATA" not in did


def test_explain_of_a_bare_query_says_what_to_write(run: Run, stocked: Path) -> None:
    shown = run("explain", "SELECT id FROM orders", "-w", stocked)
    assert shown.exit_code == 1
    assert "Write CREATE MATERIALIZED VIEW some_name AS before the query" in shown.stderr


@pytest.mark.parametrize("command", ["history", "explain"])
def test_an_unknown_view_is_one_message(run: Run, stocked: Path, command: str) -> None:
    shown = run(command, "nothing", "-w", stocked)
    assert shown.exit_code == 1
    assert shown.stdout == ""
    assert shown.stderr.startswith("error: there is no materialized view 'nothing'.")


@pytest.mark.parametrize("command", [*COMMANDS, ("refresh",)], ids=lambda c: c[0])
def test_a_missing_warehouse_is_not_made(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    shown = run(*command, "-w", "nowhere")
    assert shown.exit_code == 1
    assert f"there is no warehouse at '{tmp_path / 'nowhere'}'" in shown.stderr
    assert "penstock sql -w nowhere" in shown.stderr
    assert not (tmp_path / "nowhere").exists()


def test_a_warehouse_in_a_store_without_a_catalog_says_what_to_name(run: Run) -> None:
    shown = run("status", "-w", "s3://bucket/warehouse")
    assert shown.exit_code == 1
    assert "Name a database, in Python with catalog=.., in the shell with --catalog or PENSTOCK_CATALOG" in shown.stderr


@pytest.mark.parametrize("command", ["status", "graph", "history", "refresh"])
def test_an_empty_warehouse_says_what_to_do_next(run: Run, tmp_path: Path, command: str) -> None:
    penstock.connect(tmp_path / "warehouse").close()
    shown = run(command)
    assert shown.exit_code == 0
    assert "CREATE TABLE" in shown.stdout


def test_the_warehouse_is_named_after_the_command_before_it_or_in_the_environment(
    run: Run, stocked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names_views(*arguments: object) -> bool:
        return "totals" in run(*arguments).stdout

    assert names_views("status", "-w", stocked)
    assert names_views("--warehouse", stocked, "status")
    assert names_views("-w", "nowhere", "status", "-w", stocked), "what stands after the command wins"
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", str(stocked))
    assert names_views("status")
    assert not names_views("-w", "nowhere", "status"), "what is typed wins over the environment"


def test_a_catalog_elsewhere(run: Run, stocked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{stocked / 'catalog.sqlite'}"
    (tmp_path / "data").mkdir()
    assert "totals" in run("status", "-w", "data", "--catalog", url).stdout
    monkeypatch.setenv("PENSTOCK_CATALOG", url)
    assert "totals" in run("-w", "data", "graph").stdout
    missing = run("status", "-w", "data", "--catalog", f"sqlite:///{tmp_path / 'none.sqlite'}")
    assert missing.exit_code == 1
    assert not (tmp_path / "none.sqlite").exists()
