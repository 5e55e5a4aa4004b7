"""The relational operators, as immutable records.

Every column of a plan has an internal name (``__c1``, ``__c2``, ..) that no other column of the plan has, nor any
column of a view, so no expression
is ever ambiguous. Expressions are sqlglot trees whose columns are internal names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from penstock.plan.unsupported import Unsupported

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


Operator = Scan | Project | Filter | Join | Union | Distinct | Aggregate
STATEFUL = (Distinct, Aggregate)


def walk(op: Operator) -> Iterator[Operator]:
    """The operator and everything below it, itself first."""
    yield op
    for child in op.children:
        yield from walk(child)


def expressions(op: Operator) -> tuple[exp.Expr, ...]:
    """The expressions that an operator itself evaluates."""
    match op:
        case Project(outputs=outputs):
            return tuple(e for _, e in outputs)
        case Filter(condition=condition):
            return (condition,)
        case Join(conditions=conditions):
            return conditions
        case Aggregate(keys=keys, measures=measures):
            return tuple(e for _, e in keys + measures)
    return ()


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
        return expression.sql(dialect="spark", unsupported_level=ErrorLevel.RAISE, comments=False)
    except UnsupportedError as problem:
        raise Unsupported("EXPRESSION", f"an expression that cannot be carried over ({problem})") from None


def conjuncts(expression: exp.Expr) -> tuple[exp.Expr, ...]:
    """The parts of a condition that AND connects."""
    inner = expression.unnest()
    if isinstance(inner, exp.And):
        return conjuncts(inner.left) + conjuncts(inner.right)
    return (expression,)
