"""How an aggregate function is kept up to date from a change alone.

An accumulator is a few state columns per group. Each has a ``partial`` over the changed rows of a group with their
weights, the same as ``plain`` over rows without weights, and a ``merge`` (SUM, MIN or MAX over partials and stored
state); the function's value is an expression over the merged columns.

| function            | state                       | value                                        |
|---------------------|-----------------------------|----------------------------------------------|
| COUNT(*)            | -                           | the group's number of rows                   |
| COUNT(x), COUNT_IF  | count                       | count                                        |
| SUM(x), exact types | sum, number of non-NULLs    | sum, NULL when nothing is summed             |
| AVG(x), exact types | sum, number of non-NULLs    | their quotient, rounded as Spark rounds      |
| MIN(x), MAX(x)      | the extreme                 | the extreme; recomputed when it is removed   |
| BOOL_AND, BOOL_OR   | number of trues and falses  | whether there are falses, trues              |

SUM and AVG of FLOAT and DOUBLE have none: running float sums drift, so their groups are recomputed. Nor have those of
decimals with so many digits behind the point that there are none to spare, nor any other function.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from penstock.frames.names import WEIGHT
from penstock.sql.trees import column, tree

ROWS = "__rows"
"""The state column that counts a group's rows; a group without rows is gone."""

_SMALL_INTEGERS = ("tinyint", "smallint", "int")
_LARGEST_SCALE, _LARGEST_PRECISION = 13, 27
_WIDEST_SUM = 28
"""Sums of wider decimals have no digits to spare: what a change adds and removes may be larger than any sum. So of
wider ones only values that fit into this are added up; a group with another is recomputed."""
_LARGEST_SUM_SCALE = 12


@dataclass(frozen=True, kw_only=True)
class Part:
    """One state column: what it is called behind the measure's name, its type, partial and merge."""

    suffix: str
    type: str
    partial: exp.Expr
    plain: exp.Expr
    merge: str
    partial_type: str | None = None
    """The type of a partial where the stored one is too narrow: a change may be larger than any sum it leads to."""

    @property
    def counts(self) -> bool:
        """Whether it is a number of rows, which is never below zero."""
        return self.merge == "SUM" and self.suffix != "sum"


@dataclass(frozen=True, kw_only=True)
class Accumulator:
    parts: tuple[Part, ...]
    value: str
    """The function's value; ``s_<suffix>`` stands for a state column, ``s_rows`` for the group's number of rows."""
    removed: Part | None = None
    """For an extreme: the same extreme of the removed values."""
    spilled: exp.Expr | None = None
    """The number of changed values that are too large to be added up."""
    shows: str | None = None
    """The suffix of the state column that is the value itself, so that a visible column can serve as state."""


def choose(function: exp.Expr, argument: str, argument_type: str, value_type: str) -> Accumulator | None:
    """The accumulator of a function, given the column that holds its argument; None when it has none.

    >>> choose(exp.Count(this=exp.Star()), "x", "int", "bigint").value
    's_rows'
    """
    if function.expressions:
        return None
    match function:
        case exp.LogicalAnd() | exp.LogicalOr():
            return _boolean(argument, "s_false = 0" if isinstance(function, exp.LogicalAnd) else "s_true > 0")
        case exp.Count():
            return _count(function, argument)
        case exp.CountIf():
            return Accumulator(parts=(_count_if("count", column(argument)),), value="s_count", shows="count")
        case exp.Sum():
            return _sum(argument, argument_type, value_type)
        case exp.Avg():
            return _average(argument, argument_type, value_type)
        case exp.Min() | exp.Max():
            return _extreme("MIN" if isinstance(function, exp.Min) else "MAX", argument, argument_type)
    return None


def _over(template: str, argument: str) -> exp.Expr:
    """A template over the argument ``x`` and the weight ``w`` of each row."""
    return tree(template, x=column(argument), w=column(WEIGHT))


def _count_if(suffix: str, condition: exp.Expr) -> Part:
    weighted = tree("COALESCE(SUM(IF(c, w, 0L)), 0L)", c=condition, w=column(WEIGHT))
    return Part(suffix=suffix, type="bigint", partial=weighted, plain=tree("COUNT_IF(c)", c=condition), merge="SUM")


def _non_null_count(argument: str) -> Part:
    weighted = _over("COALESCE(SUM(IF(x IS NULL, 0L, w)), 0L)", argument)
    return Part(suffix="count", type="bigint", partial=weighted, plain=_over("COUNT(x)", argument), merge="SUM")


def _count(function: exp.Count, argument: str) -> Accumulator:
    if isinstance(function.this, exp.Star | exp.Literal):
        return Accumulator(parts=(), value="s_rows")
    return Accumulator(parts=(_non_null_count(argument),), value="s_count", shows="count")


def _weighted_sum(argument: str, wide: str, weight: str, stored: str, partial_type: str | None = None) -> Part:
    """Exact: argument and weight are widened before they are multiplied, so that every product has room."""
    partial = _over(f"SUM(CAST(x AS {wide}) * CAST(w AS {weight}))", argument)
    return Part(
        suffix="sum",
        type=stored,
        partial=partial,
        plain=_over(f"SUM(CAST(x AS {wide}))", argument),
        merge="SUM",
        partial_type=partial_type,
    )


_SUM = "IF(s_count = 0, NULL, s_sum)"


def _sum(argument: str, argument_type: str, value_type: str) -> Accumulator | None:
    decimal = _decimal(argument_type)
    if argument_type in _SMALL_INTEGERS:
        part = _weighted_sum(argument, "BIGINT", "BIGINT", value_type)
    elif argument_type == "bigint":
        part = _weighted_sum(argument, "DECIMAL(20,0)", "DECIMAL(17,0)", value_type, "decimal(38,0)")
    elif decimal is not None and decimal[0] <= _WIDEST_SUM:
        part = _weighted_sum(argument, argument_type, "DECIMAL(9,0)", value_type)
    elif decimal is not None and decimal[1] <= _LARGEST_SUM_SCALE:
        return _wide_sum(argument, decimal[1], value_type)
    else:
        return None
    return Accumulator(parts=(part, _non_null_count(argument)), value=_SUM, shows="sum")


def _wide_sum(argument: str, scale: int, value_type: str) -> Accumulator:
    value = f"TRY_CAST(x AS DECIMAL({_WIDEST_SUM},{scale}))"
    partial = _over(f"SUM({value} * CAST(w AS DECIMAL(9,0)))", argument)
    part = Part(
        suffix="sum",
        type=value_type,
        partial=partial,
        plain=_over("SUM(x)", argument),
        merge="SUM",
        partial_type=f"decimal(38,{scale})",
    )
    spilled = _over(f"COUNT_IF(x IS NOT NULL AND {value} IS NULL)", argument)
    return Accumulator(parts=(part, _non_null_count(argument)), value=_SUM, spilled=spilled, shows="sum")


def _average(argument: str, argument_type: str, value_type: str) -> Accumulator | None:
    decimal = _decimal(argument_type)
    count = _non_null_count(argument)
    if argument_type in (*_SMALL_INTEGERS, "bigint"):
        part = _weighted_sum(argument, "DECIMAL(20,0)", "DECIMAL(17,0)", "decimal(38,0)")
        return Accumulator(
            parts=(part, count), value="IF(s_count = 0, NULL, CAST(s_sum AS DOUBLE) / CAST(s_count AS DOUBLE))"
        )
    if decimal is None or decimal[0] > _LARGEST_PRECISION or decimal[1] > _LARGEST_SCALE:
        return None
    precision, scale = decimal
    part = _weighted_sum(argument, argument_type, "DECIMAL(9,0)", f"decimal({precision + 10},{scale})")
    return Accumulator(parts=(part, count), value=_exact_quotient(scale, value_type))


def _exact_quotient(scale: int, value_type: str) -> str:
    """sum / count rounded half up once, as Spark's AVG does.

    Spark's decimal division would round early when the types grow too wide. So the whole part, which divides without
    rest, and the fraction, whose digits fit, are divided apart.
    """
    # Whole and fraction have 33 + 4 digits: one more is what their sum needs, and all that Spark has.
    rest = "(s_sum % CAST(s_count AS DECIMAL(20,0)))"
    whole = f"CAST((s_sum - {rest}) / CAST(s_count AS DECIMAL(20,0)) AS DECIMAL({33 - scale},0))"
    fraction = (
        f"CAST(CAST({rest} AS DECIMAL({10 + scale},{scale})) / CAST(s_count AS DECIMAL(14,0)) "
        f"AS DECIMAL({scale + 5},{scale + 4}))"
    )
    return f"IF(s_count = 0, NULL, CAST({whole} + {fraction} AS {value_type}))"


def _boolean(argument: str, value: str) -> Accumulator:
    counts = (_count_if("true", column(argument)), _count_if("false", _over("NOT x", argument)))
    return Accumulator(parts=counts, value=f"IF(s_true + s_false = 0, NULL, {value})")


def _extreme(kind: str, argument: str, argument_type: str) -> Accumulator:
    plain = _over(f"{kind}(x)", argument)
    value = Part(
        suffix="value",
        type=argument_type,
        partial=_over(f"{kind}(IF(w > 0, x, NULL))", argument),
        plain=plain,
        merge=kind,
    )
    removed = Part(
        suffix="removed",
        type=argument_type,
        partial=_over(f"{kind}(IF(w < 0, x, NULL))", argument),
        plain=plain,
        merge=kind,
    )
    return Accumulator(parts=(value,), value="s_value", removed=removed, shows="value")


def _decimal(data_type: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", data_type)
    return (int(match.group(1)), int(match.group(2))) if match else None
