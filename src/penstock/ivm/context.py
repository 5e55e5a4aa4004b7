"""What a rule may ask for: the change of an input, an input before and after the epoch, and the node's own table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import pyarrow as pa

from penstock.frames.frame import Frame
from penstock.frames.keys import Anywhere
from penstock.frames.zset import Delta, ZSet
from penstock.plan.operators import Scan, Values

Moment = Literal["pre", "post"]


class Context(Protocol):
    """The inputs of one node in one epoch. Columns come with the scan's internal names."""

    def delta(self, scan: Scan) -> Delta | None:
        """The input's change; None when it is known to be empty."""

    def read(self, scan: Scan, moment: Moment) -> ZSet:
        """The input at a moment."""

    def given(self, values: Values) -> ZSet:
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

    def keep(self, frame: Frame) -> Frame:
        """A frame that is read more than once, or whose rows must be known, computed once."""


class Stored(Protocol):
    """A node's own table before the epoch, or such of its rows as are of interest; others may be among them."""

    @property
    def count(self) -> int:
        """How many rows the table has, of interest or not."""

    @property
    def expected(self) -> int:
        """About how many rows are of interest."""

    @property
    def worth_locating(self) -> bool:
        """Whether it helps to know where the rows lie that go: a small table is written anew."""

    def read(self, *, located: bool = False) -> Frame:
        """The rows of interest, maybe with their places."""

    def only(self, columns: Sequence[str]) -> Stored:
        """The same rows, of which only some columns are read."""

    def near(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored:
        """The rows that may have one of these keys; ``columns``: of the table, and which of the keys each is."""

    def within(self, reach: pa.Table | None, columns: Mapping[str, str]) -> Stored:
        """The rows between the least and the greatest key."""

    def looked_up(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored | None:
        """The rows of interest that have one of these keys, if they can be found without Spark."""
