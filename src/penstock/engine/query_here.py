"""Queries inside of small statements, by the rules of incremental maintenance on the driver: no Spark.

What the rules say of all rows of an operator is what the query gives; what they leave to Spark raises ``NotHere``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.engine.relations import known
from penstock.engine.seen import Seen
from penstock.engine.written_values import written_columns
from penstock.errors import PenstockError, StoreError
from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import Frame, NotHere
from penstock.frames.keys import Anywhere
from penstock.frames.zset import Delta, ZSet
from penstock.ivm import rules
from penstock.ivm.context import Moment
from penstock.ivm.layout import argument_of, as_aggregate
from penstock.ivm.node import maintained_node
from penstock.plan import NodePlan, Plan, Unsupported, build
from penstock.plan.nodes import split
from penstock.plan.operators import Aggregate, Distinct, Filter, Join, Project, Scan, SidedJoin, Union, Values, walk
from penstock.sql.dialect import SparkSql
from penstock.sql.names import OWN, key_of
from penstock.sql.query import parse_query, table_names
from penstock.sql.trees import tree
from penstock.storage.delta_log import Snapshot
from penstock.storage.pinned import Pinned
from penstock.storage.reader import schema_of

_DONE = (Scan, Values, Filter, Project, Join, SidedJoin, Union, Aggregate, Distinct)
"""Operators whose rows do not depend on an order that is left open."""


@dataclass(frozen=True)
class Answer:
    """The rows of a query: columns ``c0``, ``c1``, .., what they are called, and the keys of what it reads."""

    names: list[str]
    rows: ArrowFrame
    reads: frozenset[str]
    named: bool
    """Whether the user has named all of the columns."""

    def sure_names(self) -> list[str]:
        if not self.named:
            raise NotHere("columns that only Spark names")
        return self.names


def read_query(query: exp.Expr, seen: Seen) -> Answer:
    """The rows of a query."""
    text = query.sql(dialect=SparkSql)
    try:
        parsed = parse_query(text)
        if not isinstance(parsed, exp.Query) or parsed.find(exp.Limit, exp.Offset, exp.Order, exp.TableSample):
            raise NotHere("a query of ordered or chosen rows")
        names = {key_of(name) for name in table_names(parsed)}
        keys = {name: known(seen.world, name) for name in names}
        if any(key.startswith(OWN) for key in keys.values()):
            raise NotHere("a table that tells of Penstock itself")
        tables = {name: _snapshot(seen, key) for name, key in keys.items()}
        plan = build(parsed, {name: _columns(seen, keys[name], table) for name, table in tables.items()})
    except StoreError:  # which Spark would not reach either, and would try for minutes
        raise
    except (PenstockError, Unsupported, SqlglotError) as problem:
        raise NotHere(f"a query that only Spark reads ({_first_line(problem)})") from None
    named = tuple((f"c{i}", internal) for i, (_, internal) in enumerate(plan.outputs))
    chosen = _evaluated(replace(plan, outputs=named), _Reading(seen, tables)).only([name for name, _ in named])
    if not isinstance(chosen, ArrowFrame) or chosen.rows() is None:
        raise NotHere("a query that only Spark runs")
    sure = all(isinstance(e, exp.Alias | exp.Column | exp.Star) for e in parsed.selects)
    return Answer([name for name, _ in plan.outputs], chosen, frozenset(keys.values()), sure)


def _first_line(problem: Exception) -> str:
    return (str(problem).splitlines() or [""])[0]


def _snapshot(seen: Seen, key: str) -> Snapshot:
    if key in seen.world.tables:
        return seen.table(seen.world.tables[key])
    node = seen.world.nodes.get(key)
    if key not in seen.world.views or node is None or node.version is None:
        raise NotHere(f"{key} has no rows yet")
    return seen.at.get(key) or Snapshot(node.path, node.version)


def _columns(seen: Seen, key: str, table: Snapshot) -> tuple[str, ...]:
    if key in seen.world.views:
        return tuple(name for name, _, _ in seen.world.views[key].columns)
    return tuple(schema_of(table).names)


def _evaluated(plan: Plan, reading: _Reading) -> Frame:
    """The rows of a plan; each of its nodes is computed before its readers."""
    nodes = split(plan, "query")
    for node in nodes:
        strange = next((op for op in walk(node.body) if not isinstance(op, _DONE)), None)
        if strange is not None:
            raise NotHere(f"a query with {type(strange).__name__}")
        rows = maintained_node(node, _types(node, reading)).evaluate(reading, "post")
        if not isinstance(rows, ArrowFrame) or rows.rows() is None:
            raise NotHere("a query that only Spark runs")
        reading = replace(reading, computed={**reading.computed, node.name: rows})
    return reading.computed[nodes[-1].name]


def _types(node: NodePlan, reading: _Reading) -> dict[str, str]:
    """The types of an aggregate's arguments and values: Arrow's rules give those of Spark."""
    if not isinstance(node.body, Aggregate | Distinct):
        return {}
    grouped = as_aggregate(node.body)
    if not grouped.measures:
        return {}
    child = rules.evaluate(grouped.child, reading, "post").frame
    given = child.select([(f"x{i}", argument_of(e) or tree("1")) for i, (_, e) in enumerate(grouped.measures)])
    values = child.group([], [(f"v{i}", e) for i, (_, e) in enumerate(grouped.measures)])
    return {**given.types, **values.types}


@dataclass(frozen=True)
class _Reading:
    """What the rules read: a rule's ``Context`` in which nothing changes."""

    seen: Seen
    tables: Mapping[str, Snapshot]
    computed: Mapping[str, ArrowFrame] = field(default_factory=dict)
    """The rows of the query's nodes that were computed before."""

    def given(self, values: Values) -> ZSet:
        columns = written_columns(values.rows, self.seen.settings)
        return ZSet(ArrowFrame.of(self.seen.spark, pa.table(columns, names=list(values.columns))))

    def delta(self, scan: Scan) -> Delta | None:
        return None

    def read(self, scan: Scan, moment: Moment) -> ZSet:
        names = {stored: name for name, stored in scan.stored}
        if scan.relation in self.computed:
            return ZSet(self.computed[scan.relation].only(list(names)).renamed(names))
        pinned = Pinned(spark=self.seen.spark, snapshot=self.tables[scan.relation], columns=tuple(names))
        frame = pinned.read()
        if not isinstance(frame, ArrowFrame) or frame.rows() is None:
            raise NotHere(f"more than {limits.READ_ROWS:,} rows are to be read of {scan.relation}")
        return ZSet(frame.renamed(names))

    def count(self, scan: Scan) -> int:
        known = self.computed.get(scan.relation)
        return self.tables[scan.relation].rows if known is None else known.table.num_rows

    @property
    def utc(self) -> bool:
        return self.seen.settings.utc

    def near(self, bounds: pa.Table | None, sought: Anywhere | None = None) -> _Reading:
        return self

    def watermark(self, moment: Moment) -> int | None:
        return None

    def keep(self, frame: Frame) -> Frame:
        return frame
