"""One step of the graph: pin source versions, maintain node by node in graph order, and say what to publish.

Every node's outcome is one of NO_DATA, INCREMENTAL, FULL, REINITIALIZE or SKIP, with a reason code. A node that fails
does not stop the others; what reads it is skipped and catches up in a later epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.catalog import Catalog, Frontier, NodeRecord, Publication, World
from penstock.engine import cost
from penstock.engine.cost import Estimate
from penstock.engine.definition import emitted_by, plan_nodes
from penstock.engine.event_time import Watermarks
from penstock.engine.relations import run_query
from penstock.engine.report import FAILED, SKIPPED, ViewReport
from penstock.engine.session import clean_message, counting_jobs
from penstock.engine.side_by_side import Work, in_order
from penstock.engine.sources import Inputs, NodeInputs, Relation
from penstock.errors import DefinitionError, InternalError, PenstockError
from penstock.ivm.keyed import Stored
from penstock.ivm.materialize import Materialized, Materializer
from penstock.ivm.node import Maintained, maintained_node
from penstock.plan.lateness import Lateness
from penstock.sql import emission
from penstock.sql.statements import Placement
from penstock.storage.apply import Applied, TableChange, apply_change, replace_all
from penstock.storage.changes import Extent, extent, may_have_changed
from penstock.storage.clock import Clock, phase, running
from penstock.storage.delta_log import HistoryGone, Snapshot, is_latest
from penstock.storage.reader import columns_by_name, quoted, read_snapshot, schema_of
from penstock.storage.view_table import create_table, restore
from penstock.storage.zset import WEIGHT, Delta, weighted


@dataclass
class Request:
    """What to refresh: nodes in graph order (inputs before readers), those to recompute, those that others hold."""

    nodes: list[str]
    recompute: Collection[str] = ()
    held: Collection[str] = ()
    waiting: Collection[str] = ()
    """Nodes that are not to change yet: EMIT PERIODICALLY."""
    replayed: Collection[str] = ()
    """Nodes with late rows, which are to be taken after all."""


@dataclass
class Step:
    """One node in one epoch."""

    node: NodeRecord
    action: str
    reason: str
    maintained: Maintained | None
    since: dict[str, int]
    estimate: Estimate | None = None
    applied: Applied | None = None
    inserted: int = 0
    deleted: int = 0
    replayed: bool = False


@dataclass
class Result:
    """What an epoch did: reports by node, and what is to be published."""

    number: int | None
    reports: dict[str, ViewReport] = field(default_factory=dict)
    publication: Publication = field(default_factory=Publication)


class Epoch:
    def __init__(self, session: Callable[[], SparkSession], catalog: Catalog, world: World):
        self._get_session = session
        self._spark: SparkSession | None = None
        self._lock = threading.RLock()
        self._catalog = catalog
        self._world = world
        self._number: int | None = None
        self._materializer = Materializer()
        self._inputs_or_none: Inputs | None = None
        self._relations: dict[str, Relation] = {}
        self._graph = world.nodes_graph()
        self._watermarks = Watermarks(self._session, world)

    def run(self, request: Request, progress: Callable[[str], None]) -> Result:
        """Maintain the requested nodes. Their tables are written; nothing is visible until the result is published."""
        self._pin(request)
        result = Result(None)
        wanted = set(request.nodes)
        graph = {name: [i for i in self._world.nodes[name].inputs if i in wanted] for name in request.nodes}

        def begin(name: str) -> Work | None:
            progress(f"refreshing {self._world.display_name(name)}")
            return self._begin(name, request, result)

        try:
            in_order(graph, begin, lambda work: inheritable_thread_target(self._session())(work))
        finally:
            self._materializer.release()
        result.reports = {name: result.reports[name] for name in request.nodes}
        result.number = self._number
        for source, relation in self._relations.items():
            if source in self._world.tables and relation.after is not None:
                result.publication.sources[source] = relation.after.version
                mark = self._watermarks.moved(source)
                if mark is not None:
                    result.publication.watermarks[source] = mark
        return result

    # -- before the first node ----------------------------------------------------------------------------------------

    def _pin(self, request: Request) -> None:
        """Pin the newest version of every source; one that cannot be opened fails its readers only."""
        ancestors = self._graph.ancestors(request.nodes)
        for key, table in self._world.tables.items():
            if key in ancestors:
                relation = Relation(key, table.path, None)
                try:
                    relation.after = Snapshot(table.path)
                except PenstockError as problem:
                    relation.error = type(problem)(f"table {table.name!r}: {problem}")
                self._relations[key] = relation
        for name in request.nodes:
            node = self._world.nodes[name]
            self._relations[name] = Relation(name, node.path, node.version)
        for name in request.nodes:
            frontier, details = self._world.frontiers.get(name, {}), self._world.nodes[name].details
            for relation, columns in details["input_types"].items():
                if relation in frontier and details["incremental"]:
                    needed = self._relations[relation].columns.setdefault(frontier[relation].version, set())
                    needed.update(columns)

    @property
    def _inputs(self) -> Inputs:
        with self._lock:
            if self._inputs_or_none is None:
                self._inputs_or_none = Inputs(self._session(), self._materializer)
                for relation in self._relations.values():
                    self._inputs_or_none.add(relation)
            return self._inputs_or_none

    def _session(self) -> SparkSession:
        with self._lock:
            if self._spark is None:
                with phase("starting"):  # which is not any view's time
                    self._spark = self._get_session()
            return self._spark

    def _epoch_number(self) -> int:
        with self._lock:
            if self._number is None:
                self._number = self._catalog.begin_epoch()
            return self._number

    # -- one node -----------------------------------------------------------------------------------------------------

    def _begin(self, name: str, request: Request, result: Result) -> Work | None:
        """Decide what to do with a node; gives the work if there is any."""
        clock = Clock()
        with running(clock):
            step = self._prepared(name, request)
        if isinstance(step, ViewReport):
            result.reports[name] = _measured(step, clock, 0)
            return None
        if step.action != "NO_DATA":
            return partial(self._work, step, clock, result)
        with running(clock):
            report = self._finished(step, result)
        result.reports[name] = _measured(report, clock, 0)
        return None

    def _work(self, step: Step, clock: Clock, result: Result) -> None:
        with running(clock), counting_jobs(self._session()) as jobs:
            report = self._finished(step, result)
        result.reports[step.node.name] = _measured(report, clock, jobs())

    def _prepared(self, name: str, request: Request) -> Step | ViewReport:
        """The step to take, or the report of a node that is not to be touched in this epoch."""
        node = self._world.nodes[name]
        relation = self._relations[name]
        if name in request.held:
            relation.error = PenstockError(f"{self._world.display_name(name)!r} is being refreshed by another process")
            return ViewReport(name, "SKIP", "HELD_BY_ANOTHER", status=SKIPPED)
        if name in request.waiting:
            relation.after, relation.in_memory = Snapshot(node.path, node.version), True
            return ViewReport(name, "SKIP", "NOT_DUE")
        broken = [self._relations[i] for i in node.inputs if self._relations[i].error is not None]
        if broken and broken[0].name in self._world.tables:
            return self._failed(relation, broken[0].error)
        if broken:
            relation.error = broken[0].error
            held = all(r.name in request.held for r in broken)
            return ViewReport(name, "SKIP", "HELD_BY_ANOTHER" if held else "UPSTREAM_FAILED", status=SKIPPED)
        try:
            self._check_inputs(node)
            self._watermarks.node(name, {read: self._watermark(read) for read in node.inputs})
            if name in request.replayed:
                return Step(node, "INCREMENTAL", "REPLAYED", self._maintained(node), {}, replayed=True)
            return self._decide(node, name in request.recompute)
        except Exception as problem:
            return self._failed(relation, _as_error(problem))

    def _finished(self, step: Step, result: Result) -> ViewReport:
        try:
            self._execute(step)
        except Exception as problem:  # whatever it is, it must not stop the other views
            return self._failed(self._relations[step.node.name], _as_error(problem), step)
        self._collect(step, result)
        strategy = step.applied.strategy if step.applied else None
        late = step.inserted if step.node.details.get("late") else 0
        return ViewReport(
            step.node.name, step.action, step.reason, strategy, step.inserted, step.deleted, late=late,
            estimate=step.estimate,
        )  # fmt: skip

    @staticmethod
    def _failed(relation: Relation, problem: PenstockError | None, step: Step | None = None) -> ViewReport:
        relation.error = problem
        action = step.action if step else "SKIP"
        return ViewReport(relation.name, action, "ERROR", status=FAILED, error=str(problem))

    def _check_inputs(self, node: NodeRecord) -> None:
        """A source whose columns are no longer those of the definition is an error, not a wrong result."""
        for relation, columns in node.details["input_types"].items():
            snapshot = self._relations[relation].after
            if relation not in self._world.tables or snapshot is None:
                continue
            found = {f.name.lower(): f.dataType.simpleString() for f in schema_of(snapshot).fields}
            for column, data_type in columns.items():
                now = found.get(column.lower())
                if now != data_type:
                    what = "is gone" if now is None else f"is now {now}, not {data_type}"
                    raise DefinitionError(
                        f"column {column!r} of table {self._world.display_name(relation)!r} {what}. "
                        "Run CREATE OR REPLACE MATERIALIZED VIEW with a query that fits."
                    )

    def _decide(self, node: NodeRecord, recompute: bool) -> Step:
        """The action, before any row is read. INCREMENTAL may still turn out to be NO_DATA."""
        frontier = self._world.frontiers.get(node.name, {})
        since = {name: f.version for name, f in frontier.items() if f.direct}
        maintained = self._maintained(node)

        def step(action: str, reason: str) -> Step:
            return Step(node, action, reason, maintained, since)

        if node.version is None:
            return step("FULL", "INITIAL")
        if recompute and not node.details.get("late"):  # which rows came late cannot be told any more
            return step("FULL", "REQUESTED")
        for name in node.inputs:
            after = self._relations[name].after
            assert after is not None
            known = frontier.get(name)
            if known is None or known.table_id != after.table_id or known.version > after.version:
                return step("REINITIALIZE", "SOURCE_REPLACED")
            if self._columns_replaced(node, name, known.version, after):
                return step("REINITIALIZE", "SOURCE_REPLACED")
        if node.details.get("reason_code") == "POLICY_FULL":
            return step("FULL", "POLICY_FULL")
        waits = self._released(node)
        if all(self._unchanged(name, since[name]) for name in node.inputs) and not waits:
            return step("NO_DATA", "NO_CHANGE")
        if maintained is None:
            return step("FULL", str(node.details["reason_code"]))
        chosen = step("INCREMENTAL", "CHANGED")
        self._weigh(chosen)
        return chosen

    def _watermark(self, relation: str) -> int | None:
        """How far event time has come in an input, after this epoch."""
        table = self._world.tables.get(relation)
        if table is None:
            return self._watermarks.after(relation)
        after = self._relations[relation].after
        mark = None if after is None else self._watermarks.table(table, after)
        return None if mark is None else mark.value

    def _released(self, node: NodeRecord) -> bool:
        """Whether the watermark has passed the end of windows that the node holds back."""
        if not node.details.get("held_by_watermark"):
            return False
        return self._watermarks.before(node.name) != self._watermarks.after(node.name)

    def _columns_replaced(self, node: NodeRecord, name: str, since: int, after: Snapshot) -> bool:
        """Whether another column has the name of one that the node reads: renamed or dropped, and added again."""
        if name not in self._world.tables or since == after.version or not columns_by_name(after):
            return False
        try:
            before = columns_by_name(Snapshot(after.path, since))
        except HistoryGone:
            return False  # which is found out, and said, when the change is read
        now = columns_by_name(after)
        read = [column.lower() for column in node.details["input_types"].get(name, {})]
        return any(column in before and before[column] != now.get(column) for column in read)

    def _weigh(self, step: Step) -> None:
        """Under the policy AUTO a change that is too large to be worth maintaining makes the node recompute."""
        owners = [view for view in self._world.views.values() if step.node.name in view.nodes]
        if step.maintained is None or step.node.details.get("late") or any(v.policy != "AUTO" for v in owners):
            return
        inputs = [self._relations[name] for name in step.node.inputs]
        rows = sum(r.after.rows for r in inputs if r.after is not None)
        if rows < cost.LEAST_ROWS:
            return
        extents = [self._extent(r, step.since[r.name]) for r in inputs]
        stored = Snapshot(step.node.path, step.node.version).rows
        work = cost.Work(
            step.maintained.kinds, sum(e.added + e.removed for e in extents), rows, stored,
            appended=not any(e.removed for e in extents), readers=bool(self._graph.readers(step.node.name)),
            whole=len(owners) == 1 and len(owners[0].nodes) == 1,
        )  # fmt: skip
        past = [(r.action, r.seconds, r.details or {}) for r in self._catalog.history(owners[0].key, 20)]
        step.estimate = cost.estimate(work, cost.Measured.of(past))
        if step.estimate.choice == "FULL" and work.changed >= cost.LEAST_CHANGED:
            step.action, step.reason = "FULL", "CHEAPER"

    def _extent(self, relation: Relation, since: int) -> Extent:
        """About how many rows of an input changed; exactly, if it was maintained in this epoch."""
        assert relation.after is not None
        if relation.in_memory and relation.before == since:
            return relation.extent
        if relation.after.version == since:
            return Extent(0, 0)
        try:
            return extent(Snapshot(relation.path, since), relation.after)
        except HistoryGone:
            return Extent(relation.after.rows, relation.after.rows)

    def _unchanged(self, name: str, since: int) -> bool:
        """Whether an input is known, without reading anything, to be as the node left it."""
        relation = self._relations[name]
        assert relation.after is not None
        if relation.in_memory and relation.before == since:
            return relation.delta is None
        return not may_have_changed(relation.after, since)

    def _maintained(self, node: NodeRecord) -> Maintained | None:
        """The node's plan, made again from the view's query; None for a node that always recomputes."""
        if not node.details["incremental"]:
            return None
        view = next(v for v in self._world.views.values() if node.name in v.nodes)
        own = self._world.nodes[view.key]
        schemas = {name: tuple(columns) for name, columns in own.details["schemas"].items()}
        lateness = tuple(Lateness(*late) for late in own.details.get("lateness", ()))
        plans = plan_nodes(emitted_by(view), view.key, [name for name, _, _ in view.columns], schemas, lateness)
        plan = next((p for p in plans if p.name == node.name), None)
        if plan is None or plan.fingerprint != node.fingerprint:
            raise InternalError(
                f"view {view.name!r} was planned by another version of Penstock. "
                "Run CREATE OR REPLACE MATERIALIZED VIEW with the same query."
            )
        return maintained_node(plan, node.details["types"])

    # -- doing it -----------------------------------------------------------------------------------------------------

    def _execute(self, step: Step) -> None:
        relation = self._relations[step.node.name]
        if step.action == "NO_DATA":
            relation.after = Snapshot(step.node.path, step.node.version)
            relation.in_memory = True
            return
        if step.replayed:
            self._replay(step, relation)
            return
        if step.action == "INCREMENTAL":
            try:
                self._maintain(step, relation)
                return
            except HistoryGone:
                step.action, step.reason = "REINITIALIZE", "HISTORY_GONE"
                if step.node.details.get("late"):  # what is known to be late stays so; of the rest it cannot be told
                    relation.after, relation.in_memory = Snapshot(step.node.path, step.node.version), True
                    return
        self._recompute(step, relation)

    def _maintain(self, step: Step, relation: Relation) -> None:
        assert step.maintained is not None
        context = self._context(step)
        if not any(context.changed(name) for name in step.node.inputs) and not self._released(step.node):
            step.action, step.reason = "NO_DATA", "NO_CHANGE"
            relation.after, relation.in_memory = Snapshot(step.node.path, step.node.version), True
            return
        published = Snapshot(step.node.path, step.node.version)
        stored = Stored(self._session(), published)
        change = step.maintained.delta(context, stored, self._materializer)
        if change is None:  # the inputs changed in columns that the node does not read
            step.action, step.reason = "NO_DATA", "NO_CHANGE"
            relation.after, relation.in_memory = published, True
            return
        step.inserted, step.deleted = change.totals(WEIGHT)
        relation.in_memory = True
        relation.extent = Extent(step.inserted, step.deleted)
        if not step.inserted and not step.deleted:
            relation.after = published
            return
        self._apply(step, relation, published, change, step.maintained.keys)

    def _apply(
        self, step: Step, relation: Relation, published: Snapshot, change: Materialized, keys: tuple[str, ...] | None
    ) -> None:
        """Bring the node's table up to date, and hand its change on."""
        base = self._base(step.node, published)
        table_change = TableChange(change.frame, step.inserted, step.deleted, keys, change.table)
        step.applied = apply_change(
            self._session(), base, table_change, node=step.node.name, epoch=self._epoch_number()
        )
        relation.after = Snapshot(step.node.path, step.applied.version)
        relation.delta = Delta(
            change.frame, append_only=step.deleted == 0, small=change.local, table=change.table, little=change.little
        )

    def _replay(self, step: Step, relation: Relation) -> None:
        """Forget all late rows, which makes their readers take them."""
        published = Snapshot(step.node.path, step.node.version)
        relation.after, relation.in_memory = published, True
        change = self._materializer.materialize(weighted(read_snapshot(self._session(), published), -1), few=True)
        _, step.deleted = change.totals(WEIGHT)
        if step.deleted:
            self._apply(step, relation, published, change, None)

    def _context(self, step: Step) -> NodeInputs:
        name = step.node.name
        watermarks = (self._watermarks.before(name), self._watermarks.after(name))
        return NodeInputs(self._session(), self._inputs, step.since, watermarks)

    def _recompute(self, step: Step, relation: Relation) -> None:
        """All rows anew, from the inputs as they are after this epoch; readers compare the two versions."""
        if step.maintained is not None:
            context = self._context(replace(step, since={}))
            rows = step.maintained.evaluate(context, "post")
        else:
            rows = self._query_rows(step.node)
        base = self._base(step.node)
        keys = step.maintained.keys if step.maintained is not None else None
        step.applied = replace_all(base, rows, keys, node=step.node.name, epoch=self._epoch_number())
        relation.after = Snapshot(step.node.path, step.applied.version)
        step.inserted, step.deleted = relation.after.rows, base.rows

    def _query_rows(self, node: NodeRecord) -> DataFrame:
        view = self._world.views[node.name]

        def frame(key: str) -> DataFrame:
            after = self._relations[key].after
            assert after is not None
            rows = read_snapshot(self._session(), after)
            columns = node.details["schemas"][key]
            return rows.select(*[quoted(c) for c in columns])

        text = emission.at(emitted_by(view), self._watermarks.after(node.name))
        rows = run_query(self._session(), text, frame)
        return rows.toDF(*[name for name, _, _ in view.columns])

    def _base(self, node: NodeRecord, published: Snapshot | None = None) -> Snapshot:
        """The version to commit on: a new table for a new node; what a crash left behind is undone first."""
        if published is not None and is_latest(published):
            return published
        if node.version is None:
            create_table(node.path, node.schema_json, self._world.display_name(node.name), _placement(node))
            return Snapshot(node.path)
        return Snapshot(node.path, restore(node.path, node.version))

    # -- after a node -------------------------------------------------------------------------------------------------

    def _collect(self, step: Step, result: Result) -> None:
        """What this node adds to the publication: its version and what it has consumed."""
        name = step.node.name
        frontier: dict[str, Frontier] = {}
        for source in self._graph.ancestors([name]) & set(self._world.tables):
            after = self._relations[source].after
            if after is not None:
                frontier[source] = Frontier(after.version, after.table_id, source in step.node.inputs)
        for read in step.node.inputs:
            after = self._relations[read].after
            assert after is not None
            frontier[read] = Frontier(after.version, after.table_id, True)
        if frontier != self._world.frontiers.get(name):
            result.publication.frontiers[name] = frontier
        if step.applied is not None:
            result.publication.versions[name] = step.applied.version
        mark = self._watermarks.moved(name)
        if mark is not None:
            result.publication.watermarks[name] = mark


def _placement(node: NodeRecord) -> Placement:
    return Placement.read(node.details.get("placement", {}))


def _as_error(problem: Exception) -> PenstockError:
    match problem:
        case PenstockError():
            return problem
        case HistoryGone():
            return PenstockError(str(problem))
        case PySparkException() | Py4JJavaError():
            return PenstockError(clean_message(problem, {}))
    return PenstockError(f"{type(problem).__name__}: {problem}")


def _measured(report: ViewReport, clock: Clock, jobs: int) -> ViewReport:
    """The report with what the clock says."""
    report.seconds, report.phases, report.jobs = sum(clock.seconds.values()), clock.seconds, jobs
    report.bytes_read, report.bytes_written = clock.bytes_read, clock.bytes_written
    return report
