"""Keys whose rows are wanted, and where in a table they are found. Who reads the table decides how to find them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.frames import limits


@dataclass(frozen=True)
class Place:
    """Where a key is found: in a column as it is, or as the beginning of the unit (microseconds) that a time is in."""

    column: str
    unit: int | None = None
    local: bool = True
    """Whether times without a zone are cut to the unit as moments are: those of UTC."""


@dataclass(frozen=True)
class Sought:
    """Keys, one a row, and where each of their columns is found. More rows than have a key may be found."""

    keys: pa.Table
    places: Mapping[str, Place]


@dataclass(frozen=True)
class Anywhere:
    """Keys that are sought in several tables at once: a key's column may be found in a column of each of them."""

    keys: pa.Table
    places: Mapping[str, Sequence[Place]]

    def within(self, columns: Mapping[str, str]) -> Sought | None:
        """What is sought in one table: its columns by the names that the places have; None if it has none of them."""
        kept: dict[str, Place] = {}
        for key, places in self.places.items():
            here = next((replace(p, column=columns[p.column]) for p in places if p.column in columns), None)
            if here is not None:
                kept[key] = here
        return Sought(self.keys.select(list(kept)), kept) if kept else None


def can_look_through(rows: int) -> bool:
    """Whether a table of that many rows is worth it."""
    return limits.LOOKUP_LEAST_ROWS <= rows <= limits.LOOKUP_MOST_ROWS


def floored(values: pa.Array, unit: int) -> pa.Array:
    numbers = values.fill_null(0).to_numpy()
    return pa.array(numbers - numbers % unit, mask=values.is_null().to_numpy(zero_copy_only=False))
