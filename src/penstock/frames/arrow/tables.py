"""Arrow tables as Spark sees them: every column, and every field inside one, may be NULL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa


def settled(rows: pa.Table | pa.RecordBatch) -> Any:
    """The same rows with text and bytes as Arrow computes with: some writers leave views, which few functions take."""
    for i, field in enumerate(rows.schema):
        kind = settled_type(field.type)
        if kind != field.type:
            rows = rows.set_column(i, pa.field(field.name, kind), rows.column(i).cast(kind))
    return rows


def settled_type(data_type: pa.DataType) -> pa.DataType:
    return _SETTLED.get(data_type, data_type)


_SETTLED = {
    pa.string_view(): pa.string(), pa.large_string(): pa.string(), pa.binary_view(): pa.binary(),
    pa.large_binary(): pa.binary(),
}  # fmt: skip


def loosened(table: pa.Table) -> pa.Table:
    """The table with everything nullable and times of UTC, so that tables of one shape can be put together."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = _loose(column.type)
        other = kind != column.type
        columns[name] = pa.chunked_array([_loosened(c) for c in column.chunks], kind) if other else column
    return pa.table(columns)


def _loosened(array: pa.Array) -> pa.Array:
    """A cast would refuse a NULL struct of a type whose fields are never NULL, so nested ones are made anew."""
    kind = _loose(array.type)
    if pa.types.is_struct(kind):
        children = [_loosened(array.field(i)) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind):
        children = [_loosened(array.values)]
    elif pa.types.is_map(kind):
        entries = [_loosened(array.keys), _loosened(array.items)]
        children = [pa.StructArray.from_arrays(entries, fields=[kind.key_field, kind.item_field])]
    else:
        return array.cast(kind)
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], array.null_count, array.offset, children)


def _loose(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(f.name, _loose(f.type)) for f in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("element", _loose(data_type.value_type)))
    if pa.types.is_map(data_type):
        return pa.map_(_loose(data_type.key_type), pa.field("value", _loose(data_type.item_type)))
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:  # Spark names the session's zone; a time has none
        return pa.timestamp(data_type.unit, "UTC")
    return data_type


def spark_names(schema: pa.Schema) -> Mapping[str, str]:
    """The types of columns, by Spark's names for them."""
    return {field.name: spark_name(field.type) for field in schema}


def spark_name(kind: pa.DataType) -> str:
    """Spark's name for the type that it makes of Arrow's.

    >>> spark_name(pa.struct([("at", pa.timestamp("us", "UTC")), ("value", pa.decimal128(10, 2))]))
    'struct<at:timestamp,value:decimal(10,2)>'
    """
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_name(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return _NAMES[kind]


_NAMES = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
    pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.binary(): "binary", pa.date32(): "date",
    pa.null(): "void",
}  # fmt: skip
