"""The benchmark as a command: a tiny workload measured, and a page filled from results."""

from __future__ import annotations

import json
from pathlib import Path

from command import Run
from pyspark.sql import SparkSession

from penstock.bench.measure import Cell, Result
from penstock.bench.run import save


def test_a_tiny_workload_is_measured_checked_and_kept(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    options = ("--scale", "0.0002", "--repeat", "1", "--against", "full,pipelines", "--out", "results")
    shown = run("bench", "cascade-append", *options)
    assert shown.exit_code == 0, shown.stdout + shown.stderr
    assert "three levels" in shown.stdout
    assert "Declarative Pipelines did not run: this process already runs a Spark" in shown.stdout
    document = json.loads((tmp_path / "results" / "cascade-append.json").read_text())
    (cell,) = document["cells"]
    assert set(cell["seconds"]) == {"penstock", "full"}
    assert {action["action"] for action in cell["actions"]} == {"INCREMENTAL"}
    assert {action["view"] for action in cell["actions"]} == {"bars_1s", "bars_1m", "bars_1h"}
    assert cell["ratio"]["full"] > 0
    assert "differs" not in shown.stdout


def test_the_cascade_of_the_readme_needs_no_spark_job(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    run("bench", "cascade-append", "--scale", "0.0002", "--repeat", "1", "--against", "full", "--out", "results")
    document = json.loads((tmp_path / "results" / "cascade-append.json").read_text())
    assert document["cells"][0]["jobs"] == 0


def test_the_command_fills_a_page_and_draws(run: Run, tmp_path: Path) -> None:
    cell = Cell(case="bars", rows=1_000, changed=10, views=1, seconds={"penstock": [1.0], "full": [4.0]})
    save(
        Result(workload="cascade-append", title="bars", scale=1, repeat=1, machine={}, cells=[cell], goals=[]),
        tmp_path / "out",
    )
    page = tmp_path / "page.md"
    places = "".join(f"<!-- bench: {name} -->\n<!-- end -->\n" for name in ("summary", "pictures", "cascade-append"))
    page.write_text(places)
    done = run("bench", "--out", tmp_path / "out", "--write", page)
    assert done.exit_code == 0, done.stderr
    assert "| bars | 1,000 | 10 |" in page.read_text()


def test_the_command_compares_results_of_before_and_after(run: Run, tmp_path: Path) -> None:
    for directory, seconds in (("before", 1.0), ("after", 2.0)):
        cell = Cell(case="bars", rows=1_000, changed=10, views=1, seconds={"penstock": [seconds], "full": [4.0]})
        save(
            Result(workload="cascade-append", title="bars", scale=1, repeat=1, machine={}, cells=[cell], goals=[]),
            tmp_path / directory,
        )
    shown = run("bench", "--compare", tmp_path / "before", "--out", tmp_path / "after")
    assert "4.0 x, 2.0 x" in shown.stdout
    assert "1 are more than 10 % worse" in shown.stdout
    page = tmp_path / "page.md"
    page.write_text("<!-- bench: before and after -->\n<!-- end -->\n")
    files = [tmp_path / directory / "cascade-append.json" for directory in ("before", "after")]
    run("bench", "--compare", files[0], "--out", files[1], "--write", page)
    assert "| **4.0 x, 2.0 x** |" in page.read_text()
    missing = run("bench", "--compare", tmp_path / "nowhere", "--out", tmp_path / "after")
    assert missing.exit_code == 1
    assert "there are no results" in missing.stderr


def test_the_command_names_what_it_knows(run: Run) -> None:
    listed = run("bench", "--list")
    assert "cascade-scattered" in listed.stdout
    unknown = run("bench", "cascades")
    assert unknown.exit_code == 1
    assert "there is no workload 'cascades'" in unknown.stderr
    assert "there is no contender 'oracle'" in run("bench", "--against", "oracle").stderr
