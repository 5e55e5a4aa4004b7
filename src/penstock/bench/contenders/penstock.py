"""Penstock: one refresh of the views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import PENSTOCK

if TYPE_CHECKING:
    from penstock.engine.report import Report


class Penstock(Contender):
    name: ClassVar[str] = PENSTOCK
    report: Report

    def ready_to_count(self) -> None:
        """From now on, Spark jobs are those of the next refresh."""
        self._before = self._known_jobs()

    def refresh(self, views: Sequence[str]) -> None:
        self.report = self.stage.database.refresh(*views)

    def jobs(self) -> int:
        """How many Spark jobs the last refresh started."""
        return len(self._known_jobs() - self._before)

    def _known_jobs(self) -> set[int]:
        """Jobs of no group: Penstock sets none, and nothing else runs meanwhile."""
        return set(self.stage.database.spark.sparkContext.statusTracker().getJobIdsForGroup(None))
