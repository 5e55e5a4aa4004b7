"""Names in a query to DataFrames: views at their published version, tables at their newest, Spark sees temporary views.

The user's text goes to Spark as it is, except that each table's name is replaced by that of a temporary view.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.catalog import ViewRecord, World
from penstock.engine.naming import STAMP
from penstock.engine.reading import Reading
from penstock.errors import DefinitionError, DependencyError, QueryError
from penstock.frames.spark.dataframes import sql_over
from penstock.frames.spark.problems import spark_errors
from penstock.frames.spark.types import local_frame
from penstock.sql.dialect import quoted
from penstock.sql.names import OWN, QualifiedName, is_outside, is_path, key_of, sql_of
from penstock.sql.query import parse_query, spark_text, substitute_tables, table_names, whole
from penstock.storage.delta_log import Snapshot
from penstock.storage.reader import read_snapshot, schema_of

RESERVED = "__"
"""What the names of our own columns begin with."""


def read_keys(world: World, query: str, view: str | None = None) -> tuple[str, ...]:
    """The keys of what a query, maybe that of a view, reads."""
    names = [name for name in table_names(parse_query(query)) if not _is_outside(world, name)]
    if view is not None and key_of(view) in {key_of(name) for name in names}:
        raise cycle(view, [view, view])
    return tuple(known(world, name) if view is None else world.resolve(name) for name in names)


def outside_names(world: World, query: str) -> tuple[str, ...]:
    """What of a query only Spark knows, by its own name for it: it has no versions, and tells no changes."""
    return tuple(name for name in table_names(parse_query(query)) if _is_outside(world, name))


def _is_outside(world: World, name: str) -> bool:
    """Our plain views are written out by now: what is called as one is the view of Spark's that it stands for."""
    if not is_outside(name):
        return False
    key = world.known_key(name)
    return key is None or key in world.plain


def outside_schemas(session: Callable[[], SparkSession], names: Iterable[str]) -> dict[str, StructType]:
    """The columns that such relations have now, by their keys; what Spark remembers of their files is forgotten."""
    found = {}
    for name in names:
        spark = session()
        with spark_errors(f"{name!r} cannot be read by Spark"):
            if QualifiedName.read(name).catalog:
                spark.catalog.refreshTable(sql_of(name))
            found[key_of(name)] = spark.table(sql_of(name)).schema
    return found


def known(world: World, name: str) -> str:
    """The key of what a query may read: a table, a view, or what tells of Penstock itself."""
    own = not is_path(name) and key_of(name).startswith(OWN)
    return key_of(name) if own else world.resolve(name)


def cycle(view: str, path: Sequence[str]) -> DependencyError:
    """The error of a view that would read itself; the path begins and ends at the same name."""
    return DependencyError(
        f"view {view!r} would read itself, which makes a cycle: {' -> '.join(path)}. "
        "Change the query so that it does not."
    )


class TempViews:
    """Frames under names that only one statement uses; Spark forgets them when the statement is through."""

    def __init__(self, spark: SparkSession):
        self._spark = spark
        self._token = uuid.uuid4().hex[:12]
        self.names: dict[str, str] = {}
        """The temporary view of each key."""

    def add(self, key: str, frame: DataFrame) -> str:
        if key not in self.names:
            self.names[key] = f"__penstock_{self._token}_{len(self.names)}"
            frame.createOrReplaceTempView(self.names[key])
        return self.names[key]

    def __enter__(self) -> TempViews:
        return self

    def __exit__(self, *problem: object) -> None:
        for view in self.names.values():
            self._spark.catalog.dropTempView(view)


def run_query(
    spark: SparkSession,
    text: str,
    frames: Mapping[str, DataFrame] | Callable[[str], DataFrame],
    *,
    as_written: bool = False,
    of_view: bool = False,
    outside: Iterable[str] = (),
) -> DataFrame:
    """The DataFrame of a query whose table names mean the given frames; those ``outside`` are left to Spark.

    ``of_view``: it must give the same rows each time, so a LIMIT without ORDER BY takes the first rows of all, unless
    their columns have no order.
    """
    left = set(map(key_of, outside))
    if of_view:
        settled, left_open = spark_text(text), spark_text(text, limits=False)
        try:
            return _run(spark, settled, frames, left)
        except QueryError:
            if settled == left_open:
                raise
        return _run(spark, left_open, frames, left)
    return _run(spark, whole(text) if as_written else spark_text(text, limits=False), frames, left)


def _run(
    spark: SparkSession,
    text: str,
    frames: Mapping[str, DataFrame] | Callable[[str], DataFrame],
    outside: Collection[str],
) -> DataFrame:
    frame_of = frames if callable(frames) else frames.__getitem__
    token, named = uuid.uuid4().hex[:12], dict[str, str]()

    def replace(name: str) -> str | None:
        if key_of(name) in outside:
            return None
        return named.setdefault(key_of(name), f"__penstock_{token}_{len(named)}__")

    rewritten = substitute_tables(text, replace)
    inputs = {place: frame_of(key) for key, place in named.items()}
    with spark_errors("the query is not valid"):
        return sql_over(spark, rewritten, inputs)


def published(spark: SparkSession, world: World, key: str) -> DataFrame:
    """A view's rows at its published version."""
    view, node = world.views[key], world.nodes[key]
    if node.version is None:
        raise DefinitionError(
            f"view {view.name!r} has no rows yet: it was created WITH NO DATA. "
            f"Run REFRESH MATERIALIZED VIEW {view.name}."
        )
    columns = shown_columns(world, view)
    return read_snapshot(spark, Snapshot(node.path, node.version), columns).select(*[quoted(c) for c in columns])


def shown_columns(world: World, view: ViewRecord) -> list[str]:
    """The columns that who reads a view sees: of a read model, when a row was last written too."""
    return [*(name for name, _, _ in view.columns), *([STAMP] if view.key in world.models else [])]


def visible_columns(snapshot: Snapshot) -> list[str]:
    """The columns of a view's table that are the view's; the others are state."""
    return [field.name for field in schema_of(snapshot).fields if not field.name.startswith(RESERVED)]


def newest(spark: SparkSession, seen: Reading, key: str) -> DataFrame:
    """A table's rows as they are at that moment, or a view's at its published version."""
    if key in seen.world.views:
        return published(spark, seen.world, key)
    if key not in seen.world.tables:
        return late_rows(spark, seen.world, key)
    # The version is named: over Spark Connect a path would mean what is newest when the rows are computed.
    return read_snapshot(spark, seen.tables[key])


def late_rows(spark: SparkSession, world: World, key: str) -> DataFrame:
    """The rows that came too late for a view; ``__change`` says how many copies came, or went (below zero)."""
    found = world.late_node(key)
    assert found is not None
    view, node = found
    if node.version is None:
        raise DefinitionError(
            f"{key!r} has no rows yet: view {view.name!r} was created WITH NO DATA. "
            f"Run REFRESH MATERIALIZED VIEW {view.name}."
        )
    return read_snapshot(spark, Snapshot(node.path, node.version))


def spark_plan(frame: DataFrame, mode: str) -> str:
    """Spark's own plan of a query, as text."""
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(mode=mode)
    return text.getvalue().strip()


def as_frame(spark: SparkSession, ddl: str, rows: Sequence[Sequence[Any]]) -> DataFrame:
    """Rows that Penstock made itself, such as those of SHOW."""
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return local_frame(spark, schema, rows)
