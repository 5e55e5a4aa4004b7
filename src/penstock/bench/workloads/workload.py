"""What a workload is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.bench.measure import Cell, Goal

if TYPE_CHECKING:
    from penstock.bench.stage import Bench


@dataclass(frozen=True, kw_only=True)
class Workload:
    name: str
    title: str
    """What happens, in one sentence."""
    run: Callable[[Bench], list[Cell]]
    goals: Callable[[Sequence[Cell]], list[Goal]]
    """What was aimed at, compared with what came out."""
    in_store: bool = False
    """Whether Spark has to reach an object store, which it must know when it starts."""
