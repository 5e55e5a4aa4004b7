"""Rows on the driver told apart, sorted, grouped and joined, all at once: every value becomes a number first.

Two numberings: ``codes`` are equal where values are the same one (NULL is NULL, NaN is NaN, 0.0 is not -0.0, as in
``zset``); ``ranks`` are in the order of values, as Spark sorts them, NULL before all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.frames import limits
from penstock.frames.arrow.tables import loosened
from penstock.frames.frame import NotHere

Numbers = np.ndarray[Any, np.dtype[Any]]

_LONGEST = 18
"""Digits of decimals that fit into 64 bits."""

_EXACT = 2**53
"""Whole numbers below are added up exactly as doubles."""

_WIDEST, _ROOM = 2**61, 2**62
_COUNTED = 4
"""Values that numbers may have, for each of them, so that counting them takes less than sorting them."""


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, as it is."""
    found = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found


def codes(values: pa.Array) -> Numbers:
    """A number for each value, the same for the same value."""
    if pa.types.is_struct(values.type):
        fields = [codes(pc.struct_field(values, [i])) for i in range(values.type.num_fields)]
        return together([np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.int64), *fields])
    if pa.types.is_list(values.type) or pa.types.is_map(values.type):
        return _list_codes(values)
    if pa.types.is_floating(values.type):
        values = _bits(values)
    if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
        if pa.types.is_null(values.type):
            return np.zeros(len(values), np.int64)
        raise NotHere
    number = _counted(values)
    if number is not None:
        return number
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _list_codes(values: pa.Array) -> Numbers:
    """Arrays are the same if they are as long and have the same elements in order; maps, if their entries are so."""
    lists = as_lists(values)
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy().astype(np.int64)
    longest = int(lengths.max(initial=0))
    if longest * len(lists) > limits.COMPARED_ELEMENTS:
        raise NotHere("long arrays")
    elements, begin = codes(lists.flatten()), np.cumsum(lengths) - lengths
    found = together([lists.is_null().to_numpy(zero_copy_only=False).astype(np.int64), lengths])
    for place in range(longest):
        there = lengths > place
        part = np.full(len(lists), -1 if not len(elements) else elements.min() - 1, np.int64)
        part[there] = elements[begin[there] + place]
        found = _dense(together([found, part]))
    return found


def as_lists(values: pa.Array) -> pa.ListArray:
    """An array as it is, and a map as the array of its entries."""
    if not pa.types.is_map(values.type):
        return values
    kind = pa.struct([pa.field(KEY, values.type.key_type), pa.field(VALUE, values.type.item_type)])
    entries = pa.StructArray.from_arrays([values.keys, values.items], fields=list(kind))
    lists = pa.list_(pa.field("element", kind))
    return pa.Array.from_buffers(lists, len(values), values.buffers()[:2], values.null_count, values.offset, [entries])


KEY, VALUE = "__key", "__value"
"""What the parts of an entry of a map are called, where it is an array."""


def _counted(values: pa.Array) -> Numbers | None:
    """Numbers, days and times counted from the least on, which is 1; NULL is 0. None for others, and wide ranges."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal128(values.type) and values.type.precision <= _LONGEST and len(values):
        number = np.where(missing, 0, _stored(values))
    elif pa.types.is_integer(values.type) and values.type != pa.uint64():
        number = values.cast(pa.int64()).fill_null(0).to_numpy()
    elif pa.types.is_date32(values.type):
        number = values.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
    elif pa.types.is_timestamp(values.type):
        number = values.cast(pa.int64()).fill_null(0).to_numpy()
    else:
        return None
    there = number[~missing] if values.null_count else number
    if not len(there):
        return np.zeros(len(values), np.int64)
    least, greatest = int(there.min()), int(there.max())
    if greatest - least >= _WIDEST:
        return None
    counted = number - least + 1
    return np.where(missing, 0, counted) if values.null_count else counted


def _stored(decimals: pa.Array) -> Numbers:
    """Short decimals as the whole numbers that are stored: the lower half of each is all of it."""
    return np.frombuffer(decimals.buffers()[1], np.int64)[2 * decimals.offset :: 2][: len(decimals)]


def _decimals(stored: Numbers, kind: pa.DataType) -> pa.Array:
    """Decimals by the whole numbers that are stored.

    >>> _decimals(np.array([125, -1]), pa.decimal128(10, 2)).to_pylist()
    [Decimal('1.25'), Decimal('-0.01')]
    """
    lower = stored.astype(np.int64)
    both = np.stack([lower, lower >> 63], axis=1)
    return pa.Array.from_buffers(kind, len(lower), [None, pa.py_buffer(both)])


def _bits(values: pa.Array) -> pa.Array:
    """Floats as the numbers that their bits are, one for all that are not a number."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    number = values.fill_null(0).to_numpy().copy()
    number[np.isnan(number)] = np.nan
    return pa.array(number.view(np.int64 if number.itemsize == 8 else np.int32), mask=missing)


def ranks(values: pa.Array) -> Numbers:
    """A number for each value, in their order; that of NULL is 0, and less than all others."""
    if pa.types.is_struct(values.type):
        fields = [ranks(pc.struct_field(values, [i])) for i in range(values.type.num_fields)]
        there = values.is_valid().to_numpy(zero_copy_only=False)
        return np.where(there, together(fields) + 1, 0)
    if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
        raise NotHere
    if pa.types.is_floating(values.type):
        return _ranked_floats(values)
    number = _counted(values)
    if number is not None:
        return number
    encoded = values.dictionary_encode()
    order = np.zeros(len(encoded.dictionary) + 1, np.int64)  # the last one is that of NULL
    order[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(1, len(order))
    return order[encoded.indices.fill_null(-1).to_numpy()]


def _ranked_floats(values: pa.Array) -> Numbers:
    """NaN is greater than all others, and -0.0 equal to 0.0."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    order = np.unique(values.fill_null(0).to_numpy(), return_inverse=True)[1].astype(np.int64)
    return np.where(missing, 0, order + 1)


def normalised(values: pa.Array) -> pa.Array:
    """Values as Spark groups and joins by them: floats that are equal are the same one, also inside structs."""
    if pa.types.is_struct(values.type) and has_floats(values.type):
        fields = [normalised(values.field(i)) for i in range(values.type.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(values.type), mask=values.is_null())
    if not pa.types.is_floating(values.type):
        if has_floats(values.type):
            raise NotHere("arrays of floats")
        return values
    missing = values.is_null().to_numpy(zero_copy_only=False)
    number = values.fill_null(0).to_numpy() + 0.0  # which makes 0.0 of -0.0
    number[np.isnan(number)] = np.nan
    return pa.array(number, values.type, mask=missing)


def together(parts: Sequence[Numbers]) -> Numbers:
    """One number for the numbers of several columns, in the order of the first, then the second, and so on."""
    total = parts[0]
    for part in parts[1:] if len(total) else ():
        if _width(total) * _width(part) >= _ROOM:
            total = _dense(total)
        if _width(total) * _width(part) >= _ROOM:
            part = _dense(part)
        total = (total - total.min()) * _width(part) + (part - part.min())
    return total


def _width(numbers: Numbers) -> int:
    return int(numbers.max()) - int(numbers.min()) + 1


def _dense(numbers: Numbers) -> Numbers:
    return _grouped(numbers)[1]


def _grouped(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """A row of each different number, in their order, and for each row which of them it has.

    >>> first, of = _grouped(np.array([7, 3, 7]))
    >>> first.tolist(), of.tolist()
    ([1, 0], [1, 0, 1])
    """
    if not len(numbers) or _width(numbers) > _COUNTED * len(numbers):
        _, first, of = np.unique(numbers, return_index=True, return_inverse=True)
        return first, np.asarray(of, np.int64)
    shifted = numbers - numbers.min()  # few enough to be counted, which needs no sorting
    there = np.zeros(_width(numbers), np.bool_)
    there[shifted] = True
    of = (np.cumsum(there) - 1)[shifted]
    return _first_rows(of, int(of.max()) + 1), of


def _told_apart(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The same in any order: where numbers are too far apart to be counted, hashing them takes a third of sorting.

    >>> first, of = _told_apart(np.array([7 * 10**9, 3, 7 * 10**9]))
    >>> first.tolist(), of.tolist()
    ([0, 1], [0, 1, 0])
    """
    if not len(numbers) or _width(numbers) <= _COUNTED * len(numbers):
        return _grouped(numbers)
    found = pa.array(numbers).dictionary_encode()
    of = found.indices.to_numpy().astype(np.int64)
    return _first_rows(of, len(found.dictionary)), of


def _first_rows(of: Numbers, count: int) -> Numbers:
    """The first row of each group."""
    first = np.empty(count, np.int64)
    first[of[::-1]] = np.arange(len(of) - 1, -1, -1)
    return first


def has_floats(data_type: pa.DataType) -> bool:
    """Whether there are floats in it, of which 0.0 is equal to -0.0 though they are not the same."""
    if pa.types.is_nested(data_type):
        return any(has_floats(data_type.field(i).type) for i in range(data_type.num_fields))
    return pa.types.is_floating(data_type)


class Groups:
    """Rows by their keys: the number of its group for each row, and a row of each group."""

    def __init__(self, keys: Sequence[pa.Array], count: int):
        if keys:
            number = together([codes(key) for key in keys])
            self.first, self.of = _told_apart(number)
            self.count = len(self.first)
        else:
            self.of, self.count = np.zeros(count, np.int64), 1
            self.first = np.zeros(0, np.int64)

    def among(self, rows: Numbers) -> Groups:
        """The same groups, of some rows only."""
        some = copy(self)
        some.of = self.of[rows]
        return some

    def sizes(self) -> pa.Array:
        return pa.array(np.bincount(self.of, minlength=self.count).astype(np.int64))

    def number_of(self, chosen: Numbers) -> pa.Array:
        """How many rows of each group are among the chosen."""
        return pa.array(np.bincount(self.of[chosen], minlength=self.count).astype(np.int64))

    def sum(self, values: pa.Array) -> pa.Array:
        """The sum of each group, as Spark types it; NULL for one without values. Doubles are added row by row."""
        if pa.types.is_floating(values.type):
            return pa.array(self.sum_of_doubles(values), mask=self._counts(values) == 0)
        if pa.types.is_decimal128(values.type):
            kind = pa.decimal128(min(38, values.type.precision + 10), values.type.scale)
            most = _largest(values) * len(values)
            if most >= 10**38:
                raise NotHere("a sum may overflow")
            if len(values) and not values.null_count and most < _EXACT and values.type.precision <= _LONGEST:
                return self.where_any(_decimals(self._exactly(_stored(values)), kind))
        elif pa.types.is_integer(values.type):
            kind, values = pa.int64(), values.cast(pa.int64())
            most = _largest(values) * len(values)
            if most >= 2**63:
                raise NotHere("a sum may overflow")
            if len(values) and not values.null_count and most < _EXACT:
                return self.where_any(pa.array(self._exactly(values.to_numpy())))
        else:
            raise NotHere
        return self._aggregated(values, "sum").cast(kind)

    def _exactly(self, numbers: Numbers) -> Numbers:
        return np.bincount(self.of, numbers, minlength=self.count).astype(np.int64)

    def where_any(self, values: pa.Array) -> pa.Array:
        """A value for each group, NULL for one of which no row is here."""
        there = np.bincount(self.of, minlength=self.count) > 0
        return values if there.all() else pc.if_else(pa.array(there), values, pa.scalar(None, values.type))

    def sum_of_doubles(self, values: pa.Array) -> Numbers:
        """Sums of numbers as doubles, added in the order of rows, as Spark does in one partition."""
        number = values.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
        return np.bincount(self.of, number, minlength=self.count).astype(np.float64)

    def _counts(self, values: pa.Array) -> Numbers:
        there = values.is_valid().to_numpy(zero_copy_only=False)
        return np.bincount(self.of[there], minlength=self.count)

    def extreme(self, values: pa.Array, kind: str) -> pa.Array:
        """The least or greatest value of each group, ``kind`` is MIN or MAX; NULL for one without values."""
        if any(is_a(values.type) for is_a in (pa.types.is_integer, pa.types.is_decimal128, pa.types.is_temporal)):
            return self._aggregated(values, kind.lower())
        there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        rank = ranks(values)[there]  # of equal values the first one is kept: of 0.0 and -0.0, for one
        order = there[np.lexsort((rank if kind == "MIN" else -rank, self.of[there]))]
        return self.first_of(values, order)

    def any_value(self, values: pa.Array) -> pa.Array:
        """A value of each group that is not NULL."""
        return self.first_of(values, np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)))

    def first_of(self, values: pa.Array, order: Numbers) -> pa.Array:
        """Of each group the value that comes first in an order of rows."""
        found, first = np.unique(self.of[order], return_index=True)
        return self.placed(values.take(pa.array(order[first])), found)

    def _aggregated(self, values: pa.Array, function: str) -> pa.Array:
        table = pa.table({"group": self.of, "value": values})
        found = table.group_by("group", use_threads=False).aggregate([("value", function)])
        return self.placed(whole(found.column(f"value_{function}")), found.column("group").to_numpy())

    def placed(self, values: pa.Array, groups: Numbers) -> pa.Array:
        """Values of some groups, as those of all."""
        places = np.full(self.count, -1, np.int64)
        places[groups] = np.arange(len(groups))
        return values.take(pa.array(places, mask=places < 0))


def _largest(values: pa.Array) -> int:
    """The largest number, whatever its sign; of decimals as the whole number that is stored."""
    extremes = pc.min_max(values)
    numbers = [extremes[side].as_py() or 0 for side in ("min", "max")]
    scale = values.type.scale if pa.types.is_decimal128(values.type) else 0
    return max(int(abs(number).__ceil__()) for number in numbers) * 10**scale


def consolidated(rows: pa.Table, weight: str, beside: Sequence[str] = ()) -> pa.Table:
    """One row for each distinct row, its weights added up, zeros dropped; ``beside`` as in ``zset.consolidate``."""
    names = [name for name in rows.column_names if name != weight and name not in beside]
    columns = {name: whole(rows.column(name)) for name in rows.column_names}
    groups = Groups([columns[name] for name in names], rows.num_rows)
    first = pa.array(groups.first)
    found = {name: columns[name].take(first) for name in names}
    found[weight] = groups.sum(columns[weight])
    if beside:
        there = np.flatnonzero(columns[beside[0]].is_valid().to_numpy(zero_copy_only=False))
        found |= {name: groups.first_of(columns[name], there) for name in beside}
    table = pa.table({name: found[name] for name in (*names, weight, *beside)})
    return table.filter(pc.not_equal(table.column(weight), 0))


def can_tell_apart(data_type: pa.DataType) -> bool:
    """Whether values of a type have ``codes``."""
    if pa.types.is_struct(data_type) or pa.types.is_list(data_type) or pa.types.is_map(data_type):
        return all(can_tell_apart(data_type.field(i).type) for i in range(data_type.num_fields))
    return not pa.types.is_nested(data_type)


def to_remove(rows: pa.Table, removed: pa.Table, columns: Sequence[str], times: Numbers) -> Numbers:
    """Which rows go, if of each removed one, told by some columns, so many copies do; all rows are one without any."""
    of, count = np.zeros(rows.num_rows + len(times), np.int64), 1
    if columns:
        both = [pa.concat_arrays([whole(rows.column(c)), whole(removed.column(c))]) for c in columns]
        distinct, of = np.unique(together([codes(values) for values in both]), return_inverse=True)
        count = len(distinct)
    here, gone = of[: rows.num_rows], of[rows.num_rows :]
    wanted = np.bincount(gone, times, minlength=count)
    order = np.argsort(here, kind="stable")
    begins = np.searchsorted(here[order], here[order], "left")
    found = np.zeros(rows.num_rows, np.bool_)
    found[order] = np.arange(rows.num_rows) - begins < wanted[here[order]]
    return found


def gone(rows: pa.Table, change: pa.Table, columns: Sequence[str], weight: str) -> Numbers:
    """Which rows a change removes: as many copies of each as its weight says."""
    removed = change.filter(pc.less(change.column(weight), 0))
    times = -removed.column(weight).to_numpy()
    return to_remove(rows, loosened(removed.select(list(columns))), columns, times)


def pairs(
    left: Sequence[pa.Array], right: Sequence[pa.Array], nulls: Sequence[bool], sizes: tuple[int, int]
) -> tuple[Numbers, Numbers]:
    """Which rows of two sides have equal keys: places on the left and on the right, in the order of the left.

    ``nulls`` says for each key whether NULL is equal to NULL. Without keys every row meets every other.
    """
    mine, theirs = sizes
    if not left:
        if mine * theirs > limits.JOINED_PAIRS:
            raise NotHere
        return np.repeat(np.arange(mine), theirs), np.tile(np.arange(theirs), mine)
    both = [normalised(pa.concat_arrays([a, b])) for a, b in zip(left, right, strict=True)]
    number = together([codes(values) for values in both])
    there = np.ones(mine + theirs, np.bool_)
    for values, null_is_equal in zip(both, nulls, strict=True):
        if values.null_count and not null_is_equal:
            there &= values.is_valid().to_numpy(zero_copy_only=False)
    here, yonder = np.flatnonzero(there[:mine]), np.flatnonzero(there[mine:])
    order = yonder[np.argsort(number[mine:][yonder], kind="stable")]
    sorted_codes = number[mine:][order]
    begin = np.searchsorted(sorted_codes, number[:mine][here], "left")
    times = np.searchsorted(sorted_codes, number[:mine][here], "right") - begin
    total = int(times.sum())
    if total > limits.JOINED_PAIRS:
        raise NotHere
    within = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
    return np.repeat(here, times), order[np.repeat(begin, times) + within]
