"""What the catalog hands out: immutable records. ``world.py`` has the whole of them at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from penstock.catalog.details import NodeDetails
from penstock.catalog.models import PlainView, ReadModel
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
