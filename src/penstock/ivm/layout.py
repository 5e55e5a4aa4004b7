"""The columns of an aggregate node's table: what the reader sees, then the state, whose names begin with ``__``.

A visible column that is a key or an accumulator's own value serves as state too and is not stored twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from penstock.ivm.accumulators import ROWS, Accumulator, Part, choose
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Aggregate, Distinct
from penstock.plan.operators import column as internal
from penstock.sql.documents import JsonAgg
from penstock.sql.trees import column, tree


@dataclass(frozen=True)
class StateColumn:
    """A state column: its name in the table, its type, partial and merge."""

    stored: str
    part: Part


@dataclass(frozen=True, kw_only=True)
class MeasureLayout:
    name: str
    function: exp.Expr
    argument: str
    accumulator: Accumulator | None
    state: tuple[StateColumn, ...]

    @cached_property
    def value(self) -> exp.Expr:
        """The measure's value over the stored state columns."""
        assert self.accumulator is not None
        state = {f"s_{c.part.suffix}": column(c.stored) for c in self.state}
        return tree(self.accumulator.value, s_rows=column(ROWS), **state)

    @cached_property
    def argument_value(self) -> exp.Expr:
        argument = argument_of(self.function)
        return exp.Literal.number(1) if argument is None else argument


@dataclass(frozen=True)
class Layout:
    """How one aggregate (or distinct) node is stored and maintained."""

    node: NodePlan
    keys: tuple[tuple[str, exp.Expr, str], ...]
    """Internal name, expression over the child, name in the table."""
    measures: tuple[MeasureLayout, ...]

    @property
    def mergeable(self) -> bool:
        """Whether every measure can be kept from the change alone."""
        return all(m.accumulator is not None for m in self.measures)

    @property
    def state(self) -> tuple[StateColumn, ...]:
        return tuple(c for m in self.measures for c in m.state)

    @property
    def orders(self) -> tuple[str, ...]:
        """What is kept of JSON arrays, so that their elements are found; none unless all measures are such."""
        arrays = all(isinstance(m.function, JsonAgg) for m in self.measures)
        return tuple(f"__order{i}" for i in range(len(self.measures))) if arrays else ()

    @property
    def visible(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.node.outputs)

    @property
    def stored(self) -> tuple[str, ...]:
        """All columns of the table, visible ones first."""
        hidden = [stored for _, _, stored in self.keys] + [c.stored for c in self.state]
        rows = [ROWS] if self.mergeable else []
        return tuple(dict.fromkeys([*self.visible, *rows, *hidden, *self.orders]))

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(stored for _, _, stored in self.keys)


def argument_of(function: exp.Expr) -> exp.Expr | None:
    """The argument of a function of one argument; None for COUNT(*) and functions of another form."""
    argument = function.this
    plain = isinstance(argument, exp.Expr) and not isinstance(argument, exp.Star | exp.AggFunc)
    return argument if plain else None


def as_aggregate(body: Aggregate | Distinct) -> Aggregate:
    """DISTINCT is a GROUP BY of all columns with nothing measured."""
    if isinstance(body, Aggregate):
        return body
    return Aggregate(body.child, tuple((name, internal(name)) for name in body.columns), ())


def layout_of(node: NodePlan, types: Mapping[str, str]) -> Layout:
    """The layout of a node, given the Spark types of its measures' arguments (``x0``..) and values (``v0``..)."""
    assert isinstance(node.body, Aggregate | Distinct)
    body = as_aggregate(node.body)
    shown = {e.name: visible for visible, e in reversed(node.outputs) if isinstance(e, exp.Column)}
    keys = tuple((name, e, shown.get(name, f"__key{i}")) for i, (name, e) in enumerate(body.keys))
    chosen = []
    for i, (name, function) in enumerate(body.measures):
        argument = f"__x{i}"
        chosen.append((name, function, argument, choose(function, argument, types[f"x{i}"], types[f"v{i}"])))
    mergeable = all(accumulator is not None for *_, accumulator in chosen)
    measures = []
    for i, (name, function, argument, accumulator) in enumerate(chosen):
        state = []
        for part in accumulator.parts if accumulator is not None and mergeable else ():
            own = accumulator is not None and accumulator.shows == part.suffix and name in shown
            state.append(StateColumn(shown[name] if own else f"__{part.suffix}{i}", part))
        measures.append(
            MeasureLayout(name=name, function=function, argument=argument, accumulator=accumulator, state=tuple(state))
        )
    return Layout(node, keys, tuple(measures))
