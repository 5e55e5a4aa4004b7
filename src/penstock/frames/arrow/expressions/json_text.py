"""JSON in text over rows on the driver: single values that every reader of JSON finds and writes alike."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.json_values import json_texts
from penstock.frames.arrow.expressions.texts import text
from penstock.frames.arrow.expressions.types import DIGITS, Value
from penstock.frames.arrow.expressions.values import Rows, column, each, few, rule, spread
from penstock.frames.frame import NotHere
from penstock.sql.documents import JsonText, quoted

_NULLS = "spark.sql.jsonGenerator.ignoreNullFields"


@rule(exp.JSONExtractScalar, reads=("this", "expression", "only_json_types", "scalar_only"))
def _object(node: exp.JSONExtractScalar, rows: Rows) -> Value:
    """GET_JSON_OBJECT by names."""
    path = node.expression
    if not isinstance(path, exp.JSONPath):
        raise NotHere
    root, *keys = path.expressions
    if not isinstance(root, exp.JSONPathRoot) or not keys or not all(_is_name(key) for key in keys):
        raise NotHere
    names = [str(key.this) for key in keys]
    return each(spread(text(node.this, rows), rows.count), lambda found: _value(found, names), pa.string())


def _is_name(key: exp.Expr) -> bool:
    return isinstance(key, exp.JSONPathKey) and isinstance(key.this, str) and key.this.isidentifier()


def members(documents: pa.Array, names: list[str]) -> list[pa.Array]:
    """JSON_TUPLE: some members of each document."""
    return [each(documents, lambda found, name=name: _value(found, [name]), pa.string()) for name in names]  # type: ignore[misc]


def _value(found: str, names: list[str]) -> str | None:
    """A text, a whole number or a truth; what is not there is NULL. All else is Spark's."""
    if found.lstrip(" \t\r\n")[:1] not in ("{", "[", "/", "#", "\ufeff"):  # one value, or no JSON: without members
        return None
    try:
        inner: Any = json.loads(found, object_pairs_hook=_once, parse_float=_refused, parse_constant=_refused)
    except json.JSONDecodeError:
        raise NotHere from None
    if not isinstance(inner, dict):
        raise NotHere
    for name in names:
        if inner is None or (isinstance(inner, dict) and name not in inner):
            return None
        if not isinstance(inner, dict):
            raise NotHere
        inner = inner[name]
    return _written(inner)


def _written(inner: Any) -> str | None:
    match inner:
        case None:
            return None
        case bool():
            return "true" if inner else "false"
        case int() if inner != 0:
            return str(inner)
        case str() if not any("\ud800" <= character <= "\udfff" for character in inner):
            return inner
    raise NotHere


@rule(JsonText, reads=("this",))
def _document(node: JsonText, rows: Rows) -> Value:
    """What stands in a document for a value."""
    return json_texts(column(node.this, rows))


@rule(exp.JSONFormat, reads=("this", "is_json"))
def _json(node: exp.JSONFormat, rows: Rows) -> Value:
    """TO_JSON of a struct of plain values; what is NULL is left out."""
    found = column(node.this, rows)
    if not pa.types.is_struct(found.type) or rows.settings[_NULLS] != "true":
        raise NotHere
    if any(field.type not in DIGITS and field.type not in (pa.string(), pa.bool_()) for field in found.type):
        raise NotHere
    return pa.array([None if row is None else _text_of(row) for row in few(found).to_pylist()], pa.string())


def _text_of(row: dict[str, Any]) -> str:
    parts = (f"{quoted(name)}:{_plain(one)}" for name, one in row.items() if one is not None)
    return "{" + ",".join(parts) + "}"


def _plain(one: Any) -> str:
    if isinstance(one, bool):
        return "true" if one else "false"
    return quoted(one) if isinstance(one, str) else str(one)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise NotHere
    return dict(pairs)


def _refused(_: str) -> Any:
    raise NotHere
