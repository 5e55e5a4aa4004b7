"""Text over rows on the driver: the rules of ``values`` that count and cut by characters, as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions.casts import as_text
from penstock.frames.arrow.expressions.types import DIGITS, Value, cast
from penstock.frames.arrow.expressions.values import Rows, by_row, column, each, function, rule, spread, value
from penstock.frames.frame import NotHere

_ICU = "spark.sql.icu.caseMappings.enabled"
_LONGEST = 100_000
"""Characters of a text that is made by repeating another."""
_STEADY = (
    (0x00, 0x17F), (0x391, 0x3A1), (0x3B1, 0x3C1), (0x3C4, 0x3C9), (0x400, 0x45F), (0x2010, 0x2027), (0x20A0, 0x20BF),
    (0x3000, 0x30FF), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F),
)  # fmt: skip
"""Characters that every edition of Unicode has in the same cases, without regard to their neighbours."""


def text(node: exp.Expr | None, rows: Rows) -> Value:
    """The text of an expression; other values are taken as text where Spark does so, too."""
    if node is None:
        raise NotHere
    found = value(node, rows)
    if pa.types.is_nested(found.type) or pa.types.is_binary(found.type):
        raise NotHere
    return as_text(found, rows)


def texts(nodes: list[exp.Expr], rows: Rows) -> list[pa.Array]:
    return [spread(text(node, rows), rows.count) for node in nodes]


def whole(node: exp.Expr | None, rows: Rows) -> Value:
    """A number of characters, or a place among them."""
    if node is None:
        raise NotHere
    found = value(node, rows)
    if found.type not in DIGITS or found.type == pa.int64():
        raise NotHere
    return cast(found, pa.int32())


def made(columns: list[Value], function_of: Callable[..., Any], to: pa.DataType, rows: Rows) -> Value:
    """What is made of the values of each row; of each text only once, if all else is the same for all rows."""
    first, *others = columns
    if not all(isinstance(other, pa.Scalar) for other in others):
        return by_row([spread(found, rows.count) for found in columns], function_of, to)
    fixed = [other.as_py() for other in others]
    if None in fixed:
        return pa.scalar(None, to)
    return each(spread(first, rows.count), lambda found: function_of(found, *fixed), to)


# -- cases -------------------------------------------------------------------------------------------------------------


@rule(exp.Upper, exp.Lower, reads=("this",))
def _cased(node: exp.Upper | exp.Lower, rows: Rows) -> Value:
    return cased(spread(text(node.this, rows), rows.count), rows, upper=isinstance(node, exp.Upper))


def cased(found: pa.Array, rows: Rows, *, upper: bool) -> pa.Array:
    if pc.all(pc.string_is_ascii(found), min_count=0).as_py():
        return (pc.ascii_upper if upper else pc.ascii_lower)(found)
    return each(found, lambda t: _steady(t, rows).upper() if upper else _steady(t, rows).lower(), pa.string())


def _steady(found: str, rows: Rows) -> str:
    if rows.settings[_ICU] != "true" and not found.isascii():
        raise NotHere
    for character in found:
        if character == "İ" or not any(low <= ord(character) <= high for low, high in _STEADY):
            raise NotHere
    return found


@rule(exp.Initcap, reads=("this", "expression"))
def _capitals(node: exp.Initcap, rows: Rows) -> Value:
    separator = node.args.get("expression")
    if separator is not None and (not isinstance(separator, exp.Literal) or separator.this != " "):
        raise NotHere
    return each(spread(text(node.this, rows), rows.count), _capital, pa.string())


def _capital(found: str) -> str:
    """Words, with a blank between them."""
    if not found.isascii():
        raise NotHere
    return " ".join(word[:1].upper() + word[1:].lower() for word in found.split(" "))


# -- cutting -----------------------------------------------------------------------------------------------------------


@rule(exp.Trim, reads=("this", "position", "expression"))
def _trimmed(node: exp.Trim, rows: Rows) -> Value:
    characters = node.args.get("expression")
    side = str(node.args.get("position") or "BOTH").upper()
    return _without(text(node.this, rows), pa.scalar(" ") if characters is None else text(characters, rows), side, rows)


@function("BTRIM", takes=(1, 2))
def _trimmed_both(arguments: list[exp.Expr], rows: Rows) -> Value:
    characters = text(arguments[1], rows) if len(arguments) > 1 else pa.scalar(" ")
    return _without(text(arguments[0], rows), characters, "BOTH", rows)


def _without(found: Value, characters: Value, side: str, rows: Rows) -> Value:
    cut = {"BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}[side]
    return made([found, characters], lambda t, c: cut(t, c) if c else t, pa.string(), rows)


@rule(exp.Substring, reads=("this", "start", "length"))
def _substring(node: exp.Substring, rows: Rows) -> Value:
    found, start = text(node.this, rows), whole(node.args.get("start"), rows)
    length = node.args.get("length")
    by = pa.scalar(2**31 - 1, pa.int32()) if length is None else whole(length, rows)
    if isinstance(start, pa.Scalar) and isinstance(by, pa.Scalar) and start.is_valid and by.is_valid:
        return _sliced(found, start.as_py(), by.as_py())
    return made([found, start, by], _part, pa.string(), rows)


def _sliced(found: Value, start: int, length: int) -> Value:
    if length <= 0:
        return pc.if_else(pc.is_valid(found), "", pa.scalar(None, pa.string()))
    if start < 0:
        return pc.utf8_slice_codeunits(found, start, start + length if start + length < 0 else None)
    first = max(start - 1, 0)
    return pc.utf8_slice_codeunits(found, first, min(first + length, 2**31 - 1))


def _part(found: str, start: int, length: int) -> str:
    """From a place that is counted from one, or back from the end."""
    first = start - 1 if start > 0 else len(found) + start if start < 0 else 0
    last = min(first + length, 2**31 - 1)
    return found[max(first, 0) : max(last, 0)]


@rule(exp.Left, exp.Right)
def _end(node: exp.Left | exp.Right, rows: Rows) -> Value:
    left = isinstance(node, exp.Left)

    def part(found: str, count: int) -> str:
        return "" if count <= 0 else found[:count] if left else found[-count:]

    return made([text(node.this, rows), whole(node.expression, rows)], part, pa.string(), rows)


@rule(exp.Pad, reads=("this", "expression", "fill_pattern", "is_left"))
def _padded(node: exp.Pad, rows: Rows) -> Value:
    fill = node.args.get("fill_pattern")
    parts = [text(node.this, rows), whole(node.expression, rows), pa.scalar(" ") if fill is None else text(fill, rows)]
    left = bool(node.args.get("is_left"))

    def padded(found: str, count: int, by: str) -> str:
        _check_length(count)
        missing = max(count - len(found), 0) if by else 0
        more = (by * (missing // len(by) + 1))[:missing] if missing else ""
        return (more + found if left else found + more)[: max(count, 0)] if missing else found[: max(count, 0)]

    return made(parts, padded, pa.string(), rows)


def _check_length(count: int) -> None:
    if count > _LONGEST:
        raise NotHere


# -- putting together --------------------------------------------------------------------------------------------------


@rule(exp.DPipe, reads=("this", "expression", "safe"))
def _piped(node: exp.DPipe, rows: Rows) -> Value:
    return _joined([node.left, node.right], rows)


@rule(exp.Concat, reads=("expressions", "safe"))
def _concatenated(node: exp.Concat, rows: Rows) -> Value:
    return _joined(node.expressions, rows)


def _joined(parts: list[exp.Expr], rows: Rows) -> Value:
    return pc.binary_join_element_wise(*[text(part, rows) for part in parts], pa.scalar(""), null_handling="emit_null")


@rule(exp.ConcatWs, reads=("expressions", "safe", "coalesce", "flatten"))
def _separated(node: exp.ConcatWs, rows: Rows) -> Value:
    """NULL is left out."""
    between, *parts = texts(node.expressions, rows)
    if not parts:
        raise NotHere
    found = parts[0]
    for part in parts[1:]:
        both = pc.binary_join_element_wise(found, part, between, null_handling="emit_null")
        found = pc.if_else(part.is_null(), found, pc.if_else(found.is_null(), part, both))
    return pc.if_else(between.is_null(), pa.scalar(None, pa.string()), found.fill_null(""))


@rule(exp.Repeat, reads=("this", "times"))
def _repeated(node: exp.Repeat, rows: Rows) -> Value:
    def repeated(found: str, count: int) -> str:
        _check_length(count * len(found))
        return found * count

    return made([text(node.this, rows), whole(node.args["times"], rows)], repeated, pa.string(), rows)


@function("SPACE", takes=(1,))
def _blank(arguments: list[exp.Expr], rows: Rows) -> Value:
    def blank(count: int) -> str:
        _check_length(count)
        return " " * count

    return each(spread(whole(arguments[0], rows), rows.count), blank, pa.string())


@rule(exp.Replace, reads=("this", "expression", "replacement"))
def _replaced(node: exp.Replace, rows: Rows) -> Value:
    by = node.args.get("replacement")
    parts = [text(node.this, rows), text(node.expression, rows), pa.scalar("") if by is None else text(by, rows)]
    return made(parts, lambda found, old, new: found.replace(old, new) if old else found, pa.string(), rows)


@rule(exp.Translate, reads=("this", "from_", "to"))
def _translated(node: exp.Translate, rows: Rows) -> Value:
    """Each character by the one at the same place; without one there, it is left out."""

    def translated(found: str, old: str, new: str) -> str:
        by = {c: new[i] if i < len(new) else "" for i, c in reversed(list(enumerate(old)))}
        return "".join(by.get(c, c) for c in found)

    return made([text(node.args[part], rows) for part in ("this", "from_", "to")], translated, pa.string(), rows)


@rule(exp.Reverse, reads=("this",))
def _reversed(node: exp.Reverse, rows: Rows) -> Value:
    return each(spread(text(node.this, rows), rows.count), lambda found: found[::-1], pa.string())


# -- counting and finding ----------------------------------------------------------------------------------------------


@rule(exp.Length, reads=("this",))
def _length(node: exp.Length, rows: Rows) -> Value:
    return pc.utf8_length(text(node.this, rows))


@function("OCTET_LENGTH", takes=(1,))
def _bytes(arguments: list[exp.Expr], rows: Rows) -> Value:
    return pc.binary_length(text(arguments[0], rows))


@rule(exp.BitLength, reads=("this",))
def _bits(node: exp.BitLength, rows: Rows) -> Value:
    return pc.multiply(pc.binary_length(text(node.this, rows)), pa.scalar(8, pa.int32()))


@rule(exp.Ascii, reads=("this",))
def _code(node: exp.Ascii, rows: Rows) -> Value:
    return each(spread(text(node.this, rows), rows.count), lambda found: ord(found[0]) if found else 0, pa.int32())


@rule(exp.Chr, reads=("expressions",))
def _character(node: exp.Chr, rows: Rows) -> Value:
    (code,) = node.expressions
    found = column(code, rows)
    if found.type not in DIGITS:
        raise NotHere
    return each(found, lambda number: chr(number % 256) if number >= 0 else "", pa.string())


@rule(exp.Hex, reads=("this",))
def _hexadecimal(node: exp.Hex, rows: Rows) -> Value:
    found = column(node.this, rows)
    if found.type in DIGITS:
        return each(found, lambda number: f"{number % 2**64:X}", pa.string())
    if found.type not in (pa.string(), pa.binary()):
        raise NotHere
    return each(found.cast(pa.binary()), lambda data: data.hex().upper(), pa.string())


@rule(exp.StrPosition, reads=("this", "substr", "position"))
def _position(node: exp.StrPosition, rows: Rows) -> Value:
    place = node.args.get("position")
    start = pa.scalar(1, pa.int32()) if place is None else whole(place, rows)
    if not isinstance(start, pa.Scalar) or not start.is_valid or start.as_py() < 1:
        raise NotHere
    return _found_at(text(node.this, rows), text(node.args["substr"], rows), start.as_py(), rows)


@function("INSTR", takes=(2,))
def _found_in(arguments: list[exp.Expr], rows: Rows) -> Value:
    found, part = (text(argument, rows) for argument in arguments)
    return _found_at(found, part, 1, rows)


def _found_at(found: Value, part: Value, start: int, rows: Rows) -> Value:
    """The place of the first that begins at a place or later; 0 if there is none."""

    def place(within: str, wanted: str) -> int:
        return within.find(wanted, start - 1) + 1 if wanted else 1

    return made([found, part], place, pa.int32(), rows)


@rule(exp.StartsWith, exp.EndsWith, exp.Contains)
def _has(node: exp.Expr, rows: Rows) -> Value:
    tests: dict[type[exp.Expr], Callable[[str, str], bool]] = {
        exp.StartsWith: str.startswith,
        exp.EndsWith: str.endswith,
        exp.Contains: lambda found, part: part in found,
    }
    return made([text(node.this, rows), text(node.expression, rows)], tests[type(node)], pa.bool_(), rows)


@rule(exp.SplitPart, reads=("this", "delimiter", "part_index"))
def _piece(node: exp.SplitPart, rows: Rows) -> Value:
    def piece(found: str, separator: str, place: int) -> str:
        if place == 0 or not separator:
            raise NotHere
        pieces = found.split(separator)
        return pieces[place - 1 if place > 0 else place] if abs(place) <= len(pieces) else ""

    parts = [text(node.this, rows), text(node.args["delimiter"], rows), whole(node.args["part_index"], rows)]
    return made(parts, piece, pa.string(), rows)
