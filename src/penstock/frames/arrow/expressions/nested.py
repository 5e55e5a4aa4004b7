"""Structs, arrays and maps over rows on the driver: the rules of ``values`` that make them and take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.expressions.casts import Mode, as_text, mode_of
from penstock.frames.arrow.expressions.conditions import common_type, in_common
from penstock.frames.arrow.expressions.types import DIGITS, Value, cast, has_floats, widest_of
from penstock.frames.arrow.expressions.values import Rows, by_row, column, few, function, rule, value
from penstock.frames.arrow.lists import sorted_lists
from penstock.frames.frame import NotHere


def list_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


# -- making ------------------------------------------------------------------------------------------------------------


@rule(exp.Struct, reads=("expressions",))
def _struct(node: exp.Struct, rows: Rows) -> Value:
    names, parts = [], []
    for field in node.expressions:
        if not isinstance(field, exp.PropertyEQ):
            raise NotHere
        names.append(field.name)
        parts.append(column(field.expression, rows))
    if len({name.lower() for name in names}) < len(names):
        raise NotHere
    return pa.StructArray.from_arrays(parts, fields=[pa.field(n, p.type) for n, p in zip(names, parts, strict=True)])


@rule(exp.Array, reads=("expressions",))
def _array(node: exp.Array, rows: Rows) -> Value:
    if not node.expressions:
        raise NotHere
    options = [column(option, rows) for option in node.expressions]
    kind = common_type([option.type for option in options])
    if pa.types.is_null(kind) or len(options) * rows.count > limits.JOINED_PAIRS:
        raise NotHere
    together = pa.concat_arrays([in_common(option, kind, rows) for option in options])
    order = np.arange(len(together)).reshape(len(options), rows.count).T.ravel()
    offsets = pa.array(np.arange(rows.count + 1) * len(options), pa.int32())
    return pa.ListArray.from_arrays(offsets, together.take(pa.array(order)), type=list_of(kind))


@rule(exp.VarMap, reads=("keys", "values"))
def _map(node: exp.VarMap, rows: Rows) -> Value:
    """MAP of names that are written down, each once."""
    names = [value(key, rows) for key in node.args["keys"].expressions]
    known = {name.as_py() for name in names if isinstance(name, pa.Scalar) and name.type == pa.string()}
    if not names or None in known or len(known) < len(names):
        raise NotHere
    values = _array(node.args["values"], rows)
    keys = pa.array([name.as_py() for name in names] * rows.count, pa.string())
    kind = pa.map_(pa.string(), pa.field("value", values.type.value_type))
    return pa.MapArray.from_arrays(values.offsets, keys, values.values, type=kind)


@function("ARRAY_COMPACT", takes=(1,))
@rule(exp.ArrayCompact, reads=("this",))
def _compact(node: exp.ArrayCompact | list[exp.Expr], rows: Rows) -> Value:
    """An array without what is NULL in it."""
    found = _list(node[0] if isinstance(node, list) else node.this, rows)
    there = pc.is_valid(found.flatten()).to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(found).fill_null(0).to_numpy()
    ends = np.concatenate([[0], np.cumsum(there)])
    offsets = ends[np.concatenate([[0], np.cumsum(lengths)])].astype(np.int32)
    elements = found.flatten().filter(pa.array(there))
    return pa.ListArray.from_arrays(pa.array(offsets), elements, type=found.type, mask=found.is_null())


@function("ARRAY_REPEAT", takes=(2,))
def _repeat(arguments: list[exp.Expr], rows: Rows) -> Value:
    """A value so many times; none for fewer than one."""
    found, count = (column(argument, rows) for argument in arguments)
    if count.type not in DIGITS or pa.types.is_null(found.type):
        raise NotHere
    times = np.maximum(count.fill_null(0).to_numpy().astype(np.int64), 0)
    if int(times.sum()) > limits.JOINED_PAIRS:
        raise NotHere
    elements = found.take(pa.array(np.repeat(np.arange(rows.count), times)))
    offsets = pa.array(np.concatenate([[0], np.cumsum(times)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, elements, type=list_of(found.type), mask=count.is_null())


@rule(exp.GenerateSeries, reads=("start", "end", "step"))
def _sequence(node: exp.GenerateSeries, rows: Rows) -> Value:
    """Whole numbers from one to another."""
    given = [node.args["start"], node.args["end"], node.args.get("step")]
    sides = [column(side, rows) for side in given if side is not None]
    if any(side.type not in DIGITS for side in sides):
        raise NotHere
    kind = widest_of([side.type for side in sides])
    return by_row([cast(side, kind) for side in sides], _numbers, list_of(kind))


def _numbers(start: int, end: int, step: int | None = None) -> list[int]:
    by = step if step is not None else 1 if start <= end else -1
    if by == 0 or (end - start) * by < 0 or abs((end - start) // by) > limits.SINGLE_VALUES:
        raise NotHere
    return list(range(start, end + (1 if by > 0 else -1), by))


# -- taking apart ------------------------------------------------------------------------------------------------------


def _list(node: exp.Expr, rows: Rows) -> pa.ListArray:
    found = column(node, rows)
    if not pa.types.is_list(found.type):
        raise NotHere
    return found


@rule(exp.Bracket, reads=("this", "expressions", "offset", "safe"))
def _element(node: exp.Bracket, rows: Rows) -> Value:
    """a[0] and ELEMENT_AT(a, 1). A place that there is not is NULL, or an error."""
    if len(node.expressions) != 1:
        raise NotHere
    found = column(node.this, rows)
    first = int(node.args.get("offset") or 0)
    if pa.types.is_map(found.type):
        return _of_map(found, value(node.expressions[0], rows))
    strict = mode_of(rows) is Mode.ANSI and not (first == 1 and node.args.get("safe"))
    return _at(found, column(node.expressions[0], rows), first, strict=strict)


@function("GET", takes=(2,))
def _got(arguments: list[exp.Expr], rows: Rows) -> Value:
    found, place = (column(argument, rows) for argument in arguments)
    return _at(found, place, 0, strict=False)


def _at(found: pa.Array, place: pa.Array, first: int, *, strict: bool) -> pa.Array:
    if not pa.types.is_list(found.type) or place.type not in DIGITS:
        raise NotHere
    lengths = pc.list_value_length(found).fill_null(0).to_numpy().astype(np.int64)
    at, missing = place.fill_null(first).to_numpy().astype(np.int64) - first, pc.or_(found.is_null(), place.is_null())
    if first == 1:
        if (place.fill_null(1).to_numpy() == 0).any():
            raise NotHere
        at = np.where(at < 0, at + 1 + lengths, at)  # counted from the end
    outside = (at < 0) | (at >= lengths)
    nothing = missing.to_numpy(zero_copy_only=False)
    if strict and (outside & ~nothing).any():
        raise NotHere
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else lengths
    return found.flatten().take(pa.array(begins + at, mask=outside | nothing))


def _of_map(found: pa.MapArray, key: Value) -> pa.Array:
    if not isinstance(key, pa.Scalar) or key.type != found.type.key_type or not key.is_valid:
        raise NotHere
    return pc.map_lookup(found, key, "first")


@rule(exp.ArraySize, reads=("this",))
def _size(node: exp.ArraySize, rows: Rows) -> Value:
    """NULL has no size under ANSI; without, it depends on which function was written."""
    return _size_of(node.this, rows)


@function("CARDINALITY", takes=(1,))
def _cardinality(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _size_of(arguments[0], rows)


def _size_of(node: exp.Expr, rows: Rows) -> Value:
    found = column(node, rows)
    if pa.types.is_map(found.type):
        found = found.cast(pa.list_(pa.struct([found.type.key_field, found.type.item_field])))
    if not pa.types.is_list(found.type) or (found.null_count and mode_of(rows) is not Mode.ANSI):
        raise NotHere
    return pc.list_value_length(found)


@rule(exp.ArrayContains, reads=("this", "expression", "ensure_variant"))
def _contains(node: exp.ArrayContains, rows: Rows) -> Value:
    """NULL if it is not found, but NULL is."""
    found, wanted = _list(node.this, rows), column(node.expression, rows)
    if found.type.value_type != wanted.type or has_floats(wanted.type) or pa.types.is_nested(wanted.type):
        raise NotHere
    return by_row([found, wanted], lambda of, one: True if one in of else None if None in of else False, pa.bool_())


@rule(exp.ArrayPosition, reads=("this", "expression"))
def _position(node: exp.ArrayPosition, rows: Rows) -> Value:
    found, wanted = _list(node.this, rows), column(node.expression, rows)
    if found.type.value_type != wanted.type or has_floats(wanted.type) or pa.types.is_nested(wanted.type):
        raise NotHere
    return by_row([found, wanted], lambda of, one: of.index(one) + 1 if one in of else 0, pa.int64())


@rule(exp.ArraySlice, reads=("this", "start", "end", "is_length"))
def _slice(node: exp.ArraySlice, rows: Rows) -> Value:
    """Some elements from a place on, which is counted from one, or back from the end."""
    found, start, length = _list(node.this, rows), node.args["start"], node.args.get("end")
    if length is None or not node.args.get("is_length"):
        raise NotHere

    def part(values: list[Any], place: int, count: int) -> list[Any]:
        if place == 0 or count < 0:
            raise NotHere
        first = place - 1 if place > 0 else len(values) + place
        return values[first : first + count] if first >= 0 else []

    sides = [column(side, rows) for side in (start, length)]
    if any(side.type not in DIGITS for side in sides) or pa.types.is_nested(found.type.value_type):
        raise NotHere
    return by_row([found, *sides], part, found.type)


@rule(exp.ArraySort, reads=("this", "asc", "nulls_first"))
def _sorted(node: exp.ArraySort, rows: Rows) -> Value:
    found, up, first = _list(node.this, rows), node.args.get("asc"), node.args.get("nulls_first")
    if up is not None and not isinstance(up, exp.Boolean):
        raise NotHere
    down, nulls_first = up is not None and not up.this, isinstance(first, exp.Boolean) and bool(first.this)
    if has_floats(found.type.value_type) and (down or nulls_first):  # SORT_ARRAY may tell -0.0 from 0.0
        raise NotHere
    return sorted_lists(found, down=down, nulls_first=nulls_first)


def _lists(found: pa.ListArray, made: Callable[[list[Any]], Any], to: pa.DataType | None = None) -> pa.Array:
    """What is made of every array of plain values."""
    kind = found.type.value_type
    if pa.types.is_nested(kind) or has_floats(kind) or len(found.flatten()) > limits.SINGLE_VALUES:
        raise NotHere
    return pa.array([None if v is None else made(v) for v in few(found).to_pylist()], to or found.type)


@rule(exp.ArrayMin, exp.ArrayMax, reads=("this",))
def _extreme(node: exp.Expr, rows: Rows) -> Value:
    found = _list(node.this, rows)
    extreme = min if isinstance(node, exp.ArrayMin) else max

    def chosen(values: list[Any]) -> Any:
        return extreme((v for v in values if v is not None), default=None)

    return _lists(found, chosen, found.type.value_type)


@rule(exp.ArrayDistinct, reads=("this", "check_null"))
def _distinct(node: exp.ArrayDistinct, rows: Rows) -> Value:
    return _lists(_list(node.this, rows), lambda values: list(dict.fromkeys(values)))


@rule(exp.ArrayToString, reads=("this", "expression", "null"))
def _joined(node: exp.ArrayToString, rows: Rows) -> Value:
    found, between = _list(node.this, rows), value(node.expression, rows)
    null = value(node.args["null"], rows) if node.args.get("null") is not None else None
    fixed = [given for given in (between, null) if given is not None]
    if found.type.value_type != pa.string() or any(not isinstance(g, pa.Scalar) or not g.is_valid for g in fixed):
        raise NotHere
    by, instead = as_text(between, rows).as_py(), None if null is None else as_text(null, rows).as_py()

    def joined(values: list[Any]) -> str:
        known = (instead if v is None else v for v in values)
        return str(by).join(v for v in known if v is not None)

    return _lists(found, joined, pa.string())


@rule(exp.MapKeys, reads=("this",))
def _keys(node: exp.MapKeys, rows: Rows) -> Value:
    return _part_of_map(node.this, "key", rows)


@function("MAP_VALUES", takes=(1,))
def _values(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _part_of_map(arguments[0], "value", rows)


def _part_of_map(node: exp.Expr, part: str, rows: Rows) -> pa.Array:
    found = column(node, rows)
    if not pa.types.is_map(found.type) or len(found) > limits.SINGLE_VALUES:
        raise NotHere
    kind = found.type.key_type if part == "key" else found.type.item_type
    if pa.types.is_nested(kind):
        raise NotHere
    place = 0 if part == "key" else 1
    pairs = found.to_pylist()
    return pa.array([None if m is None else [pair[place] for pair in m] for m in pairs], list_of(kind))
