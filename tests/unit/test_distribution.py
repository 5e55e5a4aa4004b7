"""The distribution is called penstock-spark, the package and the command penstock; one version is told everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import penstock
from penstock.bench.run import machine
from penstock.cli.main import app

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text()


def said(key: str) -> str:
    found = re.search(rf'^{key} = "(.+)"$', PROJECT, re.MULTILINE)
    assert found is not None
    return found[1]


def test_names_and_versions() -> None:
    assert said("name") == "penstock-spark"
    assert said("penstock") == "penstock.cli:run"
    assert said("version") == penstock.__version__ == machine()["Penstock"]
    assert CliRunner().invoke(app, ["--version"]).output == f"penstock {penstock.__version__}\n"


@pytest.mark.parametrize("pattern", ["*.md", "docs/*.md", "src/**/*.py", "pyproject.toml", ".ci/*"])
def test_what_is_installed_is_called_by_the_name_of_the_distribution(pattern: str) -> None:
    files = list(ROOT.glob(pattern))
    assert files
    wanted = re.compile(r"\bpenstock\[\w+|pip install '?penstock(?!-spark)\b|version\(\"penstock\"\)")
    assert [f"{file.name}: {found}" for file in files for found in wanted.findall(file.read_text())] == []
