"""Penstock with the policy INCREMENTAL: what maintaining takes where AUTO may have recomputed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import ALWAYS


class Insisting(Contender):
    name: ClassVar[str] = ALWAYS

    def prepare(self) -> None:
        for view, query in self.stage.views.items():
            self.stage.database.create_view(_twin(view), query, policy="INCREMENTAL")

    def refresh(self, views: Sequence[str]) -> None:
        self.stage.database.refresh(*map(_twin, views))


def _twin(view: str) -> str:
    return f"{view}_always"
