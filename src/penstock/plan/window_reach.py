"""How far a window function looks from a row, back and ahead in the window's order. Pure: no rows, no Spark.

Of rows that come at the end of a partition's order, only these matter: the new ones, those before them that see them
(``ahead``), those that all of these see (``back``), and, for a function that ``resumes``, the stored row before them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from penstock.plan.aggregates import name_of


@dataclass(frozen=True)
class Distance:
    """How far the furthest of some rows is: this many rows, those that tie in the order, or those whose key is within
    one of these amounts of it; or it may be any row."""

    rows: int = 0
    peers: bool = False
    within: tuple[exp.Expr, ...] = ()
    anywhere: bool = False

    def or_further(self, other: Distance) -> Distance:
        """The further of both."""
        within = dict.fromkeys((*self.within, *other.within))
        peers, anywhere = self.peers or other.peers, self.anywhere or other.anywhere
        return Distance(max(self.rows, other.rows), peers, tuple(within), anywhere)


HERE, PEERS, ANYWHERE = Distance(), Distance(peers=True), Distance(anywhere=True)


@dataclass(frozen=True)
class Reach:
    """What the value of a row depends on: rows so far back and so far ahead of it.

    ``resumes``: on rows from the partition's first on, too, but the row before it, and the value that is stored with
    that one, stand for them; with ``peers_before`` the number of rows that tie with that one is needed besides. A
    stored NULL stands for a SUM only if nothing can have overflowed.
    """

    back: Distance = HERE
    ahead: Distance = HERE
    resumes: bool = False
    peers_before: bool = False

    @property
    def is_tail(self) -> bool:
        """Whether the end of a partition can be computed without its beginning."""
        return not (self.back.anywhere or self.ahead.anywhere)


WHOLE = Reach(ANYWHERE, ANYWHERE)

_RANKS = {
    "row_number": Reach(resumes=True),
    "rank": Reach(resumes=True, peers_before=True),
    "dense_rank": Reach(resumes=True),
}
_MERGED = frozenset("count count_if sum min max bool_and bool_or every some any first first_value any_value".split())
"""Whose value over more rows is told by their value over fewer, and the rest."""

_FIRST = ("first", "first_value", "any_value")
_LAST = ("last", "last_value")


def reach_of(functions: Iterable[exp.Window]) -> Reach:
    """How far any of these functions looks; ``WHOLE`` if they have several orders, or none.

    >>> from sqlglot import parse_one
    >>> reach_of([parse_one("LAG(x, 2) OVER (PARTITION BY k ORDER BY t)", dialect="spark")]).back
    Distance(rows=2, peers=False, within=(), anywhere=False)
    """
    windows = list(functions)
    orders = {window.args.get("order") for window in windows}
    if len(orders) != 1 or None in orders:
        return WHOLE
    return reduce(_furthest, map(_reach, windows))


def _furthest(one: Reach, other: Reach) -> Reach:
    return Reach(
        one.back.or_further(other.back), one.ahead.or_further(other.ahead), one.resumes or other.resumes,
        one.peers_before or other.peers_before,
    )  # fmt: skip


def _reach(window: exp.Window) -> Reach:
    name = name_of(window.this)
    if name in _RANKS:
        return _RANKS[name]
    if name in ("lag", "lead"):
        return _shifted(window.this, name)
    if name in ("ntile", "percent_rank", "cume_dist"):
        return WHOLE
    return _framed(window, name)


def _shifted(function: exp.Expr, name: str) -> Reach:
    ignores_nulls = isinstance(function, exp.IgnoreNulls)
    call = function.this if isinstance(function, exp.IgnoreNulls | exp.RespectNulls) else function
    steps = _number(call.args.get("offset")) if call.args.get("offset") is not None else 1
    if steps is None:
        return WHOLE
    steps = steps if name == "lag" else -steps
    if not ignores_nulls or steps == 0:
        return Reach(back=Distance(rows=max(steps, 0)), ahead=Distance(rows=max(-steps, 0)))
    # The row before has the value, or its own value is the last that is not NULL.
    return Reach(back=Distance(rows=1), resumes=True) if steps == 1 and "default" not in _given(call) else WHOLE


def _given(call: exp.Expr) -> set[str]:
    return {name for name, value in call.args.items() if value is not None}


def _framed(window: exp.Window, name: str) -> Reach:
    spec = window.args.get("spec")
    by_rows = spec is not None and spec.args.get("kind") == "ROWS"
    said = spec.args if spec is not None else {"start": "UNBOUNDED"}
    last = _edge(said.get("end") or "CURRENT ROW", said.get("end_side"), by_rows=by_rows)
    if said["start"] == "UNBOUNDED":
        return _growing(window.this, name, last)
    first = _edge(said["start"], said.get("start_side"), by_rows=by_rows)
    if first is None or last is None:
        return WHOLE if last is None else Reach(ANYWHERE, last[1])
    return Reach(first[0].or_further(last[0]), first[1].or_further(last[1]))


def _growing(function: exp.Expr, name: str, last: tuple[Distance, Distance] | None) -> Reach:
    """A frame that begins with the partition. ``last``: where it ends."""
    if last is None:
        return WHOLE
    back, ahead = last
    if name in (*_FIRST, *_LAST) and isinstance(function, exp.Filter):  # rows that do not count tell nothing
        return Reach(ANYWHERE, ahead)
    if name in _LAST and not isinstance(function, exp.IgnoreNulls):
        return Reach(back, ahead)
    # The NULL of a frame that is still empty does not tell itself from that of a first value.
    may_be_empty = name in _FIRST and back.rows > 0 and not isinstance(function, exp.IgnoreNulls)
    if name not in (*_MERGED, *_LAST) or back.within or ahead.within or may_be_empty:
        return Reach(ANYWHERE, ahead)
    return Reach(back, ahead, resumes=True)


def _edge(by: exp.Expr | str | None, side: str | None, *, by_rows: bool) -> tuple[Distance, Distance] | None:
    """How far back and ahead the edge of a frame is; None if it has none on that side."""
    if by == "CURRENT ROW":
        return (HERE, HERE) if by_rows else (PEERS, PEERS)
    if not isinstance(by, exp.Expr):
        return None
    if by_rows:
        number = _number(by)
        if number is None or number < 0:
            return None
        far = Distance(rows=number)
    else:
        far = Distance(peers=True, within=(by,))
    return (far, HERE) if side == "PRECEDING" else (HERE, far)


def _number(node: exp.Expr | None) -> int | None:
    sign = 1
    if isinstance(node, exp.Neg):
        node, sign = node.this, -1
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        return None
    return sign * int(node.this)
