"""The README's tour runs as it stands, block after block."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

README = Path(__file__).parents[2] / "README.md"


def test_the_tour_of_the_readme_runs_and_prints_what_it_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = README.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    shown = [block.strip() for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL)]
    assert len(blocks) >= 6
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    printed = _without_times(capsys.readouterr().out)
    for block in shown:
        assert _without_times(block) in printed


def _without_times(text: str) -> str:
    return re.sub(r"\d+\.\d\d s", "_ s", text)
