"""Penstock: one refresh of the views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import PENSTOCK
from penstock.engine.report import all_jobs

if TYPE_CHECKING:
    from penstock.engine.report import Report


class Penstock(Contender):
    name: ClassVar[str] = PENSTOCK
    report: Report

    def refresh(self, views: Sequence[str]) -> None:
        self.report = self.stage.database.refresh(*views)

    def jobs(self) -> int | None:
        """How many Spark jobs the last refresh started; those of a node that views share count for each of them."""
        return all_jobs(view.jobs for view in self.report.values())
