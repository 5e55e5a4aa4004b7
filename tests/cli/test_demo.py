"""The demo and its picture."""

from __future__ import annotations

import re
from pathlib import Path

from command import Run
from pyspark.sql import SparkSession

from penstock.cli.candles import Bar, draw


def test_the_demo_keeps_bars_fresh_and_checks_them(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    shown = run("demo", "--rows", "20000", "--batches", "1", "--keep", "kept")
    assert shown.exit_code == 0, shown.stderr
    assert re.search(
        r"Batch 1 of 1: 1,000 new trades, [1-9]\d* old ones corrected and [1-9]\d* cancelled", shown.stdout
    )
    assert re.search(r"epoch [\d.]+ s, recomputation [\d.]+ s: ([\d.]+ times|about as fast)", shown.stdout)
    for view in ("bars_1s", "bars_1m", "bars_1h"):
        assert re.search(rf"^{view} +INCREMENTAL ", shown.stdout, re.MULTILINE)
    assert "Checked: each view equals its recomputed query, row by row" in shown.stdout
    assert "┃" in shown.stdout
    assert "bars_1h" in run("status", "-w", "kept").stdout
    assert run("demo", "--keep", "kept").exit_code == 1


def test_candles_show_where_each_bar_went() -> None:
    rising, falling, still = (
        Bar(label="09:30", open=2, high=8, low=0, close=6),
        Bar(label="09:31", open=7, high=7, low=3, close=3),
        Bar(label="09:32", open=4, high=4, low=4, close=4),
    )
    picture = draw([rising, falling, still], height=4)
    assert picture.plain.splitlines() == [
        "      8.00 ╽┃ ",
        "           ┃┃╻",
        "      2.67 ┃╹ ",
        "      0.00 │  ",
        "           09:30 to 09:32",
    ]
    styles = {picture.plain[span.start : span.end]: span.style for span in picture.spans[:3]}
    assert styles["╽"] == "green"
    assert styles["┃"] == "red"


def test_a_single_price_and_no_bars_at_all() -> None:
    assert draw([Bar(label="09:30", open=5, high=5, low=5, close=5)], height=1).plain.splitlines()[0] == "      5.00 ╹"
    assert draw([]).plain == "no bars yet"


def test_the_demo_of_read_models_shows_documents_before_and_after(run: Run, spark: SparkSession) -> None:
    shown = run("demo", "read-models", "--rows", "1000")
    assert shown.exit_code == 0, shown.stderr
    for model in ("tv_company", "tv_user", "tv_post"):
        assert f"{model}, before and after" in shown.stdout
    assert re.search(r'"name": "Acme" +"name": "ACME Corp"', shown.stdout)
    assert re.search(r"tv_feed: INCREMENTAL, 1 documents? +[\d.]+", shown.stdout)
    assert "Checked: each model equals its query, document by document" in shown.stdout
    assert run("demo", "nothing").exit_code == 1
