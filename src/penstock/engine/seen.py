"""What a small statement sees: the tables at their versions, and which of their rows it may mean.

Names in its expressions are resolved here as Spark does it. Whatever is not certain raises ``NotHere`` with the reason,
and Spark runs the statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.catalog import TableRecord, World
from penstock.engine.sought import Wanted
from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import NotHere
from penstock.frames.keys import Sought
from penstock.frames.settings import Settings
from penstock.frames.spark.session import SparkOnDemand
from penstock.plan import Unsupported
from penstock.plan.check import check_expression
from penstock.sql.dialect import SparkSql
from penstock.storage.delta_log import Snapshot, newest
from penstock.storage.lookup import look_up
from penstock.storage.parquet import read_rows, table_frame
from penstock.storage.reader import found_frame, schema_of
from penstock.storage.row_ranges import read_between


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The tables as a statement sees them. ``at``: those that are not at their newest version, by their keys."""

    world: World
    spark: SparkOnDemand
    settings: Settings
    at: Mapping[str, Snapshot]

    def table(self, table: TableRecord) -> Snapshot:
        return self.at.get(table.key) or newest(table.path)


@dataclass(frozen=True)
class Scope:
    """The columns of one relation, by their names in lower case, and what they are called in the frame of its rows."""

    name: str
    columns: Mapping[str, str]

    @classmethod
    def of(cls, table: exp.Expr, names: Sequence[str], prefix: str = "") -> Scope:
        """Of a table as a statement calls it; a ``prefix`` and a number take the place of its columns' names."""
        columns = {name.lower(): f"{prefix}{place}" if prefix else name for place, name in enumerate(names)}
        if len(columns) < len(names):
            raise NotHere("columns whose names differ in case only")
        return cls(table.alias_or_name.lower(), columns)


def parsed(text: str) -> exp.Expr:
    """The tree of a statement or an expression."""
    try:
        return sqlglot.parse_one(text, dialect=SparkSql)
    except (SqlglotError, RecursionError):
        raise NotHere("a form that only Spark reads") from None


def only(tree: exp.Expr, *parts: str) -> None:
    """Refuse a tree that says more than these parts."""
    more = sorted({name for name, given in tree.args.items() if given} - set(parts))
    if more:
        raise NotHere(f"a clause that only Spark reads ({', '.join(more)})")


def is_default(value: exp.Expr) -> bool:
    """Whether the word DEFAULT stands where a value may."""
    if isinstance(value, exp.Column):
        return not value.table and not value.this.quoted and value.name.upper() == "DEFAULT"
    return isinstance(value, exp.Var) and value.name.upper() == "DEFAULT"


def resolved(tree: exp.Expr, scopes: Sequence[Scope]) -> exp.Expr:
    """An expression whose columns have the names that they have in the rows' frame."""
    if tree.find(exp.Query):
        raise NotHere("a subquery")
    try:
        check_expression(tree)
    except Unsupported as problem:
        raise NotHere(str(problem)) from None
    holder = exp.Paren(this=tree.copy())
    for found in list(holder.find_all(exp.Column)):
        if found.args.get("db") or is_default(found):
            raise NotHere(f"{found.sql(dialect=SparkSql)} is not a column's plain name")
        found.replace(_resolved(found, scopes))
    return holder.this.pop()


def _resolved(found: exp.Column, scopes: Sequence[Scope]) -> exp.Expr:
    own = [scope for scope in scopes if not found.table or scope.name == found.table.lower()]
    names = [scope.columns[found.name.lower()] for scope in own if found.name.lower() in scope.columns]
    if len(names) != 1:
        raise NotHere(f"{found.sql(dialect=SparkSql)} is not the name of one column")
    return exp.Column(this=exp.Identifier(this=names[0], quoted=True))


def rows_where(seen: Seen, table: Snapshot, wanted: Wanted | None) -> ArrowFrame:
    """The rows of a table that are wanted, or all, with their places; others may be among them.

    Of a large table they are looked up.
    """
    if not table.told_by_name:
        raise NotHere("files of one name")
    names = schema_of(table).names
    if table.rows >= limits.LOOKUP_LEAST_ROWS and wanted is not None:
        found = None if wanted.keys is None else _looked_up(table, wanted.keys)
        if found is None and wanted.bounds:
            found = read_between(table, names, wanted.bounds)
        if found is not None:
            frame = found_frame(seen.spark, table, found)
            if isinstance(frame, ArrowFrame):
                return frame
    frame = table_frame(seen.spark, table, names, located=True)
    if not isinstance(frame, ArrowFrame) or frame.rows() is None:
        raise NotHere(f"more than {limits.READ_ROWS:,} rows are to be looked through")
    return frame


def _looked_up(table: Snapshot, keys: Sought) -> pa.Table | None:
    names = schema_of(table).names
    if not keys.keys.num_rows:
        return read_rows(table, names, (), located=True)
    return look_up(table, names, keys, located=True)
