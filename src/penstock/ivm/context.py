"""What a rule may ask for: the change of an input, and an input before and after the epoch."""

from __future__ import annotations

from typing import Literal, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.ivm.materialize import Materialized
from penstock.plan.operators import Scan, Values
from penstock.storage.lookup import Anywhere
from penstock.storage.zset import Delta, Rows

Moment = Literal["pre", "post"]


class Context(Protocol):
    """The inputs of one node in one epoch. Columns come with the scan's internal names."""

    def delta(self, scan: Scan) -> Delta | None:
        """The input's change; None when it is known to be empty."""

    def read(self, scan: Scan, moment: Moment) -> Rows:
        """The input at a moment."""

    def given(self, values: Values) -> Rows:
        """Rows that stand in the query."""

    def count(self, scan: Scan) -> int:
        """About how many rows the input has after the epoch."""

    @property
    def utc(self) -> bool:
        """Whether hours and days are those of UTC."""

    def near(self, bounds: pa.Table | None, sought: Anywhere | None = None) -> Context:
        """The same inputs, of which only some rows are wanted; others may come too.

        ``bounds``: those whose columns lie between some values. ``sought``: those with some keys. Both speak of columns
        by the internal names that scans give them.
        """

    def watermark(self, moment: Moment) -> int | None:
        """How far event time has come for the node, in microseconds; None when that is not known."""

    def keep(self, frame: DataFrame, *, few: bool = False, little: bool = False) -> Materialized:
        """A frame that is read more than once, or whose rows must be known, computed once.

        ``few`` rows are expected; ``little`` is read for them.
        """
