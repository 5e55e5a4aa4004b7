"""From a query to the records of a view: Spark judges it, the planner cuts it into nodes, Spark types the nodes.

Nothing is read here but schemas, and nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from pyspark.sql.types import NullType, StructField, StructType, TimestampType

from penstock.catalog import Definition, NodeDetails, NodeRecord, ViewRecord, World
from penstock.engine.document_parts import model_of
from penstock.engine.faithful import has_zoneless_windows, is_faithful
from penstock.engine.naming import STAMP
from penstock.engine.planning import emitted, plan_nodes, seal
from penstock.engine.properties import delta_properties, is_beside
from penstock.engine.relations import RESERVED, outside_names, outside_schemas, read_keys, run_query
from penstock.engine.spark_catalog import no_changes_of
from penstock.engine.typed_nodes import Locate, named_nodes, nullable, typed_nodes
from penstock.engine.writing_out import in_definition
from penstock.errors import DefinitionError, NotIncrementalError, QueryError, nearest
from penstock.frames.settings import USUAL, Settings
from penstock.frames.spark.dataframes import has_order
from penstock.frames.spark.types import empty_frame
from penstock.plan import Plan, Unsupported, build
from penstock.plan.check import non_deterministic
from penstock.plan.lateness import Lateness
from penstock.sql import emission
from penstock.sql.clauses import trigger_of
from penstock.sql.event_time import times_of_windows, uses_our_windows
from penstock.sql.json_functions import uses_json
from penstock.sql.names import key_of
from penstock.sql.query import lost_names, parse_query, parse_written, spark_text, whole
from penstock.sql.statements import AFTER_WATERMARK, CreateView, Placement
from penstock.storage.delta_log import Snapshot
from penstock.storage.placement import SHORT_GROUPS
from penstock.storage.reader import schema_of
from penstock.vocabulary import Policy, Reason

_SOME_WATERMARK = 9_000_000_000_000_000
"""Any moment stands for the watermark where two readings of a query are compared."""
_FORBIDDEN = set(" ,;{}()\n\t=")


def define(
    spark: SparkSession,
    world: World,
    statement: CreateView,
    locate: Locate,
    settings: Settings = USUAL,
    schema: Callable[[World, str, StructType | None], StructType] | None = None,
) -> Definition:
    """Judge and plan a view. ``locate(name, folder)`` says where a new node's table goes.

    ``schema`` gives the columns of what the query reads, if they are not simply those that it has now (which it is told
    of what only Spark knows); ``settings`` are
    in force.
    """
    text = in_definition(world, statement.query, settings, statement.name)
    if text != statement.query:
        statement = replace(statement, query=text, written=statement.query)
    reads, outside = read_keys(world, statement.query, statement.name), outside_names(world, statement.query)
    if outside and statement.policy != Policy.FULL:
        raise DefinitionError(f"view {statement.name!r} cannot be maintained: {no_changes_of(spark, outside[0])}")
    for key in reads:
        if key not in world.tables and key not in world.views:
            raise DefinitionError(f"view {statement.name!r} cannot read {key!r}, which are rows that came late.")
    now: dict[str, StructType | None] = {**dict.fromkeys(reads), **outside_schemas(lambda: spark, outside)}
    schemas = {key: (schema or _as_it_is)(world, key, found) for key, found in now.items()}
    analysed = analyse(spark, statement.query, schemas)
    columns = _columns(statement, analysed)
    placement = _placement(statement, [field for field, _ in columns])
    _check_emitted(spark, statement, schemas, [field.name for field, _ in columns])
    lateness = _lateness(world, statement, reads)
    nodes, problem = _plan_nodes(spark, world, statement, schemas, analysed, columns, locate, lateness, settings)
    if settings.changed:
        nodes = tuple(replace(node, details=replace(node.details, settings=dict(settings.changed))) for node in nodes)
    if problem is not None and lateness:
        raise DefinitionError(
            f"view {statement.name!r}: ALLOW LATENESS needs a view that is maintained incrementally, and this one is "
            f"not: {problem.construct} ({problem.code})."
        )
    if statement.key is not None:
        placement = replace(placement, properties=(*placement.properties, (SHORT_GROUPS, "true")))
    nodes = tuple(_placed(node, placement) if node.name == key_of(statement.name) else node for node in nodes)
    if outside:
        nodes = (*nodes[:-1], _reading_outside(nodes[-1], outside))
    if statement.key is not None:
        nodes = (*nodes[:-1], _stamped(nodes[-1], statement.key))
    view = ViewRecord(
        key=key_of(statement.name), name=statement.name, query=statement.query,
        columns=tuple((c.name, c.dataType.simpleString(), comment) for c, comment in columns),
        comment=statement.comment, properties=dict(statement.properties), refresh=str(statement.trigger),
        policy=statement.policy, reads=reads, nodes=tuple(node.name for node in nodes),
        reason_code=problem.code if problem else None, reason=problem.construct if problem else None,
        created_at=datetime.now(timezone.utc), options=statement.options, written=statement.written,
    )  # fmt: skip
    own = replace(nodes[-1], details=replace(nodes[-1].details, seal=seal(view, nodes)))
    model = None if statement.key is None else model_of(world, view, dict(settings.changed))
    return Definition(view, (*nodes[:-1], own), replaces=view.key in world.views, model=model)


def statement_of(world: World, view: ViewRecord) -> CreateView:
    """The statement that would create a view as it is."""
    query = view.written or view.query
    return CreateView(
        query, name=view.name, query=query, or_replace=True, if_not_exists=False,
        columns=tuple((name, comment) for name, _, comment in view.columns), comment=view.comment,
        properties=tuple(view.properties.items()), trigger=trigger_of(view.refresh), policy=view.policy,
        placement=world.nodes[view.key].details.placement, options=view.options,
        key=world.nodes[view.key].details.key,
    )  # fmt: skip


def _check_emitted(
    spark: SparkSession, statement: CreateView, schemas: Mapping[str, StructType], names: Sequence[str]
) -> None:
    """EMIT AFTER WATERMARK runs what our parser made of a query, also where all is recomputed."""
    if statement.options.emit != AFTER_WATERMARK:
        return
    emitted(statement.query, statement.options, names, statement.name)
    if not is_faithful(spark, statement.query, schemas):
        raise DefinitionError(
            f"view {statement.name!r}: EMIT AFTER WATERMARK needs a query that Penstock reads as Spark does, and Spark "
            "reads this one differently. Put what is unusual in it into a view of its own, and the windows into a view "
            "that reads it."
        )


def _lateness(world: World, statement: CreateView, reads: tuple[str, ...]) -> tuple[Lateness, ...]:
    """The tables whose late rows the view does not take."""
    allowed = statement.options.lateness
    if allowed is None:
        return ()
    tables = [world.tables[key] for key in reads if key in world.tables]
    owner = f"{key_of(statement.name)} {uuid.uuid4().hex}"
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
                raise DefinitionError(f"{about} names {name!r}, which is none of its columns. {nearest(name, known)}")
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

    properties = delta_properties(statement.name, statement.properties)
    return Placement(spelled(asked.partition), spelled(asked.cluster), asked.buckets, properties)


def _placed(node: NodeRecord, placement: Placement) -> NodeRecord:
    return replace(node, details=replace(node.details, placement=placement))


def _reading_outside(node: NodeRecord, names: tuple[str, ...]) -> NodeRecord:
    """The node of a view that reads what has no versions: that is no input, which a refresh would compare."""
    keys = set(map(key_of, names))
    inputs = tuple(name for name in node.inputs if name not in keys)
    return replace(node, inputs=inputs, details=replace(node.details, outside=names))


def _stamped(node: NodeRecord, key: str) -> NodeRecord:
    """The node of a read model: it has a key, and says of each row when it was written."""
    stored = StructType.fromJson(json.loads(node.schema_json)).add(STAMP, TimestampType())
    return replace(node, schema_json=stored.json(), details=replace(node.details, key=key))


def _as_it_is(world: World, key: str, now: StructType | None) -> StructType:
    return relation_schema(world, key) if now is None else now


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
    frames = {k: empty_frame(spark, s) for k, s in schemas.items()}
    try:
        return run_query(spark, query, frames, of_view=True).schema
    except QueryError:
        if spark_text(query, limits=False) == whole(query) or uses_our_windows(parse_written(query)):
            raise
        if uses_json(parse_written(query)):
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
    key = key_of(statement.name)
    changing = non_deterministic(parse_query(statement.query))
    if statement.policy == Policy.FULL:
        problem = Unsupported(Reason.POLICY_FULL, "the policy FULL")
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
        _check_windows(spark, statement.query, schemas)
        _check_names(build(parse_query(statement.query), columns_of), analysed)
        text = emitted(statement.query, statement.options, names, statement.name)
        beside = is_beside(dict(statement.properties))
        nodes = named_nodes(
            lambda renamed: plan_nodes(text, key, names, columns_of, lateness, settings, renamed, beside),
            lambda plans: typed_nodes(spark, world, plans, schemas, wanted, analysed, locate, lateness),
        )
        if not is_faithful(spark, emission.at(text, _SOME_WATERMARK), schemas):
            raise Unsupported(Reason.PLAN_MISMATCH, "a query that Spark reads differently")
        return nodes, None
    except Unsupported as problem:
        if statement.policy == Policy.INCREMENTAL_STRICT:
            raise NotIncrementalError(
                f"view {statement.name!r} cannot be maintained incrementally: {problem.construct} has no incremental "
                f"rule ({problem.code}). Rewrite the query, or choose REFRESH POLICY AUTO.",
                code=problem.code,
            ) from None
        return (_query_node(statement, key, schemas, wanted, locate, problem),), problem


def _check_nothing_lost(query: str, schemas: Mapping[str, tuple[str, ...]]) -> None:
    lost = lost_names(query, {name.lower() for names in schemas.values() for name in names})
    if lost:
        raise Unsupported(Reason.PLAN_MISMATCH, f"an argument that our parser passes over ({', '.join(lost)})")


def _check_windows(spark: SparkSession, query: str, schemas: Mapping[str, StructType]) -> None:
    """Spark's windows are spelled otherwise in a plan, by names and for times of which their meaning is certain."""
    times = times_of_windows(parse_written(query))
    if not times:
        return
    for name in [name for schema in schemas.values() for name in schema.names]:
        if name.lower() in ("window", "session_window"):
            raise Unsupported(Reason.TIME_WINDOW, f"a window of time beside a column called {name}")
    if has_zoneless_windows(spark, query, schemas):
        raise Unsupported(Reason.TIME_WINDOW, f"Spark's window of {times[0]}, which is a time without a zone")


def _check_names(plan: Plan, analysed: StructType) -> None:
    """The planner must see the columns that Spark sees, in the same order: a net under mistakes in reading names."""
    ours = [name.lower() for name, _ in plan.outputs]
    theirs = [name.lower() for name in analysed.names]
    if len(ours) != len(theirs) or any(a not in ("", b) for a, b in zip(ours, theirs, strict=True)):
        raise Unsupported(Reason.PLAN_MISMATCH, "a select list that Spark reads differently")


def _query_node(
    statement: CreateView, key: str, schemas: Mapping[str, StructType], wanted: StructType, locate: Locate,
    problem: Unsupported,
) -> NodeRecord:  # fmt: skip
    """A node that recomputes the whole query."""
    types = {k: {f.name: f.dataType.simpleString() for f in s.fields} for k, s in schemas.items()}
    details = NodeDetails(
        schemas={k: tuple(s.names) for k, s in schemas.items()}, input_types=types, rule="recompute",
        operator="the whole query", reads="all of its inputs", reason_code=problem.code, reason=problem.construct,
        held_by_watermark=statement.options.emit == AFTER_WATERMARK,
    )  # fmt: skip
    digest = hashlib.sha256(statement.query.encode()).hexdigest()
    return NodeRecord(
        name=key,
        hidden=False,
        path=locate(key, "views"),
        fingerprint=digest,
        schema_json=nullable(wanted).json(),
        inputs=tuple(schemas),
        details=details,
    )
