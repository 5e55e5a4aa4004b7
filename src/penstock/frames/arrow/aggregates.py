"""Aggregates of rows on the driver, group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.calls import Call, call_of, is_call
from penstock.frames.arrow.distributions import DEVIATIONS, deviation, percentile
from penstock.frames.arrow.documents import joined_texts
from penstock.frames.arrow.elements import orders_of
from penstock.frames.arrow.exact import adds_up_exactly, averages, is_exact, stored
from penstock.frames.arrow.expressions.conditions import truth
from penstock.frames.arrow.expressions.types import DIGITS
from penstock.frames.arrow.expressions.values import Rows, computed
from penstock.frames.arrow.groups import Groups, Numbers, has_floats, normalised
from penstock.frames.arrow.lists import first_ones, list_of, set_of
from penstock.frames.frame import NotHere

_WITHOUT_DISTINCT = ("min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "collect_set")
"""To these it does not matter how often a value is there."""

_BITS = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}


def aggregated(expression: exp.Expr, rows: Rows, groups: Groups, keys: Mapping[str, pa.Array]) -> pa.Array:
    """The value of an expression of aggregates for each group; it may use the groups' keys too."""
    try:
        found: dict[str, pa.Array] = {}

        def leaf(node: exp.Expr) -> exp.Expr:
            if is_call(node):
                name = f"__leaf{len(found)}"
                found[name] = _aggregate(call_of(node), rows, groups)
                return exp.column(name)
            return node

        over = expression.copy().transform(leaf, copy=False)
        return computed(over, Rows({**keys, **found}, groups.count, rows.settings))
    except (pa.ArrowException, OverflowError, ValueError, RecursionError):
        raise NotHere from None


def _aggregate(call: Call, rows: Rows, groups: Groups) -> pa.Array:
    if call.where is not None:
        kept = np.flatnonzero(_true(computed(call.where, rows)))
        return _aggregate(replace(call, where=None), rows.some(kept), groups.among(kept))
    if call.name in ("json_agg", "json_order"):
        keys = [(computed(key.this, rows), key) for key in call.order]
        made = joined_texts if call.name == "json_agg" else orders_of
        return made(computed(call.arguments[0], rows), keys, groups)
    if call.name in ("percentile", "median"):
        return _percentile(call, rows, groups)
    arguments = [computed(a, rows) for a in call.arguments if not isinstance(a, exp.Star)]
    if call.distinct and call.name not in _WITHOUT_DISTINCT:
        arguments, groups = _distinct(call, arguments, groups)
    if call.name == "count":
        return groups.number_of(_all_there(arguments, len(groups.of)))
    if call.name == "regr_count":
        _, _ = arguments
        return groups.number_of(_all_there(arguments, len(groups.of)))
    (values,) = arguments
    return _of_values(call, values, rows, groups)


def _distinct(call: Call, arguments: Sequence[pa.Array], groups: Groups) -> tuple[list[pa.Array], Groups]:
    """The arguments once for each group; in which order Spark adds them up is not known."""
    if not arguments or (call.name not in ("count", "collect_list") and has_floats(arguments[0].type)):
        raise NotHere
    if call.name not in ("count", "sum", "avg", "collect_list", "bit_xor", "count_if"):
        raise NotHere
    if call.name == "avg" and arguments[0].type in DIGITS and not adds_up_exactly(stored(arguments[0])):
        raise NotHere
    kept = first_ones(groups.of, list(arguments))
    return [normalised(values).take(pa.array(kept)) for values in arguments], groups.among(kept)


def _of_values(call: Call, values: pa.Array, rows: Rows, groups: Groups) -> pa.Array:
    if pa.types.is_null(values.type):
        raise NotHere
    match call.name:
        case "count_if":
            return groups.number_of(_true(values))
        case "sum":
            return groups.sum(values)
        case "avg":
            return _average(values, groups)
        case "min" | "max":
            return groups.extreme(values, call.name.upper())
        case "first" | "last":
            places = np.flatnonzero(_there(values)) if call.ignores_nulls else np.arange(len(values))
            return groups.first_of(values, places if call.name == "first" else places[::-1])
        case "bool_and" | "bool_or":
            return _truth(call.name, values, groups)
        case "bit_and" | "bit_or" | "bit_xor":
            return _bits(call.name, values, groups)
        case "collect_list":
            return list_of(values, groups)
        case "collect_set":
            return set_of(values, groups)
    if call.name not in DEVIATIONS or rows.settings["spark.sql.legacy.statisticalAggregate"] != "false":
        raise NotHere
    return deviation(call.name, values, groups)


def _average(values: pa.Array, groups: Groups) -> pa.Array:
    counts = groups.number_of(_there(values)).to_numpy()
    if pa.types.is_decimal128(values.type):
        return averages(stored(groups.sum(values)), counts, values.type)
    if not is_exact(values.type) and not pa.types.is_floating(values.type):
        raise NotHere
    return averages(groups.sum_of_doubles(values), counts, values.type)


def _truth(name: str, values: pa.Array, groups: Groups) -> pa.Array:
    true, there = _true(values), _there(values)
    none = groups.number_of(there).to_numpy() == 0
    ones, zeros = (groups.number_of(chosen).to_numpy() for chosen in (true, there & ~true))
    return pa.array(ones > 0 if name == "bool_or" else zeros == 0, mask=none)


def _bits(name: str, values: pa.Array, groups: Groups) -> pa.Array:
    if not pa.types.is_signed_integer(values.type):
        raise NotHere
    there = np.flatnonzero(_there(values))
    order = there[np.argsort(groups.of[there], kind="stable")]
    number = values.fill_null(0).to_numpy()[order]
    found, first = np.unique(groups.of[order], return_index=True)
    merged = _BITS[name].reduceat(number, first) if len(first) else number
    return groups.placed(pa.array(merged, values.type), found)


def _percentile(call: Call, rows: Rows, groups: Groups) -> pa.Array:
    what, *more = call.arguments
    values = computed(what, rows)
    if call.distinct or len(more) != (call.name == "percentile") or pa.types.is_null(values.type):
        raise NotHere
    asked = more[0] if more else exp.Literal.number("0.5")
    if not isinstance(asked, exp.Array):
        return percentile(values, [_share(asked)], groups)[0]
    columns = percentile(values, [_share(each) for each in asked.expressions], groups)
    if not columns:
        raise NotHere
    return _side_by_side(columns)


def _share(node: exp.Expr) -> float:
    if not isinstance(node, exp.Literal) or node.is_string or not 0 <= float(node.this) <= 1:
        raise NotHere
    return float(node.this)


def _side_by_side(columns: Sequence[pa.Array]) -> pa.Array:
    """A list of the values of each group; NULL where they are."""
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    lists = [None if each[0] is None else list(each) for each in rows]
    return pa.array(lists, pa.list_(pa.field("element", pa.float64())))


def _true(values: pa.Array) -> Numbers:
    return np.asarray(truth(values).fill_null(False).to_numpy(zero_copy_only=False))


def _there(values: pa.Array) -> Numbers:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False))


def _all_there(arguments: Sequence[pa.Array], count: int) -> Numbers:
    return np.logical_and.reduce([np.ones(count, np.bool_), *map(_there, arguments)])
