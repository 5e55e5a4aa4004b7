"""Where the catalogs of warehouses are: in their directories, or, for a test that runs on both, on PostgreSQL."""

from __future__ import annotations

import os
from typing import Any

import penstock

_ELSEWHERE: dict[str, str] = {}


def put_elsewhere(path: os.PathLike[str] | str, url: str) -> None:
    _ELSEWHERE[os.fspath(path)] = url


def catalog_of(path: os.PathLike[str] | str) -> str | None:
    """The URL of a warehouse's catalog, for ``penstock.connect(path, catalog=..)``."""
    return _ELSEWHERE.get(os.fspath(path))


def connected(path: os.PathLike[str] | str, **given: Any) -> penstock.Database:
    return penstock.connect(path, catalog=catalog_of(path), **given)
