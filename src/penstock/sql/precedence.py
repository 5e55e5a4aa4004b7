"""How tightly operators bind: the ladder of Spark's grammar, by which expressions are read and written.

Spark has one rank for all comparisons, has NOT and predicates (IS, IN, LIKE, BETWEEN) take whole comparisons for
operands, and puts ``||`` beside ``+``; sqlglot has none of these. A tree is written with every bracket that it needs,
so that its text means what the tree says, however the tree came to be.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.tokens import Token, TokenType

_SIGN, _FACTOR, _TERM, _SHIFT, _AND, _XOR, _OR, _COMPARISON, _PREDICATE, _NOT, _BOTH, _EITHER, _LAST = range(1, 14)

_INFIX: dict[TokenType, tuple[int, type[exp.Expr]]] = {
    TokenType.STAR: (_FACTOR, exp.Mul), TokenType.SLASH: (_FACTOR, exp.Div), TokenType.MOD: (_FACTOR, exp.Mod),
    TokenType.DIV: (_FACTOR, exp.IntDiv),
    TokenType.PLUS: (_TERM, exp.Add), TokenType.DASH: (_TERM, exp.Sub), TokenType.DPIPE: (_TERM, exp.DPipe),
    TokenType.AMP: (_AND, exp.BitwiseAnd), TokenType.CARET: (_XOR, exp.BitwiseXor),
    TokenType.PIPE: (_OR, exp.BitwiseOr),
    TokenType.EQ: (_COMPARISON, exp.EQ), TokenType.NEQ: (_COMPARISON, exp.NEQ),
    TokenType.NULLSAFE_EQ: (_COMPARISON, exp.NullSafeEQ), TokenType.LT: (_COMPARISON, exp.LT),
    TokenType.LTE: (_COMPARISON, exp.LTE), TokenType.GT: (_COMPARISON, exp.GT), TokenType.GTE: (_COMPARISON, exp.GTE),
}  # fmt: skip
_LONGER: dict[str, tuple[int, type[exp.Expr]]] = {
    "<<": (_SHIFT, exp.BitwiseLeftShift), ">>": (_SHIFT, exp.BitwiseRightShift), ">>>": (_SHIFT, exp.Anonymous),
    "!<": (_COMPARISON, exp.GTE), "!>": (_COMPARISON, exp.LTE),
}  # fmt: skip
"""What Spark reads as one operator and sqlglot as several."""
_UNSIGNED = "SHIFTRIGHTUNSIGNED"

_RANKS: dict[type[exp.Expr], int] = {
    **{kind: rank for rank, kind in _INFIX.values()},
    exp.Neg: _SIGN, exp.BitwiseNot: _SIGN,
    exp.Between: _PREDICATE, exp.In: _PREDICATE, exp.Is: _PREDICATE, exp.Like: _PREDICATE, exp.ILike: _PREDICATE,
    exp.RegexpLike: _PREDICATE, exp.Escape: _PREDICATE, exp.NullSafeNEQ: _PREDICATE,
    exp.Not: _NOT, exp.And: _BOTH, exp.Or: _EITHER,
    exp.BitwiseLeftShift: _SHIFT, exp.BitwiseRightShift: _SHIFT,
}  # fmt: skip
"""The rank of what is written with an operator."""
_AMOUNTS = (TokenType.NUMBER, TokenType.STRING)
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
_POSTFIX = (exp.Dot, exp.Bracket, exp.Collate)
_NOT_OPERATORS = (exp.Func, exp.Dot, exp.Paren, exp.PropertyEQ, exp.Kwarg, exp.Column, exp.SubqueryPredicate)
_LEFT, _OTHERS = "this", ("expression", "low", "high")


class SparkParser(Spark.Parser):
    """Reads values as Spark's grammar does: by rank, operators of one rank from the left."""

    def _parse_bitwise(self, weakest: int = _COMPARISON) -> exp.Expr | None:
        """A value: operators up to the rank, comparisons among them."""
        this = self._parse_unary()
        while this is not None:
            rank, kind, width = self._operator()
            if not width or rank > weakest:
                break
            self._advance(width)
            right = self._parse_bitwise(rank - 1)
            if right is None and kind is exp.IntDiv:  # an alias
                self._retreat(self._index - 1)
                break
            this = self.expression(self._applied(kind, this, right))
        return this

    def _operator(self) -> tuple[int, type[exp.Expr], int]:
        """The operator that comes next: its rank, what it makes, and how many of sqlglot's tokens it is."""
        tokens: list[Token] = [self._curr] if self._curr else []
        while tokens and len(tokens) < 3 and tokens[-1].text in ("<", ">", "!"):
            following = self._tokens[self._index + len(tokens) :][:1]
            if not following or following[0].start != tokens[-1].end + 1:
                break
            tokens += following
        for width in range(len(tokens), 1, -1):
            longer = _LONGER.get("".join(token.text for token in tokens[:width]))
            if longer is not None:
                return *longer, width
        found = _INFIX.get(tokens[0].token_type) if tokens else None
        return (*found, 1) if found is not None else (0, exp.Expr, 0)

    def _applied(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr | None) -> exp.Expr:
        if kind is exp.Anonymous:
            return exp.Anonymous(this=_UNSIGNED, expressions=[left, right])
        made = kind(this=left, expression=right)
        if kind is exp.Div:
            made.set("typed", self.dialect.TYPED_DIVISION)
            made.set("safe", self.dialect.SAFE_DIVISION)
        if kind is exp.DPipe:
            made.set("safe", not self.dialect.STRICT_STRING_CONCAT)
        return made

    def _parse_unary(self) -> exp.Expr | None:
        this = self._signed_number() or super()._parse_unary()
        while this is not None and self._match(TokenType.COLLATE):
            collation = self._parse_table_parts() if self._next.token_type == TokenType.DOT else self._parse_id_var()
            this = self._parse_column_ops(self.expression(exp.Collate(this=this, expression=collation)))
        return this

    def _signed_number(self) -> exp.Expr | None:
        """-1 is a number, and not a minus before one: ``-1::STRING`` is the text '-1'."""
        if not (self._curr.token_type == TokenType.DASH and self._next.token_type == TokenType.NUMBER):
            return None
        self._advance()
        number, value = self._curr, self._parse_primary()
        # A suffix is read as a cast, whose tokens lie where the number does. The smallest whole number has no positive
        # twin, so there the sign belongs into the cast; of decimals it would be lost there, and of 0D too.
        suffixed = self._curr.token_type == TokenType.DCOLON and self._curr.start == number.start
        if suffixed and self._next.token_type in (TokenType.DECIMAL, TokenType.DOUBLE, TokenType.FLOAT):
            self._advance()
            value = self.COLUMN_OPERATORS[TokenType.DCOLON](self, value, self._parse_dcolon())
        return self._parse_column_ops(self.expression(exp.Neg(this=value)))

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> exp.Expr | None:
        """One interval may have several units, each with a sign: ``INTERVAL 1 DAY - 2 HOURS``."""
        index = self._index
        if not self._match(TokenType.INTERVAL) and require_interval:
            return None
        negative = not self._match(TokenType.PLUS) and bool(self._match(TokenType.DASH))
        if self._curr.token_type not in _AMOUNTS:
            self._retreat(index)
            return None
        amount = self._parse_primary()
        first = self._parse_interval_span(exp.Neg(this=amount) if negative else amount, parse_function_unit)
        signed = int(self._curr.token_type in (TokenType.PLUS, TokenType.DASH))
        ahead = [*self._tokens[self._index + signed : self._index + signed + 2]]
        if len(ahead) < 2 or ahead[0].token_type not in _AMOUNTS or not self._is_unit(ahead[1]):
            return first
        return self.expression(exp.Add(this=first, expression=self._parse_interval(False, parse_function_unit)))

    def _is_unit(self, token: Token) -> bool:
        return token.text.upper().removesuffix("S") in _UNITS

    def _parse_grouping_set(self) -> exp.Expr | None:
        """Of GROUP BY too: any expression, such as ``a IS NULL``."""
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()


def with_brackets(tree: exp.Expr) -> exp.Expr:
    """The tree, with brackets around every operand that Spark would otherwise read as part of something else.

    >>> import sqlglot
    >>> tree = exp.Not(this=exp.Is(this=sqlglot.parse_one("a OR b"), expression=exp.Null()))
    >>> print(with_brackets(tree).sql())
    NOT (a OR b) IS NULL
    """
    for node in list(tree.walk()):
        own = _rank(node)
        if own or isinstance(node, _POSTFIX):
            for key in (_LEFT, *_OTHERS):
                operand = node.args.get(key)
                if isinstance(operand, exp.Expr) and _rank(operand) > _weakest(node, own, key):
                    operand.replace(exp.Paren(this=operand.copy()))
    return tree


def _weakest(node: exp.Expr, own: int, key: str) -> int:
    """The weakest operator that an operand may have without brackets."""
    if isinstance(node, _POSTFIX):
        return 0 if key == _LEFT else _LAST
    if isinstance(node, exp.Escape) and key == _LEFT:
        return _PREDICATE
    if own == _PREDICATE:
        return _COMPARISON
    return own if key == _LEFT else own - 1


def _rank(node: exp.Expr) -> int:
    found = _RANKS.get(type(node))
    if found is not None:
        return found
    if isinstance(node, _NOT_OPERATORS):
        return 0
    return _LAST if isinstance(node, exp.Binary | exp.Unary | exp.Predicate | exp.Lambda) else 0
