"""What the benchmark makes of its numbers: no Spark, no clock."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench import bars, comparison, on_driver
from penstock.bench.contenders import Insisting
from penstock.bench.measure import Cell, Driven, Goal, Recorded, Result, at_least, at_most
from penstock.bench.report import filled, markdown, remarks, sheet, summary
from penstock.bench.run import save, saved
from penstock.errors import PenstockError
from penstock.vocabulary import Action, Reason, Strategy


def result(full: float = 4.0, goal: float = 3.0) -> Result:
    """Penstock takes one second, recomputation as many as given."""
    cell = Cell(
        case="bars", rows=1_000, changed=10, views=2, seconds={"penstock": [1.0, 1.0, 2.0], "full": [full, full, full]},
        actions=[
            Recorded(view="a", action=Action.INCREMENTAL, strategy=Strategy.APPEND, reason=Reason.CHANGED, times=3),
            Recorded(view="b", action=Action.FULL, strategy=None, reason=Reason.CHEAPER, times=3),
        ],
        jobs=5, peaks={"penstock": {"python": 2**30, "java": 2**30}},
    )  # fmt: skip
    goals = [at_least("times as fast", cell.ratio("full"), goal, "bars"), at_most("GiB", 2.0, 6)]
    machine = {"cores": "2"}
    return Result(
        workload="cascade-append",
        title="bars",
        scale=1,
        repeat=3,
        machine=machine,
        cells=[cell],
        goals=goals,
        left_out={"duckdb": "not installed"},
    )


def test_a_ratio_is_the_median_of_runs_beside_each_other() -> None:
    """A slow moment of the machine hits both contenders of a round, and leaves their ratio alone."""
    cell = Cell(case="c", rows=1, changed=1, views=1, seconds={"penstock": [1.0, 10.0, 1.0], "full": [3.0, 30.0, 4.0]})
    assert cell.ratio("full") == 3.0
    assert cell.median("penstock") == 1.0
    assert cell.ratio("merge") is None


def test_a_goal_is_met_missed_or_not_measured() -> None:
    assert at_least("x", 3.0, 3).met is True
    assert at_least("x", 2.9, 3).met is False
    assert at_most("x", 2.9, 3).met is True
    assert at_most("x", None, 3).met is None


def test_a_row_says_ratios_actions_memory_and_target() -> None:
    shown = sheet(result())
    row = dict(zip(shown.columns, shown.rows[0], strict=True))
    assert row["recomputation"] == "4.0 x"
    assert row["refreshes"] == "3 INCREMENTAL (APPEND), 3 FULL (CHEAPER)"
    assert row["memory"] == "2.0 GiB"
    assert row["target"] == "at least 3 times as fast: met (4)"


def test_a_silent_recomputation_and_a_missing_contender_are_told() -> None:
    told = " ".join(remarks(result()))
    assert "recomputed by Penstock itself: b (FULL, CHEAPER)" in told
    assert "DuckDB did not run: not installed" in told


def test_a_contender_that_takes_too_long_is_given_up_and_told_of_once() -> None:
    always = Insisting(None)  # type: ignore[arg-type] - it only looks at times
    always.noted("window, 0.1 %", ["ranked"], {"full": [2.0], "always": [9.9]})
    assert always.refuses(["ranked"]) is None
    always.noted("window, 1 %", ["ranked"], {"full": [2.0, 2.0], "always": [9.9, 20.0]})
    assert always.refuses(["ranked"]) is not None
    assert always.refuses(["other"]) is None
    assert always.remark == "given up after 'window, 1 %', where it took 10 times as long as recomputation"
    cell = replace(result().cells[0], notes=[always.remark])
    told = remarks(replace(result(), cells=[cell, replace(cell, case="later")]))
    assert [note for note in told if "given up" in note] == [f"{always.remark}."]


def test_losses_and_missed_targets_are_bold() -> None:
    text = markdown(result(full=0.5))
    assert "**0.5 x**" in text
    assert "**at least 3 times as fast: MISSED (0.5)**" in text
    assert "**0.5 x**" in summary([result(full=0.5)])


def test_another_scale_is_told() -> None:
    small = replace(result(full=0.5), scale=0.1)
    assert "At scale 0.1" in markdown(small)
    assert "MISSED" not in markdown(small)


def test_results_survive_their_file(tmp_path: Path) -> None:
    kept = result()
    kept.cells[0].driven.append(Driven("a", 3, 2, ["UPPER(x)"]))
    file = save(kept, tmp_path)
    assert saved(tmp_path, ["cascade-append", "not measured"]) == [kept]
    document = json.loads(file.read_text())
    assert document["cells"][0]["ratio"] == {"full": 4.0}
    assert [goal["met"] for goal in document["goals"]] == [True, True]


def test_results_of_before_and_after_stand_beside_each_other() -> None:
    before, after = result(full=4.0), result(full=3.5)
    gone = Cell(case="gone", rows=1, changed=1, views=1, seconds={"penstock": [1.0], "full": [2.0]})
    new = replace(gone, case="new")
    text = comparison.markdown(
        [replace(before, cells=[*before.cells, gone])], [replace(after, cells=[*after.cells, new])]
    )
    lines = text.splitlines()
    assert "| cascade-append | bars | 1.00 s, 1.00 s | **4.0 x, 3.5 x** | **recomputation** |" in lines
    assert "| cascade-append | gone | 1.00 s, - | 2.0 x, - |  |" in lines
    assert "| cascade-append | new | -, 1.00 s | -, 2.0 x |  |" in lines
    assert lines[-1] == "Of 1 cells that were measured both times, 1 are more than 10 % worse."
    assert "**" not in comparison.markdown([before], [result(full=3.7)]), "less than a tenth is noise"


def test_a_cell_without_contenders_is_compared_by_its_seconds() -> None:
    quick, slow = (
        Cell(case="c", rows=1, changed=1, views=1, seconds={"penstock": [seconds]}) for seconds in (1.0, 1.2)
    )
    assert comparison.Pair("w", "c", quick, slow).worse() == ["penstock"]
    assert comparison.Pair("w", "c", slow, quick).worse() == []


def test_the_share_of_small_refreshes_on_the_driver_and_what_leaves_it_are_told() -> None:
    driven = [
        Driven("a", 3, 3),
        Driven("b", 3, 0, ["UPPER(x) AS u", "UPPER(y) AS v"]),
        Driven("c", 2, 1, ["UPPER(z)", "MD5(z)"]),
    ]
    small = Cell(case="few", rows=1_000, changed=1_000, views=3, seconds={}, driven=driven)
    large = Cell(
        case="many", rows=1_000, changed=1_001, views=1, seconds={}, driven=[Driven("d", 9, 0, ["SOUNDEX(x)"])]
    )
    lines = on_driver.markdown([replace(result(), cells=[small, large])]).splitlines()
    assert "| [cascade-append](#cascade-append) | 8 | 50.0 % |" in lines
    assert "| all | 8 | 50.0 % |" in lines
    assert lines[-2:] == ["| `UPPER(..)` | 2 |", "| `MD5(..)` | 1 |"], "by the number of views"
    silent = Cell(case="few", rows=1_000, changed=10, views=1, seconds={}, driven=[Driven("a", 2, 1)])
    assert on_driver.left([silent]) == [(on_driver.UNNOTED, 1)], "jobs that nobody explained are told too"


def test_a_page_without_a_place_is_an_error() -> None:
    with pytest.raises(PenstockError, match="no place for 'x'"):
        filled("nothing here", {"x": "text"})


def test_the_page_of_benchmarks_has_a_place_for_every_workload(tmp_path: Path) -> None:
    from penstock.bench.workloads import WORKLOADS

    page = Path(__file__).parents[2] / "docs" / "benchmarks.md"
    others = ["summary", "pictures", "on the driver", "before and after"]
    text = filled(page.read_text(), dict.fromkeys([*WORKLOADS, *others], "here"))
    assert text.count("\nhere\n") == len(WORKLOADS) + len(others)


def test_pictures_are_drawn_of_what_there_is(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from penstock.bench.plots import draw

    cells = [
        Cell(
            case=f"filter, {c}", rows=100, changed=c, views=1, seconds={"penstock": [1.0], "full": [2.0]}, kind="filter"
        )
        for c in (1, 10)
    ]
    goals = [Goal(what="times as fast as recomputation", measured=2.0, bound=">=", target=1.0, case="filter, 1")]
    results = [
        result(),
        *(
            Result(workload=name, title=name, scale=1, repeat=1, machine={}, cells=cells, goals=goals)
            for name in ("crossover", "growth")
        ),
    ]
    assert [file.name for file in draw(results, tmp_path)] == ["ratios.png", "crossover.png", "growth.png"]


def test_the_readme_shows_the_views_that_the_demo_and_the_benchmark_run() -> None:
    shown = re.findall(r"```sql\n(.*?)```", (Path(__file__).parents[2] / "README.md").read_text(), re.DOTALL)
    cascade = f"CREATE TABLE trades ({bars.TRADES});\n\n"
    cascade += "\n\n".join(f"{bars.statement(view)};" for view in bars.VIEWS)
    assert f"{cascade}\n" in shown
