"""What a user can say, as values. One dataclass a kind of statement; the parser makes them, the facade runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.sql.intervals import described
from penstock.sql.triggers import MANUAL, Trigger
from penstock.vocabulary import Policy


@dataclass(frozen=True)
class Statement:
    """Any statement; ``text`` is what the user wrote, without the closing semicolon."""

    text: str = field(repr=False)

    @property
    def only_reads(self) -> bool:
        """Whether it changes nothing."""
        return False


@dataclass(frozen=True)
class Reading(Statement):
    """A statement that changes nothing."""

    @property
    def only_reads(self) -> bool:
        return True


@dataclass(frozen=True)
class Query(Reading):
    """SELECT, WITH, VALUES: something that gives rows."""


@dataclass(frozen=True, kw_only=True)
class TableStatement(Statement):
    """A statement that Spark runs on a table: INSERT, UPDATE, DELETE, MERGE, TRUNCATE, OPTIMIZE, RESTORE, ..."""

    verb: str
    target: str
    target_span: tuple[int, int]
    writes: bool
    returns_rows: bool = False

    @property
    def only_reads(self) -> bool:
        return not self.writes


@dataclass(frozen=True, kw_only=True)
class CreateTable(Statement):
    """CREATE TABLE; ``before`` and ``after`` are the parts of the text around the name, for Spark to run."""

    name: str
    if_not_exists: bool
    columns: str
    options: str
    query: str | None
    location: str | None
    watermark: Watermark | None = None


@dataclass(frozen=True)
class SetWatermark(Statement):
    """ALTER TABLE .. SET WATERMARK FOR ..; without one, DROP WATERMARK."""

    name: str
    watermark: Watermark | None


@dataclass(frozen=True)
class AdvanceWatermark(Statement):
    """ALTER TABLE .. ADVANCE WATERMARK TO TIMESTAMP '..': no row before that moment is expected any more."""

    name: str
    moment: str


@dataclass(frozen=True)
class Begin(Statement):
    """BEGIN [TRANSACTION], START TRANSACTION."""


@dataclass(frozen=True)
class Commit(Statement):
    """COMMIT."""


@dataclass(frozen=True)
class Rollback(Statement):
    """ROLLBACK."""


@dataclass(frozen=True)
class SetSetting(Statement):
    """SET name = value, of the warehouse."""

    name: str
    value: str


@dataclass(frozen=True)
class DropTable(Statement):
    name: str
    if_exists: bool
    cascade: bool = False
    """Whether the views that read it go with it."""


@dataclass(frozen=True)
class Placement:
    """Where a view's rows are to lie, PARTITIONED BY, CLUSTER BY and BUCKETS, and what else its table is made with.

    >>> str(Placement(partition=("day",), buckets=8))
    'PARTITIONED BY (day) BUCKETS 8'
    """

    partition: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    buckets: int | None = None
    properties: tuple[tuple[str, str], ...] = ()
    """Delta's properties that the user set."""

    def __str__(self) -> str:
        parts = [f"PARTITIONED BY ({', '.join(self.partition)})" if self.partition else ""]
        parts += [f"CLUSTER BY ({', '.join(self.cluster)})" if self.cluster else ""]
        parts += [f"BUCKETS {self.buckets}" if self.buckets else ""]
        return " ".join(part for part in parts if part)

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Placement:
        """From what ``dataclasses.asdict`` made of it, maybe by way of JSON."""
        properties = tuple((str(name), str(value)) for name, value in kept.get("properties", ()))
        return cls(tuple(kept.get("partition", ())), tuple(kept.get("cluster", ())), kept.get("buckets"), properties)


ANYWHERE = Placement()

ATOMIC, NONE = "ATOMIC", "NONE"
ON_UPDATE, AFTER_WATERMARK, PERIODICALLY = "ON UPDATE", "AFTER WATERMARK", "PERIODICALLY"
DOWNSTREAM = "DOWNSTREAM"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a view says about time and consistency; None where it says nothing. Lengths are in microseconds."""

    consistency: str | None = None
    """ATOMIC or NONE."""
    schedule: str | None = None
    """FASTEST or SLOWEST."""
    emit: str = ON_UPDATE
    every: int | None = None
    """At most so often changes become visible, with EMIT PERIODICALLY."""
    lateness: int | None = None
    """How far behind the watermark a row may be."""
    lag: int | str | None = None
    """How old the view may get: microseconds, or DOWNSTREAM: as its readers need it."""
    priority: int = 0
    """Of what is due at one moment, what has more goes first."""

    def __str__(self) -> str:
        parts = [f"EMIT {self.emit}" + (f" INTERVAL {described(self.every)}" if self.every is not None else "")]
        parts += [f"ALLOW LATENESS INTERVAL {described(self.lateness)}" if self.lateness is not None else ""]
        parts += [f"CONSISTENCY {self.consistency}" if self.consistency else ""]
        parts += [f"SCHEDULE POLICY {self.schedule}" if self.schedule else ""]
        lag = described(self.lag) if isinstance(self.lag, int) else self.lag
        parts += ["" if lag is None else f"TARGET LAG {lag}" if lag == DOWNSTREAM else f"TARGET LAG '{lag}'"]
        parts += [f"PRIORITY {self.priority}" if self.priority else ""]
        return " ".join(part for part in parts if part and part != f"EMIT {ON_UPDATE}")


USUAL = Options()


@dataclass(frozen=True)
class Watermark:
    """WATERMARK FOR column AS column - INTERVAL delay."""

    column: str
    delay: int
    """Microseconds."""

    def __str__(self) -> str:
        return f"WATERMARK FOR {self.column} AS {self.column} - INTERVAL {described(self.delay)}"


@dataclass(frozen=True, kw_only=True)
class CreateView(Statement):
    """CREATE MATERIALIZED VIEW with its clauses."""

    name: str
    query: str
    or_replace: bool = False
    if_not_exists: bool = False
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    trigger: Trigger = MANUAL
    policy: Policy = Policy.AUTO
    initialize: bool = True
    placement: Placement = ANYWHERE
    options: Options = USUAL
    cascade: bool = False
    """Whether the readers of a view that is replaced are planned again."""
    written: str | None = None
    """The query as it was written, where plain views are written out in ``query``."""
    key: str | None = None
    """Of a read model: the column that is its key."""
    soonest: bool = False
    """Whether it is IMMEDIATE if its sources allow that, whatever ``trigger`` says."""


@dataclass(frozen=True, kw_only=True)
class CreatePlainView(Statement):
    """CREATE VIEW: a query with a name."""

    name: str
    query: str
    or_replace: bool = False
    if_not_exists: bool = False
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None


@dataclass(frozen=True)
class DropPlainView(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class RefreshView(Statement):
    name: str
    full: bool = False


@dataclass(frozen=True, kw_only=True)
class AlterView(Statement):
    name: str
    policy: str | None = None
    trigger: Trigger | None = None
    lag: int | str | None = None
    """Microseconds, DOWNSTREAM, or NONE."""
    consistency: str | None = None
    schedule: str | None = None
    priority: int | None = None
    properties: tuple[tuple[str, str | None], ...] = ()
    """Those that change; None for one that goes."""


@dataclass(frozen=True)
class SuspendView(Statement):
    """ALTER MATERIALIZED VIEW .. SUSPEND, or RESUME."""

    name: str
    suspended: bool


@dataclass(frozen=True)
class DropView(Statement):
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ShowTables(Reading):
    schema: str | None = None


@dataclass(frozen=True)
class ShowViews(Reading):
    schema: str | None = None


@dataclass(frozen=True)
class ShowPlainViews(Reading):
    schema: str | None = None


@dataclass(frozen=True)
class ShowModels(Reading):
    schema: str | None = None


@dataclass(frozen=True)
class CreateSchema(Statement):
    name: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSchema(Statement):
    name: str
    if_exists: bool = False
    cascade: bool = False
    """Whether what is in it goes with it, and what reads that."""


@dataclass(frozen=True)
class UseSchema(Reading):
    """USE name: where names are from now on that say no schema."""

    name: str


@dataclass(frozen=True)
class ShowSchemas(Reading):
    pass


@dataclass(frozen=True)
class ReplayLate(Statement):
    name: str


@dataclass(frozen=True)
class MakeCheckpoint(Statement):
    name: str


@dataclass(frozen=True)
class RestoreCheckpoint(Statement):
    name: str


@dataclass(frozen=True)
class DropCheckpoint(Statement):
    name: str


@dataclass(frozen=True)
class Vacuum(Statement):
    """VACUUM alone: all that expired epochs have left of the views."""


@dataclass(frozen=True)
class ShowCheckpoints(Reading):
    pass


@dataclass(frozen=True)
class ShowGroups(Reading):
    pass


@dataclass(frozen=True)
class ShowWatermarks(Reading):
    pass


@dataclass(frozen=True)
class ShowAlerts(Reading):
    pass


@dataclass(frozen=True)
class ShowSettings(Reading):
    pass


@dataclass(frozen=True)
class ShowDependencies(Reading):
    name: str


@dataclass(frozen=True)
class ShowHistory(Reading):
    name: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class DescribeView(Reading):
    name: str


@dataclass(frozen=True)
class ShowCreate(Reading):
    """SHOW CREATE TABLE or MATERIALIZED VIEW: the statement that makes it again."""

    name: str
    view: bool


@dataclass(frozen=True)
class ExplainView(Reading):
    name: str


@dataclass(frozen=True)
class ExplainCreate(Reading):
    create: CreateView


@dataclass(frozen=True)
class ExplainQuery(Reading):
    """EXPLAIN of a plain query: Spark's own plan of it."""

    query: str
    mode: str
