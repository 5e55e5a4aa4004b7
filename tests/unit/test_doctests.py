"""The examples in docstrings, run. They need no Spark; a module whose examples would need it has none."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import penstock


def modules() -> list[str]:
    found = [info.name for info in pkgutil.walk_packages(penstock.__path__, "penstock.")]
    return [name for name in found if not name.endswith("__main__")]


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_that_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [e for name in modules() for e in finder.find(importlib.import_module(name)) if e.examples]
    assert len(found) >= 10
