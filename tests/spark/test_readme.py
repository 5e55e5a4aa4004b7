"""The README's tour, and the story of read models, run as they stand, block after block."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

PAGES = ("README.md", "docs/read-models.md")


@pytest.mark.parametrize("page", PAGES)
def test_the_tour_runs_and_prints_what_it_shows(
    page: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[2] / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    shown = [block.strip() for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL)]
    assert len(blocks) >= 6
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    printed = _without_times(capsys.readouterr().out)
    for block in shown:
        assert _without_times(block) in printed


def _without_times(text: str) -> str:
    return re.sub(r"\d+\.\d\d s", "_ s", text)
