"""The catalog at one moment: all records, what follows from them, and how a name is found among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from penstock.catalog.late_rows import late_name, late_names
from penstock.catalog.models import PlainView, ReadModel
from penstock.catalog.published import names_of_spark
from penstock.catalog.records import Frontier, Identity, Intent, Mark, NodeRecord, TableRecord, ViewRecord
from penstock.catalog.schemas import Schema, known_schema
from penstock.catalog.states import ViewState
from penstock.errors import AlreadyExistsError, NotFoundError, NotSupportedError, nearest
from penstock.graph import Dag
from penstock.sql.names import DEFAULT, OWN, QualifiedName, is_outside, is_path, key_of, part, path_of

_T = TypeVar("_T")


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
