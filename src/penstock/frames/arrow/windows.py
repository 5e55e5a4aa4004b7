"""Window functions of rows on the driver: ranks, values of other rows, and aggregates over frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.calls import Call, call_of, whole_number
from penstock.frames.arrow.expressions.conditions import truth
from penstock.frames.arrow.expressions.types import cast
from penstock.frames.arrow.expressions.values import Rows, check_arguments, computed
from penstock.frames.arrow.framed import Frames, valid
from penstock.frames.arrow.groups import Numbers
from penstock.frames.arrow.window_frames import Sequence as Placed
from penstock.frames.arrow.window_frames import frames_of, ordered
from penstock.frames.frame import NotHere
from penstock.sql.dialect import SparkSql

__all__ = ["all_placed", "ordered", "placed"]


def placed(window: exp.Window, rows: Rows) -> pa.Array:
    """The value of a window function for each row."""
    return all_placed([window], rows)[0]


def all_placed(windows: Sequence[exp.Window], rows: Rows) -> list[pa.Array]:
    """The values of window functions for each row; those of one partitioning and order are sorted once."""
    try:
        known: dict[tuple[str, ...], Placed] = {}
        return [_placed(window, rows, known) for window in windows]
    except (pa.ArrowException, OverflowError, ValueError, RecursionError):
        raise NotHere from None


def _placed(window: exp.Window, rows: Rows, known: dict[tuple[str, ...], Placed]) -> pa.Array:
    check_arguments(window, ("this", "partition_by", "order", "spec", "over"))
    call = call_of(window.this)
    parts = [*(window.args.get("partition_by") or ()), *([window.args["order"]] if window.args.get("order") else ())]
    name = tuple(part.sql(dialect=SparkSql) for part in parts)
    if name not in known:
        known[name] = Placed.of(window, rows)
    return known[name].put_back(_value(call, window, rows, known[name]))


def _value(call: Call, window: exp.Window, rows: Rows, sequence: Placed) -> pa.Array:
    if call.name in _RANKS or call.name in ("lag", "lead", "ntile"):
        if not sequence.ordered or window.args.get("spec") or call.distinct or call.where:
            raise NotHere
        if call.name in _RANKS:
            if call.arguments:
                raise NotHere
            return _RANKS[call.name](sequence)
        return _tile(call, sequence) if call.name == "ntile" else _offset(call, rows, sequence)
    return _framed(call, rows, sequence, frames_of(window, rows, sequence))


def _row_number(of: Placed) -> Numbers:
    return np.arange(of.count) - of.begin + 1


def _rank(of: Placed) -> Numbers:
    return of.first_peer - of.begin + 1


def _dense_rank(of: Placed) -> Numbers:
    kinds = np.cumsum(of.first_peer == np.arange(of.count))
    return kinds - kinds[of.begin] + 1


def _percent_rank(of: Placed) -> Numbers:
    others = of.end - of.begin - 1
    return np.where(others > 0, (of.first_peer - of.begin) / np.maximum(others, 1), 0.0)


_RANKS: dict[str, Callable[[Placed], pa.Array]] = {
    "row_number": lambda of: pa.array(_row_number(of), pa.int32()),
    "rank": lambda of: pa.array(_rank(of), pa.int32()),
    "dense_rank": lambda of: pa.array(_dense_rank(of), pa.int32()),
    "percent_rank": lambda of: pa.array(_percent_rank(of), pa.float64()),
    "cume_dist": lambda of: pa.array((of.after_peers - of.begin) / (of.end - of.begin), pa.float64()),
}


def _tile(call: Call, of: Placed) -> pa.Array:
    """NTILE: parts of equal size, the first ones larger by a row where some are left over."""
    (argument,) = call.arguments
    parts = whole_number(argument)
    if parts <= 0:
        raise NotHere
    size, larger = np.divmod(of.end - of.begin, parts)
    place = np.arange(of.count) - of.begin
    among_larger = larger * (size + 1)
    later = larger + (place - among_larger) // np.maximum(size, 1)
    return pa.array(np.where(place < among_larger, place // (size + 1), later) + 1, pa.int32())


def _offset(call: Call, rows: Rows, of: Placed) -> pa.Array:
    """LAG and LEAD: the value so many rows before or behind, or else a default for the row itself."""
    what, *more = call.arguments
    values = of.taken(computed(what, rows))
    steps = whole_number(more[0]) if more else 1
    if len(more) > 2 or pa.types.is_null(values.type):
        raise NotHere
    steps = -steps if call.name == "lag" else steps
    here = np.arange(of.count)
    at = _among_known(values, of, steps) if call.ignores_nulls and steps else here + steps
    outside = (at < of.begin) | (at >= of.end)
    if len(more) < 2:
        return values.take(pa.array(np.where(outside, 0, at), pa.int64(), mask=outside))
    default = of.taken(cast(computed(more[1], rows), values.type))
    return pa.concat_arrays([values, default]).take(pa.array(np.where(outside, of.count + here, at), pa.int64()))


def _among_known(values: pa.Array, of: Placed, steps: int) -> Numbers:
    """The place so many values that are not NULL before or behind each place; -1 if there is none."""
    there = valid(values)
    places = np.concatenate([np.flatnonzero(there), [-1]])
    before = np.cumsum(there) - there
    at = before + steps if steps < 0 else before + there + steps - 1
    outside = (at < 0) | (at >= len(places) - 1)
    return places[np.where(outside, len(places) - 1, at)]


def _framed(call: Call, rows: Rows, of: Placed, frames: Frames) -> pa.Array:
    if call.distinct:
        raise NotHere
    arguments = [a for a in call.arguments if not isinstance(a, exp.Star)]
    if call.name == "nth_value":
        arguments, number = arguments[:1], whole_number(arguments[1])
    else:
        number = 1 if call.name == "first" else -1
    values = [of.taken(computed(a, rows)) for a in arguments]
    chosen = np.ones(of.count, np.bool_) if call.where is None else _true(of.taken(computed(call.where, rows)))
    if call.name == "count":
        return pa.array(frames.count(np.logical_and.reduce([chosen, *map(valid, values)])))
    (value,) = values
    if pa.types.is_null(value.type):
        raise NotHere
    if call.name in ("first", "last", "nth_value"):
        if call.where is not None or (call.name == "nth_value" and number <= 0):
            raise NotHere
        return frames.nth(value, number, ignores_nulls=call.ignores_nulls)
    if not chosen.all():
        value = value.take(pa.array(np.arange(of.count), mask=~chosen))
    return _aggregate(call.name, value, frames)


def _aggregate(name: str, value: pa.Array, frames: Frames) -> pa.Array:
    match name:
        case "sum":
            return frames.sum(value)
        case "avg":
            return frames.average(value)
        case "min" | "max":
            return frames.extreme(value, name)
        case "count_if":
            return pa.array(frames.count(_true(value)))
        case "bool_and" | "bool_or":
            none = frames.count(valid(value)) == 0
            true, false = frames.count(_true(value)), frames.count(valid(value) & ~_true(value))
            return pa.array(true > 0 if name == "bool_or" else false == 0, mask=none)
    raise NotHere


def _true(values: pa.Array) -> Numbers:
    return np.asarray(truth(values).fill_null(False).to_numpy(zero_copy_only=False))
