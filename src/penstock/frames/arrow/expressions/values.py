"""Rows on the driver, and the rules by which the value of an expression is computed for each of them.

A rule is found by the node of the parsed expression. What has no rule is ``NotHere``, and Spark is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.frames import limits
from penstock.frames.arrow.expressions.types import Value
from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere
from penstock.frames.settings import USUAL, Settings
from penstock.sql.dialect import SparkSql

TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Rows:
    """Columns of equal length, and the settings that expressions over them are computed under."""

    columns: Mapping[str, pa.Array]
    count: int
    settings: Settings = USUAL

    def column(self, name: str) -> pa.Array:
        """A column by its name, whatever its case."""
        if name in self.columns:
            return self.columns[name]
        found = [column for own, column in self.columns.items() if own.lower() == name.lower()]
        if len(found) != 1:
            raise NotHere
        return found[0]

    def some(self, kept: Numbers) -> Rows:
        """The rows at some places."""
        places = pa.array(kept)
        return Rows({name: column.take(places) for name, column in self.columns.items()}, len(kept), self.settings)


Rule = TypeVar("Rule", bound=Callable[[Any, Rows], Value])

_RULES: dict[type[exp.Expr], tuple[Callable[[Any, Rows], Value], tuple[str, ...]]] = {}
_OPERANDS = ("this", "expression")
_PLAIN = (exp.Column, exp.Alias)
"""What means the same under all settings."""

Call = TypeVar("Call", bound=Callable[[list[exp.Expr], Rows], Value])

_FUNCTIONS: dict[tuple[str, int], Callable[[list[exp.Expr], Rows], Value]] = {}


def rule(*nodes: type[exp.Expr], reads: tuple[str, ...] = _OPERANDS) -> Callable[[Rule], Rule]:
    """Makes a function the rule of some nodes; ``reads`` are the arguments of the node that it looks at."""

    def known(function: Rule) -> Rule:
        for node in nodes:
            _RULES[node] = function, reads
        return function

    return known


def function(*names: str, takes: tuple[int, ...]) -> Callable[[Call], Call]:
    """Makes a function the rule of calls that the parser has no node for; ``takes``: how many arguments they have."""

    def known(rule_of_call: Call) -> Call:
        _FUNCTIONS.update({(name, count): rule_of_call for name in names for count in takes})
        return rule_of_call

    return known


@rule(exp.Anonymous, reads=("this", "expressions"))
def _called(node: exp.Anonymous, rows: Rows) -> Value:
    """A call by its name. What was put together without the parser may have a node after all."""
    found = _FUNCTIONS.get((str(node.this).upper(), len(node.expressions)))
    if found is not None:
        return found(node.expressions, rows)
    again = parsed(node.sql(dialect=SparkSql))
    if isinstance(again, exp.Anonymous):
        raise NotHere
    return value(again, rows)


def computed(expression: exp.Expr, rows: Rows) -> pa.Array:
    """The value of an expression for each row."""
    try:
        return spread(value(expression, rows), rows.count)
    except (pa.ArrowException, ArithmeticError, ValueError, RecursionError):
        raise NotHere from None


def value(node: exp.Expr, rows: Rows) -> Value:
    """The value of an expression: an array, or a scalar if it is the same for all rows."""
    if type(node) not in _RULES or not (rows.settings.here or type(node) in _PLAIN):
        raise NotHere
    function, reads = _RULES[type(node)]
    check_arguments(node, reads)
    return function(node, rows)


def check_arguments(node: exp.Expr, reads: tuple[str, ...] = _OPERANDS) -> None:
    """No rule may overlook what the parser says of a node: that a LIKE is negated, or that a cast has a format."""
    if any(given and name not in reads for name, given in node.args.items()):
        raise NotHere


@lru_cache(maxsize=20_000)
def parsed(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, dialect=SparkSql)
    except (SqlglotError, RecursionError):
        raise NotHere from None


def spread(found: Value, count: int) -> pa.Array:
    """One value for each row."""
    return pa.repeat(found, count) if isinstance(found, pa.Scalar) else found


def column(node: exp.Expr, rows: Rows) -> pa.Array:
    """The value of an expression, one for each row."""
    return spread(value(node, rows), rows.count)


def each(found: pa.Array, made: Callable[[Any], Any], to: pa.DataType) -> pa.Array:
    """What is made of every value but NULL, in Python; of equal ones, once."""
    if pa.types.is_floating(found.type):  # 0.0 and -0.0 are equal
        return pa.array([None if v is None else made(v) for v in few(found).to_pylist()], to)
    coded = found.dictionary_encode()
    return pa.array([made(v) for v in few(coded.dictionary).to_pylist()], to).take(coded.indices)


def by_row(columns: Sequence[pa.Array], made: Callable[..., Any], to: pa.DataType) -> pa.Array:
    """What is made of the values of each row, in Python; NULL if one of them is."""
    rows = zip(*(few(found).to_pylist() for found in columns), strict=True)
    return pa.array([None if None in row else made(*row) for row in rows], to)


def few(found: pa.Array) -> pa.Array:
    """Values that are few enough to be looked at one by one."""
    if len(found) > limits.SINGLE_VALUES:
        raise NotHere
    return found


def numbers(found: pa.Array, fill: int = 0) -> tuple[Numbers, Numbers]:
    """Whole numbers (times as microseconds), and which of them are NULL."""
    missing = found.is_null().to_numpy(zero_copy_only=False)
    whole = found.cast(pa.int64()) if pa.types.is_timestamp(found.type) else found
    return whole.fill_null(fill).to_numpy(), missing


def written_rows(rows: Sequence[Sequence[exp.Expr]], names: Sequence[str], settings: Settings) -> pa.Table | None:
    """Rows that are written down, if every column has values of one type; else only Spark knows their type."""
    one = Rows({}, 1, settings)
    try:
        columns = [pa.concat_arrays([computed(e, one) for e in column]) for column in zip(*rows, strict=True)]
    except (NotHere, pa.ArrowException):
        return None
    if any(pa.types.is_null(column.type) for column in columns):
        return None
    return pa.table(columns, names=list(names))
