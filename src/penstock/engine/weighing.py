"""Maintain or recompute, weighed over the graph: what a choice for one node costs the nodes that read it counts too.

A node that is recomputed has no change to hand on, so its readers must compare two versions of it, or recompute
themselves. What the readers will be given is guessed before their turn, from the change that the node itself is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.catalog import Catalog, NodeRecord, World
from penstock.engine import cost
from penstock.engine.cost import EITHER, NEVER_RECOMPUTED, Estimate, Work
from penstock.engine.measured import REMEMBERED, Measured
from penstock.engine.sources import Relation
from penstock.engine.steps import Step
from penstock.frames import limits
from penstock.frames.pace import PACE
from penstock.ivm.node import Maintained
from penstock.storage.changes import Extent, extent
from penstock.storage.delta_log import HistoryGone, snapshot_of
from penstock.storage.locations import disk_of
from penstock.vocabulary import Action, Policy, Reason, Strategy


class Weighing:
    """Weighs in one epoch, for one node after the other in graph order."""

    def __init__(
        self,
        catalog: Catalog,
        world: World,
        relations: Mapping[str, Relation],
        maintained: Callable[[NodeRecord], Maintained | None],
    ):
        self._catalog = catalog
        self._world = world
        self._graph = world.nodes_graph()
        self._relations = relations
        self._maintained = maintained
        self._works: dict[str, Work] = {}
        self._measured: dict[str, Measured] = {}

    def weigh(self, step: Step) -> None:
        """Under the policy AUTO a change that is too large to be worth maintaining makes the node recompute."""
        if step.maintained is None or not self._has_choice(step.node):
            return
        work = self._works[step.node.name] = self._work(step.node, step.maintained)
        if work.rows < limits.WEIGHED_ROWS:
            return
        step.estimate = self._estimate(step.node, work)
        if work.changed < limits.WEIGHED_CHANGE_ROWS:
            return
        if step.estimate.choice == Action.FULL:
            step.action, step.reason = Action.FULL, Reason.CHEAPER
        if step.estimate.retry is not None:
            step.reason = Reason.TRIED_AGAIN

    def _has_choice(self, node: NodeRecord) -> bool:
        return not node.details.late and all(view.policy == Policy.AUTO for view in self._world.owners(node.name))

    def off(self, node: NodeRecord) -> Mapping[Strategy, float]:
        """How far the last writes of the node's table were off, by strategy; of a hidden one nothing is known."""
        past = self._catalog.past_work(node.name, 20) if not node.hidden else []
        return cost.written((work.strategy, work.details) for work in past)

    def _estimate(self, node: NodeRecord, work: Work) -> Estimate:
        owner = self._world.owners(node.name)[0].key
        if owner not in self._measured:
            past = self._catalog.past_work(owner, REMEMBERED)
            self._measured[owner] = Measured.of((work.action, work.seconds, work.details) for work in past)
        readers = [self._reader(name) for name in self._graph.readers(node.name)]
        return cost.estimate(work, self._measured[owner], readers)

    def _reader(self, name: str) -> Estimate:
        """What a reader is expected to take, whose turn has not come."""
        node = self._world.nodes[name]
        if name not in self._relations:  # it is not refreshed now, and will have to compare some time
            return NEVER_RECOMPUTED
        if node.version is None or node.details.reason_code == Reason.POLICY_FULL:
            return EITHER
        maintained = self._maintained(node)
        if maintained is None:
            return EITHER
        work = self._guessed(node, maintained)
        if not self._has_choice(node) or work.rows < limits.WEIGHED_ROWS:
            return NEVER_RECOMPUTED
        return self._estimate(node, work)

    def _guessed(self, node: NodeRecord, maintained: Maintained) -> Work:
        if node.name not in self._works:
            self._works[node.name] = self._work(node, maintained)
        return self._works[node.name]

    def _work(self, node: NodeRecord, maintained: Maintained) -> Work:
        inputs = [self._input(node, name) for name in node.inputs]
        owners = self._world.owners(node.name)
        return Work(
            kinds=maintained.kinds, changed=sum(e.added + e.removed for _, e in inputs),
            rows=sum(rows for rows, _ in inputs), stored=snapshot_of(node.path, node.version).rows,
            appended=not any(e.removed for _, e in inputs), keyed=maintained.keys is not None,
            whole=len(owners) == 1 and len(owners[0].nodes) == 1, speedup=PACE.speedup,
            rate=min((PACE.factor(disk_of(self._relations[name].path)) for name in node.inputs), default=1.0),
        )  # fmt: skip

    def _input(self, node: NodeRecord, name: str) -> tuple[int, Extent]:
        """The rows of an input, and about how many of them changed; exactly, if it was maintained in this epoch."""
        relation = self._relations[name]
        if relation.after is None:
            return self._expected(self._world.nodes[name])
        rows, known = relation.after.rows, self._world.frontiers.get(node.name, {}).get(name)
        if known is None:
            return rows, Extent(rows, rows)
        if relation.in_memory and relation.before == known.version:
            return rows, relation.extent
        if relation.after.version == known.version:
            return rows, Extent(0, 0)
        try:
            return rows, extent(snapshot_of(relation.path, known.version), relation.after)
        except HistoryGone:
            return rows, Extent(rows, rows)

    def _expected(self, node: NodeRecord) -> tuple[int, Extent]:
        """The rows of a node whose turn has not come: a changed row below it changes at most one of them."""
        rows = 0 if node.version is None else snapshot_of(node.path, node.version).rows
        maintained = None if node.version is None else self._maintained(node)
        if maintained is None:
            return rows, Extent(rows, rows)
        work = self._guessed(node, maintained)
        changed = min(work.changed, 2 * rows)
        if work.appended and "rows" in work.kinds:
            return rows, Extent(changed, 0)
        return rows, Extent(changed // 2, changed // 2)
