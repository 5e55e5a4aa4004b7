"""What a rule may ask of rows. It does not know where they are, nor who does what it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import pyarrow as pa
from sqlglot import exp

from penstock.frames.sizes import Size
from penstock.sql.trees import Named

How = Literal["inner", "left", "full", "left_semi", "left_anti"]
"""Kinds of joins."""

Alternative = tuple[exp.Expr, Sequence[Named]]
"""A condition, and what a row becomes that fulfils it."""


class NotHere(Exception):
    """What is asked for is better done by Spark."""


class Frame(Protocol):
    """Rows of named columns. Each step gives another frame, and changes nothing."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def types(self) -> Mapping[str, str]:
        """The columns' types, by Spark's names for them."""

    @property
    def size(self) -> Size: ...

    def expecting(self, size: Size) -> Frame:
        """The same rows, of which a rule knows better how many there are."""

    def rows(self) -> pa.Table | None:
        """The rows, if they are on the driver or are meant to be read there; None if they are Spark's."""

    def arrow(self) -> pa.Table:
        """The rows, wherever they are."""

    def select(self, outputs: Sequence[Named]) -> Frame: ...

    def only(self, columns: Sequence[str]) -> Frame: ...

    def renamed(self, names: Mapping[str, str]) -> Frame:
        """With other names for some columns, old to new."""

    def where(self, condition: exp.Expr) -> Frame: ...

    def nothing(self) -> Frame:
        """The same columns without rows."""

    def join(self, other: Frame, conditions: Sequence[exp.Expr], how: How = "inner", *, few: bool = False) -> Frame:
        """The pairs that fulfil all conditions; no column has the same name on both sides.

        ``few``: each row of this frame finds few of the other, so what comes of it is no larger than this one.
        """

    def with_nulls(self, other: Frame, columns: Sequence[str]) -> Frame:
        """Beside NULLs, in the place of some columns of the other frame and of their types."""

    def group(self, keys: Sequence[str], measures: Sequence[Named]) -> Frame:
        """A row for each combination of the keys, which are columns; without keys one row."""

    def union(self, other: Frame) -> Frame:
        """The rows of both, by the names of the columns."""

    def consolidated(self, beside: Sequence[str] = ()) -> Frame:
        """One row for each distinct row, its weights added up, zeros dropped: {a: 1, a: 1, b: 1, b: -1} -> {a: 2}.

        Columns ``beside`` are no part of a row: of what comes together, those of one row stay, which are not NULL if
        any are.
        """

    def copies(self) -> Frame:
        """Each row as many times as its weight says, without the weight; none if that is below one."""

    def first(self, order: Sequence[exp.Expr], limit: int, offset: int) -> Frame:
        """The first rows in an order; rows that are equal in it come in the order of all their columns."""

    def windows(self, functions: Sequence[Named]) -> Frame:
        """Each row with the values of window functions beside it."""

    def sessions(self, below: Sequence[str], keys: Sequence[Named], measures: Sequence[Named]) -> Frame:
        """A row for each session: columns below, keys of which the last is ``session_window``, and measures."""

    def generate(self, generator: exp.Expr, outputs: Sequence[str], kept: Sequence[str]) -> Frame:
        """Some columns of each row as often as a generator gives rows for it, beside what it gives."""

    def each(self, alternatives: Sequence[Alternative]) -> Frame:
        """A row for every alternative whose condition a row fulfils; they have the same columns."""

    def sound(self, condition: exp.Expr, problem: str) -> Frame:
        """All rows, each of which must fulfil a condition that is never NULL; else ``StateMismatch`` says the problem.

        Where Spark computes, the query itself raises it when it runs.
        """

    def sortable(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns that rows can be sorted by."""

    def any(self, condition: exp.Expr) -> bool:
        """Whether some row fulfils a condition."""
