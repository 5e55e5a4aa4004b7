"""Rows in the order of a window, and the frame of each: the rows that a window function sees from there."""

from __future__ import annotations

import re
from collections.abc import Sequence as Listed
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.calls import whole_number
from penstock.frames.arrow.exact import stored
from penstock.frames.arrow.expressions.types import DIGITS
from penstock.frames.arrow.expressions.values import Rows, check_arguments, computed
from penstock.frames.arrow.framed import Frames
from penstock.frames.arrow.groups import Groups, Numbers, normalised, ranks, together
from penstock.frames.frame import NotHere

_MICROS = {"SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3_600 * 10**6, "DAY": 86_400 * 10**6}
_DAY = _MICROS["DAY"]
_MONTHS = {"MONTH": 1, "YEAR": 12}
_FURTHEST = 2**62
"""Times and days beyond which nothing is added here; Spark knows none of them."""


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """Rows by partition, in the order of each: the row at each place, and from where to where partition and peers go.

    Peers are rows that are equal in the order.
    """

    rows: Numbers
    begin: Numbers
    end: Numbers
    first_peer: Numbers
    after_peers: Numbers
    ordered: bool

    @classmethod
    def of(cls, window: exp.Window, rows: Rows) -> Sequence:
        partition = [normalised(computed(e, rows)) for e in window.args.get("partition_by") or ()]
        order = window.args.get("order")
        if order is not None:
            check_arguments(order, ("expressions",))
        group = Groups(partition, rows.count).of
        by = together(ordered(order.expressions, rows)) if order is not None else np.zeros(rows.count, np.int64)
        places = np.lexsort((by, group))
        parted = _begins(group[places])
        apart = parted | _begins(by[places])
        (begin, end), (first, after) = _spans(parted), _spans(apart)
        return cls(rows=places, begin=begin, end=end, first_peer=first, after_peers=after, ordered=order is not None)

    @property
    def count(self) -> int:
        return len(self.rows)

    def taken(self, values: pa.Array) -> pa.Array:
        """Values of the rows, in the sequence."""
        return values.take(pa.array(self.rows, pa.int64()))

    def put_back(self, values: pa.Array) -> pa.Array:
        """Values in the sequence, as those of the rows."""
        places = np.empty(self.count, np.int64)
        places[self.rows] = np.arange(self.count)
        return values.take(pa.array(places, pa.int64()))


def ordered(keys: Listed[exp.Expr], rows: Rows) -> list[Numbers]:
    """Numbers in the order that ORDER BY gives the rows, one for each key."""
    return [_ordered(key, rows) for key in keys]


def _ordered(key: exp.Expr, rows: Rows) -> Numbers:
    if not isinstance(key, exp.Ordered):
        raise NotHere
    check_arguments(key, ("this", "desc", "nulls_first"))
    number = ranks(computed(key.this, rows))  # NULL has 0, and comes before all others
    down, first = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
    signed = -number if down else number
    if first == (not down):
        return signed
    far = int(number.max(initial=0)) + 1
    return np.where(number == 0, -far if first else far, signed)


def _begins(values: Numbers) -> Numbers:
    """Whether another value stands before each."""
    return np.concatenate([np.ones(min(len(values), 1), np.bool_), values[1:] != values[:-1]])


def _spans(first: Numbers) -> tuple[Numbers, Numbers]:
    """Of each place the one that its span begins with, and the one behind it."""
    begins = np.flatnonzero(first)
    number = np.cumsum(first) - 1
    return begins[number], np.append(begins[1:], len(first))[number]


def frames_of(window: exp.Window, rows: Rows, sequence: Sequence) -> Frames:
    """The frame of each place. Without any, it ends with the peers; without an order, all of a partition are peers."""
    spec = window.args.get("spec")
    if spec is None:
        return Frames(sequence.begin, sequence.after_peers, sequence.begin)
    check_arguments(spec, ("kind", "start", "start_side", "end", "end_side"))
    start = spec.args.get("start"), spec.args.get("start_side")
    end = spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side")
    if spec.args["kind"] == "ROWS":
        first, after = _by_rows(start, sequence), _by_rows(end, sequence, behind=1)
    elif spec.args["kind"] == "RANGE":
        first, after = (_by_range(edge, window, rows, sequence)[i] for i, edge in enumerate((start, end)))
    else:
        raise NotHere
    first = np.clip(first, sequence.begin, sequence.end)
    return Frames(first, np.maximum(np.clip(after, sequence.begin, sequence.end), first), sequence.begin)


Edge = tuple[exp.Expr | str | None, str | None]


def _by_rows(edge: Edge, sequence: Sequence, behind: int = 0) -> Numbers:
    by, side = edge
    if by == "UNBOUNDED":
        return sequence.begin if side == "PRECEDING" else sequence.end
    if not sequence.ordered:
        raise NotHere("rows without an order")
    return np.arange(sequence.count) + (0 if by == "CURRENT ROW" else _signed(edge)) + behind


def _signed(edge: Edge) -> int:
    by, side = edge
    if not isinstance(by, exp.Expr):
        raise NotHere
    return whole_number(by) * _sign(side)


def _sign(side: str | None) -> int:
    if side not in ("PRECEDING", "FOLLOWING"):
        raise NotHere
    return -1 if side == "PRECEDING" else 1


def _by_range(edge: Edge, window: exp.Window, rows: Rows, sequence: Sequence) -> tuple[Numbers, Numbers]:
    """From where to where the rows are equal to the edge: a frame begins with the first, or ends behind the last."""
    by, side = edge
    if by == "UNBOUNDED":
        return (sequence.begin,) * 2 if side == "PRECEDING" else (sequence.end,) * 2
    if by == "CURRENT ROW":
        return sequence.first_peer, sequence.after_peers
    order = window.args.get("order")
    if order is None or len(order.expressions) != 1 or not isinstance(by, exp.Expr) or not rows.settings.here:
        raise NotHere
    (key,) = order.expressions
    values = sequence.taken(computed(key.this, rows))
    down, nulls_first = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
    own, sought = _moved(values, by, _sign(side) * (-1 if down else 1), utc=rows.settings.utc)
    return _found(own, sought, values.is_null().to_numpy(zero_copy_only=False), sequence, down, nulls_first)


def _found(
    own: Numbers, sought: Numbers, missing: Numbers, sequence: Sequence, down: bool, nulls_first: bool
) -> tuple[Numbers, Numbers]:
    """Where in its partition the sought value of each place would stand. That of NULL is NULL."""
    distinct, place = np.unique(np.concatenate([own, sought]), return_inverse=True)
    place = (len(distinct) - place if down else place + 1).astype(np.int64)
    null = 0 if nulls_first else len(distinct) + 1
    part = sequence.begin * (len(distinct) + 2)
    mine, wanted = (part + np.where(missing, null, numbers) for numbers in np.split(place, 2))
    return np.searchsorted(mine, wanted, "left"), np.searchsorted(mine, wanted, "right")


def _moved(values: pa.Array, by: exp.Expr, sign: int, *, utc: bool) -> tuple[Numbers, Numbers]:
    """Values as numbers, and those that lie so far from them."""
    if isinstance(by, exp.Interval):
        return _moved_in_time(values, by, sign, utc=utc)
    kind = values.type
    if pa.types.is_floating(kind):
        own = values.fill_null(0).to_numpy()
        return own, own + own.dtype.type(sign * float(_literal(by)))
    if pa.types.is_date32(kind):
        days = values.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
        return days, days + sign * whole_number(by)
    if pa.types.is_decimal128(kind) and kind.precision < 38:
        return _moved_decimals(values, _literal(by), sign)
    if kind not in DIGITS:
        raise NotHere
    return _moved_wholes(values.cast(pa.int64()).fill_null(0).to_numpy(), sign * whole_number(by), kind.bit_width)


def _moved_decimals(values: pa.Array, by: str, sign: int) -> tuple[Numbers, Numbers]:
    """By a number that has a place in the decimals' type, in which Spark adds it."""
    whole, _, fraction = by.partition(".")
    if len(fraction) > values.type.scale or len(whole.lstrip("0")) > values.type.precision - values.type.scale:
        raise NotHere
    own = stored(values).astype(object)
    return own, own + sign * int(whole + fraction.ljust(values.type.scale, "0"))


def _literal(node: exp.Expr) -> str:
    if isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DOUBLE:  # 1.5D
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string or not re.fullmatch(r"\d+(\.\d+)?", str(node.this)):
        raise NotHere
    return str(node.this)


def _moved_wholes(own: Numbers, by: int, bits: int) -> tuple[Numbers, Numbers]:
    """Numbers of so many bits; what goes beyond them is an error in Spark, or begins again at the other end."""
    if len(own) and not (-(2 ** (bits - 1)) <= int(own.min()) + by and int(own.max()) + by < 2 ** (bits - 1)):
        raise NotHere("a range beyond its type")
    return own, own + by


def _moved_in_time(values: pa.Array, by: exp.Interval, sign: int, *, utc: bool) -> tuple[Numbers, Numbers]:
    number, unit = _interval(by)
    kind = values.type
    if pa.types.is_date32(kind):
        days = values.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
        if unit in _MONTHS:
            return days, _months_later(days, sign * number * _MONTHS[unit])
        if unit != "DAY":
            raise NotHere
        return days, days + sign * number
    if not pa.types.is_timestamp(kind):
        raise NotHere
    micros = values.cast(pa.int64()).fill_null(0).to_numpy()
    local = utc or kind.tz is None
    if unit in _MONTHS and local:
        day = micros // _DAY
        return micros, _months_later(day, sign * number * _MONTHS[unit]) * _DAY + micros % _DAY
    span = number * _MICROS.get(unit, _FURTHEST)
    if span >= _FURTHEST or (span >= _DAY and not local):  # a day of a zone may have 23 hours
        raise NotHere
    return micros, micros + sign * span


def _interval(by: exp.Interval) -> tuple[int, str]:
    """How many of which unit."""
    check_arguments(by, ("this", "unit"))
    number, unit = by.this, by.args.get("unit")
    if not isinstance(number, exp.Literal) or not str(number.this).isdigit() or not isinstance(unit, exp.Var):
        raise NotHere
    return int(number.this), str(unit.this).upper().removesuffix("S")


def _months_later(days: Numbers, months: int) -> Numbers:
    """Days of other months: the same one, or the last if there is none."""
    day = days.astype("M8[D]")
    month = day.astype("M8[M]")
    later = month + months
    last = (later + 1).astype("M8[D]").astype(np.int64) - 1
    return np.minimum(later.astype("M8[D]").astype(np.int64) + (day - month.astype("M8[D]")).astype(np.int64), last)
