"""Penstock with the policy INCREMENTAL: what maintaining takes where AUTO may have recomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import ALWAYS, FULL
from penstock.errors import InternalError
from penstock.vocabulary import Policy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.bench.stage import Stage


_PATIENCE = 5
"""A view that it takes so many times as long for as recomputation is given up: it will not get better."""


class Insisting(Contender):
    name: ClassVar[str] = ALWAYS

    def __init__(self, stage: Stage):
        super().__init__(stage)
        self._given_up: dict[str, str] = {}

    def prepare(self) -> None:
        for view, query in self.stage.views.items():
            self.stage.database.create_view(_twin(view), query, policy=Policy.INCREMENTAL)

    def refuses(self, views: Sequence[str]) -> str | None:
        return next((self._given_up[view] for view in views if view in self._given_up), None)

    def noted(self, case: str, views: Sequence[str], seconds: Mapping[str, Sequence[float]]) -> None:
        own, full = seconds.get(ALWAYS), seconds.get(FULL)
        if own and full and own[-1] > _PATIENCE * full[-1]:
            why = f"given up after {case!r}, where it took {own[-1] / full[-1]:.0f} times as long as recomputation"
            self._given_up |= dict.fromkeys(views, why)
            self.remark = "; ".join(dict.fromkeys(self._given_up.values()))

    def refresh(self, views: Sequence[str]) -> None:
        self.stage.database.refresh(*map(_twin, views))

    def check(self, view: str, expected: DataFrame) -> None:
        from penstock.bench.stage import differing_rows

        if differing := differing_rows(expected, self.stage.database.table(_twin(view))):
            raise InternalError(
                f"view {_twin(view)!r} differs from its query in {differing:,} rows. Please report this."
            )


def _twin(view: str) -> str:
    return f"{view}_always"
