"""Penstock with the policy INCREMENTAL: what maintaining takes where AUTO may have recomputed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import ALWAYS
from penstock.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Insisting(Contender):
    name: ClassVar[str] = ALWAYS

    def prepare(self) -> None:
        for view, query in self.stage.views.items():
            self.stage.database.create_view(_twin(view), query, policy="INCREMENTAL")

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
