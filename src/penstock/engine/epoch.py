"""One step of the graph: pin source versions, maintain node by node in graph order, and say what to publish.

Every node's outcome is one of NO_DATA, INCREMENTAL, FULL, REINITIALIZE or SKIP, with a reason code. A node that fails
does not stop the others; what reads it is skipped and catches up in a later epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

from pyspark.sql import DataFrame

from penstock.catalog import Catalog, Frontier, Identity, NodeRecord, World
from penstock.engine import stamps
from penstock.engine.decision import Decision
from penstock.engine.event_time import Watermarks
from penstock.engine.faults import fault_of
from penstock.engine.jobs import counting_jobs
from penstock.engine.missing import lost, lost_itself, missing_file
from penstock.engine.planning import emitted_by
from penstock.engine.problems import as_error, told_of
from penstock.engine.relations import run_query
from penstock.engine.report import ViewReport
from penstock.engine.session import Spark
from penstock.engine.side_by_side import Piece, in_order
from penstock.engine.sources import Inputs, NodeInputs, Relation
from penstock.engine.standing_in_line import standing_in_line
from penstock.engine.steps import Request, Result, Step
from penstock.errors import LeaseLostError, PenstockError, SourceError
from penstock.frames.clock import Clock, timing
from penstock.frames.frame import Frame
from penstock.frames.keeping import Keeper
from penstock.frames.mismatch import StateMismatch, as_mismatch
from penstock.frames.names import LOCATED
from penstock.frames.settings import USUAL, Own, Settings, own, under
from penstock.frames.sizes import UNKNOWN
from penstock.frames.spark.frame import SparkFrame
from penstock.frames.spark.problems import LOST_PROBLEMS, jvm_lost
from penstock.frames.zset import Delta, totals, weighted
from penstock.plan.describe import in_words
from penstock.sql import emission
from penstock.sql.dialect import quoted
from penstock.sql.names import key_of, sql_of
from penstock.storage.apply import TableChange, apply_change, replace_all
from penstock.storage.changes import NO_EXTENT, Extent
from penstock.storage.delta_log import Snapshot, is_latest, is_table, snapshot_of
from penstock.storage.patch import places_in
from penstock.storage.pinned import Pinned
from penstock.storage.reader import read_snapshot
from penstock.storage.runs import Run
from penstock.storage.view_table import Shape, create_table, restore
from penstock.vocabulary import Action, Reason, Status


class Epoch:
    def __init__(
        self,
        spark: Spark,
        catalog: Catalog,
        world: World,
        sources: Mapping[str, Relation],
        check: Callable[[], None],
    ):
        """``sources`` are the tables, pinned. ``check`` raises an error when the leases of the epoch are lost."""
        self._spark = spark
        self._own: Own | None = None
        self._asking = threading.Lock()
        self._lock = threading.RLock()
        self._catalog = catalog
        self._world = world
        self._check = check
        self._run = Run.begun().name
        self._moment = datetime.now(timezone.utc)
        self._worked: Callable[[ViewReport], None] = lambda report: None
        self._keeper = Keeper(spark)
        self._inputs_or_none: Inputs | None = None
        self._relations: dict[str, Relation] = dict(sources)
        self._graph = world.nodes_graph()
        self._watermarks = Watermarks(spark, world)
        self._decision = Decision(catalog, world, self._relations, self._watermarks)

    def run(
        self,
        request: Request,
        told: Callable[[str], None],
        working: Callable[[str], None],
        worked: Callable[[ViewReport], None],
    ) -> Result:
        """Maintain the requested nodes. Their tables are written; nothing is visible until the result is published.

        ``working`` hears of each node that there is something to do for, ``worked`` when it is through.
        """
        self._worked = worked
        self._relate(request)
        result = Result()
        wanted = set(request.nodes)
        graph = {name: [i for i in self._world.nodes[name].inputs if i in wanted] for name in request.nodes}
        numbers = {name: number for number, name in enumerate(request.nodes, 1)}

        def begin(name: str) -> Piece | None:
            told(self._said(name, numbers[name], len(request.nodes)))
            return self._begin(name, request, result, working)

        try:
            in_order(graph, begin, self._spark.in_thread)
        except LOST_PROBLEMS as problem:  # a lane could not begin
            raise jvm_lost("nothing was refreshed") from problem
        finally:
            self._keeper.release()
        result.reports = {name: result.reports[name] for name in request.nodes}
        result.publication.run = self._run
        for source, relation in self._relations.items():
            if source in self._world.tables and relation.after is not None:
                result.publication.sources[source] = relation.after.version
                identity = Identity(relation.after.table_id, relation.after.fingerprint())
                result.publication.identities[source] = identity
                mark = self._watermarks.moved(source)
                if mark is not None:
                    result.publication.watermarks[source] = mark
        return result

    def _said(self, name: str, number: int, count: int) -> str:
        """What is being done, in words: a hidden node is a step on the way to its view."""
        node = self._world.nodes[name]
        view = next((view.name for view in self._world.owners(name)), name)
        step = f", step {number} of {count}" if count > 1 else ""
        return f"{'filling' if node.version is None else 'refreshing'} {view}{step}"

    # -- before the first node ----------------------------------------------------------------------------------------

    def _relate(self, request: Request) -> None:
        """What the nodes are before the epoch, and which columns of each relation its readers need."""
        for name in request.nodes:
            node = self._world.nodes[name]
            self._relations[name] = Relation(name=name, path=node.path, before=node.version)
        for name in request.nodes:
            frontier, details = self._world.frontiers.get(name, {}), self._world.nodes[name].details
            for relation, columns in details.input_types.items():
                if relation in frontier and details.incremental:
                    needed = self._relations[relation].columns.setdefault(frontier[relation].version, set())
                    needed.update(columns)

    @property
    def _inputs(self) -> Inputs:
        with self._lock:
            if self._inputs_or_none is None:
                self._inputs_or_none = Inputs(self._spark, self._keeper)
                for relation in self._relations.values():
                    self._inputs_or_none.add(relation)
            return self._inputs_or_none

    # -- one node -----------------------------------------------------------------------------------------------------

    def _begin(self, name: str, request: Request, result: Result, working: Callable[[str], None]) -> Piece | None:
        """Decide what to do with a node; gives the work if there is any."""
        clock = Clock()
        with timing(clock):
            step = self._prepared(name, request)
        if isinstance(step, ViewReport):
            result.reports[name] = _measured(step, clock, 0)
            return None
        if step.action != Action.NO_DATA:
            working(name)
            return partial(self._work, step, clock, result)
        with timing(clock):
            report = self._finished(step, result)
        result.reports[name] = _measured(report, clock, 0)
        return None

    def _work(self, step: Step, clock: Clock, result: Result) -> None:
        with timing(clock), counting_jobs() as jobs, standing_in_line() as in_line:
            report = self._finished(step, result)
        report.in_line, report.span = in_line(), clock.span
        report.unlike = Settings.of(step.node.details.settings).unlike(self._own.settings if self._own else USUAL)
        if step.maintained is not None:
            clock.by_spark = [in_words(note, step.maintained.plan) for note in clock.by_spark]
        result.reports[step.node.name] = _measured(report, clock, jobs())
        self._worked(report)

    def _prepared(self, name: str, request: Request) -> Step | ViewReport:
        """The step to take, or the report of a node that is not to be touched in this epoch."""
        node = self._world.nodes[name]
        relation = self._relations[name]
        if name in request.held:
            relation.error = PenstockError(f"{self._world.display_name(name)!r} is being refreshed by another process")
            return ViewReport(name=name, action=Action.SKIP, reason=Reason.HELD_BY_ANOTHER, status=Status.SKIPPED)
        if name in request.standing:
            relation.after, relation.in_memory = snapshot_of(node.path, node.version), True
            return ViewReport(name=name, action=Action.NO_DATA, reason=Reason.NO_CHANGE)
        if name in request.waiting:
            relation.after, relation.in_memory = snapshot_of(node.path, node.version), True
            return ViewReport(name=name, action=Action.SKIP, reason=Reason.NOT_DUE)
        broken = [self._relations[i] for i in node.inputs if self._relations[i].error is not None]
        if broken and broken[0].name in self._world.tables:
            return self._failed(relation, broken[0].error)
        if broken:
            relation.error = broken[0].error
            held = all(r.name in request.held for r in broken)
            return ViewReport(
                name=name,
                action=Action.SKIP,
                reason=Reason.HELD_BY_ANOTHER if held else Reason.UPSTREAM_FAILED,
                status=Status.SKIPPED,
            )
        if name in request.failing:
            return self._failed(relation, request.failing[name])
        try:
            self._watermarks.node(name, {read: self._decision.watermark(read, node) for read in node.inputs})
            if name in request.broken and node.version is not None and not node.details.late:
                return Step(
                    node=node,
                    action=Action.REINITIALIZE,
                    reason=Reason.STATE_MISMATCH,
                    maintained=self._decision.maintained(node),
                    since={},
                )
            if name in request.replayed:
                return Step(
                    node=node,
                    action=Action.INCREMENTAL,
                    reason=Reason.REPLAYED,
                    maintained=self._decision.maintained(node),
                    since={},
                    replayed=True,
                )
            return self._decision.decide(node, name in request.recompute, request.renewed.get(name))
        except Exception as problem:
            return self._failed(relation, self._explained(problem, node))

    def _finished(self, step: Step, result: Result) -> ViewReport:
        try:
            self._execute(step)
        except Exception as problem:  # whatever it is, it must not stop the other views
            error = self._lost_lease() or self._explained(problem, step.node)
            mismatch = as_mismatch(problem if isinstance(problem, StateMismatch) else error)
            if mismatch is not None:
                result.mismatches[step.node.name] = str(mismatch)
            return self._failed(self._relations[step.node.name], error, step)
        self._collect(step, result)
        strategy = step.applied.strategy if step.applied else None
        late = step.inserted if step.node.details.late else 0
        return ViewReport(
            name=step.node.name, action=step.action, reason=step.reason, strategy=strategy, rows_inserted=step.inserted,
            rows_deleted=step.deleted, late=late, estimate=step.estimate,
            weighed=step.applied.weighed if step.applied else None,
        )  # fmt: skip

    def _lost_lease(self) -> LeaseLostError | None:
        """What went wrong in truth if another process took over: it may have written, or deleted, what is at hand."""
        try:
            self._check()
        except LeaseLostError as lost:
            return lost
        return None

    def _explained(self, problem: Exception, node: NodeRecord) -> PenstockError:
        """The problem in words; a file that is gone is told with the table or view that it belongs to."""
        told = isinstance(problem, PenstockError) and not isinstance(problem, SourceError)
        file = None if told else missing_file(problem) or str(problem)
        if file is None:
            return as_error(problem)
        if isinstance(problem, SourceError) and repr(node.path) in file:
            return lost_itself(self._world.owners(node.name)[0].name, problem)
        if missing_file(problem) is None:
            return as_error(problem)
        paths = {read: self._relations[read].path.rstrip("/") + "/" for read in node.inputs}
        for read, path in paths.items():
            if path in file or path.rstrip("/") + "'" in file:
                return self._lost(read, problem)
        return as_error(problem)

    def _lost(self, read: str, problem: Exception) -> PenstockError:
        name, after = self._world.display_name(read), self._relations[read].after
        if read not in self._world.tables:
            return lost("view", name, problem)
        if after is not None and not is_latest(after):
            return SourceError(f"table {name!r} was written and vacuumed while it was read. Refresh again.")
        return lost("table", name, problem)

    @staticmethod
    def _failed(relation: Relation, problem: PenstockError | None, step: Step | None = None) -> ViewReport:
        relation.error = problem
        action = step.action if step else Action.SKIP
        reason = Reason.LEASE_LOST if isinstance(problem, LeaseLostError) else Reason.ERROR
        return ViewReport(
            name=relation.name, action=action, reason=reason, status=Status.FAILED, error=str(problem),
            told=told_of(problem), fault=fault_of(problem),
        )  # fmt: skip

    # -- doing it -----------------------------------------------------------------------------------------------------

    def _execute(self, step: Step) -> None:
        relation = self._relations[step.node.name]
        if step.action == Action.NO_DATA:
            relation.after = snapshot_of(step.node.path, step.node.version)
            relation.in_memory = True
            return
        with self._asking:  # once an epoch; Spark that starts meanwhile has the usual
            if self._own is None and self._spark.started:
                self._own = own(self._spark)
        with under(self._spark, Settings.of(step.node.details.settings), self._own):
            self._compute(step, relation)

    def _compute(self, step: Step, relation: Relation) -> None:
        if step.replayed:
            self._replay(step, relation)
            return
        if step.action == Action.INCREMENTAL:
            try:
                self._maintain(step, relation)
                return
            except Exception as problem:
                if missing_file(problem) is None:
                    raise
                self._decision.check_strict(step.node, Reason.HISTORY_GONE)
                step.action, step.reason, step.applied = Action.REINITIALIZE, Reason.HISTORY_GONE, None
                relation.delta, relation.in_memory, relation.extent = None, False, NO_EXTENT
                if step.node.details.late:  # what is known to be late stays so; of the rest it cannot be told
                    relation.after, relation.in_memory = snapshot_of(step.node.path, step.node.version), True
                    return
        self._recompute(step, relation)

    def _maintain(self, step: Step, relation: Relation) -> None:
        assert step.maintained is not None
        context = self._context(step)
        if not any(context.changed(name) for name in step.node.inputs) and not self._decision.released(step.node):
            step.action, step.reason = Action.NO_DATA, Reason.NO_CHANGE
            relation.after, relation.in_memory = snapshot_of(step.node.path, step.node.version), True
            return
        published = snapshot_of(step.node.path, step.node.version)
        change = step.maintained.delta(context, Pinned(spark=self._spark, snapshot=published))
        if change is None:  # the inputs changed in columns that the node does not read
            step.action, step.reason = Action.NO_DATA, Reason.NO_CHANGE
            relation.after, relation.in_memory = published, True
            return
        step.inserted, step.deleted = totals(change)
        relation.in_memory = True
        relation.extent = Extent(step.inserted, step.deleted)
        if not step.inserted and not step.deleted:
            relation.after = published
            return
        self._apply(step, relation, published, change, step.maintained.keys)

    def _apply(
        self, step: Step, relation: Relation, published: Snapshot, change: Frame, keys: tuple[str, ...] | None
    ) -> None:
        """Bring the node's table up to date, and hand its change on."""
        self._check()
        base = self._base(step.node, published)
        located = change.rows()
        known = located is not None and base.version == published.version
        places = places_in(published, located) if known else None
        change = change.only([name for name in change.columns if name not in LOCATED])
        rows, keys = stamps.of_change(step.node, change, keys, self._moment)
        table_change = TableChange(
            rows=rows, inserted=step.inserted, deleted=step.deleted, keys=keys, local=rows.rows(), places=places
        )
        step.applied = apply_change(
            self._spark, base, table_change, node=step.node.name, run=self._run_on(step.node),
            off=partial(self._decision.weighing.off, step.node),
        )  # fmt: skip
        relation.after = snapshot_of(step.node.path, step.applied.version)
        relation.delta = Delta(change, append_only=step.deleted == 0)

    def _replay(self, step: Step, relation: Relation) -> None:
        """Forget all late rows, which makes their readers take them."""
        published = snapshot_of(step.node.path, step.node.version)
        relation.after, relation.in_memory = published, True
        change = self._keeper.keep(weighted(Pinned(spark=self._spark, snapshot=published).read(), -1))
        _, step.deleted = totals(change)
        if step.deleted:
            self._apply(step, relation, published, change, None)

    def _context(self, step: Step) -> NodeInputs:
        name = step.node.name
        watermarks = (self._watermarks.before(name), self._watermarks.after(name))
        return NodeInputs(self._spark, self._inputs, step.since, watermarks)

    def _recompute(self, step: Step, relation: Relation) -> None:
        """All rows anew, from the inputs as they are after this epoch; readers compare the two versions."""
        if step.maintained is not None:
            context = self._context(replace(step, since={}))
            rows = step.maintained.evaluate(context, "post")
        else:
            rows = SparkFrame.of_frame(self._spark, self._query_rows(step.node), UNKNOWN)
        self._check()
        base, shape = self._base(step.node), Shape.of(step.node.schema_json, step.node.details.placement)
        keys = step.maintained.keys if step.maintained is not None else None
        rows = stamps.of_table(step.node, rows, self._spark, base if shape.is_of(base) else None, self._moment)
        step.applied = replace_all(
            base, rows, keys, node=step.node.name, run=self._run_on(step.node),
            shape=None if shape.is_of(base) else shape,
        )  # fmt: skip
        relation.after = snapshot_of(step.node.path, step.applied.version)
        step.inserted, step.deleted = relation.after.rows, base.rows if step.node.version is not None else 0

    def _query_rows(self, node: NodeRecord) -> DataFrame:
        view = self._world.views[node.name]

        outside = {key_of(name): name for name in node.details.outside}

        def frame(key: str) -> DataFrame:
            if key in outside:
                rows = self._spark.session().table(sql_of(outside[key]))
            else:
                after = self._relations[key].after
                assert after is not None
                rows = read_snapshot(self._spark.session(), after)
            columns = node.details.schemas[key]
            return rows.select(*[quoted(c) for c in columns])

        text = emission.at(emitted_by(view), self._watermarks.after(node.name))
        rows = run_query(self._spark.session(), text, frame, of_view=True)
        return rows.toDF(*[name for name, _, _ in view.columns])

    def _base(self, node: NodeRecord, published: Snapshot | None = None) -> Snapshot:
        """The version to commit on: a new table for a new node; what a crash left behind is undone first.

        A new node may have a table: a crash left it, or a checkpoint from before it was filled was restored.
        """
        if published is not None and is_latest(published):
            return published
        if node.version is None:
            if not is_table(node.path):
                create_table(node.path, node.schema_json, self._world.display_name(node.name), node.details.placement)
            return Snapshot(node.path)
        frontier = self._world.frontiers.get(node.name, {})
        stood_for = {name: known.version for name, known in frontier.items() if name in self._world.tables}
        return Snapshot(node.path, restore(node.path, node.version, Run(self._run, self._named(stood_for))))

    def _run_on(self, node: NodeRecord) -> Run:
        """What a commit to a node's table says: this epoch, and the versions of the tables that it pins."""
        return Run(self._run, self._named({source: after.version for source, after in self._pins(node.name)}))

    def _named(self, versions: Mapping[str, int]) -> dict[str, int]:
        return {self._world.display_name(source): version for source, version in versions.items()}

    def _pins(self, name: str) -> list[tuple[str, Snapshot]]:
        """The tables under a node, as they are in this epoch."""
        tables = self._graph.ancestors([name]) & set(self._world.tables)
        found = [(source, self._relations[source].after) for source in sorted(tables)]
        return [(source, after) for source, after in found if after is not None]

    # -- after a node -------------------------------------------------------------------------------------------------

    def _collect(self, step: Step, result: Result) -> None:
        """What this node adds to the publication: its version and what it has consumed."""
        name = step.node.name
        frontier: dict[str, Frontier] = {}
        for source, after in self._pins(name):
            direct = source in step.node.inputs
            below = None if direct else self._below(step.node, source, result)
            frontier[source] = below or Frontier(after.version, after.table_id, direct, after.fingerprint())
        for read in step.node.inputs:
            known = self._relations[read].after
            assert known is not None
            if read not in frontier:
                frontier[read] = Frontier(known.version, known.first_id, True)
        if frontier != self._world.frontiers.get(name):
            result.publication.frontiers[name] = frontier
        if step.applied is not None:
            result.publication.versions[name] = step.applied.version
            if step.reason == Reason.STATE_MISMATCH:
                result.publication.mended.add(name)
        mark = self._watermarks.moved(name)
        if mark is not None:
            result.publication.watermarks[name] = mark

    def _below(self, node: NodeRecord, source: str, result: Result) -> Frontier | None:
        """What the inputs of a node have consumed of a table that it does not read itself; of one that was left as it
        is, that is less than what others have."""
        new, old = result.publication.frontiers, self._world.frontiers
        below = (new.get(read, old.get(read, {})).get(source) for read in node.inputs)
        found = min((f for f in below if f is not None), key=lambda f: f.version, default=None)
        return None if found is None else replace(found, direct=False)


def _measured(report: ViewReport, clock: Clock, jobs: int | None) -> ViewReport:
    """The report with what the clock says."""
    report.seconds, report.phases, report.jobs = sum(clock.seconds.values()), clock.seconds, jobs
    report.bytes_read, report.bytes_written = clock.bytes_read, clock.bytes_written
    report.by_spark = clock.by_spark if report.action == Action.INCREMENTAL else []
    report.wrote = clock.seconds.get("writing", 0.0)
    return report
