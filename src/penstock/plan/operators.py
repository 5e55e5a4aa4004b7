"""The relational operators, as immutable records.

Every column of a plan has an internal name (``__c1``, ``__c2``, ..) that no other column of the plan has, nor any
column of a view, so no expression is ever ambiguous. Expressions are sqlglot trees whose columns are internal names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from penstock.plan.unsupported import Unsupported
from penstock.sql.dialect import SparkSql
from penstock.vocabulary import Reason

Named = tuple[str, exp.Expr]
"""An internal column name and the expression that gives its value."""


@dataclass(frozen=True)
class Scan:
    """Some columns of a table, view or hidden node: pairs of internal name and the name in the table."""

    relation: str
    stored: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.stored)

    @property
    def children(self) -> tuple[Operator, ...]:
        return ()


@dataclass(frozen=True)
class Values:
    """Rows that stand in the query itself, and so never change. SELECT without FROM reads one, without a meaning."""

    rows: tuple[tuple[exp.Expr, ...], ...]
    columns: tuple[str, ...]

    @property
    def children(self) -> tuple[Operator, ...]:
        return ()

    @property
    def text(self) -> str:
        """The rows as Spark SQL."""
        rows = ", ".join(f"({', '.join(render(value) for value in row)})" for row in self.rows)
        return f"SELECT * FROM VALUES {rows} AS given({', '.join(self.columns)})"


@dataclass(frozen=True)
class Project:
    child: Operator
    outputs: tuple[Named, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Filter:
    child: Operator
    condition: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Ended(Filter):
    """A filter that compares with the watermark, and so lets rows through later that it holds back now."""


CHANGE = "__change"


@dataclass(frozen=True)
class Late:
    """The changes of a table that came too late: its columns, and in ``CHANGE`` how many copies came or went."""

    child: Scan
    at: exp.Expr
    allowed: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, CHANGE)

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Accepted:
    """A table without what came late; ``late`` has the same columns and, last, ``CHANGE``."""

    child: Scan
    late: Scan

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child, self.late)


@dataclass(frozen=True)
class Join:
    """An inner join of any number of inputs: their product, filtered by all the conditions."""

    inputs: tuple[Operator, ...]
    conditions: tuple[exp.Expr, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for child in self.inputs for name in child.columns)

    @property
    def children(self) -> tuple[Operator, ...]:
        return self.inputs


Kind = Literal["left", "full", "semi", "anti", "mark"]


@dataclass(frozen=True, kw_only=True)
class SidedJoin:
    """A join whose sides differ: every row of the left looks for rows of the right that satisfy all conditions.

    left  the pairs; a row that finds nothing, once, beside NULLs
    full  the same, and the rows of the right that were not found, beside NULLs
    semi  the rows that find something
    anti  the rows that find nothing
    mark  every row, with a column that says whether it found something
    """

    kind: Kind
    left: Operator
    right: Operator
    conditions: tuple[exp.Expr, ...]
    mark: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        match self.kind:
            case "left" | "full":
                return self.left.columns + self.right.columns
            case "mark":
                assert self.mark is not None
                return (*self.left.columns, self.mark)
        return self.left.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Generate:
    """Each row as often as a generator function (explode and its like) gives rows for it, beside what it gives."""

    child: Operator
    generator: exp.Expr
    outputs: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns + self.outputs

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Union:
    """UNION ALL, by position."""

    inputs: tuple[Operator, ...]
    columns: tuple[str, ...]

    @property
    def children(self) -> tuple[Operator, ...]:
        return self.inputs


@dataclass(frozen=True)
class Distinct:
    child: Operator

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Aggregate:
    """GROUP BY ``keys``; without keys there is one group, also when there are no rows."""

    child: Operator
    keys: tuple[Named, ...]
    measures: tuple[Named, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.keys + self.measures)

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Sessions(Aggregate):
    """GROUP BY sessions: the last key is ``session_window`` of a column, the other keys are columns.

    Rows of equal keys that follow each other within the gap are a session, so one row can join two sessions into one.
    """

    @property
    def partition(self) -> tuple[str, ...]:
        """The columns within whose values rows are of one session."""
        return tuple(e.name for _, e in self.keys[:-1])


@dataclass(frozen=True)
class Window:
    """Window functions over one partitioning: the child's rows, each with the functions' values beside it."""

    child: Operator
    partition: tuple[str, ...]
    functions: tuple[Named, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns + tuple(name for name, _ in self.functions)

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True)
class TopK:
    """ORDER BY .. LIMIT .. OFFSET; rows that are equal in the order are taken in the order of all their columns."""

    child: Operator
    order: tuple[exp.Expr, ...]
    limit: int
    offset: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)


Stateless = Scan | Values | Project | Filter | Join | SidedJoin | Generate | Union | Late | Accepted
Operator = Stateless | Distinct | Aggregate | Window | TopK
STATEFUL = (Distinct, Aggregate, Window, TopK)


def walk(op: Operator) -> Iterator[Operator]:
    """The operator and everything below it, itself first."""
    yield op
    for child in op.children:
        yield from walk(child)


def mapped(op: Operator, change: Callable[[Operator], Operator]) -> Operator:
    """The operator with each of its inputs changed; those that read a table and nothing else, or nothing, stay."""
    match op:
        case Scan() | Values() | Late() | Accepted():
            return op
        case Join(inputs=inputs) | Union(inputs=inputs):
            return replace(op, inputs=tuple(change(child) for child in inputs))
        case SidedJoin(left=left, right=right):
            return replace(op, left=change(left), right=change(right))
    return replace(op, child=change(op.child))


def expressions(op: Operator) -> tuple[exp.Expr, ...]:
    """The expressions that an operator itself evaluates."""
    match op:
        case Project(outputs=outputs):
            return tuple(e for _, e in outputs)
        case Filter(condition=condition):
            return (condition,)
        case Late(at=at):
            return (at,)
        case Join(conditions=conditions) | SidedJoin(conditions=conditions):
            return conditions
        case Generate(generator=generator):
            return (generator,)
        case Window(functions=functions):
            return tuple(e for _, e in functions)
        case TopK(order=order):
            return order
        case Aggregate(keys=keys, measures=measures):
            return tuple(e for _, e in keys + measures)
    return ()


_FOUND_BY = "found by"


def found_by(key: str, value: exp.Expr) -> exp.Expr:
    """How a group is found: by its key, which must be equal to the value without a cast, or two groups may be found."""
    equation = exp.EQ(this=column(key), expression=value.copy())
    equation.meta[_FOUND_BY] = True
    return equation


def is_found_by(condition: exp.Expr) -> bool:
    return _FOUND_BY in condition.meta


def column(name: str) -> exp.Column:
    return exp.column(name)


def names_in(expression: exp.Expr) -> set[str]:
    """The internal columns that an expression reads."""
    return {c.name for c in expression.find_all(exp.Column)}


def render(expression: exp.Expr) -> str:
    """An expression as Spark SQL.

    >>> import sqlglot
    >>> render(sqlglot.parse_one("nvl(c1, 0) + 1", dialect="spark"))
    'COALESCE(c1, 0) + 1'
    """
    try:
        return expression.sql(dialect=SparkSql, unsupported_level=ErrorLevel.RAISE, comments=False)
    except UnsupportedError as problem:
        raise Unsupported(Reason.EXPRESSION, f"an expression that cannot be carried over ({problem})") from None


def bracketed(expression: exp.Expr) -> exp.Expr:
    """A copy that can stand anywhere in another expression."""
    copy = expression.copy()
    return copy if isinstance(copy, exp.Column | exp.Literal | exp.Paren) else exp.paren(copy)


def conjuncts(expression: exp.Expr) -> tuple[exp.Expr, ...]:
    """The parts of a condition that AND connects."""
    inner = expression.unnest()
    if isinstance(inner, exp.And):
        return conjuncts(inner.left) + conjuncts(inner.right)
    return (expression,)
