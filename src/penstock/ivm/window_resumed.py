"""Values of window functions over the last rows of partitions, told by the values that are stored before them.

A count goes on from the stored one. A sum, an extreme or a last value takes the stored one for all rows that it was
made of; doubles are added in the order of rows, so a sum that goes on is the one that begins with the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from penstock.frames.frame import Frame
from penstock.ivm.keyed import Keyed
from penstock.ivm.window_order import is_by_place, ordered_by
from penstock.plan.aggregates import name_of
from penstock.plan.operators import Window
from penstock.plan.window_reach import HERE, Reach, reach_of
from penstock.sql.trees import Named, cast, column, columns, tree, whole_number

NEW, PLACE, LAST, CUT, START = "__tail_new", "__tail_place", "__tail_last", "__tail_cut", "__tail_start"
"""Of a row: whether it is new, its place, and that of the last row that is equal to it in the order. Of its partition:
the place of the first new row, and of the first whose value may be another."""

_COUNTED = frozenset("row_number rank dense_rank count count_if".split())
_FIRST = frozenset("first first_value any_value".split())


class Uncertain(Exception):
    """Whether the end of a partition is enough, or in which order it is, cannot be told."""


def was(name: str) -> str:
    """A column of the node's table, beside those of the child."""
    return f"__was_{name}"


def over(function: exp.Expr, partition: Sequence[str], order: Sequence[exp.Expr] = (), spec: exp.Expr | None = None
         ) -> exp.Window:  # fmt: skip
    by = exp.Order(expressions=[key.copy() for key in order]) if order else None
    frame = spec.copy() if spec is not None else None
    return exp.Window(
        this=function.copy(), partition_by=[column(name) for name in partition], order=by, spec=frame, over="OVER"
    )


@dataclass(frozen=True)
class Function:
    """A window function, and the column of the node's table that shows its value, if one does."""

    number: int
    name: str
    window: exp.Window
    value: str | None

    @cached_property
    def reach(self) -> Reach:
        return reach_of([self.window])

    @cached_property
    def partition(self) -> list[str]:
        return [e.name for e in self.window.args.get("partition_by") or ()]

    @property
    def _order(self) -> list[exp.Expr]:
        return list(self.window.args["order"].expressions)

    def called(self, what: str) -> str:
        return f"__tail_{what}{self.number}"

    # -- where it begins ----------------------------------------------------------------------------------------------

    @cached_property
    def by_amount(self) -> bool:
        """Whether its frame ends at an amount from the row's key."""
        return bool(self.reach.back.within or self.reach.ahead.within)

    @property
    def edges(self) -> list[Named]:
        """How many new rows its frame has, and the first place in it."""
        spec = self.window.args["spec"]
        seen, first = tree("COUNT(IF(n, 1, NULL))", n=column(NEW)), tree("MIN(p)", p=column(PLACE))
        return [
            (self.called("seen"), over(seen, self.partition, self._order, spec)),
            (self.called("first"), over(first, self.partition, self._order, spec)),
        ]

    @property
    def needed(self) -> str:
        return self.called("needed")

    @property
    def needs(self) -> exp.Expr:
        """The first place that a touched row sees."""
        touched = {"p": column(PLACE), "s": column(START), "f": column(self.called("first"))}
        return tree("MIN(IF(p >= s, f, NULL))", **touched)

    @cached_property
    def sees_new(self) -> exp.Expr:
        """Whether a new row may matter to a row. Those that are equal in the order are not told apart."""
        far = tree("c - n", c=column(CUT), n=whole_number(self.reach.ahead.rows))
        near = tree("l >= far", l=column(LAST), far=far)
        return tree("near OR s > 0", near=near, s=column(self.called("seen"))) if self.by_amount else near

    @cached_property
    def start(self) -> exp.Column:
        return column(self.called("start"))

    # -- what it goes on from -----------------------------------------------------------------------------------------

    @cached_property
    def kind(self) -> str:
        """``plain``: over the rows that it sees. ``counted``, ``constant``, ``carried``: from the stored value on."""
        if not self.reach.resumes:
            return "plain"
        if name_of(self.window.this) in _COUNTED:
            return "counted"
        constant = name_of(self.window.this) in _FIRST and not isinstance(self.window.this, exp.IgnoreNulls)
        return "constant" if constant else "carried"

    @cached_property
    def last_of_stored(self) -> exp.Expr:
        """The last place of those that the value before the first touched row is made of."""
        return tree("s + n", s=self.start, n=whole_number(self.reach.ahead.rows - self.reach.back.rows - 1))

    @cached_property
    def has_stored(self) -> exp.Expr:
        """Whether there is such a value, made of any rows at all."""
        return tree("s > 1 AND q >= 1", s=self.start, q=self.last_of_stored)

    def before(self, name: str) -> exp.Window:
        """A column's value in the row before the first touched one."""
        value = tree("IF(p = s - 1, v, NULL)", p=column(PLACE), s=self.start, v=column(name))
        return over(exp.IgnoreNulls(this=exp.First(this=value)), self.partition)

    def needs_no_stored(self, missing: set[str]) -> bool:
        """Whether it is computed without some columns of stored rows, if new ones come behind all of them."""
        if not _uses(self.window.this, missing):
            return True
        back, ahead = self.reach.back, self.reach.ahead
        if self.reach.resumes:
            return back.rows == ahead.rows == 0 and self.value is not None
        if back != HERE or ahead.within:
            return False
        alone = name_of(self.window.this) == "lead" and not _uses(_call(self.window.this).args.get("default"), missing)
        return ahead == HERE or (alone and self.value is not None)


def _uses(node: exp.Expr | None, names: set[str]) -> bool:
    return node is not None and any(found.name in names for found in node.find_all(exp.Column))


def _call(node: exp.Expr) -> exp.Expr:
    """A function without what stands around it."""
    while isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node


def _argument(call: exp.Expr) -> exp.Expr:
    """What a function is called with first; EVERY, SOME and ANY are known to the parser by their names only."""
    return call.expressions[0] if isinstance(call, exp.Anonymous) else call.this


@dataclass(frozen=True)
class Ending:
    """What a window node needs to be known at the end of its partitions."""

    layout: Keyed
    op: Window
    functions: tuple[Function, ...]
    shown: dict[str, str]
    """Columns of the child that the node's table has, and their names there."""

    @classmethod
    def of(cls, layout: Keyed) -> Ending | None:
        """None if the end is not enough, or the node's table does not have what is needed of it."""
        op = layout.node.body
        assert isinstance(op, Window)
        windows = [window for _, window in op.functions if isinstance(window, exp.Window)]
        if not reach_of(windows).is_tail:
            return None
        visible = {e.name: name for name, e in reversed(layout.node.outputs) if isinstance(e, exp.Column)}
        visible |= dict(layout.keys)
        functions = [Function(i, name, w, visible.get(name)) for i, ((name, _), w) in
                     enumerate(zip(op.functions, windows, strict=True))]  # fmt: skip
        found = cls(layout, op, tuple(functions), {n: visible[n] for n in op.child.columns if n in visible})
        return found if found._is_stored else None

    @property
    def _is_stored(self) -> bool:
        missing = set(self.missing)
        resumed = all(f.value is not None for f in self.functions if f.reach.resumes)
        return (
            resumed
            and not any(_uses(key, missing) for key in self.order)
            and (bool(self.order_columns) or not self.reads_child)
        )

    @cached_property
    def reads_child(self) -> bool:
        """Whether a function needs a column of stored rows that the table does not have."""
        return not all(f.needs_no_stored(set(self.missing)) for f in self.functions)

    @cached_property
    def below(self) -> tuple[str, ...]:
        """The child's columns: those that are stored, then the others."""
        return (*self.shown, *self.missing)

    @cached_property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name in self.op.child.columns if name not in self.shown)

    @property
    def shows_missing(self) -> bool:
        """Whether a column of the table is made of columns that it does not have."""
        return any(_uses(e, set(self.missing)) for _, e in self.layout.node.outputs)

    @property
    def partition(self) -> tuple[str, ...]:
        return self.op.partition

    @property
    def rows_before(self) -> int:
        """How many rows before the first touched one are needed, with the one that a stored value is taken of."""
        return max(f.reach.back.rows + f.reach.resumes for f in self.functions)

    @cached_property
    def order(self) -> list[exp.Expr]:
        return list(self.functions[0].window.args["order"].expressions)

    @cached_property
    def ties(self) -> tuple[str, ...]:
        """What equal rows are told apart by; nothing if their places do not matter."""
        return self.op.child.columns if any(is_by_place(f.window) for f in self.functions) else ()

    @property
    def order_columns(self) -> dict[str, str]:
        """The columns of the table that hold partition and order, and those of the child; none if one is computed."""
        by = [key.this for key in self.order]
        if not all(isinstance(e, exp.Column) for e in by):
            return {}
        return {self.shown[name]: name for name in (*self.partition, *(e.name for e in by))}

    @property
    def starts(self) -> Iterator[Named]:
        """For each function, and for all, the first place of a row to which a new one may matter."""
        least: exp.Expr = exp.Boolean(this=False)
        for f in self.functions:
            least = tree("a OR b", a=least, b=f.sees_new)
            yield f.start.name, tree("MIN(IF(c, p, NULL))", c=f.sees_new, p=column(PLACE))
        yield START, tree("MIN(IF(c, p, NULL))", c=least, p=column(PLACE))


def valued(ending: Ending, rows: Frame) -> Frame:
    """The rows with the functions' values; right for those from ``START`` on."""
    resumed = [f for f in ending.functions if f.kind != "plain"]
    if resumed:
        rows = rows.windows([(f.called("stored"), f.before(was(f.value or ""))) for f in resumed])
    carried = [f for f in resumed if f.kind == "carried"]
    kinds = rows.types
    if carried:
        rows = rows.select([*columns(rows.columns), *((f.called("given"), _given(f, kinds)) for f in carried)])
        _check_decimals(carried, rows)
    rows = rows.windows([(f.called("value"), _function(f)) for f in ending.functions])
    counted = [f for f in resumed if f.kind == "counted"]
    if counted:
        rows = rows.windows([(f.called("counted"), f.before(f.called("value"))) for f in counted])
    kept = [name for name in rows.columns if name not in {f.name for f in ending.functions}]
    found = rows.select([*columns(kept), *((f.name, _value(f, kinds, rows.types)) for f in ending.functions)])
    _check_sums(carried, kinds, found)
    return found


def _given(f: Function, kinds: Mapping[str, str]) -> exp.Expr:
    """A function's argument: the stored value in the place of the last row that it is made of, NULL before that."""
    call, where = _call(f.window.this), f.window.this.find(exp.Filter)
    argument = _argument(call)
    if where is not None:
        argument = tree("IF(c, a, NULL)", c=where.expression.this, a=argument)
    if name_of(call) == "sum":
        argument = cast(argument, kinds[was(f.value or "")])
    stored = {"h": f.has_stored, "q": f.last_of_stored, "v": column(f.called("stored"))}
    return tree(
        "CASE WHEN NOT h OR p > q THEN a WHEN p = q THEN v ELSE NULL END", p=column(PLACE), a=argument, **stored
    )


def _function(f: Function) -> exp.Expr:
    """The function over the last rows; where places matter, rows have them by now."""
    window = f.window
    if f.kind == "carried":
        window = window.copy()
        inner = window.this
        while isinstance(inner, exp.Filter):
            inner = inner.this
        window.set("this", inner)
        _argument(_call(inner)).replace(column(f.called("given")))
    return ordered_by(window, [exp.Ordered(this=column(PLACE))]) if is_by_place(f.window) else window


def _value(f: Function, kinds: Mapping[str, str], found: Mapping[str, str]) -> exp.Expr:
    value: exp.Expr = column(f.called("value"))
    parts = {"s": f.start, "v": value, "b": column(f.called("stored"))}
    if f.kind == "counted":
        value = tree("IF(s > 1, v + (b - c), v)", **parts, c=column(f.called("counted")))
    elif f.kind == "constant":
        value = tree("IF(s > 1, b, v)", **parts)
    elif f.kind == "carried" and found[f.called("value")] != kinds[was(f.value or "")]:
        value = cast(value, kinds[was(f.value or "")])
    if f.value is None:
        return value
    kept = {"n": column(NEW), "p": column(PLACE), "s": f.start, "w": column(was(f.value)), "v": value}
    return tree("IF(NOT n AND p < s, w, v)", **kept)


def _check_decimals(carried: Sequence[Function], rows: Frame) -> None:
    """The sum of decimals is NULL without values, and where it had too many digits."""
    sums = [f for f in carried if name_of(f.window.this) == "sum"]
    for f in sums:
        unknown = tree("h AND v IS NULL", h=f.has_stored, v=column(f.called("stored")))
        if rows.types[was(f.value or "")].startswith("decimal") and rows.any(unknown):
            raise Uncertain


def _check_sums(carried: Sequence[Function], kinds: Mapping[str, str], rows: Frame) -> None:
    """What has too many digits now is an error or NULL, as the settings say."""
    for f in carried:
        if rows.types[f.called("value")] != kinds[was(f.value or "")]:
            lost = tree("v IS NOT NULL AND w IS NULL", v=column(f.called("value")), w=column(f.name))
            if rows.any(lost):
                raise Uncertain
