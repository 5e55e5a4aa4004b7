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
             f"IF({inner}, a, b)", f"TRANSFORM(xs, x -> {inner})", f"STRUCT({inner} AS p).p",
             f"xs[{self.value(depth - 2)}]")
        )  # fmt: skip

    def _space(self) -> str:
        return self._random.choice(("", " ", " ", "  "))


class QueryWriter:
    """Writes queries over ``t (k, a, b, c, i, j, s, d, at)`` whose types fit, with few brackets."""

    def __init__(self, random: Random):
        self._random = random

    def insert(self) -> str:
        def of(*values: str) -> str:
            return self._random.choice(values)

        flags = ("true", "false", "NULL")
        rows = [
            f"({n}, {of(*flags)}, {of(*flags)}, {of(*flags)}, {of('1', '2', '-3', 'NULL')}, "
            f"{of('1', '5', '-2', 'NULL')}, {of(repr('x'), repr('Xy'), repr(''), 'NULL')}, "
            f"DATE'202{of('3', '4')}-0{of('1', '2')}-15', "
            f"TIMESTAMP'2024-01-0{of('1', '2')} 1{of('0', '1', '2')}:{of('00', '20', '59')}:00')"
            for n in range(self._random.randint(4, 9))
        ]
        return f"INSERT INTO t VALUES {', '.join(rows)}"

    def query(self) -> str:
        where = self._random.choice(("", "", f" WHERE {self.flag(2)}"))
        match self._random.randrange(8):
            case 0 | 1:
                items = ", ".join(f"{self._any(3)} AS e{n}" for n in range(3))
                return f"SELECT {self._random.choice(('', 'DISTINCT '))}k, {items} FROM t{where}"
            case 2:
                on = f"x.k = y.k AND {self._random.choice(('x', 'y'))}.a = y.b < x.c"
                return f"SELECT x.k, x.i - y.j - x.k AS e FROM t x {self._random.choice(('', 'LEFT '))}JOIN t y ON {on}"
            case 3:
                return self._windowed(where)
        having = self._random.choice(("", "", f" HAVING COUNT(*) > 1 = BOOL_OR({self.flag(1)}) IS NOT FALSE"))
        return f"SELECT {self._any(2)} AS g, {self._aggregates()} FROM t{where} GROUP BY 1{having}"

    def _windowed(self, where: str) -> str:
        at, size = self._random.choice(("at", "at + INTERVAL 1 DAY - INTERVAL 2 HOURS")), "INTERVAL '1 hour'"
        shown, by = self._random.choice(
            (
                (f"TUMBLE_START({at}, {size})", f"TUMBLE({at}, {size})"),
                (f"HOP_END({at}, {size}, INTERVAL '90 minutes')", f"HOP({at}, {size}, INTERVAL '90 minutes')"),
                (f"SESSION_END({at}, {size})", f"SESSION({at}, {size})"),
                ("window.start", f"window({at}, '1 hour')"),
            )
        )
        first = f"FIRST_VALUE({self._any(2)}) AS f, LAST_VALUE({self.flag(2)}) AS l"
        return f"SELECT {shown} AS h, {first}, {self._aggregates()} FROM t{where} GROUP BY {by}"

    def _aggregates(self) -> str:
        made = (
            "COUNT(*)", f"SUM({self.number(2)})", f"COUNT_IF({self.flag(2)})",
            f"MAX_BY({self._any(1)}, {self._any(2)})",
            f"MIN_BY({self.text(1)}, {self.flag(2)}) FILTER (WHERE {self.flag(2)})",
            f"COLLECT_LIST({self._any(2)})",
            f"COLLECT_SET({self.flag(2)}) FILTER (WHERE {self.flag(1)})", f"BOOL_OR({self.flag(3)})",
            f"COUNT(DISTINCT {self._any(2)})", f"MAX({self.text(2)})", "TO_CHAR(MAX(d), 'yyyy')",
            "MIN(DATE_TRUNC('MM', at))", f"MAX_BY(s, {self.number(1)}, 2)",
        )  # fmt: skip
        return ", ".join(f"{function} AS m{n}" for n, function in enumerate(self._random.sample(made, 3)))

    def _any(self, depth: int) -> str:
        return self._random.choice((self.number, self.flag, self.text))(depth)

    def number(self, depth: int) -> str:
        if depth <= 0:
            return self._random.choice(("i", "j", "k", "2", "-1", "3", "(i)", "LENGTH(s)"))
        match self._random.randrange(8):
            case 0:
                return f"{self._random.choice(('- ', '~'))}{self.number(depth - 1)}"
            case 1:
                return f"CASE WHEN {self.flag(depth - 1)} THEN {self.number(0)} ELSE {self.number(0)} END"
            case 2:
                return f"{self.number(depth - 1)} << 1"
        operator = self._random.choice(("+", "-", "*", "&", "|", "^", " - ", " + "))
        right = self.number(depth - 1)
        return f"{self.number(depth - 1)}{operator}{' ' if right.startswith('-') else ''}{right}"

    def flag(self, depth: int) -> str:
        if depth <= 0:
            return self._random.choice(("a", "b", "c", "TRUE", "(a)"))
        comparison = self._random.choice(("=", "<", " <=> ", ">=", "<>", " != ", "=="))
        match self._random.randrange(10):
            case 0:
                return f"{self.number(depth - 1)}{comparison} {self.number(depth - 1)}"
            case 1:
                return f"{self.number(depth - 1)} < {self.number(0)}{comparison}{self.flag(0)}"
            case 2:
                return f"{self.flag(0)} = {self.flag(0)}{comparison}{self.flag(0)}"
            case 3:
                return f"{self.flag(0)}{comparison}{self.flag(0)} IS {self._random.choice(('', 'NOT '))}NULL"
            case 4:
                return f"{self._random.choice(('NOT ', '!'))}{self.flag(depth - 1)}"
            case 5:
                return f"{self.flag(depth - 1)} AND {self.flag(depth - 1)}"
            case 6:
                return f"{self.flag(depth - 1)} OR {self.flag(depth - 1)}"
            case 7:
                return f"{self.number(depth - 1)} BETWEEN {self.number(0)} AND {self.number(depth - 1)}"
            case 8:
                return f"{self.text(depth - 1)} LIKE {self.text(0)} || '%'"
        return f"{self.number(depth - 1)} NOT IN ({self.number(0)}, {self.number(depth - 1)})"

    def text(self, depth: int) -> str:
        if depth <= 0:
            return self._random.choice(("s", "'x'", "UPPER(s)"))
        return f"{self.text(depth - 1)} || {self._random.choice((self.number(0), self.text(0)))}"
