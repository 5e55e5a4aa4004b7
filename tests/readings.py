"""Random expressions as texts: all operators of Spark's grammar, with brackets and spaces left to chance."""

from __future__ import annotations

from random import Random

INFIX = ("*", "/", "%", " DIV ", "+", "-", "||", "<<", ">>", "&", "^", "|", "=", "==", "<=>", "<>", "!=", "<", "<=",
         ">", ">=", "!<", "!>")  # fmt: skip
PREFIX = ("-", "~")
ATOMS = (
    "a", "b", "c", "t.d", "`a`", "1", "-1", "2L", "-2L", "1.5", ".5", "1e3", "-3Y", "'x'", "'it''s'", "TRUE", "NULL",
    "s.x", "xs[0]", "m['k']", "F(a)", "INTERVAL 1 DAY", "INTERVAL '1' HOUR", "DATE'2024-02-29'", "a::INT", "-1::STRING",
    "c COLLATE UNICODE", "X'1F'",
)  # fmt: skip


class Writer:
    """Writes the text of an expression by Spark's grammar, without regard to types."""

    def __init__(self, random: Random):
        self._random = random

    def condition(self, depth: int) -> str:
        pick = self._random.random()
        if depth <= 0 or pick < 0.45:
            return self.predicate(depth)
        if pick < 0.6:
            return self._random.choice(("NOT ", "!", "not ")) + self.condition(depth - 1)
        joined = self._random.choice((" AND ", " OR ", " and ", "\nor "))
        return self.condition(depth - 1) + joined + self.condition(depth - 1)

    def predicate(self, depth: int) -> str:
        this, negated = self.value(depth), self._random.choice(("", "NOT "))
        match self._random.randrange(12):
            case 0:
                return f"{this} {negated}BETWEEN {self.value(depth - 1)} AND {self.value(depth - 1)}"
            case 1:
                return f"{this} {negated}IN ({self.condition(depth - 2)}, {self.value(depth - 1)})"
            case 2:
                return f"{this} {negated}{self._random.choice(('LIKE', 'ILIKE', 'RLIKE'))} {self.value(depth - 1)}"
            case 3:
                return f"{this} IS {negated}{self._random.choice(('NULL', 'TRUE', 'FALSE'))}"
            case 4:
                return f"{this} IS {negated}DISTINCT FROM {self.value(depth - 1)}"
            case 5:
                return f"{this} {negated}LIKE {self.value(depth - 2)} ESCAPE '!'"
        return this

    def value(self, depth: int) -> str:
        pick = self._random.random()
        if depth <= 0 or pick < 0.2:
            return self.atom(depth)
        if pick < 0.3:
            sign, operand = self._random.choice(PREFIX), self.value(depth - 1)
            return f"{sign} {operand}" if operand.startswith("-") else f"{sign}{self._space()}{operand}"
        operator = self._random.choice(INFIX)
        left, right = self.value(depth - 1), self.value(depth - 1)
        return (
            f"{left}{self._space()}{operator}{self._space() if not right.startswith(('-', '/', '*')) else ' '}{right}"
        )

    def atom(self, depth: int) -> str:
        if depth <= -2 or self._random.random() < 0.7:
            return self._random.choice(ATOMS)
        inner = self.condition(depth - 2)
        return self._random.choice(
            (f"({inner})", f"( {inner} )", f"G({inner}, {self.atom(depth - 2)})", f"CAST({inner} AS STRING)",
             f"({inner})::INT", f"CASE WHEN {inner} THEN {self.value(depth - 2)} ELSE {self.atom(depth - 2)} END",
             f"IF({inner}, a, b)", f"TRANSFORM(xs, x -> {inner})", f"STRUCT({inner} AS p).p", f"xs[{self.value(depth - 2)}]")
        )  # fmt: skip

    def _space(self) -> str:
        return self._random.choice(("", " ", " ", "  "))
