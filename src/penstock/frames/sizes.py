"""How many rows a frame is expected to have, and what follows from it: the one place that decides who does a step.

Limits are read where they are used, so that a test can set them.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.frames import limits


@dataclass(frozen=True)
class Size:
    """Rows that are expected, and rows that are read for them; None: nobody knows."""

    rows: int | None = None
    read: int | None = None
    certain: bool = False
    """Whether there are no more than that."""

    @classmethod
    def exactly(cls, rows: int) -> Size:
        return cls(rows, rows, certain=True)

    def __add__(self, other: Size) -> Size:
        return Size(_sum(self.rows, other.rows), _sum(self.read, other.read), self.certain and other.certain)

    def guess(self) -> Size:
        """About as many, for all we know."""
        return Size(self.rows, self.read)

    def joined(self, other: Size, *, few: bool) -> Size:
        """Of what comes of two. ``few``: each row of the one finds few of the other."""
        return Size(self.rows if few else _largest(self.rows, other.rows), _sum(self.read, other.read))

    @property
    def on_driver(self) -> bool:
        """Whether the rows are expected to be so few that the driver takes them at once."""
        return self.rows is not None and self.rows <= limits.LOCAL_ROWS

    @property
    def surely_on_driver(self) -> bool:
        """Whether that is certain, so that nothing need be computed before to find out."""
        return self.certain and self.on_driver

    @property
    def in_one_task(self) -> bool:
        """Whether one task of Spark's does it faster than several that have to exchange rows."""
        return self.rows is not None and self.rows <= limits.SMALL_TABLE_ROWS

    @property
    def not_compiled(self) -> bool:
        """Whether a query of them runs faster than Spark compiles it."""
        return self.read is not None and self.read <= limits.UNCOMPILED_ROWS


UNKNOWN = Size()


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _largest(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)
