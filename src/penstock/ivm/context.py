"""What a rule may ask for: the change of an input, and an input before and after the epoch."""

from __future__ import annotations

from typing import Literal, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.ivm.materialize import Materialized
from penstock.plan.operators import Scan
from penstock.storage.zset import Delta, Rows

Moment = Literal["pre", "post"]


class Context(Protocol):
    """The inputs of one node in one epoch. Columns come with the scan's internal names."""

    def delta(self, scan: Scan) -> Delta | None:
        """The input's change; None when it is known to be empty."""

    def read(self, scan: Scan, moment: Moment) -> Rows:
        """The input at a moment."""

    def count(self, scan: Scan) -> int:
        """About how many rows the input has after the epoch."""

    def near(self, bounds: pa.Table) -> Context:
        """The same inputs, of which only rows are wanted whose columns lie between some values; others may come too.

        ``bounds`` has the values, under internal names of columns of scans.
        """

    def watermark(self, moment: Moment) -> int | None:
        """How far event time has come for the node, in microseconds; None when that is not known."""

    def keep(self, frame: DataFrame, *, few: bool = False) -> Materialized:
        """A frame that is read more than once, or whose rows must be known, computed once. ``few`` are expected."""
