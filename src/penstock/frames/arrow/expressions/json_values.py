"""The JSON text of values of every type: what Spark's TO_JSON writes under the options of ``sql.documents``."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.frames.arrow.documents import comma_joined
from penstock.frames.arrow.expressions.floats import java_text
from penstock.frames.frame import NotHere
from penstock.sql.documents import quoted

_NULL = pa.scalar("null")
_ESCAPED = r'[\\"\x00-\x1f]'
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
    joined = comma_joined(elements, np.concatenate([[0], np.cumsum(lengths)]))
    return pc.if_else(values.is_valid(), _between(opening, joined, closing), pa.scalar(None, pa.string()))


def _map(values: pa.Array) -> pa.Array:
    if values.type.key_type != pa.string():
        raise NotHere
    entries = pc.binary_join_element_wise(_quoted(values.keys), json_texts(values.items), ":")
    offsets = values.offsets.to_numpy()
    if len(values) and (offsets[0] != 0 or offsets[-1] != len(entries) or values.null_count):
        raise NotHere
    return _between("{", comma_joined(entries, offsets), "}")
