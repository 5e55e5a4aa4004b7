"""What to do with a node in an epoch, decided from logs and the catalog before any row is read."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.catalog import Catalog, NodeRecord, World
from penstock.engine.event_time import Watermarks
from penstock.engine.planning import plans_of
from penstock.engine.sources import Relation
from penstock.engine.steps import Step
from penstock.engine.weighing import Weighing
from penstock.errors import NotIncrementalError
from penstock.frames.settings import Settings
from penstock.ivm.node import Maintained, maintained_node
from penstock.storage.changes import may_have_changed
from penstock.storage.delta_log import HistoryGone, Snapshot
from penstock.storage.reader import columns_by_name, physical_names
from penstock.vocabulary import Action, Policy, Reason

_OF_SOURCES = {
    Reason.SOURCE_REPLACED: "a source was replaced",
    Reason.HISTORY_GONE: "the changes of a source are no longer in its log or files",
    Reason.VIEW_REPLACED: "a view of Spark's catalog that it reads was replaced",
    Reason.SCHEMA_CHANGED: "a column that it reads has another type or is gone",
}


class Decision:
    """Decides in one epoch, whose relations are pinned, for one node after the other in graph order."""

    def __init__(self, catalog: Catalog, world: World, relations: Mapping[str, Relation], watermarks: Watermarks):
        self._world = world
        self._relations = relations
        self._watermarks = watermarks
        self._plans: dict[str, Maintained | None] = {}
        self.weighing = Weighing(catalog, world, relations, self.maintained)

    def decide(self, node: NodeRecord, recompute: bool, renewed: Reason | None = None) -> Step:
        """The action, before any row is read. INCREMENTAL may still turn out to be NO_DATA.

        ``renewed`` is the reason why the node is planned in another way from this epoch on, if it is.
        """
        frontier = self._world.frontiers.get(node.name, {})
        since = {name: f.version for name, f in frontier.items() if f.direct}

        def step(action: Action, reason: Reason) -> Step:
            if action == Action.REINITIALIZE and not recompute:
                self.check_strict(node, reason)
            # A node that is left as it is needs no plan, and most nodes of a large graph are.
            return Step(
                node=node,
                action=action,
                reason=reason,
                maintained=None if action == Action.NO_DATA else self.maintained(node),
                since=since,
            )

        if node.version is None:
            return step(Action.FULL, Reason.INITIAL)
        if renewed is not None:
            return step(Action.REINITIALIZE, renewed)
        if recompute and not node.details.late:  # which rows came late cannot be told any more
            return step(Action.FULL, Reason.REQUESTED)
        for name in node.inputs:
            after = self._relations[name].after
            assert after is not None
            known = frontier.get(name)
            if known is None or known.table_id != self._id_of(name, after) or known.version > after.version:
                return step(Action.REINITIALIZE, Reason.SOURCE_REPLACED)
            if known.fingerprint is not None:
                found = after.fingerprint(known.version)
                if found is None and node.details.late:  # what is known to be late stays so
                    continue
                if found != known.fingerprint:
                    return step(Action.REINITIALIZE, Reason.SOURCE_REPLACED if found else Reason.HISTORY_GONE)
            if self._columns_replaced(node, name, known.version, after):
                return step(Action.REINITIALIZE, Reason.SOURCE_REPLACED)
        if node.details.reason_code == Reason.POLICY_FULL:
            return step(Action.FULL, Reason.POLICY_FULL)
        waits = self.released(node)
        if all(self._unchanged(name, since[name]) for name in node.inputs) and not waits:
            return step(Action.NO_DATA, Reason.NO_CHANGE)
        if self.maintained(node) is None:
            assert node.details.reason_code is not None
            return step(Action.FULL, node.details.reason_code)
        chosen = step(Action.INCREMENTAL, Reason.CHANGED)
        self.weighing.weigh(chosen)
        return chosen

    def check_strict(self, node: NodeRecord, reason: Reason) -> None:
        """A view under INCREMENTAL STRICT fails rather than to be recomputed because of what became of its sources."""
        strict = [v.name for v in self._world.owners(node.name) if v.policy == Policy.INCREMENTAL_STRICT]
        if strict and reason in _OF_SOURCES:
            raise NotIncrementalError(
                f"view {strict[0]!r} cannot be refreshed incrementally this time ({reason}: {_OF_SOURCES[reason]}), "
                "and its policy is INCREMENTAL STRICT. Recompute it once with "
                f"REFRESH MATERIALIZED VIEW {strict[0]} FULL, or choose REFRESH POLICY INCREMENTAL.",
                code=reason,
            )

    def _id_of(self, name: str, after: Snapshot) -> str:
        """What tells a table from another in its place. Of our own it is told without opening them."""
        return after.table_id if name in self._world.tables else after.first_id

    def watermark(self, relation: str, node: NodeRecord) -> int | None:
        """How far event time has come in an input of a node, after this epoch."""
        table = self._world.tables.get(relation)
        if table is None:
            return self._watermarks.after(relation)
        after = self._relations[relation].after
        return None if after is None else self._watermarks.for_node(table, after, Settings.of(node.details.settings))

    def released(self, node: NodeRecord) -> bool:
        """Whether the watermark has passed the end of windows that the node holds back."""
        if not node.details.held_by_watermark:
            return False
        return self._watermarks.before(node.name) != self._watermarks.after(node.name)

    def _columns_replaced(self, node: NodeRecord, name: str, since: int, after: Snapshot) -> bool:
        """Whether another column has the name of one that the node reads: renamed or dropped, and added again."""
        if name not in self._world.tables or since == after.version or not columns_by_name(after):
            return False
        try:
            before = physical_names(Snapshot(after.path, since))
        except HistoryGone:
            return False  # which is found out, and said, when the change is read
        now = physical_names(after)
        read = [column.lower() for column in node.details.input_types.get(name, {})]
        return any(column in before and before[column] != now.get(column) for column in read)

    def _unchanged(self, name: str, since: int) -> bool:
        """Whether an input is known, without reading anything, to be as the node left it."""
        relation = self._relations[name]
        assert relation.after is not None
        if relation.in_memory and relation.before == since:
            return relation.delta is None
        return not may_have_changed(relation.after, since)

    def maintained(self, node: NodeRecord) -> Maintained | None:
        """The node's plan, made again from the view's query; None for a node that always recomputes."""
        if node.name not in self._plans:
            self._plans[node.name] = self._planned(node) if node.details.incremental else None
        return self._plans[node.name]

    def _planned(self, node: NodeRecord) -> Maintained:
        owners = self._world.owners(node.name)
        found = (plan for view in owners for plan in plans_of(self._world, view) if plan.name == node.name)
        return maintained_node(next(found), node.details.types)
