"""The nodes of a plan as records: Spark tells the types of what each of them keeps, on inputs without rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DecimalType, IntegralType, MapType, StructField, StructType
from sqlglot import exp

from penstock.catalog import NodeDetails, NodeRecord, World
from penstock.frames.frame import Frame
from penstock.frames.keys import Anywhere
from penstock.frames.names import WEIGHT
from penstock.frames.sizes import Size
from penstock.frames.spark.dataframes import has_order
from penstock.frames.spark.frame import SparkFrame, as_spark
from penstock.frames.spark.problems import SPARK_PROBLEMS, clean_message
from penstock.frames.spark.session import Running
from penstock.frames.spark.types import empty_frame
from penstock.frames.zset import Delta, ZSet
from penstock.ivm import rules
from penstock.ivm.context import Moment
from penstock.ivm.layout import argument_of, as_aggregate
from penstock.ivm.node import maintained_node
from penstock.plan import NodePlan, Unsupported
from penstock.plan.describe import describe_node, label_columns
from penstock.plan.estimate import estimated_rows
from penstock.plan.lateness import Lateness
from penstock.plan.operators import (
    Aggregate,
    Distinct,
    Ended,
    Late,
    Operator,
    Scan,
    Sessions,
    SidedJoin,
    TopK,
    Values,
    Window,
    expressions,
    is_found_by,
    render,
    walk,
)
from penstock.sql.trees import column
from penstock.storage.delta_log import Snapshot
from penstock.vocabulary import Reason

Locate = Callable[[str, str], str]
"""Where the table of a node goes, by the node's name and a folder."""
_CHAR = re.compile(r"(?<!var)char\(")


class _NameTaken(Exception):
    """A hidden node's name is taken by one that computes the same, of columns that had other types then."""

    def __init__(self, name: str, types: str):
        super().__init__(name)
        self.name = name
        self.types = types


def named_nodes(
    plan: Callable[[dict[str, str]], tuple[NodePlan, ...]],
    typed: Callable[[tuple[NodePlan, ...]], tuple[NodeRecord, ...]],
) -> tuple[NodeRecord, ...]:
    """The records of the nodes; one whose name is taken by a node of other types gets a name of its own."""
    renamed: dict[str, str] = {}
    while True:
        try:
            nodes = typed(plan(renamed))
        except _NameTaken as taken:
            renamed[taken.name] = hashlib.sha256(taken.types.encode()).hexdigest()
            continue
        if not renamed:
            return nodes
        return (*nodes[:-1], replace(nodes[-1], details=replace(nodes[-1].details, renamed=renamed)))


class _EmptyInputs:
    """Inputs without rows: enough for Spark to tell types."""

    def __init__(self, spark: SparkSession, schemas: Mapping[str, StructType]):
        self._spark = spark
        self._schemas = schemas

    def delta(self, scan: Scan) -> Delta | None:
        return None

    def keep(self, frame: Frame) -> Frame:
        return frame

    def count(self, scan: Scan) -> int:
        return 0

    @property
    def utc(self) -> bool:
        return True

    def near(self, bounds: pa.Table | None, sought: Anywhere | None = None) -> _EmptyInputs:
        return self

    def watermark(self, moment: Moment) -> int | None:
        return None

    def given(self, values: Values) -> ZSet:
        spark, size = self._spark, Size.exactly(len(values.rows))
        return ZSet(SparkFrame.of(Running(spark), lambda: spark.sql(values.text), values.columns, size))

    def read(self, scan: Scan, moment: Moment) -> ZSet:
        spark, schema = self._spark, self._schemas[scan.relation]
        frame = SparkFrame.of(Running(spark), lambda: empty_frame(spark, schema), schema.names, Size.exactly(0))
        return ZSet(frame.select([(name, column(stored)) for name, stored in scan.stored]))


def typed_nodes(
    spark: SparkSession, world: World, plans: tuple[NodePlan, ...], schemas: Mapping[str, StructType],
    wanted: StructType, analysed: StructType, locate: Locate, lateness: tuple[Lateness, ...],
) -> tuple[NodeRecord, ...]:  # fmt: skip
    """Records of the nodes. Spark's types of our plan must be those of the user's query."""
    _check_source_columns(plans, schemas)
    known = dict(schemas)
    sizes = {key: _rows(world, key) for key in schemas}
    labels: dict[str, dict[str, str]] = {}
    records = []
    for plan in plans:
        sizes[plan.name] = estimated_rows(plan.body, sizes)
        inputs = _EmptyInputs(spark, known)
        try:
            _check_order(plan, inputs)
            _check_found(plan, inputs)
            types = _measure_types(plan, inputs)
            maintained = maintained_node(plan, types)
            stored = as_spark(maintained.evaluate(inputs, "post")).frame.schema
        except SPARK_PROBLEMS as problem:
            raise Unsupported(
                Reason.PLAN_MISMATCH, f"a query that Spark reads differently ({clean_message(problem, {})})"
            ) from None
        known[plan.name] = stored
        if plan.hidden:
            labels[plan.name] = label_columns(plan, labels)
        if plan.hidden and plan.name in world.nodes:
            _check_same_types(world.nodes[plan.name], stored, _input_types(plan, known))
            records.append(world.nodes[plan.name])
            continue
        if not plan.hidden:
            _check_types(stored, analysed)
            stored = _commented(stored, wanted)
        records.append(
            NodeRecord(
                name=plan.name, hidden=plan.hidden, path=locate(plan.name, "nodes" if plan.hidden else "views"),
                fingerprint=plan.fingerprint, schema_json=nullable(stored).json(), inputs=plan.inputs,
                details=NodeDetails(
                    incremental=True,
                    types=types,
                    schemas={k: tuple(s.names) for k, s in schemas.items()},
                    input_types=_input_types(plan, known),
                    estimated_rows=sizes[plan.name],
                    held_by_watermark=any(isinstance(op, Ended) for op in walk(plan.body)),
                    late=isinstance(plan.body, Late),
                    lateness=tuple(astuple(late) for late in lateness),
                    **describe_node(plan, maintained.mergeable, labels),
                ),
            )
        )  # fmt: skip
    return tuple(records)


def _check_same_types(node: NodeRecord, stored: StructType, inputs: dict[str, dict[str, str]]) -> None:
    """A node that others have can be shared if what it reads and what it keeps still have the types of then."""
    kept = StructType.fromJson(json.loads(node.schema_json)).simpleString()
    if kept != stored.simpleString() or node.details.input_types != inputs:
        raise _NameTaken(node.name, f"{inputs} {stored.simpleString()}")


def _check_source_columns(plans: tuple[NodePlan, ...], schemas: Mapping[str, StructType]) -> None:
    """A change does not know that Spark pads a CHAR column wherever it compares it, and has a column of its own."""
    scans = [op for plan in plans for op in walk(plan.body) if isinstance(op, Scan) and op.relation in schemas]
    for scan in scans:
        for _, stored in scan.stored:
            if _CHAR.search(schemas[scan.relation][stored].metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")):
                raise Unsupported(Reason.SOURCE_COLUMN, f"the column {stored} of type CHAR")
            if stored.lower() == WEIGHT:
                raise Unsupported(Reason.SOURCE_COLUMN, f"a source column called {stored}")


def _check_found(plan: NodePlan, inputs: _EmptyInputs) -> None:
    """A group of a subquery is found by one value; '1' and '01' are two groups, and both are the number 1."""
    for op in walk(plan.body):
        if not isinstance(op, SidedJoin):
            continue
        for condition in [c for c in op.conditions if is_found_by(c)]:
            sides = zip((op.right, op.left), (condition.this, condition.expression), strict=True)
            key, value = (_type_of(side, e, inputs) for side, e in sides)
            if not _told_apart(key, value):
                kinds = f"{key.simpleString()} and {value.simpleString()}"
                raise Unsupported(
                    Reason.CORRELATED_SUBQUERY, f"an aggregate found by values of different types ({kinds})"
                )


def _type_of(op: Operator, value: exp.Expr, inputs: _EmptyInputs) -> DataType:
    """The type of an expression over an operator's columns."""
    return as_spark(rules.evaluate(op, inputs, "post").frame).select([("x", value)]).schema[0].dataType


def _told_apart(key: DataType, value: DataType) -> bool:
    """Whether keys that differ still do when they are compared with a value of another type."""
    match key, value:
        case IntegralType(), IntegralType():
            return True
        case DecimalType(), DecimalType():
            scale = max(key.scale, value.scale)
            return max(key.precision - key.scale, value.precision - value.scale) + scale <= 38
    return key.simpleString() == value.simpleString()


def _check_order(plan: NodePlan, inputs: _EmptyInputs) -> None:
    """A LIMIT without ORDER BY takes the first rows in the order of all columns, if they have one."""
    if not isinstance(plan.body, TopK | Window):
        return
    keys = {key.this.name for e in expressions(plan.body) for key in e.find_all(exp.Ordered)}
    for field in as_spark(rules.evaluate(plan.body.child, inputs, "post").frame).schema.fields:
        if field.name in keys and not has_order(field.dataType):
            kind = field.dataType.simpleString()
            raise Unsupported(Reason.LIMIT, f"LIMIT without ORDER BY of a column that has no order ({kind})")


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
    child = as_spark(rules.evaluate(body.child, inputs, "post").frame).frame
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
        raise Unsupported(Reason.PLAN_MISMATCH, f"a query whose types Spark derives differently ({ours} and {theirs})")


def _commented(stored: StructType, wanted: StructType) -> StructType:
    comments = {f.name: _own(f.metadata) for f in wanted.fields}
    return StructType([StructField(f.name, f.dataType, True, comments.get(f.name, {})) for f in stored.fields])


def _unmarked(kind: DataType) -> DataType:
    """A type without what its source says of the fields within it: how they are called there is not our matter."""
    match kind:
        case StructType():
            return StructType([StructField(f.name, _unmarked(f.dataType), f.nullable) for f in kind.fields])
        case ArrayType():
            return ArrayType(_unmarked(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_unmarked(kind.keyType), _unmarked(kind.valueType), kind.valueContainsNull)
    return kind


def nullable(schema: StructType) -> StructType:
    return StructType([StructField(f.name, _unmarked(f.dataType), True, _own(f.metadata)) for f in schema.fields])


def _own(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a column, without the marks by which Spark knows windows of time and joins them again."""
    return {key: value for key, value in metadata.items() if not key.startswith("spark.")}
