"""A record with many fields is written with their names: nobody can tell the seventh of twelve values by its place."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import penstock

MOST = 4
"""Fields that may be told by their place."""


def records() -> Iterator[type]:
    for module in pkgutil.walk_packages(penstock.__path__, "penstock."):
        if not module.name.endswith("__main__"):
            for found in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(found) and found.__module__ == module.name:
                    yield found


RECORDS = [record for record in records() if dataclasses.is_dataclass(record) or hasattr(record, "_fields")]


def by_place(record: type) -> list[str]:
    """The arguments that a record takes without their names."""
    taken = inspect.signature(record).parameters.values()
    return [one.name for one in taken if one.kind is not inspect.Parameter.KEYWORD_ONLY]


def named(record: type) -> list[str]:
    return [one.name for one in inspect.signature(record).parameters.values()]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.__module__}.{record.__qualname__}")
def test_a_record_with_many_fields_takes_them_by_name(record: type) -> None:
    if len(named(record)) > MOST:
        # What a record has of the one that it extends keeps its place: the text of every statement, say.
        allowed = by_place(record.__base__) if dataclasses.is_dataclass(record.__base__) else []
        assert len(allowed) <= MOST
        assert by_place(record) == allowed
        assert list(getattr(record, "__match_args__", ())) == allowed


def test_there_are_such_records() -> None:
    assert len([record for record in RECORDS if len(named(record)) > MOST]) > 40
