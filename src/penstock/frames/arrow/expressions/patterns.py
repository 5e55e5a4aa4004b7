"""Patterns over rows on the driver: LIKE, and regular expressions of a kind that Java and RE2 read alike.

A pattern is written down in the query. It is taken apart first, and only what has one meaning here and there is put
together again; texts with ends of lines, of which Java knows more kinds, are Spark's where they would matter.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions.texts import cased, text
from penstock.frames.arrow.expressions.types import Value
from penstock.frames.arrow.expressions.values import Rows, each, function, rule, spread, value
from penstock.frames.frame import NotHere

_META = set("\\^$.|?*+()[]{}")
_ENDS = "[\n\r\u0085\u2028\u2029]"
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": " \\t\\n\\x0b\\f\\r"}
_PIECE = re.compile(
    r"""
    (?P<repeat>(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![+*?{]))
    | (?P<class>\[\^?(?:[A-Za-z0-9_ ,.:;/@%#!=~<>'"+*()|?$-]|\\[dws.\\\[\]^+*?(){}|/$-])+\])
    | (?P<escape>\\(?:[dws]|[.\\\[\]^$+*?(){}|/-]))
    | (?P<group>\((?:\?:)?)
    | (?P<end>\)) | (?P<any>\.) | (?P<or>\|) | (?P<first>\^) | (?P<last>\$)
    | (?P<plain>[^\\^$.|?*+()\[\]{}])
    """,
    re.VERBOSE,
)


# -- LIKE --------------------------------------------------------------------------------------------------------------


@rule(exp.Like, reads=("this", "expression", "negate"))
def _like(node: exp.Like, rows: Rows) -> Value:
    return _liked(node, rows, "\\")


@rule(exp.ILike, reads=("this", "expression", "negate"))
def _ilike(node: exp.ILike, rows: Rows) -> Value:
    return _liked(node, rows, "\\")


@rule(exp.Escape)
def _escaped(node: exp.Escape, rows: Rows) -> Value:
    like, escape = node.this, node.expression
    if type(like) not in (exp.Like, exp.ILike) or not isinstance(escape, exp.Literal) or len(escape.this) != 1:
        raise NotHere
    return _liked(like, rows, str(escape.this))


def _liked(node: exp.Like | exp.ILike, rows: Rows, escape: str) -> Value:
    found, pattern = text(node.this, rows), _pattern(node.expression, rows)
    if isinstance(node, exp.ILike):
        found = cased(spread(found, rows.count), rows, upper=False)
        pattern = cased(pa.array([pattern]), rows, upper=False)[0].as_py()
    true = pc.match_substring_regex(found, _regex_of_like(pattern, escape))
    return pc.invert(true) if node.args.get("negate") else true


def _pattern(node: exp.Expr, rows: Rows) -> str:
    """A pattern that is written down."""
    found = value(node, rows) if isinstance(node, exp.Literal | exp.RawString | exp.Paren) else None
    if not isinstance(found, pa.Scalar) or found.type != pa.string():
        raise NotHere
    return str(found.as_py())


def _regex_of_like(pattern: str, escape: str) -> str:
    parts, rest = [], iter(pattern)
    for character in rest:
        if character == escape:
            following = next(rest, None)
            if following is None or following not in ("_", "%", escape):
                raise NotHere
            parts.append(_quoted(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or _quoted(character))
    return rf"(?s)\A{''.join(parts)}\z"


def _quoted(character: str) -> str:
    return f"\\{character}" if character in _META else character


# -- regular expressions -----------------------------------------------------------------------------------------------


def plain_regex(pattern: str, *, groups: bool) -> str:
    """A pattern for RE2 and Python of what is safe; ``groups``: what groups have matched is asked for, too."""
    parts, place, before = [], 0, ""
    while place < len(pattern):
        found = _PIECE.match(pattern, place)
        if found is None or (found.lastgroup == "repeat" and not _may_repeat(before, groups=groups)):
            raise NotHere
        before = str(found.lastgroup)
        parts.append(_piece(before, found[0], place, len(pattern)))
        place = found.end()
    return "".join(parts)


def _may_repeat(before: str, *, groups: bool) -> bool:
    return before in ("class", "escape", "any", "plain") or (before == "end" and not groups)


def _piece(kind: str, piece: str, place: int, end: int) -> str:
    match kind:
        case "escape" if piece[1] in _CLASSES:
            return f"[{_CLASSES[piece[1]]}]"
        case "class":
            return _class(piece)
        case "any":
            return f"[^{_ENDS[1:-1]}]"
        case "first" if place > 0:
            raise NotHere
        case "last" if place < end - 1:
            raise NotHere
        case "first" | "last":
            return "\\A" if kind == "first" else "$"
    return piece


def _class(piece: str) -> str:
    """A class of characters; a minus that is no range between two plain ones is Spark's."""
    inner = piece[2:-1] if piece[1] == "^" else piece[1:-1]
    if re.search(r"(^|[^A-Za-z0-9])-.|-([^A-Za-z0-9]|$)", inner) and not re.fullmatch(r"[^-]*-", inner):
        raise NotHere
    inner = re.sub(r"\\([dws])", lambda found: _CLASSES[found[1]], inner)
    return f"[{'^' if piece[1] == '^' else ''}{inner}]"


def _check_lines(found: pa.Array, pattern: str) -> None:
    if ("$" in pattern or "." in pattern) and pc.any(pc.match_substring_regex(found, _ENDS)).as_py():
        raise NotHere


def _check_nothing(found: pa.Array, compiled: re.Pattern[str]) -> None:
    """What matches nothing, again and again, is found at other places by Java than by Python.

    Where nothing is preferred to something, Python looks for something at the same place and Java does not. And a
    character may be two to Java, with a place between them.
    """
    if compiled.match("") is None:
        return
    if "|" in compiled.pattern or re.search(r"[*+?}]\?", compiled.pattern):
        raise NotHere
    if pc.any(pc.match_substring_regex(found, r"[\x{10000}-\x{10FFFF}]")).as_py():
        raise NotHere


def _prepared(node: exp.Expr, pattern: exp.Expr, rows: Rows, *, groups: bool) -> tuple[pa.Array, re.Pattern[str]]:
    """Texts, and the pattern that they are matched with."""
    found, written = spread(text(node, rows), rows.count), _pattern(pattern, rows)
    regex = plain_regex(written, groups=groups)
    _check_lines(found, written)
    try:
        return found, re.compile(regex)
    except re.error:  # brackets that do not match
        raise NotHere from None


@rule(exp.RegexpLike, reads=("this", "expression", "negate"))
def _regexp(node: exp.RegexpLike, rows: Rows) -> Value:
    true = _matches(node.this, node.expression, rows)
    return pc.invert(true) if node.args.get("negate") else true


@function("REGEXP", takes=(2,))
def _regexp_call(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _matches(arguments[0], arguments[1], rows)


def _matches(node: exp.Expr, pattern: exp.Expr, rows: Rows) -> pa.Array:
    found, compiled = _prepared(node, pattern, rows, groups=False)
    return pc.match_substring_regex(found, compiled.pattern)


@rule(exp.RegexpReplace, reads=("this", "expression", "replacement"))
def _replaced(node: exp.RegexpReplace, rows: Rows) -> Value:
    found, compiled = _prepared(node.this, node.expression, rows, groups=True)
    _check_nothing(found, compiled)
    by = _pattern(node.args["replacement"], rows)
    if "$" in by or "\\" in by:
        raise NotHere
    return each(found, lambda t: compiled.sub(lambda _: by, t), pa.string())


@rule(exp.RegexpExtract, reads=("this", "expression", "group", "null_if_pos_overflow"))
def _extracted(node: exp.RegexpExtract, rows: Rows) -> Value:
    found, compiled = _prepared(node.this, node.expression, rows, groups=True)
    group = node.args.get("group")
    number = 1 if group is None else int(group.name) if group.is_int else -1
    if not 0 <= number <= compiled.groups:
        raise NotHere

    def extracted(within: str) -> str:
        match = compiled.search(within)
        return (match[number] or "") if match else ""

    return each(found, extracted, pa.string())


@rule(exp.RegexpCount, reads=("this", "expression"))
def _counted(node: exp.RegexpCount, rows: Rows) -> Value:
    found, compiled = _prepared(node.this, node.expression, rows, groups=True)
    _check_nothing(found, compiled)
    return each(found, lambda t: sum(1 for _ in compiled.finditer(t)), pa.int32())


@rule(exp.RegexpSplit, reads=("this", "expression", "limit"))
def _split(node: exp.RegexpSplit, rows: Rows) -> Value:
    """By plain text, or by a class of characters."""
    limit = value(node.args["limit"], rows) if node.args.get("limit") is not None else pa.scalar(-1, pa.int32())
    if not isinstance(limit, pa.Scalar) or limit.as_py() is None or limit.as_py() == 0:
        raise NotHere
    found, compiled = _prepared(node.this, node.expression, rows, groups=True)
    most = max(limit.as_py() - 1, 0)
    if compiled.groups or compiled.match("") or "$" in compiled.pattern:
        raise NotHere

    def pieces(within: str) -> list[str]:
        return [within] if limit.as_py() == 1 else compiled.split(within, maxsplit=most)

    return each(found, pieces, pa.list_(pa.field("element", pa.string())))
