"""What a user can say, as values. One dataclass a kind of statement; the parser makes them, the facade runs them."""

from __future__ import annotations

from dataclasses import dataclass, field

POLICIES = ("AUTO", "INCREMENTAL", "INCREMENTAL STRICT", "FULL")


@dataclass(frozen=True)
class Statement:
    """Any statement; ``text`` is what the user wrote, without the closing semicolon."""

    text: str = field(repr=False)


@dataclass(frozen=True)
class Query(Statement):
    """SELECT, WITH, VALUES: something that gives rows."""


@dataclass(frozen=True)
class TableStatement(Statement):
    """A statement that Spark runs on a table: INSERT, UPDATE, DELETE, MERGE, TRUNCATE, OPTIMIZE, RESTORE, ..."""

    verb: str
    target: str
    target_span: tuple[int, int]
    writes: bool
    returns_rows: bool = False


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE; ``before`` and ``after`` are the parts of the text around the name, for Spark to run."""

    name: str
    if_not_exists: bool
    columns: str
    options: str
    query: str | None
    location: str | None


@dataclass(frozen=True)
class DropTable(Statement):
    name: str
    if_exists: bool


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE MATERIALIZED VIEW with its clauses."""

    name: str
    query: str
    or_replace: bool = False
    if_not_exists: bool = False
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    refresh: str = "MANUAL"
    policy: str = "AUTO"
    initialize: bool = True


@dataclass(frozen=True)
class RefreshView(Statement):
    name: str
    full: bool = False


@dataclass(frozen=True)
class AlterView(Statement):
    name: str
    policy: str | None = None
    refresh: str | None = None


@dataclass(frozen=True)
class DropView(Statement):
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ShowTables(Statement):
    pass


@dataclass(frozen=True)
class ShowViews(Statement):
    pass


@dataclass(frozen=True)
class ShowDependencies(Statement):
    name: str


@dataclass(frozen=True)
class ShowHistory(Statement):
    name: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class DescribeView(Statement):
    name: str


@dataclass(frozen=True)
class ExplainView(Statement):
    name: str


@dataclass(frozen=True)
class ExplainCreate(Statement):
    create: CreateView


@dataclass(frozen=True)
class ExplainQuery(Statement):
    """EXPLAIN of a plain query: Spark's own plan of it."""

    query: str
    mode: str
