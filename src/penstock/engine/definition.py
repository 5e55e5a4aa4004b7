"""From a query to the records of a view: Spark judges it, the planner cuts it into nodes, Spark types the nodes.

Nothing is read here but schemas, and nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructField, StructType

from penstock.catalog import NodeRecord, ViewRecord, World
from penstock.engine.faithful import is_faithful
from penstock.engine.relations import read_keys, run_query
from penstock.engine.session import clean_message
from penstock.errors import DefinitionError, NotIncrementalError, QueryError
from penstock.ivm import rules
from penstock.ivm.context import Moment
from penstock.ivm.layout import argument_of, as_aggregate
from penstock.ivm.materialize import Materialized
from penstock.ivm.node import maintained_node
from penstock.ivm.window import has_order
from penstock.plan import NodePlan, Plan, Unsupported, build, split
from penstock.plan.check import non_deterministic
from penstock.plan.describe import describe_node, label_columns
from penstock.plan.estimate import estimated_rows
from penstock.plan.lateness import Lateness, without_late_rows
from penstock.plan.operators import (
    Aggregate,
    Distinct,
    Ended,
    Filter,
    Late,
    Operator,
    Project,
    Scan,
    Sessions,
    render,
    walk,
)
from penstock.sql.emission import ended, is_moving
from penstock.sql.event_time import uses_windows
from penstock.sql.query import lost_names, parse_query, parse_written, spark_text, whole
from penstock.sql.statements import AFTER_WATERMARK, ANYWHERE, CreateView, Options, Placement
from penstock.storage.arrow import local_frame
from penstock.storage.delta_log import Snapshot
from penstock.storage.lookup import Anywhere
from penstock.storage.reader import quoted, schema_of
from penstock.storage.view_settings import USUAL, Settings
from penstock.storage.zset import WEIGHT, Delta, Rows

Locate = Callable[[str, str], str]
RESERVED = "__"
_CHAR = re.compile(r"(?<!var)char\(")
_FORBIDDEN = set(" ,;{}()\n\t=")


@dataclass(frozen=True)
class Definition:
    """A view that could be created: its record and those of its nodes, new and shared, inputs before readers."""

    view: ViewRecord
    nodes: tuple[NodeRecord, ...]


def define(spark: SparkSession, world: World, statement: CreateView, locate: Locate, settings: Settings) -> Definition:
    """Judge and plan a view. ``locate(name, folder)`` says where a new node's table goes; ``settings`` are in force."""
    reads = read_keys(world, statement.query)
    for key in reads:
        if key not in world.tables and key not in world.views:
            raise DefinitionError(f"view {statement.name!r} cannot read {key!r}, which are rows that came late.")
    schemas = {key: relation_schema(world, key) for key in reads}
    analysed = analyse(spark, statement.query, schemas)
    columns = _columns(statement, analysed)
    placement = _placement(statement, [field for field, _ in columns])
    emitted(statement.query, statement.options, [field.name for field, _ in columns], statement.name)
    lateness = _lateness(world, statement, reads)
    nodes, problem = _plan_nodes(spark, world, statement, schemas, analysed, columns, locate, lateness, settings)
    nodes = tuple(replace(node, details=settings.recorded_in(node.details)) for node in nodes)
    if problem is not None and lateness:
        raise DefinitionError(
            f"view {statement.name!r}: ALLOW LATENESS needs a view that is maintained incrementally, and this one is "
            f"not: {problem.construct} ({problem.code})."
        )
    nodes = tuple(_placed(node, placement) if node.name == statement.name.lower() else node for node in nodes)
    view = ViewRecord(
        statement.name.lower(), statement.name, statement.query,
        tuple((c.name, c.dataType.simpleString(), comment) for c, comment in columns),
        statement.comment, dict(statement.properties), statement.refresh, statement.policy, reads,
        tuple(node.name for node in nodes), problem.code if problem else None, problem.construct if problem else None,
        datetime.now(timezone.utc), statement.options,
    )  # fmt: skip
    return Definition(view, nodes)


def _lateness(world: World, statement: CreateView, reads: tuple[str, ...]) -> tuple[Lateness, ...]:
    """The tables whose late rows the view does not take."""
    allowed = statement.options.lateness
    if allowed is None:
        return ()
    tables = [world.tables[key] for key in reads if key in world.tables]
    owner = f"{statement.name.lower()} {uuid.uuid4().hex}"
    found = tuple(Lateness(t.key, t.watermark.column, allowed, owner) for t in tables if t.watermark is not None)
    if not found:
        raise DefinitionError(
            f"view {statement.name!r}: ALLOW LATENESS needs a table with a watermark among those that the view reads. "
            "Write ALTER TABLE .. SET WATERMARK FOR ts AS ts - INTERVAL .."
        )
    return found


_PARTITION_TYPES = ("tinyint", "smallint", "int", "bigint", "date", "boolean", "string")


def _placement(statement: CreateView, columns: list[StructField]) -> Placement:
    """PARTITIONED BY, CLUSTER BY and BUCKETS, in terms of the view's columns."""
    asked, known = statement.placement, {field.name.lower(): field for field in columns}
    for clause, names in (("PARTITIONED BY", asked.partition), ("CLUSTER BY", asked.cluster)):
        about = f"view {statement.name!r}: {clause}"
        for name in names:
            if name.lower() not in known:
                raise DefinitionError(f"{about} names {name!r}, which is none of its columns ({', '.join(known)}).")
            kind = known[name.lower()].dataType
            if clause == "PARTITIONED BY" and kind.simpleString() not in _PARTITION_TYPES:
                raise DefinitionError(
                    f"{about} takes whole numbers, dates, booleans and text, but {name!r} is {kind.simpleString()}. "
                    "Use CLUSTER BY."
                )
            if not has_order(kind):
                raise DefinitionError(f"{about} cannot sort by {name!r}, which is {kind.simpleString()}.")
        if len({name.lower() for name in names}) < len(names):
            raise DefinitionError(f"{about} names a column twice.")
    if asked.partition and asked.cluster:
        raise DefinitionError(f"view {statement.name!r} has one PARTITIONED BY or one CLUSTER BY, not both.")
    if asked.buckets is not None and asked.buckets < 1:
        raise DefinitionError(f"view {statement.name!r}: BUCKETS takes a number from 1, not {asked.buckets}.")
    if len(asked.partition) == len(columns):
        raise DefinitionError(f"view {statement.name!r}: PARTITIONED BY leaves no column to be stored. Use CLUSTER BY.")

    def spelled(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(known[name.lower()].name for name in names)

    return Placement(spelled(asked.partition), spelled(asked.cluster), asked.buckets)


def _placed(node: NodeRecord, placement: Placement) -> NodeRecord:
    return node if placement == ANYWHERE else replace(node, details={**node.details, "placement": asdict(placement)})


def relation_schema(world: World, key: str) -> StructType:
    """The columns of a table (as it is now) or of a view (as it was defined)."""
    if key in world.tables:
        return schema_of(Snapshot(world.tables[key].path))
    stored = StructType.fromJson(json.loads(world.nodes[key].schema_json))
    if key in world.views:
        return StructType([stored[name] for name, _, _ in world.views[key].columns])
    return stored


def analyse(spark: SparkSession, query: str, schemas: Mapping[str, StructType]) -> StructType:
    """Spark's verdict on a query: its schema, or an error in Spark's words. No job runs."""
    frames = {k: local_frame(spark, s) for k, s in schemas.items()}
    try:
        return run_query(spark, query, frames).schema
    except QueryError:
        if spark_text(query) == whole(query):
            raise
        run_query(spark, query, frames, as_written=True)  # the user's own mistake is told in the user's own words
        raise DefinitionError(
            "MIN_BY, MAX_BY, COLLECT_LIST or COLLECT_SET of values that have no order, such as maps: which of them, or "
            "in which order, would be left to chance. Use MAP_ENTRIES(..) or TO_JSON(..) of the value."
        ) from None


def _columns(statement: CreateView, analysed: StructType) -> list[tuple[StructField, str | None]]:
    """The view's columns with their comments, renamed by the column list; each must be storable and readable."""
    fields: list[tuple[StructField, str | None]] = [(field, None) for field in analysed.fields]
    if statement.columns:
        if len(statement.columns) != len(fields):
            raise DefinitionError(
                f"view {statement.name!r} names {len(statement.columns)} columns, but its query gives {len(fields)}."
            )
        fields = [
            (StructField(name, field.dataType), comment)
            for (name, comment), (field, _) in zip(statement.columns, fields, strict=True)
        ]
    seen: set[str] = set()
    for field, _ in fields:
        name = field.name
        if set(name) & _FORBIDDEN:
            raise DefinitionError(
                f"view {statement.name!r}: the column {name!r} needs a plain name. Write .. AS some_name."
            )
        if name.startswith(RESERVED):
            raise DefinitionError(
                f"view {statement.name!r}: the column {name!r} begins with '__', which is kept for Penstock's own "
                "columns. Give it another name."
            )
        if name.lower() in seen:
            raise DefinitionError(f"view {statement.name!r} has two columns called {name!r}. Rename one with AS.")
        if "interval" in field.dataType.simpleString():
            raise DefinitionError(
                f"view {statement.name!r}: the column {name!r} is an interval, which Delta cannot store. "
                "Cast it to a string or extract a number from it."
            )
        if isinstance(field.dataType, NullType):
            raise DefinitionError(
                f"view {statement.name!r}: the column {name!r} is NULL without a type. Write CAST(NULL AS type)."
            )
        seen.add(name.lower())
    return fields


def _plan_nodes(
    spark: SparkSession, world: World, statement: CreateView, schemas: Mapping[str, StructType],
    analysed: StructType, columns: list[tuple[StructField, str | None]], locate: Locate,
    lateness: tuple[Lateness, ...], settings: Settings,
) -> tuple[tuple[NodeRecord, ...], Unsupported | None]:  # fmt: skip
    """The view's nodes; with the reason when there is one node only, which recomputes."""
    wanted = StructType([StructField(f.name, f.dataType, True, {"comment": c} if c else {}) for f, c in columns])
    key = statement.name.lower()
    changing = non_deterministic(parse_query(statement.query))
    if statement.policy == "FULL":
        problem = Unsupported("POLICY_FULL", "the policy FULL")
        return (_query_node(statement, key, schemas, wanted, locate, problem),), problem
    if changing is not None:
        raise DefinitionError(
            f"view {statement.name!r} uses {changing.construct}, whose value changes by itself, so no refresh could "
            "keep the view equal to its query. Remove it, or write REFRESH POLICY FULL to recompute at every refresh."
        )
    try:
        names = [field.name for field, _ in columns]
        columns_of = {k: tuple(s.names) for k, s in schemas.items()}
        _check_nothing_lost(statement.query, columns_of)
        _check_windows(statement.query, schemas)
        _check_names(build(parse_query(statement.query), columns_of), analysed)
        text = emitted(statement.query, statement.options, names, statement.name)
        plans = plan_nodes(text, key, names, columns_of, lateness, settings)
        _check_source_columns(plans, schemas)
        nodes = _typed_nodes(spark, world, plans, schemas, wanted, analysed, locate, lateness)
        if not is_faithful(spark, statement.query, schemas):
            raise Unsupported("PLAN_MISMATCH", "a query that Spark reads differently")
        return nodes, None
    except Unsupported as problem:
        if statement.policy == "INCREMENTAL STRICT":
            raise NotIncrementalError(
                f"view {statement.name!r} cannot be maintained incrementally: {problem.construct} has no incremental "
                f"rule ({problem.code}). Rewrite the query, or choose REFRESH POLICY AUTO.",
                code=problem.code,
            ) from None
        return (_query_node(statement, key, schemas, wanted, locate, problem),), problem


def _check_nothing_lost(query: str, schemas: Mapping[str, tuple[str, ...]]) -> None:
    lost = lost_names(query, {name.lower() for names in schemas.values() for name in names})
    if lost:
        raise Unsupported("PLAN_MISMATCH", f"an argument that our parser passes over ({', '.join(lost)})")


def _check_windows(query: str, schemas: Mapping[str, StructType]) -> None:
    """Spark's windows are spelled otherwise in a plan, by names and for times of which their meaning is certain."""
    if not uses_windows(parse_written(query)):
        return
    fields = [field for schema in schemas.values() for field in schema.fields]
    for field in fields:
        if field.name.lower() in ("window", "session_window"):
            raise Unsupported("TIME_WINDOW", f"a window of time beside a column called {field.name}")
        if field.dataType.typeName() == "timestamp_ntz":
            raise Unsupported("TIME_WINDOW", "Spark's window of times without a zone")


def _check_names(plan: Plan, analysed: StructType) -> None:
    """The planner must see the columns that Spark sees, in the same order: a net under mistakes in reading names."""
    ours = [name.lower() for name, _ in plan.outputs]
    theirs = [name.lower() for name in analysed.names]
    if len(ours) != len(theirs) or any(a not in ("", b) for a, b in zip(ours, theirs, strict=True)):
        raise Unsupported("PLAN_MISMATCH", "a select list that Spark reads differently")


def _check_source_columns(plans: tuple[NodePlan, ...], schemas: Mapping[str, StructType]) -> None:
    """A change does not know that Spark pads a CHAR column wherever it compares it, and has a column of its own."""
    scans = [op for plan in plans for op in walk(plan.body) if isinstance(op, Scan) and op.relation in schemas]
    for scan in scans:
        for _, stored in scan.stored:
            if _CHAR.search(schemas[scan.relation][stored].metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")):
                raise Unsupported("SOURCE_COLUMN", f"the column {stored} of type CHAR")
            if stored.lower() == WEIGHT:
                raise Unsupported("SOURCE_COLUMN", f"a source column called {stored}")


def plan_nodes(
    query: str,
    key: str,
    names: list[str],
    schemas: Mapping[str, tuple[str, ...]],
    lateness: tuple[Lateness, ...] = (),
    settings: Settings = USUAL,
) -> tuple[NodePlan, ...]:
    """The nodes of a query whose visible columns have these names. A plan never changes, so it is made once."""
    return _planned(query, key, tuple(names), tuple(sorted(schemas.items())), lateness, settings)


@lru_cache(maxsize=1000)
def _planned(
    query: str,
    key: str,
    names: tuple[str, ...],
    schemas: tuple[tuple[str, tuple[str, ...]], ...],
    lateness: tuple[Lateness, ...],
    settings: Settings,
) -> tuple[NodePlan, ...]:
    plan = build(parse_query(query), dict(schemas))
    gates, plan = without_late_rows(plan, lateness)
    plan = replace(plan, root=_with_ended(plan.root))
    if len(plan.outputs) != len(names):
        raise Unsupported("PLAN_MISMATCH", "a select list that Spark reads differently")
    outputs = tuple((name, internal) for name, (_, internal) in zip(names, plan.outputs, strict=True))
    return (*gates, *split(Plan(plan.root, outputs), key, settings.text))


def _with_ended(op: Operator) -> Operator:
    """The plan with filters by the watermark marked as such."""
    match op:
        case Project(child=child):
            return replace(op, child=_with_ended(child))
        case Filter(child=child, condition=condition) if is_moving(condition):
            return Ended(child, condition)
    return op


def emitted(query: str, options: Options, names: Sequence[str], view: str) -> str:
    """The query of what a view shows: its own, or of its windows those that have ended."""
    return ended(query, names, view) if options.emit == AFTER_WATERMARK else query


def emitted_by(view: ViewRecord) -> str:
    return emitted(view.query, view.options, [name for name, _, _ in view.columns], view.name)


class _EmptyInputs:
    """Inputs without rows: enough for Spark to tell types."""

    def __init__(self, spark: SparkSession, schemas: Mapping[str, StructType]):
        self._spark = spark
        self._schemas = schemas

    def delta(self, scan: Scan) -> Delta | None:
        return None

    def keep(self, frame: DataFrame, *, few: bool = False, little: bool = False) -> Materialized:
        return Materialized(frame, None)

    def count(self, scan: Scan) -> int:
        return 0

    @property
    def utc(self) -> bool:
        return True

    def near(self, bounds: pa.Table | None, sought: Anywhere | None = None) -> _EmptyInputs:
        return self

    def watermark(self, moment: Moment) -> int | None:
        return None

    def read(self, scan: Scan, moment: Moment) -> Rows:
        frame = local_frame(self._spark, self._schemas[scan.relation])
        return Rows(frame.selectExpr(*[f"{quoted(stored)} AS {name}" for name, stored in scan.stored]))


def _typed_nodes(
    spark: SparkSession, world: World, plans: tuple[NodePlan, ...], schemas: Mapping[str, StructType],
    wanted: StructType, analysed: StructType, locate: Locate, lateness: tuple[Lateness, ...],
) -> tuple[NodeRecord, ...]:  # fmt: skip
    """Records of the nodes. Spark's types of our plan must be those of the user's query."""
    known = dict(schemas)
    sizes = {key: _rows(world, key) for key in schemas}
    labels: dict[str, dict[str, str]] = {}
    records = []
    for plan in plans:
        sizes[plan.name] = estimated_rows(plan.body, sizes)
        inputs = _EmptyInputs(spark, known)
        try:
            types = _measure_types(plan, inputs)
            maintained = maintained_node(plan, types)
            stored = maintained.evaluate(inputs, "post").schema
        except PySparkException as problem:
            raise Unsupported(
                "PLAN_MISMATCH", f"a query that Spark reads differently ({clean_message(problem, {})})"
            ) from None
        known[plan.name] = stored
        if plan.hidden:
            labels[plan.name] = label_columns(plan, labels)
        if plan.hidden and plan.name in world.nodes:
            records.append(world.nodes[plan.name])
            continue
        if not plan.hidden:
            _check_types(stored, analysed)
            stored = _commented(stored, wanted)
        records.append(
            NodeRecord(
                plan.name, plan.hidden, locate(plan.name, "nodes" if plan.hidden else "views"), plan.fingerprint,
                _nullable(stored).json(), plan.inputs,
                {
                    "types": types,
                    "schemas": {k: s.names for k, s in schemas.items()},
                    "input_types": _input_types(plan, known),
                    "incremental": True,
                    "estimated_rows": sizes[plan.name],
                    "held_by_watermark": any(isinstance(op, Ended) for op in walk(plan.body)),
                    "late": isinstance(plan.body, Late),
                    "lateness": [astuple(late) for late in lateness],
                    **describe_node(plan, maintained.mergeable, labels),
                },
            )
        )  # fmt: skip
    return tuple(records)


def _rows(world: World, key: str) -> int:
    """The number of rows of a table or view, from its log."""
    if key in world.tables:
        return Snapshot(world.tables[key].path).rows
    node = world.nodes[key]
    return Snapshot(node.path, node.version).rows if node.version is not None else 0


def _measure_types(plan: NodePlan, inputs: _EmptyInputs) -> dict[str, str]:
    """Types of the arguments (x0, ..) and values (v0, ..) of an aggregate's measures."""
    if not isinstance(plan.body, Aggregate | Distinct) or isinstance(plan.body, Sessions):
        return {}
    body = as_aggregate(plan.body)
    child = rules.evaluate(body.child, inputs, "post").frame
    if not body.measures:
        return {}
    arguments = [argument_of(function) for _, function in body.measures]
    values = [f"{'1' if e is None else render(e)} AS x{i}" for i, e in enumerate(arguments)]
    results = [F.expr(f"{render(function)} AS v{i}") for i, (_, function) in enumerate(body.measures)]
    fields = [*child.selectExpr(*values).schema.fields, *child.agg(*results).schema.fields]
    return {field.name: field.dataType.simpleString() for field in fields}


def _input_types(plan: NodePlan, known: Mapping[str, StructType]) -> dict[str, dict[str, str]]:
    """The columns that a node reads, by relation, with their types; checked again at every refresh."""
    found: dict[str, dict[str, str]] = {}
    for op in walk(plan.body):
        if isinstance(op, Scan):
            columns = found.setdefault(op.relation, {})
            columns.update({stored: known[op.relation][stored].dataType.simpleString() for _, stored in op.stored})
    return found


def _check_types(stored: StructType, analysed: StructType) -> None:
    ours = [field.dataType.simpleString() for field in stored.fields[: len(analysed.fields)]]
    theirs = [field.dataType.simpleString() for field in analysed.fields]
    if ours != theirs:
        raise Unsupported("PLAN_MISMATCH", f"a query whose types Spark derives differently ({ours} and {theirs})")


def _commented(stored: StructType, wanted: StructType) -> StructType:
    comments = {f.name: _own(f.metadata) for f in wanted.fields}
    return StructType([StructField(f.name, f.dataType, True, comments.get(f.name, {})) for f in stored.fields])


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(f.name, f.dataType, True, _own(f.metadata)) for f in schema.fields])


def _own(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a column, without the marks by which Spark knows windows of time and joins them again."""
    return {key: value for key, value in metadata.items() if not key.startswith("spark.")}


def _query_node(
    statement: CreateView, key: str, schemas: Mapping[str, StructType], wanted: StructType, locate: Locate,
    problem: Unsupported,
) -> NodeRecord:  # fmt: skip
    """A node that recomputes the whole query."""
    types = {k: {f.name: f.dataType.simpleString() for f in s.fields} for k, s in schemas.items()}
    details = {
        "types": {}, "schemas": {k: s.names for k, s in schemas.items()}, "input_types": types, "incremental": False,
        "rule": "recompute", "operator": "the whole query", "reads": "all of its inputs",
        "reason_code": problem.code, "reason": problem.construct,
        "held_by_watermark": statement.options.emit == AFTER_WATERMARK,
    }  # fmt: skip
    digest = hashlib.sha256(statement.query.encode()).hexdigest()
    return NodeRecord(key, False, locate(key, "views"), digest, _nullable(wanted).json(), tuple(schemas), details)
