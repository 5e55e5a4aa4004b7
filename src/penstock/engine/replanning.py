"""Planning views anew when what they read, or Penstock itself, has changed since they were planned.

A view stays defined by its text. If a column that it reads is gone or has another type, or this Penstock plans the
query in another way than the one that created the view, the view is planned again: in the epoch of its next refresh,
together with the views that read it. It fails only if its query no longer holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from sqlglot import exp

from penstock.catalog import Definition, NodeRecord, ViewRecord, World
from penstock.engine.definition import define, relation_schema, statement_of
from penstock.engine.planning import plans_of, seal
from penstock.engine.relations import outside_schemas
from penstock.engine.sources import Relation
from penstock.engine.spark_views import NOTHING, Looked
from penstock.engine.typed_nodes import Locate
from penstock.errors import DefinitionError, NotFoundError, NotIncrementalError, PenstockError, QueryError
from penstock.frames.settings import Settings, under
from penstock.plan import Unsupported
from penstock.sql.query import parse_query, parse_written, table_names
from penstock.storage.reader import schema_of
from penstock.vocabulary import Reason


@dataclass(kw_only=True)
class Renewal:
    """What became of views that had to be planned again; ``world`` is the catalog as it will be."""

    world: World
    definitions: dict[str, Definition] = field(default_factory=dict)
    reasons: dict[str, Reason] = field(default_factory=dict)
    """The nodes that must be filled anew, with the reason."""
    failing: dict[str, PenstockError] = field(default_factory=dict)
    """The views whose query no longer holds."""
    remarks: dict[str, str] = field(default_factory=dict)
    """What is to be said of views that go on as they are."""
    sealed: dict[str, str] = field(default_factory=dict)
    """The views that another Penstock has planned, and planned the same, with their ``seal`` of now."""

    def failing_nodes(self) -> dict[str, PenstockError]:
        """What only such views need, with what to do about it."""
        needed = {node for key, view in self.world.views.items() if key not in self.failing for node in view.nodes}
        found: dict[str, PenstockError] = {}
        for key, problem in self.failing.items():
            if not isinstance(problem, NotIncrementalError | NotFoundError):
                problem = DefinitionError(
                    f"{problem} Put the column back, or run CREATE OR REPLACE MATERIALIZED VIEW with a query that "
                    "fits; CASCADE at its end plans its readers again too."
                )
            found.update({node: problem for node in self.world.views[key].nodes if node not in needed})
        return found


class Replanning:
    def __init__(
        self,
        session: Callable[[], SparkSession],
        sources: Mapping[str, Relation],
        locate: Locate,
        looked: Looked = NOTHING,
    ):
        """``looked``: what was found of views of Spark's."""
        self._session = session
        self._sources = sources
        self._locate = locate
        self._looked = looked
        self._columns: dict[str, dict[str, str]] = {}

    def renewed(self, world: World, keys: Iterable[str]) -> Renewal:
        """Plan again what has to be, of these views, inputs before readers, and what follows from it for readers."""
        renewal = Renewal(world=world)
        graph = world.views_graph()
        wanted = set(keys)
        for key in graph.order(wanted | graph.descendants(wanted)):
            if key in world.tables:
                continue
            if key not in wanted and not any(read in renewal.definitions for read in graph.inputs(key)):
                continue
            view = renewal.world.views[key]
            self._remark(renewal, view)
            problem = self._looked.failing.get(key) or self._unreadable(renewal.world, view)
            if problem is not None:
                renewal.failing[key] = problem
                continue
            reason = self._outdated(renewal, view)
            if reason is not None:
                self._renew(renewal, view, reason)
        return renewal

    def _remark(self, renewal: Renewal, view: ViewRecord) -> None:
        """SELECT * means the columns of when the view was created. That there are more by now is said."""
        known = renewal.world.nodes[view.key].details.schemas
        new = {read: self._added(renewal.world, read, known.get(read, ())) for read in view.reads}
        if any(new.values()) and parse_written(view.query).find(exp.Star):
            told = [f"{', '.join(names)} of {renewal.world.display_name(read)}" for read, names in new.items() if names]
            renewal.remarks[view.key] = (
                f"columns that came later are not in its SELECT *: {'; '.join(told)}. "
                "CREATE OR REPLACE with the same query takes them"
            )

    def _added(self, world: World, relation: str, known: tuple[str, ...]) -> list[str]:
        """The columns that a table or view has got since."""
        now = (self._types(world, relation) or {}).keys() if known else ()
        names = {name.lower() for name in known}
        return [name for name in now if name not in names]

    def _unreadable(self, world: World, view: ViewRecord) -> PenstockError | None:
        """Why what only Spark knows cannot be read; its columns are noted, if it can be."""
        try:
            now = outside_schemas(self._session, world.nodes[view.key].details.outside)
        except QueryError as problem:
            return NotFoundError(
                f"{str(problem).splitlines()[0].rstrip('. ')}. Put it back and refresh again, or replace the view."
            )
        for key, schema in now.items():
            self._columns[key] = {f.name.lower(): f.dataType.simpleString() for f in schema.fields}
        return None

    # -- whether ------------------------------------------------------------------------------------------------------

    def _outdated(self, renewal: Renewal, view: ViewRecord) -> Reason | None:
        """Why a view must be planned again; None if it need not be. One whose seal holds is not even parsed."""
        world = renewal.world
        nodes = [world.nodes[name] for name in view.nodes]
        if view.key in self._looked.replaced:
            return Reason.VIEW_REPLACED
        if any(self._differences(world, node) for node in nodes):
            return Reason.SCHEMA_CHANGED
        if not any(node.details.incremental for node in nodes):
            return None
        sealed = seal(view, nodes)
        if nodes[-1].details.seal == sealed:
            return None
        try:
            plans = {plan.name: plan.fingerprint for plan in plans_of(world, view)}
        except (Unsupported, PenstockError):
            return Reason.PLAN_CHANGED
        if plans != {node.name: node.fingerprint for node in nodes}:
            return Reason.PLAN_CHANGED
        renewal.sealed[view.key] = sealed
        return None

    def _differences(self, world: World, node: NodeRecord) -> list[tuple[str, str, str | None]]:
        """The columns that a node reads and that are not what they were: relation, column, and its type now."""
        found = []
        for relation, columns in node.details.input_types.items():
            now = self._types(world, relation)
            if now is not None:
                types = [(column, kind, now.get(column.lower())) for column, kind in columns.items()]
                found += [(relation, column, new) for column, old, new in types if old != new]
        return found

    def _types(self, world: World, relation: str) -> dict[str, str] | None:
        """The columns of a table or view; None of a hidden node, and of a table that cannot be opened."""
        if relation in world.views:
            return {name.lower(): kind for name, kind, _ in world.views[relation].columns}
        pinned = self._sources.get(relation)
        if relation not in self._columns:
            if pinned is None or pinned.after is None:
                return None
            fields = schema_of(pinned.after).fields
            self._columns[relation] = {f.name.lower(): f.dataType.simpleString() for f in fields}
        return self._columns[relation]

    # -- doing it -----------------------------------------------------------------------------------------------------

    def _renew(self, renewal: Renewal, view: ViewRecord, reason: Reason) -> None:
        world = renewal.world
        try:
            session, settings = self._session(), Settings.of(world.nodes[view.key].details.settings)
            with under(session, settings):
                definition = define(
                    session, world, statement_of(world, view), self._locate, settings,
                    lambda world, key, now: self._known_columns(world, view, key, now),
                )  # fmt: skip
            self._check_columns(view, definition.view)
        except NotIncrementalError as problem:
            renewal.failing[view.key] = problem
            return
        except PenstockError as problem:
            renewal.failing[view.key] = self._no_longer_holds(world, view, problem)
            return
        old, new = world.nodes[view.key], definition.nodes[-1]
        rebuild = _must_be_filled(old, new, self._differences(world, old))
        new = replace(new, version=old.version)
        kept = replace(definition.view, created_at=view.created_at)
        definition = Definition(kept, (*definition.nodes[:-1], new), replaces=True)
        frontiers = dict(world.frontiers)
        if rebuild:
            frontiers.pop(view.key, None)
            if old.version is not None:
                renewal.reasons[view.key] = reason
        renewal.definitions[view.key] = definition
        known = {node.name: world.nodes.get(node.name, node) if node.hidden else node for node in definition.nodes}
        renewal.world = replace(
            world, views={**world.views, view.key: kept}, nodes={**world.nodes, **known}, frontiers=frontiers
        )

    def _known_columns(self, world: World, view: ViewRecord, key: str, now: StructType | None) -> StructType:
        """What the view knew of a relation, as that is now. What was added since is not the view's: SELECT * stays."""
        pinned = self._sources.get(key)
        after = pinned.after if pinned is not None else None
        now = now or (relation_schema(world, key) if after is None else schema_of(after))
        by_name = {f.name.lower(): f for f in now.fields}
        known = world.nodes[view.key].details.schemas.get(key)
        if known is None or (view.key in self._looked.replaced and key not in _named(world, view)):
            return now  # what a view of Spark's reads of it, that says itself
        return StructType([by_name[name.lower()] for name in known if name.lower() in by_name])

    @staticmethod
    def _check_columns(before: ViewRecord, after: ViewRecord) -> None:
        names = [name for name, _, _ in before.columns], [name for name, _, _ in after.columns]
        if names[0] != names[1]:
            raise DefinitionError(f"its columns would no longer be {', '.join(names[0])}")

    def _no_longer_holds(self, world: World, view: ViewRecord, problem: PenstockError) -> PenstockError:
        """What happened to the columns that the view reads, in the words of the user's tables."""
        changes = []
        for name in view.nodes:
            for relation, column, now in self._differences(world, world.nodes[name]):
                what = f"is gone{self._new_in(world, view, relation)}" if now is None else f"is now {now}"
                kind = "table" if relation in world.tables else "view"
                changes.append(f"column {column!r} of {kind} {world.display_name(relation)!r} {what}")
        replaced = self._looked.replaced.get(view.key)
        if replaced is not None:
            changes.append(f"view {' or '.join(map(repr, replaced))} of Spark's catalog was replaced")
        told = "; ".join(dict.fromkeys(changes)) or "this version of Penstock plans it in another way"
        # Spark suggests what the view knows. A column that got another name is not among that.
        why = str(problem).removeprefix("the query is not valid: ").partition(" Did you mean one of")[0].rstrip(". ")
        if " columns, but its query gives " in why:  # SELECT *
            why = f"it would no longer have the columns {', '.join(name for name, _, _ in view.columns)}"
        return DefinitionError(f"{told}, and the query no longer holds: {why}.")

    def _new_in(self, world: World, view: ViewRecord, relation: str) -> str:
        """The columns that a relation got since the view was planned: maybe one was renamed."""
        known = {name.lower() for name in world.nodes[view.key].details.schemas.get(relation, ())}
        new = [name for name in self._types(world, relation) or () if name not in known]
        return f" (new in it: {', '.join(map(repr, new))})" if known and new else ""


def _named(world: World, view: ViewRecord) -> set[str | None]:
    """What the user's own text names."""
    return {world.known_key(name) for name in table_names(parse_query(view.written or view.query))}


def _must_be_filled(old: NodeRecord, new: NodeRecord, differences: list[tuple[str, str, str | None]]) -> bool:
    """Whether rows that were computed by the old plan are not those that the new one stands for."""
    if any(now is not None for _, _, now in differences):
        return True
    same = (old.fingerprint, old.inputs, old.details.types) == (new.fingerprint, new.inputs, new.details.types)
    return not same or old.schema_json != new.schema_json
