"""Where the calls of a query stand in its text, noted while it is read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.tokens import Token, TokenType

Span = tuple[int, int]
CALL, PLACE = "call", "place"
_AROUND = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


@dataclass(frozen=True, kw_only=True)
class Call:
    """``name(argument, ..)`` and, up to ``stop``, the FILTER and the like behind it."""

    start: int
    stop: int
    arguments: tuple[Span, ...]
    condition: Span | None
    keys: tuple[Span, ...] = ()
    """What ORDER BY among the arguments sorts by."""


class CallParser(Spark.Parser):
    """Notes where calls, WHERE, GROUP BY and LIMIT stand."""

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        first = self._index
        result = super()._parse_function_call(*args, **options)
        call = result
        while isinstance(call, _AROUND):
            call = call.this
        if isinstance(call, exp.Func) and CALL not in call.meta:
            tokens = self._tokens[first : self._index]
            if len(tokens) > 2 and tokens[1].token_type == TokenType.L_PAREN:
                call.meta[CALL] = _call(tokens)
        return result

    def _parse_where(self, *args: Any, **options: Any) -> exp.Where | None:
        return self._placed(super()._parse_where, *args, **options)

    def _parse_group(self, *args: Any, **options: Any) -> exp.Group | None:
        return self._placed(super()._parse_group, *args, **options)

    def _parse_limit(self, *args: Any, **options: Any) -> Any:
        return self._placed(super()._parse_limit, *args, **options)

    def _parse_derived_table_values(self, *args: Any, **options: Any) -> Any:
        """``(VALUES .. AS x(a)) y`` is a derived table, whose query has a name of its own."""
        values = super()._parse_derived_table_values(*args, **options)
        if values is None or not values.args.get("alias") or self._prev.token_type != TokenType.R_PAREN:
            return values
        alias = self._parse_table_alias()
        return values if alias is None else exp.Subquery(this=exp.select("*").from_(values), alias=alias)

    def _placed(self, parse: Any, *args: Any, **options: Any) -> Any:
        token = self._curr
        clause = parse(*args, **options)
        if token is not None and self._curr is not token:
            clause.meta[PLACE] = token.start
        return clause


def _call(tokens: list[Token]) -> Call:
    closing, commas = _bracketed(tokens, 1)
    ordering = _ordering(tokens, closing)
    end = closing if ordering is None else ordering
    arguments = _pieces(tokens, 1, end, [comma for comma in commas if comma < end])
    condition = None
    for i in range(closing + 1, len(tokens) - 2):
        if tokens[i].text.upper() == "FILTER" and tokens[i + 1].token_type == TokenType.L_PAREN:
            end, _ = _bracketed(tokens, i + 1)
            condition = tokens[i + 3].start, tokens[end - 1].end + 1  # behind WHERE
            break
    keys = () if ordering is None else _keys(tokens, ordering, closing, commas)
    return Call(
        start=tokens[0].start, stop=tokens[-1].end + 1, arguments=arguments, condition=condition, keys=keys
    )  # fmt: skip


_DIRECTIONS = ("ASC", "DESC", "NULLS", "FIRST", "LAST")


def _ordering(tokens: list[Token], closing: int) -> int | None:
    """Where ORDER BY stands among the arguments of a call."""
    depth = 0
    for i in range(1, closing):
        depth += (tokens[i].token_type == TokenType.L_PAREN) - (tokens[i].token_type == TokenType.R_PAREN)
        if tokens[i].token_type == TokenType.ORDER_BY and depth == 1:
            return i
    return None


def _keys(tokens: list[Token], ordering: int, closing: int, commas: list[int]) -> tuple[Span, ...]:
    """The keys without DESC and the like behind them."""
    bounds, spans = [ordering, *(comma for comma in commas if comma > ordering), closing], list[Span]()
    for a, b in pairwise(bounds):
        last = b - 1
        while last > a + 1 and tokens[last].text.upper() in _DIRECTIONS:
            last -= 1
        spans.append((tokens[a + 1].start, tokens[last].end + 1))
    return tuple(spans)


def _bracketed(tokens: list[Token], opening: int) -> tuple[int, list[int]]:
    """Where a bracket is closed, and the commas between that are in no other bracket."""
    depth, commas = 0, list[int]()
    for i in range(opening, len(tokens)):
        kind = tokens[i].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return i, commas
        if kind == TokenType.COMMA and depth == 1:
            commas.append(i)
    return len(tokens) - 1, commas


def _pieces(tokens: list[Token], opening: int, closing: int, commas: list[int]) -> tuple[Span, ...]:
    bounds = [opening, *commas, closing]
    return tuple((tokens[a + 1].start, tokens[b - 1].end + 1) for a, b in pairwise(bounds) if b > a + 1)
