"""Catalogs to test on: SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgres import new_database


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty catalog."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    return new_database(request.getfixturevalue("postgres"))
