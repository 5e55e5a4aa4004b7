"""Penstock with the same tables and views on the local disk: what a store costs that is far away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import DISK
from penstock.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.bench.stage import Stage


class OnDisk(Contender):
    name: ClassVar[str] = DISK

    def __init__(self, stage: Stage, make: Callable[[Stage], object], change: Callable[[Stage, int], object]):
        """``change`` is given the number of the round."""
        super().__init__(stage)
        self._make, self._change = make, change
        self._disk: Stage | None = None

    def prepare(self) -> None:
        from penstock.bench.stage import Stage
        from penstock.database import connect

        place = self.stage.scratch / "disk"
        database = connect(place / "warehouse", spark=self.stage.database.spark)
        self._disk = Stage(bench=self.stage.bench, database=database, scratch=place, place=str(place))
        self._make(self._disk)

    @property
    def _there(self) -> Stage:
        assert self._disk is not None, "it was prepared"
        return self._disk

    def follow(self) -> None:
        self._change(self._there, self.stage.round)

    def refresh(self, views: Sequence[str]) -> None:
        self._there.database.refresh(*views)

    def check(self, view: str, expected: DataFrame) -> None:
        from penstock.bench.stage import differing_rows

        if differing := differing_rows(expected, self._there.database.table(view)):
            raise InternalError(f"view {view!r} on the local disk differs in {differing:,} rows. Please report this.")

    def close(self) -> None:
        if self._disk is not None:
            self._disk.database.close()
