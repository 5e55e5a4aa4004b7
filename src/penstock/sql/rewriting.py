"""Functions of a query replaced by what Spark knows, in its tree and in its text.

A rewriting composes trees. The operands that it takes from a call know their place in the text, so that one rewriting
gives both: the tree, for the planner, and the user's own text with nothing but the calls replaced, for Spark. Spark
compares the two (``engine.faithful``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import sqlglot
from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.calls import CALL, PLACE, Call, Span
from penstock.sql.dialect import SparkSql

_NAME = re.compile(r"[^\W\d][\w.]*")


class Written(exp.Paren):
    """An operand that stands in the text."""


def composed(template: str, **parts: exp.Expr) -> exp.Expr:
    """A tree with other trees in the place of names.

    >>> print(composed("x * 2", x=sqlglot.parse_one("a + b")).sql(dialect=SparkSql))
    (a + b) * 2
    """
    holder = exp.Paren(this=sqlglot.parse_one(template, dialect=SparkSql))
    for name in [column for column in holder.find_all(exp.Column) if column.name in parts]:
        name.replace(parts[name.name].copy())
    return holder.this.pop()


def read(tree: exp.Expr) -> exp.Expr:
    """The tree without the marks of what stands in the text."""
    holder = exp.Paren(this=tree.copy())
    for operand in [*_operands(holder)][::-1]:
        operand.replace(operand.this)
    return holder.this.pop()


def _operands(tree: exp.Expr) -> list[Written]:
    """The outermost first."""
    return list(tree.find_all(Written))


def operands(node: exp.Expr, values: list[exp.Expr]) -> list[exp.Expr]:
    """The arguments of a call, each with its place in the text."""
    call: Call | None = node.meta.get(CALL)
    if call is None:  # a tree that was made without a text
        return [value.copy() for value in values]
    if len(call.arguments) != len(values):
        raise SqlError(
            f"{read(node).sql(dialect=SparkSql)}: it cannot be told where its arguments end. "
            "Write CAST(x AS ..) instead of x::.. in it."
        )
    return [_written(value, span) for value, span in zip(values, call.arguments, strict=True)]


def whole_call(node: exp.Expr, around: exp.Expr) -> exp.Expr:
    """A call with the FILTER and the like that is around it, as an operand."""
    call: Call | None = node.meta.get(CALL)
    return around.copy() if call is None else _written(around, (call.start, call.stop))


def sort_keys(node: exp.Expr, values: list[exp.Expr]) -> list[exp.Expr]:
    """What ORDER BY among the arguments of a call sorts by, as operands."""
    call: Call | None = node.meta.get(CALL)
    if call is None or len(call.keys) != len(values):
        return [value.copy() for value in values]
    return [_written(value, span) for value, span in zip(values, call.keys, strict=True)]


def condition_of(node: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The condition of a call's FILTER, as an operand."""
    call: Call | None = node.meta.get(CALL)
    return condition.copy() if call is None or call.condition is None else _written(condition, call.condition)


def _written(value: exp.Expr, span: Span) -> Written:
    made = Written(this=value.copy())
    made.meta[PLACE] = span
    return made


class Rewriting:
    """A tree whose calls are replaced one by one, and what that means for its text."""

    def __init__(self, tree: exp.Query):
        self._tree: exp.Expr = tree.copy()
        self._edits: dict[Span, list[exp.Expr]] = {}

    def mark(self, marking: Callable[[exp.Expr], None]) -> None:
        """Note something at nodes of the tree, before calls are replaced."""
        marking(self._tree)

    def find(self, *kinds: type[exp.Expr]) -> list[Any]:
        """The nodes of a kind, inner ones first."""
        return list(self._tree.find_all(*kinds))[::-1]

    def replace(
        self, node: exp.Expr, new: exp.Expr, *, around: exp.Expr | None = None, name: str | None = None
    ) -> None:
        """``around``: the node with FILTER and the like. ``name``: of the column, where it is one of a select list."""
        whole = around or node
        call: Call | None = node.meta.get(CALL)
        if name is not None and isinstance(whole.parent, exp.Select):
            new = exp.alias_(new, name, quoted=True)
        whole.replace(new)
        if call is not None:
            self._edits[call.start, call.stop] = [new]

    def add_laterals(self, select: exp.Select, laterals: list[exp.Expr]) -> None:
        """More LATERAL VIEWs, behind those that are there."""
        select.set("laterals", [*select.args.get("laterals", []), *laterals])
        clause = select.args.get("where") or select.args.get("group")
        if clause is not None and PLACE in clause.meta:
            place = clause.meta[PLACE]
            self._edits[place, place] = laterals

    def add_order(self, query: exp.Expr, order: exp.Order) -> None:
        """ORDER BY before the LIMIT of a query."""
        query.set("order", order)
        place = query.args["limit"].meta.get(PLACE)
        if place is not None:
            self._edits[place, place] = [order]

    @property
    def tree(self) -> exp.Query:
        tree = read(self._tree)
        assert isinstance(tree, exp.Query)
        return tree

    def text(self, written: str) -> str:
        """The text that the tree was read from, with the calls replaced."""
        return self._spliced(written, (0, len(written)))

    def _spliced(self, written: str, part: Span, within: Span | None = None) -> str:
        start, stop = part
        pieces, at = [], start
        for (first, last), new in self._outermost(start, stop, within):
            pieces += [written[at:first], *(self._spelled(written, node, (first, last)) for node in new)]
            at = last
        return "".join([*pieces, written[at:stop]])

    def _outermost(self, start: int, stop: int, within: Span | None) -> Iterator[tuple[Span, list[exp.Expr]]]:
        """The edits of a part of the text that lie in no other of them."""
        behind = start
        for span, new in sorted(self._edits.items(), key=lambda edit: (edit[0][0], -edit[0][1])):
            if span != within and behind <= span[0] and span[1] <= stop:
                yield span, new
                behind = span[1]

    def _spelled(self, written: str, new: exp.Expr, span: Span) -> str:
        holder = exp.Paren(this=new.copy())
        for operand in _operands(holder):
            text = self._spliced(written, operand.meta[PLACE], span)
            verbatim = exp.Var(this=text)
            operand.replace(verbatim if _NAME.fullmatch(text) else exp.Paren(this=verbatim))
        spelled = holder.this.sql(dialect=SparkSql)
        return f" {spelled.strip()} " if isinstance(new, exp.Lateral | exp.Order) else spelled
