"""JSON arrays of a group: elements that came, went or changed are put into the stored document, which is not made anew.

batch:  '[' || the texts of the group's rows in an order || ']', maybe inside a larger document
delta:  the stored text with the elements of dR's removed rows cut out, and those of its added rows put in
reads:  the delta, and the rows of the touched groups in the node's own table; of the child nothing

Elements are found by what they are sorted by (``frames.arrow.elements``). An element that is not where it should be, a
group that is new, and what only Spark can order give None, and the touched groups are aggregated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.elements import Element, Elements, NotFound, text_array
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.arrow.groups import Groups, codes, together, whole
from penstock.frames.frame import Frame, NotHere
from penstock.frames.names import WEIGHT
from penstock.frames.zset import Delta, add, weighted
from penstock.ivm.context import Context, Stored
from penstock.ivm.layout import Layout, MeasureLayout
from penstock.sql.documents import JsonAgg
from penstock.sql.trees import Named, column, columns

_MOST_GROUPS = 10_000


def delta(layout: Layout, context: Context, stored: Stored, change: Delta) -> Frame | None:
    """The change of the node's table, given that of keys and arguments; None if the groups must be made anew."""
    if not layout.orders or change.frame.rows() is None:
        return None
    try:
        return _Patch(layout, stored, change.frame.consolidated()).change(context)
    except (NotFound, NotHere, pa.ArrowException):
        return None


class _Patch:
    def __init__(self, layout: Layout, stored: Stored, change: Frame):
        self._layout = layout
        self._keys = [name for name, _, _ in layout.keys]
        self._change = self._evaluated(change)
        self._old = self._stored_rows(stored)

    def _evaluated(self, change: Frame) -> pa.Table:
        """Of each changed row its keys, and of each array the text and what it is sorted by."""
        wanted = columns([*self._keys, WEIGHT])
        for i, m in enumerate(self._layout.measures):
            assert isinstance(m.function, JsonAgg)
            wanted.append((f"__t{i}", m.function.this))
            wanted += [(f"__k{i}_{j}", key.this) for j, key in enumerate(m.function.keys[:-1])]
        found = change.select(wanted).rows()
        if found is None:
            raise NotHere
        return found

    def _stored_rows(self, stored: Stored) -> ArrowFrame:
        """The rows of the touched groups, under the keys' own names; each group has one."""
        names = {stored_as: name for name, _, stored_as in self._layout.keys}
        near = stored.near(self._change.select(self._keys), names) if names else stored
        frame = near.read()
        if not isinstance(frame, ArrowFrame) or frame.rows() is None:
            raise NotHere
        groups = self._grouped(frame.table, list(names))
        touched = np.unique(groups[: self._change.num_rows])
        if len(touched) > _MOST_GROUPS:
            raise NotHere
        here = np.flatnonzero(np.isin(groups[self._change.num_rows :], touched))
        self._of = np.searchsorted(touched, groups[: self._change.num_rows])
        rows = np.searchsorted(touched, groups[self._change.num_rows :][here])
        if len(rows) != len(touched) or len(np.unique(rows)) != len(touched):
            raise NotFound
        table = frame.table.take(pa.array(here[np.argsort(rows)]))
        for order in self._layout.orders:
            if table.column(order).null_count:
                raise NotFound
        return frame.holding(table)

    def _grouped(self, table: pa.Table, names: Sequence[str]) -> Any:
        """A number for the group of each changed row, then of each stored row."""
        both = [
            codes(pa.concat_arrays([whole(self._change.column(key)), whole(table.column(stored))]))
            for key, stored in zip(self._keys, names, strict=True)
        ]
        count = self._change.num_rows + table.num_rows
        return Groups([], count).of if not both else np.unique(together(both), return_inverse=True)[1]

    def change(self, context: Context) -> Frame:
        """The old rows of the touched groups with -1, the new ones with +1."""
        layout, old = self._layout, self._old
        table = old.table
        keyed = old.select([*columns(old.columns), *((name, column(as_)) for name, _, as_ in layout.keys)])
        arrays = [self._elements(i, m) for i, m in enumerate(layout.measures)]
        places = [_placed(layout, m, arrays, keyed) for m in layout.measures]
        weights = self._change.column(WEIGHT).to_numpy()
        new = [_Made([], []) for _ in layout.measures]
        alive, same = np.ones(table.num_rows, np.bool_), np.ones(table.num_rows, np.bool_)
        for row in range(table.num_rows):
            chosen = np.flatnonzero(self._of == row)
            rows = int(weights[chosen].sum())
            for i, (elements, place, made) in enumerate(zip(arrays, places, new, strict=True)):
                text, changed = place.of(table, row, elements[row].size), self._changed(i, chosen)
                joined, kept, count = elements[row].patched(text, changed, rows)
                same[row] &= not changed and not rows
                made.texts.append(joined if count else None)
                made.kept.append(kept)
            total = arrays[0][row].rows + rows
            if total < 0:
                raise NotFound
            alive[row] = total > 0 or not layout.keys
        after = keyed.only(self._keys).rows()
        if after is None:
            raise NotHere
        for i, (m, made) in enumerate(zip(layout.measures, new, strict=True)):
            after = after.append_column(m.name, text_array(made.texts))
            after = after.append_column(f"__o{i}", pa.array(made.kept, pa.binary()))
        fresh = old.holding(after.filter(pa.array(alive & ~same))).select(stored_columns(layout))
        before = old.holding(table.filter(pa.array(~same))).only(layout.stored)
        return context.keep(add([weighted(before, -1), weighted(fresh, 1)]))

    def _elements(self, i: int, measure: MeasureLayout) -> list[Elements]:
        assert isinstance(measure.function, JsonAgg)
        return [Elements(kept, measure.function.keys) for kept in self._old.table.column(self._layout.orders[i])]

    def _changed(self, i: int, rows: Any) -> list[Element]:
        """The elements that come and go in a group."""
        assert isinstance(self._layout.measures[i].function, JsonAgg)
        chosen = self._change.take(pa.array(rows))
        texts, copies = chosen.column(f"__t{i}"), chosen.column(WEIGHT).to_pylist()
        names = [name for name in chosen.column_names if name.startswith(f"__k{i}_")]
        keys = [chosen.column(name).to_pylist() for name in names]
        found: dict[tuple[Any, ...], int] = {}
        for row, text in enumerate(texts.to_pylist()):
            if text is not None:
                told = (*(values[row] for values in keys), text)
                found[told] = found.get(told, 0) + copies[row]
        return [Element(told[:-1], told[-1].encode(), number) for told, number in found.items() if number]


@dataclass(frozen=True)
class _Made:
    texts: list[bytes | None]
    kept: list[bytes]


@dataclass(frozen=True)
class _Place:
    """Where the text of an array begins in a column of the table, row by row."""

    name: str
    begins: Any

    def of(self, table: pa.Table, row: int, size: int) -> memoryview:
        document = table.column(self.name)[row]
        if not document.is_valid:
            raise NotFound
        text = memoryview(document.as_buffer())
        begin = int(self.begins[row])
        if begin + size > len(text):
            raise NotFound
        return text[begin : begin + size]


def _placed(layout: Layout, measure: MeasureLayout, arrays: list[list[Elements]], rows: Frame) -> _Place:
    """Where an array stands in a column that readers see: behind pieces that are known without it."""
    sizes = {m.name: np.array([each.size for each in found]) for m, found in zip(layout.measures, arrays, strict=True)}
    for name, e in layout.node.outputs:
        before: list[exp.Expr] = []
        for piece in _pieces(e):
            if _measure_of(piece) == measure.name:
                return _Place(name, _lengths(before, sizes, rows))
            before.append(piece)
    raise NotFound


def _pieces(e: exp.Expr) -> list[exp.Expr]:
    """The pieces that a document is put together of."""
    while isinstance(e, exp.Paren):
        e = e.this
    if isinstance(e, exp.Concat):
        return [piece for part in e.expressions for piece in _pieces(part)]
    return [e]


def _measure_of(piece: exp.Expr) -> str | None:
    """The measure that a piece is the text of: COALESCE(m, '')."""
    if isinstance(piece, exp.Coalesce) and isinstance(piece.this, exp.Column) and len(piece.expressions) == 1:
        other = piece.expressions[0]
        if isinstance(other, exp.Literal) and other.is_string and not other.this:
            return str(piece.this.name)
    return None


def _lengths(pieces: Sequence[exp.Expr], sizes: dict[str, Any], rows: Frame) -> Any:
    """The length of pieces in bytes, for each row."""
    found = rows.rows()
    total = np.zeros(0 if found is None else found.num_rows, np.int64)
    others: list[Named] = []
    for number, piece in enumerate(pieces):
        name = _measure_of(piece)
        if name in sizes:
            total = total + sizes[name]
        elif isinstance(piece, exp.Literal) and piece.is_string:
            total = total + len(piece.this.encode())
        else:
            others.append((f"p{number}", piece))
    told = rows.select(others).rows() if others else None
    if others and told is None:
        raise NotHere
    for name, _ in others:
        assert told is not None
        total = total + pc.binary_length(told.column(name)).to_numpy()
    return total


def stored_columns(layout: Layout) -> list[Named]:
    """The table's columns over keys, measures and what is kept of arrays."""
    found = dict(layout.node.outputs)
    for name, _, stored in layout.keys:
        found.setdefault(stored, column(name))
    for i, stored in enumerate(layout.orders):
        found.setdefault(stored, column(f"__o{i}"))
    return [(name, found[name]) for name in layout.stored]
