"""Queries that need no Spark: a few rows read of a table or view, in an order.

What is not surely the same here and there gives None, and Spark does it. Writing is in ``small_writes``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.catalog import World
from penstock.engine.reading import Keys, Reading
from penstock.engine.relations import known, shown_columns
from penstock.errors import PenstockError, StoreError
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import Frame
from penstock.frames.settings import own
from penstock.frames.spark.session import SparkOnDemand
from penstock.plan import Plan, Unsupported, build
from penstock.plan.operators import Filter, Operator, Project, Scan, TopK
from penstock.sql.names import OWN, key_of
from penstock.sql.query import name_of, parse_query
from penstock.sql.trees import cast, column
from penstock.storage.delta_log import Snapshot, snapshot_of
from penstock.storage.pinned import Pinned
from penstock.storage.reader import schema_of


@dataclass(frozen=True)
class Found:
    """Rows that were read here: the columns' names, and the rows, whose columns are ``c0``, ``c1``, .."""

    names: list[str]
    rows: ArrowFrame

    def as_text(self) -> pa.Table | None:
        """Every value as Spark writes it; None if only Spark knows how."""
        shown = self.rows.select([(name, cast(column(name), "string")) for name in self.rows.columns])
        return shown.rows()


Own = Callable[[str], tuple[list[str], pa.Table]]
"""Gives the names and the rows of a table that tells of Penstock itself; its columns are ``c0``, ``c1``, .."""


def read(text: str, moment: Callable[[Keys], Reading], spark: SparkOnDemand, own_table: Own) -> Found | None:
    """A query that only chooses and sorts rows and columns of one small table or view; None if Spark must do it.

    ``moment`` gives what is to be read.
    """
    if own(spark).replaces(text):
        return None
    try:
        tree = parse_query(text)
        if not isinstance(tree, exp.Select):
            return None
        tree, shown = _ends(tree)
        if shown is None:
            return None
        names = {name_of(table) for table in tree.find_all(exp.Table)}
        plainly = all(isinstance(e, exp.Alias | exp.Column | exp.Star) for e in tree.expressions)
        if len(names) != 1 or not plainly:  # what an expression without a name is called, only Spark knows
            return None
        name = names.pop()
        if key_of(name).startswith(OWN):
            return _read_own(tree, key_of(name), spark, own_table, shown)
        seen = moment(lambda world: [known(world, name)])
        key = known(seen.world, name)
        snapshot = _newest(seen, key)
        plan = None if snapshot is None else build(tree, {key: _columns(seen.world, key, snapshot)})
    except StoreError:  # which Spark would not reach either, and would try for minutes
        raise
    except (PenstockError, Unsupported, SqlglotError):
        return None
    if plan is None or snapshot is None:
        return None
    found = _evaluated(plan.root, lambda scan: _scanned(scan, snapshot, spark))
    return _found(plan, found, shown)


_ALL = 2**31 - 1


def _ends(tree: exp.Select) -> tuple[exp.Select, slice | None]:
    """A query whose order is that of its plan, and which of its rows are wanted; None if that is Spark's to say.

    A plan keeps the order of rows only for a LIMIT, so there is one. LIMIT without an order takes any rows.
    """
    tree = tree.copy()
    ends = {name: tree.args.get(name) for name in ("limit", "offset")}
    if any(isinstance(end, exp.Fetch) for end in ends.values()):
        return tree, None
    if tree.args.get("order"):
        return (tree if ends["limit"] else tree.limit(_ALL, copy=False)), slice(None)
    numbers = {name: end.expression.to_py() for name, end in ends.items() if end and end.expression.is_int}
    if len(numbers) < sum(end is not None for end in ends.values()) or any(number < 0 for number in numbers.values()):
        return tree, None
    for name in numbers:
        tree.set(name, None)
    first = numbers.get("offset", 0)
    return tree, slice(first, first + numbers.get("limit", _ALL))


def _read_own(tree: exp.Select, key: str, spark: SparkOnDemand, own_table: Own, shown: slice) -> Found | None:
    """The same of a table that tells of Penstock itself, whose rows are here already."""
    columns, rows = own_table(key)
    for table in tree.find_all(exp.Table):
        table.set("db", None)
    plan = build(tree, {key.removeprefix(OWN): tuple(columns)})
    frame = ArrowFrame.of(spark, rows.rename_columns(columns))
    return _found(
        plan, _evaluated(plan.root, lambda scan: frame.renamed({stored: name for name, stored in scan.stored})), shown
    )


def _found(plan: Plan, found: Frame | None, shown: slice) -> Found | None:
    if found is None:
        return None
    rows = found.select([(f"c{i}", column(internal)) for i, (_, internal) in enumerate(plan.outputs)])
    if not isinstance(rows, ArrowFrame):
        return None
    chosen = rows.table.slice(shown.start or 0, None if shown.stop is None else shown.stop - (shown.start or 0))
    return Found([name for name, _ in plan.outputs], rows.holding(chosen))


def _newest(seen: Reading, key: str) -> Snapshot | None:
    if key in seen.world.tables:
        return seen.tables[key]
    node = seen.world.nodes.get(key)
    if key not in seen.world.views or node is None or node.version is None:
        return None
    return snapshot_of(node.path, node.version)


def _columns(world: World, key: str, snapshot: Snapshot) -> tuple[str, ...]:
    if key in world.views:
        return tuple(shown_columns(world, world.views[key]))
    return tuple(schema_of(snapshot).names)


def _scanned(scan: Scan, snapshot: Snapshot, spark: SparkOnDemand) -> Frame:
    pinned = Pinned(spark=spark, snapshot=snapshot, columns=tuple(stored for _, stored in scan.stored))
    return pinned.read().renamed({stored: name for name, stored in scan.stored})


def _evaluated(op: Operator, scanned: Callable[[Scan], Frame]) -> Frame | None:
    """Rows on the driver, or none if a step is Spark's."""
    match op:
        case Scan():
            frame: Frame | None = scanned(op)
        case Filter(child=child, condition=condition):
            below = _evaluated(child, scanned)
            frame = None if below is None else below.where(condition)
        case TopK(child=child, order=order, limit=limit, offset=offset):
            below = _evaluated(child, scanned)
            frame = None if below is None else below.first(order, limit, offset)
        case Project(child=child, outputs=outputs):
            below = _evaluated(child, scanned)
            frame = None if below is None else below.select(outputs)
        case _:
            return None
    return frame if isinstance(frame, ArrowFrame) and frame.rows() is not None else None
