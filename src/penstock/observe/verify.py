"""Comparing a view's rows with its query, on the versions that the view was computed from.

Both are Z-sets, and what is left of their difference is wrong: a row with a weight above zero is superfluous, one below
is missing. Floats are the same when they differ by a billionth: the sum of many depends on their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import BinaryType, DataType, DoubleType, FloatType, StructField
from sqlglot import exp

from penstock.catalog import Frontier, NodeRecord, ViewRecord, World
from penstock.engine.planning import emitted_by
from penstock.engine.relations import run_query
from penstock.errors import DefinitionError, PenstockError
from penstock.frames.names import WEIGHT
from penstock.frames.settings import Settings, under
from penstock.frames.sizes import UNKNOWN
from penstock.frames.spark.dataframes import grouped, identity_of, select, total, weighted
from penstock.frames.spark.frame import SparkFrame
from penstock.frames.spark.problems import SPARK_PROBLEMS, clean_message
from penstock.frames.spark.session import Running
from penstock.plan.check import non_deterministic
from penstock.plan.operators import CHANGE
from penstock.sql import emission
from penstock.sql.dialect import quoted
from penstock.sql.query import parse_query
from penstock.storage.delta_log import HistoryGone, Snapshot, check_files
from penstock.storage.reader import read_snapshot, schema_of
from penstock.vocabulary import Outcome

NEARLY = 1e-9
"""By how much floats may differ, of the larger of them or in all."""

_MOST_EXAMPLES = 5
_MOST_PAIRED = 10_000
"""Differing rows among which those are found that differ only in the last digits of floats."""
_PARTS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What came of comparing one view with its query."""

    view: str
    outcome: Outcome
    reason: str | None = None
    """Why it could not be verified."""
    missing: int = 0
    """Rows of the query that the view does not have."""
    superfluous: int = 0
    """Rows of the view that the query does not give."""
    examples: list[Example] = field(default_factory=list)
    sample: float | None = None
    """The share of the rows that was compared; None: all of them."""
    versions: dict[str, int] = field(default_factory=dict)
    """What the query was run on: tables and views, at the versions that the view has consumed."""


@dataclass(frozen=True)
class Example:
    """A row that is wrong: how many copies are too many, or (below zero) missing."""

    copies: int
    row: dict[str, str | None]


class _NotVerified(Exception):
    """Why a view cannot be compared."""


def verify_views(
    spark: SparkSession, world: World, names: Sequence[str], sample: float | None = None
) -> list[Verification]:
    """Compare views (all without names), or a share of their rows, with their queries."""
    if sample is not None and not 0 < sample <= 1:
        raise DefinitionError(f"a sample is a share of the rows, such as 0.01, not {sample}.")
    keys = [world.view_key(name) for name in names] if names else world.views_graph().order(world.views)
    return [verify(spark, world, key, sample) for key in keys]


def verify(spark: SparkSession, world: World, key: str, sample: float | None = None) -> Verification:
    view, node = world.views[key], world.nodes[key]
    made = Verification(view=view.name, outcome=Outcome.EQUAL, sample=sample)
    try:
        consumed = _consumed(world, view)
        made = replace(made, versions={world.display_name(name): f.version for name, f in sorted(consumed.items())})
        with under(spark, Settings.of(node.details.settings)):
            actual = read_snapshot(spark, Snapshot(node.path, node.version), [name for name, _, _ in view.columns])
            missing, superfluous, examples = _compared(_query_rows(spark, world, view, consumed), actual, view, sample)
    except (_NotVerified, HistoryGone, PenstockError) as problem:
        return replace(made, outcome=Outcome.NOT_VERIFIED, reason=str(problem))
    except SPARK_PROBLEMS as problem:
        return replace(made, outcome=Outcome.NOT_VERIFIED, reason=f"the query failed: {clean_message(problem, {})}")
    if not missing and not superfluous:
        return made
    if missing == superfluous and _may_tie(view):
        reason = (
            f"{missing:,} rows differ, but rows that tie in the order of LIMIT or of a window may come in any order"
        )
        return replace(made, outcome=Outcome.NOT_VERIFIED, reason=reason, examples=examples)
    return replace(made, outcome=Outcome.DIFFERENT, missing=missing, superfluous=superfluous, examples=examples)


# -- what the view was computed from ----------------------------------------------------------------------------------


def _consumed(world: World, view: ViewRecord) -> dict[str, Frontier]:
    """The versions of what the query names: those that the view's nodes have come to."""
    node = world.nodes[view.key]
    if node.version is None:
        raise _NotVerified(f"it has no rows yet. Run REFRESH MATERIALIZED VIEW {view.name}")
    changing = non_deterministic(parse_query(view.query))
    if changing is not None:
        raise _NotVerified(f"{changing.construct} gives something else each time")
    if node.details.outside:
        raise _NotVerified(f"it reads {', '.join(node.details.outside)}, of which no version is kept")
    found: dict[str, Frontier] = {}
    for name in _followed(world, view, node):
        for read, frontier in world.frontiers.get(name, {}).items():
            if read in view.reads and frontier.direct:
                # A node that is shared may have come further, without a change of its own rows.
                found[read] = min(found.get(read, frontier), frontier, key=lambda f: f.version)
    unknown = [world.display_name(read) for read in view.reads if read not in found]
    if unknown:
        raise _NotVerified(f"what it has read of {', '.join(unknown)} is no longer known. Refresh it first")
    return found


def _followed(world: World, view: ViewRecord, node: NodeRecord) -> Iterable[str]:
    """The view's nodes, from the visible one down. One that has moved on without the view tells nothing of it."""
    pending, seen = [node.name], set()
    while pending:
        name = pending.pop()
        seen.add(name)
        yield name
        for read, frontier in world.frontiers.get(name, {}).items():
            if read in view.nodes and read not in seen:
                if world.nodes[read].version != frontier.version:
                    raise _NotVerified("another view has brought a node that they share further. Refresh it first")
                pending.append(read)


def _query_rows(spark: SparkSession, world: World, view: ViewRecord, consumed: Mapping[str, Frontier]) -> DataFrame:
    """What the query gives; the settings that belong to the view are in force."""
    mark = world.watermarks.get(view.key)
    text = emission.at(emitted_by(view), None if mark is None else mark.value)
    rows = run_query(spark, text, lambda key: _input(spark, world, view, key, consumed[key]), of_view=True)
    return rows.toDF(*[name for name, _, _ in view.columns])


def _input(spark: SparkSession, world: World, view: ViewRecord, key: str, consumed: Frontier) -> DataFrame:
    """A table or view that the query reads, as the view has read it: without the rows that came too late for it."""
    path = world.tables[key].path if key in world.tables else world.nodes[key].path
    name = world.display_name(key)
    try:
        snapshot = Snapshot(path, consumed.version)
        check_files(snapshot)
    except HistoryGone:
        raise _NotVerified(f"version {consumed.version} of {name!r} is gone (VACUUM). Refresh the view first") from None
    if snapshot.table_id != consumed.table_id:
        raise _NotVerified(f"{name!r} is another table than the one that was read. Refresh the view first")
    there = {field.name.lower() for field in schema_of(snapshot).fields}
    columns = [name for name in world.nodes[view.key].details.schemas[key] if name.lower() in there]
    late = next((node for node in world.late_nodes(view).values() if node.inputs[0] == key), None)
    if late is None:
        return read_snapshot(spark, snapshot).select(*map(quoted, columns))
    rejected = read_snapshot(spark, Snapshot(late.path, late.version))
    kept = [name for name in rejected.columns if name != CHANGE]  # all that the query reads
    rows = read_snapshot(spark, snapshot).select(*map(quoted, kept))
    taken_out = select(rejected, *map(quoted, kept), f"-{CHANGE} AS {WEIGHT}")
    both = SparkFrame.of_frame(Running(spark), total([weighted(rows, 1), taken_out]), UNKNOWN)
    return both.consolidated().copies().frame


# -- comparing --------------------------------------------------------------------------------------------------------


def _compared(
    expected: DataFrame, actual: DataFrame, view: ViewRecord, sample: float | None
) -> tuple[int, int, list[Example]]:
    """How many rows are missing and superfluous, and some of them. If none are, that is one job."""
    fields = actual.schema.fields
    columns = [f"c{i}" for i in range(len(fields))]
    both = weighted(_typed(actual, fields), 1).unionByName(weighted(_typed(expected, fields), -1))
    if sample is not None:
        both = both.where(_sampled(fields, columns, sample))
    told = [f"{_told(c, f.dataType)} AS __i{i}" for i, (c, f) in enumerate(zip(columns, fields, strict=True))]
    shown = f"STRUCT({', '.join(_shown(c, f.dataType) for c, f in zip(columns, fields, strict=True))}) AS shown"
    keys = [f"__i{i}" for i in range(len(fields))]
    rows = select(both, *told, shown, WEIGHT)
    wrong = grouped(rows, keys, [f"SUM({WEIGHT}) AS copies", "FIRST(shown) AS shown"]).where("copies <> 0")
    summed = select(
        wrong, "COALESCE(SUM(IF(copies < 0, -copies, 0)), 0) AS missing",
        "COALESCE(SUM(IF(copies > 0, copies, 0)), 0) AS superfluous", "COUNT(*) AS kinds",
    ).first()  # fmt: skip
    assert summed is not None
    if not summed["kinds"]:
        return 0, 0, []
    floats = [i for i, f in enumerate(fields) if isinstance(f.dataType, FloatType | DoubleType)]
    if not floats or summed["kinds"] > _MOST_PAIRED:
        examples = _examples(wrong.limit(_MOST_EXAMPLES).collect(), view)
        return summed["missing"], summed["superfluous"], examples
    left = _unpaired(wrong.collect(), floats)
    missing, superfluous = (sum(abs(r["copies"]) for r in left if (r["copies"] < 0) == less) for less in (True, False))
    return missing, superfluous, _examples(left[:_MOST_EXAMPLES], view)


def _typed(frame: DataFrame, fields: Sequence[StructField]) -> DataFrame:
    """The columns by their place, with the types of the view's table."""
    texts = []
    for i, (column, found) in enumerate(zip(fields, frame.schema.fields, strict=True)):
        wanted, name = column.dataType.simpleString(), quoted(found.name)
        texts.append(f"{name if found.dataType.simpleString() == wanted else f'CAST({name} AS {wanted})'} AS c{i}")
    return select(frame, *texts)


def _told(column: str, data_type: DataType) -> str:
    """What a value is compared by: of a float ten digits, which two nearly equal ones seldom have apart."""
    if isinstance(data_type, FloatType | DoubleType):
        return f"FORMAT_STRING('%.9e', CAST({column} AS DOUBLE))"
    return identity_of(column, data_type)


def _shown(column: str, data_type: DataType) -> str:
    return f"HEX({column})" if isinstance(data_type, BinaryType) else f"CAST({column} AS STRING)"


def _sampled(fields: Sequence[StructField], columns: Sequence[str], sample: float) -> str:
    """Which rows are compared: told by a hash of what a row is known by, so that they are the same of both sides."""
    kinds = {c: f.dataType for c, f in zip(columns, fields, strict=True)}
    exact = [c for c in columns if not isinstance(kinds[c], FloatType | DoubleType)] or columns
    values = ", ".join(_told(c, kinds[c]) for c in exact)
    return f"PMOD(XXHASH64({values}), {_PARTS}) < {round(sample * _PARTS)}"


def _unpaired(rows: Sequence[Row], floats: Sequence[int]) -> list[Row]:
    """The differing rows without those that are nearly the same as another one, in the other direction."""
    others: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        others.setdefault(tuple(v for i, v in enumerate(row["shown"]) if i not in floats), []).append(row)
    left = []
    for alike in others.values():
        more, less = ([r for r in alike if (r["copies"] > 0) == above] for above in (True, False))
        for row in more:
            twin = next((o for o in less if o["copies"] == -row["copies"] and _nearly(row, o, floats)), None)
            if twin is None:
                left.append(row)
            else:
                less.remove(twin)
        left += less
    return left


def _nearly(one: Row, other: Row, floats: Sequence[int]) -> bool:
    pairs = [(one["shown"][i], other["shown"][i]) for i in floats]
    if any((a is None) != (b is None) for a, b in pairs):
        return False
    return all(
        a is None or a == b or math.isclose(float(a), float(b), rel_tol=NEARLY, abs_tol=NEARLY) for a, b in pairs
    )


def _examples(rows: Iterable[Row], view: ViewRecord) -> list[Example]:
    names = [name for name, _, _ in view.columns]
    return [Example(row["copies"], dict(zip(names, row["shown"], strict=True))) for row in rows]


def _may_tie(view: ViewRecord) -> bool:
    """Whether the query leaves it open which rows it takes, or in which order it counts them."""
    tree = parse_query(view.query)
    return tree.find(exp.Limit, exp.Fetch) is not None or any(w.args.get("order") for w in tree.find_all(exp.Window))
