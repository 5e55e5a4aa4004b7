"""The elements of large JSON arrays: where each of them stands in the text, so that one is replaced without the others.

Beside the text of an array are kept, in its order, the values that it is sorted by and the length of each element. So
an element is found by bisection, and the new text is put together of pieces of the old one. What is kept is an Arrow
stream in a binary value: ``k0``, ``k1``, .. and ``length``, with the number of rows of the group beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.documents import ordered
from penstock.frames.arrow.groups import Groups, Numbers
from penstock.frames.frame import NotHere

_ROWS, _LENGTH = b"rows", "length"
_PLAIN = (
    pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal,
    pa.types.is_boolean, pa.types.is_floating,
)  # fmt: skip


class NotFound(Exception):
    """An element that goes is not where it should be, or only Spark knows the order."""


def orders_of(texts: pa.Array, keys: Sequence[tuple[pa.Array, exp.Ordered]], groups: Groups) -> pa.Array:
    """What is kept of each group; NULL of one with few elements, which is aggregated again in no time."""
    counts = np.bincount(groups.of, minlength=groups.count)
    found: list[bytes | None] = [None] * groups.count
    if not all(any(plain(values.type) for plain in _PLAIN) for values, _ in keys):
        return pa.array(found, pa.binary())
    for group in np.flatnonzero(counts >= limits.PATCHED_ELEMENTS):
        rows = np.flatnonzero((groups.of == group) & texts.is_valid().to_numpy(zero_copy_only=False))
        taken = pa.array(rows)
        chosen = [(values.take(taken), key) for values, key in keys]
        order = pa.array(ordered(np.zeros(len(rows), np.int64), chosen))
        lengths = pc.binary_length(texts.take(taken)).take(order)
        sort = [values.take(order) for values, _ in chosen[:-1]]
        found[group] = _packed(sort, lengths, int(counts[group]))
    return pa.array(found, pa.binary())


def _packed(keys: Sequence[pa.Array], lengths: pa.Array, rows: int) -> bytes:
    names = [f"k{i}" for i in range(len(keys))]
    table = pa.table([*keys, lengths.cast(pa.int32())], names=[*names, _LENGTH])
    table = table.replace_schema_metadata({_ROWS: str(rows).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@dataclass(frozen=True)
class Element:
    """An element that comes or goes: what it is sorted by, its text, and how many copies of it."""

    keys: tuple[Any, ...]
    text: bytes
    copies: int


class Elements:
    """The elements of one array, as they are stored."""

    def __init__(self, kept: pa.Scalar, directions: Sequence[exp.Ordered]):
        """``directions``: how the keys are sorted; the text is the last one, going up."""
        table = pa.ipc.open_stream(kept.as_buffer()).read_all().combine_chunks()
        self.rows = int(table.schema.metadata[_ROWS])
        self._keys = [table.column(i).combine_chunks() for i in range(table.num_columns - 1)]
        self._keys = [part.chunk(0) if isinstance(part, pa.ChunkedArray) else part for part in self._keys]
        self._lengths = table.column(_LENGTH).to_numpy().astype(np.int64)
        ends = np.cumsum(self._lengths + 1) - 1  # a comma stands between two
        self._begins, self._ends = ends - self._lengths, ends
        self._compared = [_comparison(key) for key in directions[: len(self._keys)]]
        if len(self._compared) != len(self._keys):
            raise NotFound
        self._text = memoryview(b"")

    @property
    def size(self) -> int:
        """The length of the text, in bytes."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def patched(self, text: memoryview, change: Iterable[Element], rows: int) -> tuple[bytes, bytes, int]:
        """The new text, what is kept of it, and how many elements it has; ``rows``: how many the group gains."""
        self._text = text
        gone: list[int] = []
        come: list[tuple[int, Element]] = []
        for element in change:
            place = self._place(element)
            if element.copies > 0:
                come += [(place, element)] * element.copies
            else:
                gone += self._found(place, element)
        come.sort(key=lambda each: (each[0], self._sorting(each[1])))
        return self._spliced(gone, come, rows)

    def _sorting(self, element: Element) -> Any:
        return tuple(
            compared(value) for compared, value in zip(self._compared, element.keys, strict=True)
        ), element.text

    def _place(self, element: Element) -> int:
        """Where the first element stands that is not before this one."""
        wanted = self._sorting(element)
        low, high = 0, len(self._lengths)
        while low < high:
            middle = (low + high) // 2
            if self._at(middle, wanted[0]) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _at(self, place: int, keys: Any) -> Any:
        """What an element is sorted by. Its text is only looked at if the keys are the same."""
        mine = tuple(
            compared(values[place].as_py()) for compared, values in zip(self._compared, self._keys, strict=True)
        )
        return mine, bytes(self._text[self._begins[place] : self._ends[place]]) if mine == keys else b""

    def _found(self, place: int, element: Element) -> list[int]:
        """The places of as many copies as go, which must be there."""
        wanted = self._sorting(element)
        places = list(range(place, place - element.copies))
        if places[-1] >= len(self._lengths) or any(self._at(at, wanted[0]) != wanted for at in places):
            raise NotFound
        return places

    def _spliced(self, gone: list[int], come: list[tuple[int, Element]], rows: int) -> tuple[bytes, bytes, int]:
        count = len(self._lengths)
        cuts = sorted({0, count, *gone, *(place + 1 for place in gone), *(place for place, _ in come)})
        removed, order, at = set(gone), list[Numbers](), 0
        pieces: list[bytes | memoryview] = []
        new = list(come)
        for start, stop in zip(cuts, [*cuts[1:], count], strict=True):
            while at < len(new) and new[at][0] == start:
                pieces.append(new[at][1].text)
                order.append(np.array([count + at]))
                at += 1
            if start < stop and start not in removed:
                pieces.append(self._text[self._begins[start] : self._ends[stop - 1]])
                order.append(np.arange(start, stop))
        places = np.concatenate([np.zeros(0, np.int64), *order])
        lengths = np.concatenate([self._lengths, [len(element.text) for _, element in new]]).astype(np.int64)[places]
        keys = [
            pa.concat_arrays([values, pa.array([element.keys[i] for _, element in new], values.type)]).take(
                pa.array(places)
            )
            for i, values in enumerate(self._keys)
        ]
        kept = _packed(keys, pa.array(lengths, pa.int32()), self.rows + rows)
        return b",".join(pieces), kept, len(places)


def _comparison(key: exp.Ordered) -> Callable[[Any], Any]:
    """Values in the order that a key asks for, as Python compares them."""
    down, first = bool(key.args.get("desc")), key.args.get("nulls_first")
    nulls_first = (not down) if first is None else bool(first)

    def compared(value: Any) -> Any:
        if value is None:
            return (0 if nulls_first else 2, _Down(0) if down else 0)
        if isinstance(value, float) and math.isnan(value):
            found: Any = (1, 0.0)  # greater than all numbers
        elif isinstance(value, float):
            found = (0, value)
        else:
            found = value.encode() if isinstance(value, str) else value
        return (1, _Down(found) if down else found)

    return compared


@dataclass(frozen=True, order=False)
class _Down:
    """A value that comes the later the smaller it is."""

    value: Any

    def __lt__(self, other: _Down) -> bool:
        return bool(other.value < self.value)


def check_plain(values: pa.Array) -> None:
    """Whether values are sorted here as Spark does."""
    if not any(plain(values.type) for plain in _PLAIN):
        raise NotHere


def text_array(texts: Sequence[bytes | None]) -> pa.Array:
    """Texts that are known to be UTF-8."""
    lengths = np.array([0 if text is None else len(text) for text in texts], np.int64)
    if lengths.sum() >= 2**31:
        raise NotHere
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    content = pa.py_buffer(b"".join(text for text in texts if text is not None))
    there = pa.array([text is not None for text in texts])
    found = pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets.tobytes()), content)
    return found if pc.all(there).as_py() else pc.if_else(there, found, pa.scalar(None, pa.string()))
