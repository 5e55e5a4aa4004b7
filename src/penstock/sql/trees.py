"""Expressions composed as trees: a template is read once, and trees take the places of the names in it.

So no text is ever put around another, and nothing has to be read again that was known before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce

import sqlglot
from sqlglot import exp

from penstock.sql.dialect import SparkSql

Named = tuple[str, exp.Expr]
"""A column's name and the expression that gives its value."""


def tree(template: str, **parts: exp.Expr) -> exp.Expr:
    """The tree of a template, with other trees in the place of names.

    >>> print(tree("x * 2", x=tree("a + b")).sql(dialect=SparkSql))
    (a + b) * 2
    """
    holder = exp.Paren(this=_read(template).copy())
    for name in [found for found in holder.find_all(exp.Column) if found.name in parts and not found.table]:
        name.replace(parts[name.name].copy())
    return holder.this.pop()


@lru_cache(maxsize=2_000)
def _read(template: str) -> exp.Expr:
    return unplaced(sqlglot.parse_one(template, dialect=SparkSql))


def unplaced(tree: exp.Expr) -> exp.Expr:
    """The tree without what its nodes know of a text, where nobody asks for it: most of what copying it would take."""
    for node in tree.walk():
        node._meta = None
    return tree


def column(name: str, of: str | None = None) -> exp.Column:
    """A column by its name, or a field ``of`` a column that is a struct."""
    found = exp.Column(this=exp.Identifier(this=name, quoted=True))
    if of:
        found.set("table", exp.Identifier(this=of, quoted=True))
    return found


def columns(names: Iterable[str]) -> list[Named]:
    """Columns under their own names."""
    return [(name, column(name)) for name in names]


def whole_number(value: int) -> exp.Expr:
    """A BIGINT."""
    literal: exp.Expr = exp.Literal.number(abs(value))
    return exp.TryCast(this=exp.Neg(this=literal) if value < 0 else literal, to=data_type("bigint").copy())


def cast(value: exp.Expr, to: str) -> exp.Expr:
    """A value in a type that is told by Spark's name for it."""
    return exp.TryCast(this=value.copy(), to=data_type(to).copy())


@lru_cache(maxsize=1_000)
def data_type(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect=SparkSql)


def struct(fields: Sequence[Named]) -> exp.Expr:
    parts = [exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=e.copy()) for name, e in fields]
    return exp.Struct(expressions=parts)


def all_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    """A condition that is true where all of some are; they may be none."""
    return _folded(exp.And, conditions, exp.Boolean(this=True))


def any_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    return _folded(exp.Or, conditions, exp.Boolean(this=False))


def product(factors: Iterable[exp.Expr]) -> exp.Expr:
    return _folded(exp.Mul, factors, whole_number(1))


def _folded(kind: type[exp.Binary], parts: Iterable[exp.Expr], none: exp.Expr) -> exp.Expr:
    copies = [part.copy() for part in parts]
    return reduce(lambda left, right: kind(this=left, expression=right), copies) if copies else none


class Same(exp.NullSafeEQ):
    """Whether two values are one and the same: NULL is NULL, NaN is NaN, and 0.0 is not -0.0."""


def same(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return Same(this=one.copy(), expression=other.copy())
