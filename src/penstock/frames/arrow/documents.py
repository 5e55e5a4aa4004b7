"""JSON documents on the driver: the text of values of every type, and the texts of a group joined in an order.

What Spark's TO_JSON writes under the options of ``sql.documents``, byte for byte.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions.floats import java_text
from penstock.frames.arrow.groups import Groups, Numbers, ranks, together
from penstock.frames.frame import NotHere
from penstock.sql.documents import quoted

_NULL = pa.scalar("null")
_ESCAPED = r'[\\"\x00-\x1f]'
_FAR = np.iinfo(np.int64).max
_YEARS = range(1000, 10_000)


def json_texts(values: pa.Array) -> pa.Array:
    """The JSON text of each value; that of NULL is null."""
    return pc.fill_null(_texts(values), _NULL)


def _texts(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if pa.types.is_signed_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal128(kind):
        return values.cast(pa.string())
    if pa.types.is_string(kind):
        return _quoted(values)
    if pa.types.is_float64(kind):
        return pa.array([None if v is None else _number(v) for v in values.to_pylist()], pa.string())
    if pa.types.is_date32(kind):
        _check_years(values)
        return _between('"', values.cast(pa.string()), '"')
    if pa.types.is_timestamp(kind):
        _check_years(values)
        return _between('"', pc.strftime(values, "%Y-%m-%dT%H:%M:%S"), '"' if kind.tz is None else 'Z"')
    if pa.types.is_binary(kind):
        encoded = [None if v is None else base64.b64encode(v).decode() for v in values.to_pylist()]
        return _between('"', pa.array(encoded, pa.string()), '"')
    if pa.types.is_struct(kind):
        return _struct(values)
    if pa.types.is_list(kind):
        return _listed("[", values, json_texts(values.flatten()), "]")
    if pa.types.is_map(kind):
        return _map(values)
    raise NotHere


def _between(before: str, texts: pa.Array, behind: str) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(before), texts, pa.scalar(behind), "", null_handling="emit_null")


def _quoted(values: pa.Array) -> pa.Array:
    """Texts in quotes. Few have something in them that must be escaped."""
    found = _between('"', values, '"')
    special = pc.fill_null(pc.match_substring_regex(values, _ESCAPED), False)
    if not pc.any(special).as_py():
        return found
    escaped = pa.array([quoted(one) for one in values.filter(special).to_pylist()], pa.string())
    return pc.replace_with_mask(found, special, escaped)


def _number(value: float) -> str:
    text = java_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _check_years(values: pa.Array) -> None:
    ends = pc.min_max(pc.year(values))
    if any(end.as_py() is not None and end.as_py() not in _YEARS for end in ends.values()):
        raise NotHere("years that are not of four digits")


def _struct(values: pa.Array) -> pa.Array:
    parts: list[pa.Array | pa.Scalar] = []
    for number, field in enumerate(values.type):
        parts += [pa.scalar(f"{',' if number else '{'}{quoted(field.name)}:")]
        parts += [json_texts(pc.struct_field(values, [number]))]
    whole = pc.binary_join_element_wise(*parts, pa.scalar("}" if parts else "{}"), "")
    return pc.if_else(values.is_valid(), whole, pa.scalar(None, pa.string()))


def _listed(opening: str, values: pa.Array, elements: pa.Array, closing: str) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy().astype(np.int64)
    joined = _joined(elements, np.concatenate([[0], np.cumsum(lengths)]))
    return pc.if_else(values.is_valid(), _between(opening, joined, closing), pa.scalar(None, pa.string()))


def _map(values: pa.Array) -> pa.Array:
    if values.type.key_type != pa.string():
        raise NotHere
    entries = pc.binary_join_element_wise(_quoted(values.keys), json_texts(values.items), ":")
    offsets = values.offsets.to_numpy()
    if len(values) and (offsets[0] != 0 or offsets[-1] != len(entries) or values.null_count):
        raise NotHere
    return _between("{", _joined(entries, offsets), "}")


def _joined(elements: pa.Array, offsets: Numbers) -> pa.Array:
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements)
    return pc.binary_join(lists, ",")


def joined_texts(texts: pa.Array, keys: Sequence[tuple[pa.Array, exp.Ordered]], groups: Groups) -> pa.Array:
    """The texts of each group but NULL, joined by commas in the order of the keys; NULL for none."""
    if not pa.types.is_string(texts.type):
        raise NotHere
    there = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    of, taken = groups.of[there], pa.array(there)
    found = there[ordered(of, [(values.take(taken), key) for values, key in keys])]
    ends = np.cumsum(np.bincount(of, minlength=groups.count))
    joined = _joined(texts.take(pa.array(found)), np.concatenate([[0], ends]))
    some = np.bincount(of, minlength=groups.count) > 0
    return pc.if_else(pa.array(some), joined, pa.scalar(None, pa.string()))


def ordered(of: Numbers, keys: Sequence[tuple[pa.Array, exp.Ordered]]) -> Numbers:
    """The places of rows, group by group, in the order of the keys; the later ones are asked only where rows tie."""
    ranked = [of.astype(np.int64)]
    for values, key in keys:
        ranked.append(_ranked(values, key))
        if len(np.unique(together(ranked))) == len(of):
            break
    return np.lexsort(ranked[::-1])


def _ranked(values: pa.Array, key: exp.Ordered) -> Numbers:
    """Numbers in the order that a key asks for: NULL is first going up and last going down, if nothing else is said."""
    down = bool(key.args.get("desc"))
    nulls_first = key.args.get("nulls_first")
    rank = ranks(values)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    first = (not down) if nulls_first is None else bool(nulls_first)
    return np.where(missing, -_FAR if first else _FAR, -rank if down else rank)
