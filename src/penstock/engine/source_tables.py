"""Source tables: creating, registering, changing and dropping them. Spark runs the statements; names are ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.catalog import Catalog, Fence, TableRecord, World
from penstock.catalog.leases import Leases, Patience
from penstock.catalog.transactions import Intents
from penstock.engine.claims import check_not_ours, claim
from penstock.engine.committing import Committing, Write, disk_errors
from penstock.engine.event_time import check_column
from penstock.engine.immediate import immediate_readers
from penstock.engine.line import Line
from penstock.engine.reading import Pins, Reading, reading
from penstock.engine.refused import check_commits_here, refuse_rename
from penstock.engine.relations import TempViews, newest, outside_names, read_keys, run_query
from penstock.engine.report import Report
from penstock.engine.rewritten_statements import for_spark
from penstock.engine.seen import Seen
from penstock.engine.settings import lock_timeout
from penstock.engine.small_writes import compute, create, held
from penstock.engine.transactions import Transaction
from penstock.engine.workplace import Outdated, attempts
from penstock.engine.writing_out import check_no_model, check_unread, in_current_query, in_statement
from penstock.errors import (
    AlreadyExistsError,
    BusyError,
    ConflictError,
    DefinitionError,
    NotFoundError,
    NotSupportedError,
    QueryError,
)
from penstock.frames.frame import NotHere
from penstock.frames.settings import ANSI, own
from penstock.frames.spark.problems import spark_errors
from penstock.frames.spark.session import SparkOnDemand
from penstock.graph.watermarks import as_micros
from penstock.sql.cursor import Cursor
from penstock.sql.names import is_outside, key_of
from penstock.sql.statements import CreateTable, TableStatement, Watermark
from penstock.storage.delta_log import Snapshot, is_table
from penstock.storage.locations import location as location_of
from penstock.storage.locations import spark_commits_safely
from penstock.storage.log_writer import VersionTaken
from penstock.storage.new_table import WITH_CHANGES
from penstock.storage.reader import schema_of
from penstock.storage.row_change import commit, prepare
from penstock.storage.vacuum import leave
from penstock.storage.view_table import delete_table

_USUAL = {
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
}
"""What goes into a column of another type, and whether columns are added on the way."""
_ON_ROWS = ("INSERT", "UPDATE", "DELETE", "MERGE")
_ON_ALL_ROWS = (*_ON_ROWS, "TRUNCATE")
_TRIES, _TRIES_OF_SPARK = 100, 3
"""How often a statement is computed again because another writer was first."""
_LONGEST_IN_LINE = 30.0
"""Seconds that a statement waits for those of this process that came before it."""


@dataclass(frozen=True)
class Written:
    """What a statement came to: how many rows, the version of the table, and the views that followed, if any did."""

    rows: int
    version: int
    report: Report | None = None


class SourceTables:
    def __init__(
        self,
        spark: SparkOnDemand,
        catalog: Catalog,
        locate: Callable[[str, str], str],
        tell: Callable[[str], None],
        leave_unused: Callable[[World], None],
        committing: Committing,
        refresh: Callable[[list[str]], Report],
        warehouse: str,
    ):
        """``leave_unused``: leaves the tables of views that are gone to be deleted."""
        self._line = Line()
        self._committing = committing
        self._refresh = refresh
        self._warehouse = warehouse
        self._spark = spark
        self._catalog = catalog
        self._locate = locate
        self._tell = tell
        self._leave_unused = leave_unused

    def create(self, statement: CreateTable) -> bool:
        """Create a table, or register one that is there; False when IF NOT EXISTS found the name taken."""
        if not self._is_wanted(self._catalog.world(), statement):
            return False
        with self._exclusively(statement.name, f"creating {statement.name}") as leases:
            world = self._catalog.world()
            with disk_errors(f"CREATE TABLE {statement.name}"):
                return self._is_wanted(world, statement) and self._create(statement, world, leases.fence)

    def _is_wanted(self, world: World, statement: CreateTable) -> bool:
        """Whether there is a table to create; False if it exists and may. A name that is taken is an error."""
        key = key_of(statement.name)
        if key in world.views:
            raise AlreadyExistsError(
                f"the name {statement.name!r} is taken by a materialized view. Choose another name."
            )
        if key in world.tables:
            if statement.if_not_exists:
                return False
            raise AlreadyExistsError(f"table {statement.name!r} exists already. Use IF NOT EXISTS or another name.")
        world.check_can_be(statement.name)
        return True

    @contextmanager
    def _exclusively(self, name: str, doing: str, nodes: Iterable[str] = ()) -> Iterator[Leases]:
        """Nobody else creates or drops anything of that name meanwhile, or works on these nodes."""
        world = self._catalog.world()
        longest = lock_timeout(world.settings)
        patience = Patience(longest, lambda who: self._tell(f"{doing}: waiting for {who}"), world.display_name)
        leases = Leases(self._catalog, [key_of(name), *nodes], patience)
        with leases:
            yield leases

    def _create(self, statement: CreateTable, world: World, fence: Fence) -> bool:
        key = key_of(statement.name)
        location = None if statement.location is None else _located(world, statement.name, statement.location)
        if location is not None and is_table(location):
            self._register(statement.name, location, statement.columns, statement.watermark, fence)
            return True
        if not statement.columns and statement.query is None:
            where = f" and there is no Delta table at {statement.location!r}" if statement.location else ""
            raise DefinitionError(
                f"table {statement.name!r} has no columns{where}. Write CREATE TABLE name (column TYPE, ..)."
            )
        external = statement.location is not None
        path = claim(self._locate(key, "tables")) if location is None else location
        try:
            if external or not create(statement, path, own(self._spark)):
                self._run_create(statement, path, external, world)
                if not external:  # not before: Spark makes a table in an empty directory only
                    leave(path)
            self._add(statement.name, path, external, statement.watermark, fence)
        except BaseException:
            if not external and path not in {table.path for table in self._catalog.world().tables.values()}:
                delete_table(path)
            raise
        return True

    def _run_create(self, statement: CreateTable, path: str, external: bool, world: World) -> None:
        parts = [f"CREATE TABLE {_by_path(path)}"]
        if statement.columns:
            parts.append(f"({statement.columns}\n)")  # a comment may end them
        parts += ["USING delta", _options(statement.options, {} if external else WITH_CHANGES)]
        session = self._spark.session()
        with TempViews(session) as views:
            if statement.query is not None:
                query = in_current_query(world, statement.query)
                seen = reading(self._catalog, lambda world: read_keys(world, query))
                outside = outside_names(seen.world, query)
                frame = partial(self._newest, session, seen)
                rows = run_query(session, query, frame, outside=outside)
                parts.append(f"AS SELECT * FROM {views.add('query', rows)}")
            with spark_errors(f"table {statement.name!r} cannot be created", {_by_path(path): statement.name}):
                session.sql(" ".join(parts))

    def register(self, name: str, path: str) -> None:
        """Make an existing Delta table known under a name. It is taken as it is."""
        with self._exclusively(name, f"registering {name}") as leases:
            self._register(name, path, "", None, leases.fence)

    def _register(self, name: str, path: str, columns: str, watermark: Watermark | None, fence: Fence) -> None:
        world = self._catalog.world()
        world.check_can_be(name)
        path = _located(world, name, path)
        found = schema_of(Snapshot(path))
        if columns:
            wanted = StructType.fromDDL(columns)
            assert isinstance(wanted, StructType)
            if _shape(wanted) != _shape(found):
                raise DefinitionError(
                    f"table {name!r}: the columns given are not those of the Delta table at {path!r}, which has "
                    f"{found.simpleString()}. Leave the columns out."
                )
        self._add(name, path, True, watermark, fence)

    def _add(self, name: str, path: str, external: bool, watermark: Watermark | None, fence: Fence) -> None:
        if watermark is not None:
            watermark = replace(watermark, column=check_column(name, Snapshot(path), watermark.column))
        now = datetime.now(timezone.utc)
        self._catalog.add_table(
            TableRecord(key=key_of(name), name=name, path=path, external=external, created_at=now, watermark=watermark),
            fence,
        )

    def set_watermark(self, name: str, watermark: Watermark | None) -> None:
        """Give a table a watermark, or take it away. Rows that are there count at the next refresh."""
        table = self._table(name)
        if watermark is not None:
            watermark = replace(watermark, column=check_column(table.name, Snapshot(table.path), watermark.column))
        self._catalog.set_watermark(table.key, watermark)

    def advance_watermark(self, name: str, moment: datetime) -> bool:
        """Say that no row before a moment is expected any more, though none after it has come.

        False if the watermark, as far as it is known, has come further already: it stays where it is.
        """
        table = self._table(name)
        if table.watermark is None:
            raise DefinitionError(
                f"table {table.name!r} has no watermark. Give it one: ALTER TABLE {table.name} SET WATERMARK FOR ts AS "
                "ts - INTERVAL 5 SECONDS."
            )
        return self._catalog.set_watermark(table.key, table.watermark, as_micros(moment))

    def _table(self, name: str) -> TableRecord:
        world = self._catalog.world()
        key = world.resolve(name)
        if key in world.views:
            raise NotSupportedError(f"{name!r} is a view: its watermark is that of the tables that it reads.")
        _refuse_late(world, key)
        return world.tables[key]

    def drop(self, name: str, *, if_exists: bool, cascade: bool = False) -> list[str]:
        """Drop a table, with ``cascade`` also the views that read it; gives the names that are gone, the table's first.

        The data of an external table stays where it is.
        """
        return attempts(lambda also: self._dropped(name, if_exists, cascade), f"the readers of {name!r}")

    def _dropped(self, name: str, if_exists: bool, cascade: bool) -> list[str]:
        before = self._catalog.world()
        readers = _readers(before, name) if cascade else []
        nodes = [node for key in readers for node in before.views[key].nodes]
        with self._exclusively(name, f"dropping {name}", nodes) as leases:
            world = self._catalog.world()
            if cascade and (readers != _readers(world, name) or not before.same_definitions(world, nodes)):
                raise Outdated
            if not self._drop(name, if_exists, readers, leases.fence):
                return []
        self._leave_unused(before)
        return [before.display_name(key_of(name)), *(before.views[key].name for key in readers)]

    def _drop(self, name: str, if_exists: bool, readers: list[str], fence: Fence) -> bool:
        world = self._catalog.world()
        key = key_of(name)
        if key not in world.tables:
            if key in world.views:
                raise NotFoundError(f"{name!r} is a materialized view. Use DROP MATERIALIZED VIEW {name}.")
            if if_exists and world.late_node(key) is None:
                return False
            if (here := world.name_here(name)) is not None:
                raise NotFoundError(f"{name!r} is what Spark calls {here!r}: use that name.")
            _refuse_late(world, world.resolve(name))
        table = world.tables[world.resolve(name)]
        check_unread(world, [key, *readers], f"DROP TABLE {table.name}")
        if not table.external:
            leave(table.path)  # who is killed between here and its deletion leaves that to be done
        self._catalog.drop_table(key, fence, readers)
        if not table.external:
            delete_table(table.path)
        return True

    def write_here(self, statement: TableStatement, within: Transaction | None = None) -> Written:
        """Do a statement that writes few rows without Spark. ``NotHere`` says why it is Spark's.

        ``within``: a transaction that it is part of. Else the IMMEDIATE views that read the table follow at once.
        """
        if statement.verb not in _ON_ROWS:
            raise NotHere(f"{statement.verb} is Spark's")
        if within is not None:
            return self._written_here(statement, within)
        with self._line.behind_others(statement.target.lower(), _LONGEST_IN_LINE):
            return self._written_here(statement, None)

    def _written_here(self, statement: TableStatement, within: Transaction | None) -> Written:
        for _ in range(_TRIES):
            seen = self._now() if within is None else within.reading()
            table = seen.world.tables.get(key_of(statement.target))
            if table is None or table.external:
                raise NotHere(f"{statement.target!r} is no table of the warehouse")
            if within is not None:
                table = within.branched(table.key)
            elif table.key in seen.world.intents:
                with self._committing.alone([table.key], f"{statement.verb} on {table.name}"):
                    continue
            with disk_errors(f"{statement.verb} on {table.name!r}"):
                meant = in_statement(seen.world, statement)
                written = self._write_here(meant, table, seen, alone=within is None)
            if written is not None:
                return written
        raise ConflictError(
            f"table {statement.target!r} is being written by others all the time. Nothing was changed; try again."
        )

    def _now(self) -> Reading:
        world = self._catalog.world()
        return Reading(world=world, tables=Pins(world))

    def _write_here(
        self, statement: TableStatement, table: TableRecord, seen: Reading, *, alone: bool
    ) -> Written | None:
        """One attempt; None if another writer was first."""
        with held(table) as log:
            change = compute(statement, table, self.seen(statement, seen.world, seen.tables))
            if alone and not Intents(self._catalog).unchanged(seen.world, seen.tables):
                return None
            if not change.rows or not alone or not immediate_readers(seen.world, [table.key]):
                try:
                    return Written(change.rows, commit(change, log))
                except VersionTaken:
                    return None
            prepared = prepare(change)
            write = Write(table=table, base=change.table, actions=prepared.actions, operation=change.operation, log=log)
            try:
                report = self._committing.commit([write], f"{statement.verb} on {table.name}", known=seen.world)
            except (ConflictError, BusyError) as problem:  # no version has these files, nor had
                prepared.discard()
                if isinstance(problem, BusyError):
                    raise
                return None
            return Written(change.rows, change.table.version + 1, report)

    def seen(self, statement: TableStatement, world: World, at: Mapping[str, Snapshot] | None = None) -> Seen:
        """What a statement sees; ``at``: tables that are not at their newest version."""
        with spark_errors(f"{statement.verb} on {statement.target!r} failed"):
            if self._spark.started and any(self._spark.session().conf.get(n, v) != v for n, v in _USUAL.items()):
                raise NotHere("the session stores values in another way")
            session = own(self._spark)
        # without ANSI, a value that does not fit is refused all the same
        if session.settings[ANSI] != "true" or session.replaces(statement.text):
            raise NotHere("the session computes without ANSI, or puts settings into texts")
        return Seen(world=world, spark=self._spark, settings=session.settings, at=at or {})

    def run(self, statement: TableStatement, within: Transaction | None = None) -> tuple[DataFrame, Report | None]:
        """Have Spark run a statement on a table; views can be read in it, but not written."""
        world = within.reading().world if within is not None else self._catalog.world()
        key = world.resolve(statement.target)
        self._check_target(world, key, statement)
        statement = in_statement(world, statement)
        if within is not None and statement.writes and statement.verb not in _ON_ALL_ROWS:
            raise NotSupportedError(
                f"{statement.verb} cannot be part of a transaction, only INSERT, UPDATE, DELETE, MERGE and TRUNCATE "
                "can. COMMIT or ROLLBACK first."
            )
        if not statement.writes or within is not None:
            return self._run(statement, within), None
        if world.tables[key].external:
            return self._run(statement), None
        return self._run_alone(statement, key)

    def _run_alone(self, statement: TableStatement, key: str) -> tuple[DataFrame, Report | None]:
        """A statement for itself, on a table of the warehouse."""
        doing = f"{statement.verb} on {statement.target}"
        with self._committing.alone([key], doing) as world:
            followers = [world.views[view].name for view in immediate_readers(world, [key])]
            if key not in world.tables:
                raise NotFoundError(f"table {statement.target!r} was dropped meanwhile.")
            apart = bool(followers) or not spark_commits_safely(world.tables[key].path)
            if not apart or statement.verb not in _ON_ALL_ROWS:
                check_commits_here(world, key, statement)
                rows = self._run(statement)
        if followers and statement.verb not in _ON_ALL_ROWS:
            return rows, self._refresh(followers)
        return self._run_apart(statement, doing) if apart else (rows, None)

    def _run_apart(self, statement: TableStatement, doing: str) -> tuple[DataFrame, Report | None]:
        """The same as a transaction of one statement: with IMMEDIATE views that follow, or in an object store.

        There Spark's own commits are no conditional puts, and could overwrite ours; so Spark writes to a branch.
        """
        for tried in range(_TRIES_OF_SPARK):
            transaction = Transaction(self._catalog, self._committing, self._warehouse, doing)
            try:
                rows = self._run(statement, transaction)
                return rows, transaction.commit()
            except ConflictError:
                if tried == _TRIES_OF_SPARK - 1:
                    raise
            finally:
                transaction.rollback()
        raise AssertionError

    @staticmethod
    def _check_target(world: World, key: str, statement: TableStatement) -> None:
        if key in world.views and statement.verb == "ALTER":
            name, kind = world.views[key].name, "read model" if key in world.models else "materialized view"
            raise NotSupportedError(
                f"{name!r} is a {kind}: its columns are those of its query, and whatever else is said of it changes "
                f"with ALTER MATERIALIZED VIEW {name} SET TBLPROPERTIES (..), or REFRESH .."
            )
        check_no_model(world, key)
        if key in world.views:
            name = world.views[key].name
            raise NotSupportedError(
                f"{name!r} is a materialized view: only its refresh writes it. Change the tables that it reads, or use "
                f"DROP MATERIALIZED VIEW {name} or DESCRIBE MATERIALIZED VIEW {name}."
            )
        _refuse_late(world, key)
        if statement.verb == "ALTER":
            refuse_rename(statement)

    def _run(self, statement: TableStatement, within: Transaction | None = None) -> DataFrame:
        for _ in range(_TRIES):
            seen = self._now() if within is None else within.reading()
            key = seen.world.resolve(statement.target)
            table = seen.world.tables[key]
            if within is not None and statement.writes:
                table = within.branched(key)
            Snapshot(table.path)  # a clear error when the directory is gone
            target = _by_path(table.path)
            session = self._spark.session()
            with TempViews(session) as views:
                text, unread = for_spark(statement, target, partial(self._source, views, seen))
                if within is None and not Intents(self._catalog).unchanged(seen.world, seen.tables):
                    continue
                try:
                    with spark_errors(f"{statement.verb} on {table.name!r} failed", {target: table.name}):
                        return session.sql(text)
                except QueryError:
                    if unread is not None:
                        raise unread from None
                    raise
        raise BusyError("the tables are being written over and over. Try again.")

    @staticmethod
    def _newest(session: SparkSession, seen: Reading, key: str) -> DataFrame:
        return newest(session, seen, seen.world.resolve(key))

    def _source(self, views: TempViews, seen: Reading, name: str) -> str | None:
        if is_outside(name) and seen.world.known_key(name) is None:
            return None  # which is Spark's to find
        key = seen.world.resolve(name)
        return views.add(key, newest(self._spark.session(), seen, key))


def _readers(world: World, name: str) -> list[str]:
    """The views that read a table, directly or not, inputs before readers."""
    graph = world.views_graph()
    return graph.order(graph.descendants([key_of(name)])) if key_of(name) in world.tables else []


def _refuse_late(world: World, key: str) -> None:
    late = world.late_node(key)
    if late is not None:
        view = late[0].name
        raise NotSupportedError(
            f"{key!r} are the rows that came late for view {view!r}: they can be read, but only its refresh writes. "
            f"REPLAY LATE ROWS FOR {view} takes them after all."
        )


def _by_path(path: str) -> str:
    return "delta.`" + path.replace("`", "``") + "`"


def _located(world: World, table: str, path: str) -> str:
    found = location_of(path, f"table {table!r}")
    check_not_ours(world, table, found)
    return found


def _shape(schema: StructType) -> list[tuple[str, str]]:
    return [(f.name.lower(), f.dataType.simpleString()) for f in schema.fields]


def _options(options: str, properties: Mapping[str, str]) -> str:
    """The table's options with these properties added, unless the user set them."""
    missing = {k: v for k, v in properties.items() if k.lower() not in options.lower()}
    if not missing:
        return options
    listed = ", ".join(f"'{k}' = '{v}'" for k, v in missing.items())
    cursor = Cursor(options)
    for index, token in enumerate(cursor.tokens):
        if token.upper == "TBLPROPERTIES" and token.depth == 0:
            bracket = cursor.tokens[index + 1]
            return f"{options[: bracket.end]}{listed}, {options[bracket.end :]}"
    return f"{options} TBLPROPERTIES ({listed})"
