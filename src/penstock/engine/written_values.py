"""Values that are written down in a statement, as columns: of VALUES, in INSERT and as the source of a MERGE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions import Rows, computed
from penstock.frames.arrow.expressions.types import WIDEST, widest_of
from penstock.frames.arrow.expressions.types import cast as converted
from penstock.frames.arrow.tables import spark_name
from penstock.frames.frame import NotHere
from penstock.frames.settings import Settings

_WHOLE, _POINT = re.compile(r"-?\d{1,9}"), re.compile(r"-?(\d*)\.(\d+)")
_IN_DOUBLE = {pa.float64(), pa.int32(), pa.int16(), pa.int8(), pa.null()}
"""Types whose values a DOUBLE holds, each as it is."""


def written_columns(rows: Sequence[Sequence[exp.Expr]], settings: Settings) -> list[pa.Array]:
    """The columns of rows, each of one type: as in Spark, that which holds all of its values."""
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise NotHere("rows of different lengths")
    return [_column(values, settings) for values in zip(*rows, strict=True)]


def _column(values: Sequence[exp.Expr], settings: Settings) -> pa.Array:
    plain = _plain(values) if settings.here else None
    if plain is not None:
        return plain
    if any(value.find(exp.Column, exp.Query, exp.Placeholder, exp.Parameter) for value in values):
        raise NotHere("values that are not just written down")
    one = Rows({}, 1, settings)
    found = [computed(value, one) for value in values]
    kinds = {value.type for value in found}
    try:
        kind = pa.float64() if kinds <= _IN_DOUBLE and pa.float64() in kinds else widest_of(sorted(kinds, key=str))
    except NotHere:
        raise NotHere(f"values of types {', '.join(sorted(map(spark_name, kinds)))} in one column") from None
    return pa.concat_arrays([converted(value, kind) for value in found])


def _plain(values: Sequence[exp.Expr]) -> pa.Array | None:
    """Texts or numbers as they stand there, all at once: one by one, thousands would take a while.

    >>> _plain([exp.Literal.number("1.5"), exp.Null(), exp.Literal.number("20.25")]).type
    Decimal128Type(decimal128(4, 2))
    """
    texts = [_text(value) for value in values]
    kinds = {kind for kind, _ in texts}
    written = [text for _, text in texts]
    match sorted(kinds - {"null"}):
        case ["text"]:
            return pa.array(written, pa.string())
        case ["whole"]:
            return pa.array([None if text is None else int(text) for text in written], pa.int32())
        case ["point"]:
            return _decimals(written)
    return None


def _text(value: exp.Expr) -> tuple[str, str | None]:
    """A kind of value, and what is written of it."""
    if type(value) is exp.Null:
        return "null", None
    negative = type(value) is exp.Neg
    literal = value.this if negative else value
    if type(literal) is not exp.Literal or (negative and literal.is_string):
        return "other", None
    text = f"-{literal.this}" if negative else str(literal.this)
    if literal.is_string:
        return "text", text
    return ("whole" if _WHOLE.fullmatch(text) else "point" if _POINT.fullmatch(text) else "other"), text


def _decimals(written: Sequence[str | None]) -> pa.Array | None:
    shapes = [_POINT.fullmatch(text) for text in written if text is not None]
    wholes = max(len(shape[1].lstrip("0")) for shape in shapes if shape)
    scale = max(len(shape[2]) for shape in shapes if shape)
    if wholes + scale > WIDEST:
        return None
    kind = pa.decimal128(wholes + scale, scale)
    return pa.array([None if text is None else Decimal(text) for text in written], kind)
