"""Spark's SQL as sqlglot reads and writes it, with what sqlglot's own Spark dialect has otherwise than Spark 4."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType
from sqlglot.transforms import eliminate_distinct_on, preprocess, unnest_to_explode

from penstock.sql.calls import CallParser
from penstock.sql.documents import JsonAgg, JsonOrder, JsonText
from penstock.sql.precedence import SparkParser, with_brackets
from penstock.sql.window_start import WindowStart

_VERBATIM = (
    "LOG", "LOG2", "LOG10", "INSTR", "DATE_SUB", "SPACE", "TO_UNIX_TIMESTAMP", "FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP",
    "TO_CHAR", "UNIX_DATE", "COLLATE", "VARIANT_GET", "PARSE_JSON", "LEVENSHTEIN", "TIME_DIFF", "TIME_TRUNC",
)  # fmt: skip
"""Functions that sqlglot would spell by another, whose value may differ in the last bits, or cannot spell."""

_FOREIGN = ("&&", "??", "~~~", "~~", "~*", "<->", "<<->>", "|/", "||/", "<@", "@>", "&<", "&>", "-|-", "^@", "?::",
            "->>", "#>", "#>>", "#-", "@@", "@?")  # fmt: skip
"""Operators of other databases. In Spark, the same characters are several operators or an error."""

_WHOLE = (TokenType.BIGINT, TokenType.SMALLINT, TokenType.TINYINT)
_ALSO_FUNCTIONS = (TokenType.WINDOW, TokenType.SESSION)
_NUMBER = re.compile(r"\d+(\.\d+)?")
_TYPE = exp.DataType.Type
_SUFFIXES = {_TYPE.BIGINT: "L", _TYPE.SMALLINT: "S", _TYPE.TINYINT: "Y", _TYPE.DOUBLE: "D"}
_BITS = {_TYPE.BIGINT: 64, _TYPE.SMALLINT: 16, _TYPE.TINYINT: 8}
_OF_JOINS = ("on", "using", "kind", "side", "method")
_LETTERS = frozenset(exp.TimeUnit.UNABBREVIATED_UNIT_NAME)
_PREFIXES = {
    _TYPE.DATE: "DATE", _TYPE.TIMESTAMPTZ: "TIMESTAMP", _TYPE.TIMESTAMPLTZ: "TIMESTAMP_LTZ",
    _TYPE.TIMESTAMPNTZ: "TIMESTAMP_NTZ", _TYPE.TIME: "TIME",
}  # fmt: skip


def _literal(cast: exp.Cast) -> str | None:
    """1L and DATE'..' are read as casts; written as they were, Spark sees the same."""
    value, kind = cast.this, cast.to.this
    sign = ""
    if isinstance(value, exp.Neg):
        sign, value = "-", value.this
    if not isinstance(value, exp.Literal) or (sign and value.is_string):
        return None
    if value.is_string and kind == _TYPE.DECIMAL:
        return f"{value.this}BD" if _is_type_of(value.this, cast.to) else None
    if value.is_string:
        plain = kind in _PREFIXES and not isinstance(cast, exp.TryCast) and set(value.this).isdisjoint("'\\")
        return f"{_PREFIXES[kind]}'{value.this}'" if plain else None
    if sign and kind == _TYPE.DOUBLE:  # -0D is not the double of -0
        return None
    return f"{sign}{value.this}{_SUFFIXES[kind]}" if _has_suffix(value.this, kind) else None


def _has_suffix(number: str, kind: Any) -> bool:
    """Whether a number may be written with the letter of a type. One that is not of the type can only be cast to it.

    >>> _has_suffix("127", _TYPE.TINYINT), _has_suffix("300", _TYPE.TINYINT), _has_suffix("1.5", _TYPE.BIGINT)
    (True, False, False)
    """
    if kind not in _SUFFIXES or not _NUMBER.fullmatch(number):
        return False
    return kind not in _BITS or ("." not in number and int(number) < 2 ** (_BITS[kind] - 1))


def _cut_time(args: list[exp.Expr]) -> exp.Expr:
    """DATE_TRUNC. Letters that are a unit to sqlglot (M is its minute) are none to Spark, which answers NULL."""
    if len(args) == 2 and _is_unit(args[0]):
        return exp.TimestampTrunc(this=args[1], unit=exp.var(args[0].name))
    return exp.Anonymous(this="DATE_TRUNC", expressions=args)


def _cut_date(args: list[exp.Expr]) -> exp.Expr:
    """TRUNC, its unit spelled as it was."""
    if len(args) != 2 or not _is_unit(args[1]):
        return exp.Anonymous(this="TRUNC", expressions=args)
    cut = exp.DateTrunc(this=args[0], unit=args[1].copy())
    cut.set("unit", args[1])
    return cut


def _is_unit(e: exp.Expr) -> bool:
    return isinstance(e, exp.Literal) and e.is_string and e.name.upper() not in _LETTERS


def _to_date(args: list[exp.Expr]) -> exp.Expr:
    """TO_DATE. With a format it is another function than without, even with the format that is usual."""
    return exp.TsOrDsToDate(this=args[0]) if len(args) == 1 else exp.Anonymous(this="TO_DATE", expressions=args)


def _is_type_of(text: str, kind: exp.DataType) -> bool:
    """Whether a decimal literal of this text has this type."""
    if not _NUMBER.fullmatch(text):
        return False
    _, digits, exponent = Decimal(text).as_tuple()
    scale = -int(exponent)
    return [str(e) for e in kind.expressions] == [str(max(len(digits), scale)), str(scale)]


class SparkSql(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']  # 'it''s' is one string
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word not in _FOREIGN
        }

    class Parser(CallParser, SparkParser):
        ADD_JOIN_ON_TRUE = False  # which Spark plans otherwise, if a generator is joined
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **{name: make for name, make in Spark.Parser.FUNCTIONS.items() if name not in _VERBATIM},
            "DATE_TRUNC": _cut_time,
            "TRUNC": _cut_date,
            "TO_DATE": _to_date,
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: read for name, read in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items() if name != "ANY"
        }

        def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
            """A JOIN without a condition is no comma, which binds less tightly."""
            comma = self._curr is not None and self._curr.token_type == TokenType.COMMA
            join = super()._parse_join(*args, **options)
            if join is not None and not comma and not any(join.args.get(key) for key in _OF_JOINS):
                join.set("kind", "INNER")
            return join

        def parse(self, raw_tokens: list[Token], sql: str | None = None) -> list[exp.Expr | None]:
            """WINDOW and SESSION are functions where a bracket follows; 1.5L is no number."""
            for token, following in pairwise(raw_tokens):
                if token.token_type in _ALSO_FUNCTIONS and following.token_type == TokenType.L_PAREN:
                    token.token_type = TokenType.VAR
                # what comes of a suffix lies where the number does: BIGINT, where somebody wrote L
                if following.token_type in _WHOLE and following.start == token.start:
                    number = (sql or "")[token.start : token.end + 1]
                    if not number[:-1].isdigit():
                        raise ParseError.new(
                            f"{number} is no number",
                            description=f"{number} is no number: only whole ones have the suffix {following.text}",
                            line=token.line, col=token.col, highlight=number,
                        )  # fmt: skip
            return super().parse(raw_tokens, sql)

    class Generator(Spark.Generator):
        """Writes what was read as it mostly was written: QUALIFY, WITHIN GROUP, IS NOT NULL, DATE'..' stay."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
            **{kind: text for kind, text in Spark.Generator.TRANSFORMS.items() if kind is not exp.WithinGroup},
            exp.Select: preprocess([eliminate_distinct_on, unnest_to_explode]),
            exp.NullSafeEQ: lambda self, e: self.binary(e, "<=>"),
            exp.BitwiseLeftShift: lambda self, e: self.binary(e, "<<"),
            exp.BitwiseRightShift: lambda self, e: self.binary(e, ">>"),
            WindowStart: lambda self, e: self.sql(e.spelled),
            JsonText: lambda self, e: self.sql(e.spelled),
            JsonAgg: lambda self, e: (
                f"LISTAGG({self.sql(e, 'this')}, ',') WITHIN GROUP "
                f"(ORDER BY {self.expressions(e.args['order'], flat=True)})"
            ),
            JsonOrder: lambda self, e: "CAST(NULL AS BINARY)",
        }

        def preprocess(self, expression: exp.Expr) -> exp.Expr:
            return super().preprocess(with_brackets(expression))

        def not_sql(self, expression: exp.Not) -> str:
            inner = expression.this
            if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
                return f"{self.sql(inner, 'this')} IS NOT NULL"
            return str(super().not_sql(expression))

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            literal = None if safe_prefix else _literal(expression)
            return literal or str(super().cast_sql(expression, safe_prefix))

        def concat_sql(self, expression: exp.Concat) -> str:
            if all(isinstance(e, exp.Literal) and e.is_string for e in expression.expressions):
                return self.sql(exp.Literal.string("".join(e.this for e in expression.expressions)))  # 'a' 'b'
            return str(super().concat_sql(expression))

        def join_sql(self, expression: exp.Join) -> str:
            if expression.kind == "CROSS" and not expression.args.get("on"):
                return f" INNER JOIN {self.sql(expression, 'this')}"  # a comma, to Spark
            return str(super().join_sql(expression))


def quoted(name: str) -> str:
    """A name as Spark SQL text."""
    return "`" + name.replace("`", "``") + "`"
