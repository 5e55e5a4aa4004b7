"""The examples in docstrings, run. They need no Spark; a module whose examples would need it has none."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import penstock
from penstock.ivm.rules import RULES, STATEFUL


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


@pytest.mark.parametrize("rule", sorted({*RULES.values(), *STATEFUL.values()}, key=str), ids=lambda rule: rule.__name__)
def test_a_rule_opens_with_its_equation_and_shows_it_at_work(rule: ModuleType) -> None:
    told = rule.__doc__ or ""
    assert [word for word in ("batch:", "delta:", "reads:") if f"\n{word}  " not in told] == []
    assert [example for example in doctest.DocTestParser().get_examples(told) if example.want] != []
