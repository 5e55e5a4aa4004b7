"""What the catalog hands out: immutable records, and the whole of them at one moment as a ``World``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

from penstock.catalog.details import NodeDetails
from penstock.catalog.late_rows import late_name, late_names
from penstock.catalog.models import PlainView, ReadModel
from penstock.catalog.published import names_of_spark
from penstock.catalog.schemas import Schema, known_schema
from penstock.catalog.states import ViewState
from penstock.errors import AlreadyExistsError, NotFoundError, NotSupportedError, nearest
from penstock.graph import Dag
from penstock.sql.names import DEFAULT, OWN, QualifiedName, is_outside, is_path, key_of, part, path_of
from penstock.sql.statements import USUAL, Options, Watermark
from penstock.sql.triggers import Trigger
from penstock.vocabulary import Action, Policy, Reason, Status, Strategy, When

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """A source table. ``key`` is the name in lower case; names are unique across tables and views."""

    key: str
    name: str
    path: str
    external: bool
    created_at: datetime
    watermark: Watermark | None = None
    floor: int | None = None
    """What its watermark was advanced to by hand."""
    catalog_name: str | None = None
    """What Spark's catalog calls it, if it was found there."""


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What a transaction is about to do to a table: until it is published, or undone, the table is read at ``base``."""

    source: str
    """The table's key."""
    run: str
    """The name that the transaction's commit has in the table's log."""
    base: int
    owner: str
    """Of the lease on the table: when another has it, the transaction can no longer be published."""


@dataclass(frozen=True)
class Mark:
    """How far event time has come in a relation: no row before ``value`` (microseconds) is expected any more."""

    value: int
    seen: Seen | None = None
    """For a table: what that was told from."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The latest event time in a column, in the rows up to a version of a table."""

    column: str
    latest: int
    version: int
    table_id: str
    fingerprint: str | None = None


@dataclass(frozen=True)
class Identity:
    """What tells a version of a source from the same number of another table in its place."""

    table_id: str
    fingerprint: str | None = None


@dataclass(frozen=True, kw_only=True)
class NodeRecord:
    """A maintainable piece of a view. A visible node has its view's key as its name."""

    name: str
    hidden: bool
    path: str
    fingerprint: str
    schema_json: str
    inputs: tuple[str, ...]
    details: NodeDetails
    version: int | None = None
    """The published version of the node's Delta table; None before the first refresh."""

    def same_definition(self, other: NodeRecord | None) -> bool:
        """Whether it is the same node, wherever its table has come to and whoever has planned it."""
        if other is None:
            return False
        details = replace(self.details, seal=other.details.seal)
        return replace(self, version=other.version, details=details) == other


@lru_cache(maxsize=4096)
def _trigger(text: str) -> Trigger:
    from penstock.sql.clauses import trigger_of

    return trigger_of(text)


@dataclass(frozen=True, kw_only=True)
class ViewRecord:
    key: str
    name: str
    query: str
    columns: tuple[tuple[str, str, str | None], ...]
    """Name, Spark type and comment of each visible column."""
    comment: str | None
    properties: Mapping[str, str]
    refresh: str
    policy: Policy
    reads: tuple[str, ...]
    """Keys of the tables and views that the query names."""
    nodes: tuple[str, ...]
    """The view's nodes, inputs before readers, the view's own last; hidden ones may belong to other views too."""
    reason_code: Reason | None
    reason: str | None
    """Why the view is not maintained incrementally, if it is not."""
    created_at: datetime
    options: Options = USUAL
    scheduled_at: datetime | None = None
    """When the time of its refreshes was last changed, if it was."""
    written: str | None = None
    """The query as the user wrote it, where that names plain views: in ``query`` they are written out."""

    @property
    def incremental(self) -> bool:
        return self.reason_code is None

    @property
    def trigger(self) -> Trigger:
        """When it is refreshed, beside what its lag asks for."""
        return _trigger(self.refresh)

    @property
    def immediate(self) -> bool:
        """Whether it is maintained inside the statements that write what it reads."""
        return self.trigger.when == When.IMMEDIATE

    @property
    def refreshes_itself(self) -> bool:
        return self.options.lag is not None or self.trigger.when not in (When.MANUAL, When.IMMEDIATE)


@dataclass(frozen=True)
class Frontier:
    """What a node has consumed of one relation. ``table_id`` tells a recreated table from the old one."""

    version: int
    table_id: str
    direct: bool
    fingerprint: str | None = None
    """Of a source: what its commit of this version was. A table from a backup has the id, and may have the version."""


@dataclass(frozen=True, kw_only=True)
class HistoryRecord:
    epoch: int
    view: str
    status: Status
    action: Action
    strategy: Strategy | None
    reason: Reason
    rows_inserted: int
    rows_deleted: int
    seconds: float
    started_at: datetime
    error: str | None = None
    details: Mapping[str, Any] | None = None
    """Spark jobs, seconds by phase, bytes, and the estimates that the action was chosen by."""
    times: int = 1
    """How many refreshes it stands for, which followed each other and came to the same: nothing."""
    since: datetime | None = None
    """When the first of several began; ``started_at`` is when the last one did."""
    longest: float | None = None
    """Of several: the most seconds from when one began until the next was through."""


class PastWork(NamedTuple):
    """What of a history record the next refresh is weighed by."""

    action: Action
    strategy: Strategy | None
    seconds: float
    details: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Refreshing:
    """What of a history record is counted."""

    view: str
    status: Status
    action: Action
    seconds: float
    rows_inserted: int
    rows_deleted: int
    started_at: datetime
    times: int = 1
    since: datetime | None = None
    longest: float | None = None


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """A published epoch."""

    id: int
    published_at: datetime
    restored: int | None
    """The epoch that it went back to, if it did."""
    sources: Mapping[str, int]
    """The versions of the tables that were read for it, as far as they are kept."""
    run: str | None
    """The word that its commits have in their metadata."""


@dataclass(frozen=True, kw_only=True)
class World:
    """The catalog at one moment."""

    tables: Mapping[str, TableRecord]
    views: Mapping[str, ViewRecord]
    nodes: Mapping[str, NodeRecord]
    frontiers: Mapping[str, Mapping[str, Frontier]]
    epoch: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was set for the whole warehouse; see ``engine.settings``."""
    watermarks: Mapping[str, Mark] = field(default_factory=dict)
    """Of tables and views, where they are known."""
    states: Mapping[str, ViewState] = field(default_factory=dict)
    """Of views that are not simply ACTIVE."""
    plain: Mapping[str, PlainView] = field(default_factory=dict)
    models: Mapping[str, ReadModel] = field(default_factory=dict)
    """By the key of the view that is maintained."""
    intents: Mapping[str, Intent] = field(default_factory=dict)
    """Tables that are being written by a transaction which is not published yet."""
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    published: Mapping[str, int] = field(default_factory=dict)
    """The versions of tables that the last transaction on each has published."""
    _worked_out: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def views_graph(self) -> Dag:
        """Tables and views, as the user wrote them."""
        return self._views_graph

    def nodes_graph(self) -> Dag:
        """Tables and nodes, as they are maintained."""
        return self._nodes_graph

    def once(self, what: str, work_out: Callable[[World], _T]) -> _T:
        """What follows from it, worked out when it is asked for the first time: it never changes."""
        if what not in self._worked_out:
            self._worked_out[what] = work_out(self)
        found: _T = self._worked_out[what]
        return found

    def owners(self, node: str) -> list[ViewRecord]:
        """The views that a node belongs to."""
        return self._owners.get(node, [])

    @cached_property
    def _owners(self) -> dict[str, list[ViewRecord]]:
        found: dict[str, list[ViewRecord]] = {}
        for view in self.views.values():
            for node in view.nodes:
                found.setdefault(node, []).append(view)
        return found

    @cached_property
    def _views_graph(self) -> Dag:
        return Dag({**dict.fromkeys(self.tables, ()), **{key: view.reads for key, view in self.views.items()}})

    @cached_property
    def _nodes_graph(self) -> Dag:
        return Dag({**dict.fromkeys(self.tables, ()), **{name: node.inputs for name, node in self.nodes.items()}})

    def same_definitions(self, other: World, nodes: Iterable[str]) -> bool:
        """Whether these nodes, and the views that they belong to, are defined the same in another world."""
        wanted = set(nodes)
        views = {key for world in (self, other) for key, view in world.views.items() if wanted & set(view.nodes)}
        if any(self.views.get(key) != other.views.get(key) for key in views):
            return False
        absent = [name for name in wanted if name not in self.nodes and name not in other.nodes]
        known = wanted - set(absent)
        return all(name in self.nodes and self.nodes[name].same_definition(other.nodes.get(name)) for name in known)

    def late_nodes(self, view: ViewRecord) -> dict[str, NodeRecord]:
        """What keeps a view's late rows, by the name to read it by: with several tables, that of the table is in it."""
        nodes = [self.nodes[name] for name in view.nodes if name in self.nodes]
        return late_names(view.key, nodes)

    def late_node(self, name: str) -> tuple[ViewRecord, NodeRecord] | None:
        """The view that a name of late rows belongs to, and the node that keeps them."""
        for view in self.views.values():
            if view.options.lateness is not None:
                node = self.late_nodes(view).get(key_of(name))
                if node is not None:
                    return view, node
        return None

    def schema(self, name: str) -> Schema:
        """The schema of a name."""
        return known_schema(self.schemas, name)

    def check_can_be(self, name: str) -> None:
        """A table or view needs a schema, and cannot have the name by which a view's late rows are read."""
        meant = QualifiedName.read(name)
        if meant.catalog:
            raise NotSupportedError(
                f"{name!r} cannot be made here: a name of three parts means what is in a catalog of the Spark session. "
                f"Use two, {meant.name} or schema.{part(meant.name)}."
            )
        self.schema(meant.schema)
        for view in self.views.values():
            if view.options.lateness is not None and key_of(name) in {late_name(view.key), *self.late_nodes(view)}:
                raise AlreadyExistsError(
                    f"the name {name!r} is taken by the rows that come late for view {view.name!r}. "
                    "Choose another name."
                )

    @cached_property
    def from_spark(self) -> Mapping[str, str]:
        """The keys of what has a name in Spark's catalog, by that."""
        return names_of_spark(self)

    def key_at(self, place: str) -> str | None:
        """The key of the table or view that lies at a place."""
        places = {table.path.rstrip("/"): key for key, table in self.tables.items()}
        places |= {self.nodes[key].path.rstrip("/"): key for key in self.views if key in self.nodes}
        return places.get(place.removeprefix("file://").removeprefix("file:").rstrip("/"))

    def _is_own(self, key: str) -> bool:
        return key in self.tables or key in self.views or key in self.plain or self.late_node(key) is not None

    def known_key(self, name: str) -> str | None:
        """The key of what is known by a name, here or in a catalog of Spark's, or by its place; None if nothing is."""
        key = key_of(name)
        if self._is_own(key):
            return key
        place = path_of(name)
        return self.from_spark.get(key) if place is None else self.key_at(place)

    def name_here(self, name: str) -> str | None:
        """What something is called here that is named as Spark calls it; None for any other name."""
        key = None if self._is_own(key_of(name)) else self.known_key(name)
        return None if key is None else self.display_name(key)

    def resolve(self, name: str) -> str:
        """The key of a table or view, or of a view's late rows."""
        self._check_no_path(name)
        key = self.known_key(name) or key_of(name)
        if key.startswith(OWN):
            raise NotSupportedError(
                f"{name!r} tells of Penstock itself: queries can read it, but views and statements that write cannot. "
                "Write the rows of a query into a table first."
            )
        if key in self.tables or key in self.views or self.late_node(key) is not None:
            return key
        view = next((view for view in self.views.values() if late_name(view.key) == key), None)
        several = self.late_nodes(view) if view is not None else {}
        if view is not None and several:
            raise NotFoundError(
                f"there is no {name!r}: rows come late for view {view.name!r} in several tables. "
                f"Read {' or '.join(several)}."
            )
        if key in self.plain:
            raise NotSupportedError(
                f"{name!r} is a plain view: it is a query with a name, which has no rows of its own. Use what it reads."
            )
        self._check_home(name)
        names = sorted(one.name for kind in (self.tables, self.views, self.plain) for one in kind.values())
        raise NotFoundError(f"there is no table or view {name!r}. {nearest(name, names)}")

    def view_key(self, name: str) -> str:
        """The key of a materialized view."""
        self._check_no_path(name)
        key = key_of(name)
        if key in self.tables:
            raise NotFoundError(
                f"{name!r} is a table, not a materialized view. SHOW MATERIALIZED VIEWS lists the views; "
                "a table needs no refresh, and goes with DROP TABLE."
            )
        if key in self.plain:
            raise NotFoundError(
                f"{name!r} is a plain view, not a materialized view: it needs no refresh. It goes with DROP VIEW."
            )
        if key not in self.views:
            if (here := self.name_here(name)) is not None:
                raise NotFoundError(f"{name!r} is what Spark calls {here!r}: use that name.")
            self._check_home(name)
            names = [view.name for view in self.views.values()]
            raise NotFoundError(f"there is no materialized view {name!r}. {nearest(name, names)}")
        return key

    def _check_home(self, name: str) -> None:
        """What is in a schema needs that to be there; what is in a catalog of Spark's, to be known."""
        meant = QualifiedName.read(name)
        if not meant.catalog:
            try:
                self.schema(meant.schema)
            except NotFoundError as problem:
                raise NotFoundError(
                    f"{problem} What only Spark's catalog has is told by three parts: spark_catalog.{meant}."
                ) from None
            return
        raise NotFoundError(
            f"{name!r} of Spark's catalog is not known here. Queries and views can read it; for anything else make it "
            f"known first: penstock import {meant}."
        )

    def _check_no_path(self, name: str) -> None:
        """Tables and views are told by name, and somebody may try the path of one."""
        if "/" not in name:
            return
        meant = QualifiedName(DEFAULT, name) if is_path(name) else QualifiedName.read(name)
        known = self.key_at(meant.name)
        if is_path(name) and known is not None:
            raise NotFoundError(f"{name!r} is the path of {self.display_name(known)!r}: use that name.")
        if is_path(name) or (is_outside(name) and not meant.catalog) or (path_of(name) is not None and known is None):
            raise NotFoundError.of_path(meant.name)

    def display_name(self, key: str) -> str:
        record = self.tables.get(key) or self.views.get(key) or self.plain.get(key)
        return record.name if record else key


@dataclass(frozen=True, kw_only=True)
class AsOf:
    """The catalog as of an epoch: nodes have the versions of then, None where they had none."""

    epoch: int
    world: World
    sources: Mapping[str, int]
    """The versions of the tables that the epoch, or the last one before it that read them, was computed from."""
    published_at: datetime
    replaced_at: datetime | None
    """When the next epoch was published; None for the newest."""
    kept: bool = False
    """Whether a checkpoint names it."""
    identities: Mapping[str, Identity] = field(default_factory=dict)
    """Which tables ``sources`` are versions of, where that was recorded."""


@dataclass(frozen=True)
class Definition:
    """A view that could be created: its record and those of its nodes, new and shared, inputs before readers."""

    view: ViewRecord
    nodes: tuple[NodeRecord, ...]
    replaces: bool = False
    """Whether it takes the place of a view of that name."""
    model: tuple[ReadModel, PlainView] | None = None
    """Of a read model: what it is, and the plain view that comes with it."""


@dataclass(frozen=True)
class Fence:
    """The leases that some work relies on. If one of them has another owner now, the work came too late."""

    owner: str
    nodes: frozenset[str]


@dataclass(kw_only=True)
class Publication:
    """Everything that one epoch makes visible, in one transaction."""

    versions: dict[str, int] = field(default_factory=dict)
    frontiers: dict[str, dict[str, Frontier]] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    history: list[HistoryRecord] = field(default_factory=list)
    """Their epoch is filled in when it is known: with the publication."""
    watermarks: dict[str, Mark] = field(default_factory=dict)
    definitions: list[Definition] = field(default_factory=list)
    """Views that are new, or that are from now on defined or planned in another way."""
    run: str = ""
    """The name that commits and files have of the work, which was done before it had a number."""
    mended: set[str] = field(default_factory=set)
    """Nodes whose earlier versions were wrong: what any reader has consumed of them is worth nothing."""
    identities: dict[str, Identity] = field(default_factory=dict)
    """Which tables ``sources`` are versions of."""
    tables: dict[str, int] = field(default_factory=dict)
    """Tables that were written under an intent, and the versions at which they are read from now on."""
    immediate: set[str] = field(default_factory=set)
    """Views that are IMMEDIATE from now on."""
    last: bool = False
    """Whether the leases behind it are given back with it."""

    @property
    def empty(self) -> bool:
        """Whether nothing moved, so that there is no epoch to be told of."""
        return not (self.versions or self.frontiers or self.watermarks or self.definitions)
