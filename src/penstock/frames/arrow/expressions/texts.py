"""Text over rows on the driver: the rules of ``values`` that count and cut by characters, as Spark does."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions.types import Value
from penstock.frames.arrow.expressions.values import Rows, rule, value
from penstock.frames.frame import NotHere


@rule(exp.Like, reads=("this", "expression", "negate"))
def _like(node: exp.Like, rows: Rows) -> Value:
    found, pattern = _text(node.this, rows), node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise NotHere
    if "\\" in str(pattern.this):  # which takes the meaning from what follows it
        raise NotHere
    true = pc.match_like(found, str(pattern.this))
    return pc.invert(true) if node.args.get("negate") else true


@rule(exp.Substring, reads=("this", "start", "length"))
def _substring(node: exp.Substring, rows: Rows) -> Value:
    """From a place that is counted from the beginning, and written down."""
    found, start, length = _text(node.this, rows), _number(node.args.get("start")), node.args.get("length")
    if start < 1:
        raise NotHere
    return pc.utf8_slice_codeunits(found, start - 1, None if length is None else start - 1 + _number(length))


@rule(exp.Length, reads=("this",))
def _length(node: exp.Length, rows: Rows) -> Value:
    return pc.utf8_length(_text(node.this, rows))


@rule(exp.DPipe, reads=("this", "expression", "safe"))
def _piped(node: exp.DPipe, rows: Rows) -> Value:
    return _joined([node.left, node.right], rows)


@rule(exp.Concat, reads=("expressions", "safe"))
def _concatenated(node: exp.Concat, rows: Rows) -> Value:
    return _joined(node.expressions, rows)


def _joined(parts: list[exp.Expr], rows: Rows) -> Value:
    return pc.binary_join_element_wise(*[_text(part, rows) for part in parts], pa.scalar(""), null_handling="emit_null")


def _text(node: exp.Expr, rows: Rows) -> Value:
    found = value(node, rows)
    if found.type != pa.string():
        raise NotHere
    return found


def _number(node: exp.Expr | None) -> int:
    """A whole number that is written down."""
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        raise NotHere
    return int(node.this)
