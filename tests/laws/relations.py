"""Relations as multisets, to be compared: what rules make of tables in memory (``penstock.ivm.in_memory``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.ivm.in_memory import NeedsSpark

Rows = Counter[tuple[Hashable, ...]]


def counted(frame: Frame, *, weighted: bool) -> Rows:
    """The rows of a frame and how often each is there; NaN is NaN, and 0.0 is not -0.0."""
    table = frame.rows()
    if table is None:
        raise NeedsSpark
    names = sorted(name for name in table.column_names if name != WEIGHT)
    columns = [[identity(value) for value in table.column(name).to_pylist()] for name in names]
    weights = table.column(WEIGHT).to_pylist() if weighted else [1] * table.num_rows
    found: Rows = Counter()
    for row, weight in zip(zip(*columns, strict=True), weights, strict=True):
        found[row] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def identity(value: Any) -> Hashable:
    match value:
        case float():
            return repr(value)
        case dict():
            return tuple((key, identity(inner)) for key, inner in value.items())
        case list():
            return tuple(map(identity, value))
    return value
