"""EXPLODE and its like over rows on the driver: for each row as many as its array or map has elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions.json_text import members
from penstock.frames.arrow.expressions.texts import text
from penstock.frames.arrow.expressions.types import cast, widest_of
from penstock.frames.arrow.expressions.values import Rows, computed, spread
from penstock.frames.arrow.groups import KEY, VALUE, Numbers, as_lists
from penstock.frames.frame import NotHere

_PLACED = (exp.Posexplode, exp.PosexplodeOuter)
_OUTER = (exp.ExplodeOuter, exp.PosexplodeOuter)


def generated(generator: exp.Expr, rows: Rows) -> tuple[Numbers, list[pa.Array]]:
    """The row that each new one comes of, and the columns that it brings."""
    if isinstance(generator, exp.Anonymous) and str(generator.this).upper() == "JSON_TUPLE":
        return np.arange(rows.count), _tuple(generator.expressions, rows)
    name = str(generator.this).upper() if isinstance(generator, exp.Anonymous) else ""
    if type(generator) is exp.Inline or name == "INLINE_OUTER":
        array = generator.expressions[0] if name else generator.this
        places, _, elements = _taken_apart(array, rows, outer=bool(name))
        return places, _fields(elements)
    if not isinstance(generator, exp.Explode) or generator.expressions:
        raise NotHere
    places, within, elements = _taken_apart(generator.this, rows, outer=isinstance(generator, _OUTER))
    columns = _fields(elements) if _is_entry(elements.type) else [elements]
    return places, [within, *columns] if isinstance(generator, _PLACED) else columns


def _taken_apart(array: exp.Expr, rows: Rows, *, outer: bool) -> tuple[Numbers, pa.Array, pa.Array]:
    """Of each element the row that it belongs to, its place there, and itself; NULL for no elements, if ``outer``."""
    if isinstance(array, exp.Array) and array.expressions:
        options = [computed(e, rows) for e in array.expressions]
        kind = widest_of([values.type for values in options])
        elements = pa.concat_arrays([cast(values, kind) for values in options])
        order = np.arange(len(elements)).reshape(len(options), rows.count).T.ravel()
        within = pa.array(np.tile(np.arange(len(options)), rows.count), pa.int32())
        return np.repeat(np.arange(rows.count), len(options)), within, elements.take(pa.array(order))
    values = computed(array, rows)
    if not pa.types.is_list(values.type) and not pa.types.is_map(values.type):
        raise NotHere
    lists = as_lists(values)
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy().astype(np.int64)
    times = np.maximum(lengths, 1) if outer else lengths
    places = np.repeat(np.arange(rows.count), times)
    within = np.arange(len(places)) - np.repeat(np.cumsum(times) - times, times)
    missing = np.repeat(lengths == 0, times)
    at = pa.array(np.repeat(np.cumsum(lengths) - lengths, times) + within, mask=missing)
    return places, pa.array(within.astype(np.int32), mask=missing), lists.flatten().take(at)


def _is_entry(kind: pa.DataType) -> bool:
    """Whether it is what ``as_lists`` makes of the entries of a map."""
    return pa.types.is_struct(kind) and [field.name for field in kind] == [KEY, VALUE]


def _fields(elements: pa.Array) -> list[pa.Array]:
    if not pa.types.is_struct(elements.type):
        raise NotHere
    return [pc.struct_field(elements, [i]) for i in range(elements.type.num_fields)]


def _tuple(arguments: Sequence[exp.Expr], rows: Rows) -> list[pa.Array]:
    """JSON_TUPLE by names that are written down."""
    document, *names = arguments
    if not names or not all(isinstance(name, exp.Literal) and name.is_string for name in names):
        raise NotHere
    return members(spread(text(document, rows), rows.count), [str(name.this) for name in names])
