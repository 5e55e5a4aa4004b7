"""Reading the warehouse as it was: views at an epoch, tables at the versions that the epoch had read.

How far back one can read is the setting ``retention``. An epoch that a checkpoint names is kept whatever it says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import TracebackType

from pyspark.sql import DataFrame, SparkSession

from penstock.catalog import AsOf, Catalog, NodeRecord, ViewRecord, World
from penstock.engine.reading import Keys, Reading, pin
from penstock.engine.relations import known, late_rows, outside_names, read_keys, run_query, visible_columns
from penstock.engine.settings import retention
from penstock.engine.writing_out import in_current_query, in_query
from penstock.errors import DefinitionError, NotFoundError, NotSupportedError, RetentionError, SqlError
from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.frames.spark.frame import as_spark
from penstock.frames.spark.session import Running, SparkOnDemand
from penstock.sql import times
from penstock.sql.as_of import Past, find_past
from penstock.sql.dialect import quoted
from penstock.sql.intervals import described
from penstock.sql.names import DEFAULT, QualifiedName, is_path, key_of
from penstock.sql.parser import parse
from penstock.sql.query import parse_query, table_names
from penstock.sql.statements import Query
from penstock.sql.trees import column, tree
from penstock.storage.changes import read_change
from penstock.storage.commits import version_at
from penstock.storage.delta_log import HistoryGone, Snapshot, check_files
from penstock.storage.pinned import Pinned
from penstock.storage.reader import read_snapshot, schema_of


@dataclass(frozen=True)
class Reader:
    """A moment of a warehouse: views at an epoch, tables as the epoch read them. It can only be read."""

    spark: Callable[[], SparkSession]
    moment: AsOf
    current: str = DEFAULT
    """The schema of names that say none."""

    @property
    def epoch(self) -> int:
        return self.moment.epoch

    def sql(self, text: str) -> DataFrame:
        """Run a query."""
        statement = parse(text, self.current)
        if not isinstance(statement, Query):
            raise NotSupportedError("a snapshot can only be read: run statements with db.sql(..).")
        world = self.moment.world
        return run_query(self.spark(), in_query(world, statement.text), lambda key: self._frame(world.resolve(key)))

    def table(self, name: str) -> DataFrame:
        """A table or a view as it was."""
        meant = name if is_path(name) else str(QualifiedName.read(name, self.current))
        return self._frame(self.moment.world.resolve(meant))

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __repr__(self) -> str:
        return f"<snapshot of epoch {self.epoch}>"

    def _frame(self, key: str) -> DataFrame:
        world = self.moment.world
        if key in world.views:
            return self._view(key)
        late = world.late_node(key)
        if late is not None:
            self._check_there(late[0], late[1])
            return late_rows(self.spark(), world, key)
        return read_snapshot(self.spark(), self._table(key))

    def snapshot(self, name: str) -> tuple[Snapshot, list[str]]:
        """The version of a table or of a view's table that has its rows, and its columns."""
        world = self.moment.world
        key = world.resolve(name)
        if key in world.views:
            return self._snapshot(key)
        late = world.late_node(key)
        if late is not None:
            self._check_there(*late)
        found = self._table(key) if late is None else Snapshot(late[1].path, late[1].version)
        return found, schema_of(found).names

    def _snapshot(self, key: str) -> tuple[Snapshot, list[str]]:
        """Of a view, with the columns that it had then: it may have been replaced since."""
        node = self.moment.world.nodes[key]
        self._check_there(self.moment.world.views[key], node)
        snapshot = Snapshot(node.path, node.version)
        return snapshot, visible_columns(snapshot)

    def _view(self, key: str) -> DataFrame:
        snapshot, columns = self._snapshot(key)
        return read_snapshot(self.spark(), snapshot, columns).select(*map(quoted, columns))

    def _check_there(self, view: ViewRecord, node: NodeRecord) -> None:
        if node.version is None:
            raise NotFoundError(
                f"view {view.name!r} has no rows at epoch {self.moment.epoch}: it was created or replaced later."
            )

    def _table(self, key: str) -> Snapshot:
        table = self.moment.world.tables[key]
        version, newest = self.moment.sources.get(key), Snapshot(table.path)
        replaced = version is not None and not self._is_that_of_then(key, newest)
        try:
            if version is None or replaced:  # no view reads it, or the table that the epoch read is gone
                version = version_at(table.path, self.moment.published_at)
                intent = self.moment.world.intents.get(key)
                version = version if intent is None else min(version, intent.base)
            found = Snapshot(table.path, version)
            check_files(found)
            return found
        except HistoryGone:
            if replaced:
                raise NotFoundError(
                    f"table {table.name!r} was not there at epoch {self.moment.epoch}: it was created or replaced "
                    "later. Read a later epoch."
                ) from None
            raise RetentionError(
                f"table {table.name!r} can no longer be read as of epoch {self.moment.epoch}: its files of then are "
                "gone (VACUUM)."
            ) from None

    def _is_that_of_then(self, key: str, newest: Snapshot) -> bool:
        """Whether a table is the one that the epoch read, as far as that was recorded and the log still tells."""
        version, then = self.moment.sources[key], self.moment.identities.get(key)
        if then is None:
            return True
        if then.table_id != newest.table_id or version > newest.version:
            return False
        found = newest.fingerprint(version)
        return found is None or then.fingerprint in (None, found)


def moment_at(catalog: Catalog, *, epoch: int | None = None, timestamp: str | datetime | None = None) -> AsOf:
    """The warehouse at an epoch; one that is too old, or never was, is an error."""
    if timestamp is not None:
        epoch = catalog.epoch_at(time_of(timestamp))
        if epoch is None:
            raise NotFoundError(f"nothing was published before {timestamp}. Ask for a later time.")
    moment = catalog.moment(epoch)
    if moment is None:
        newest = catalog.world().epoch
        raise NotFoundError(f"there is no published epoch {epoch}. The newest is {newest}.")
    length = retention(moment.world.settings)
    expired = moment.replaced_at is not None and moment.replaced_at < _now() - length
    if expired and not moment.kept:
        kept = described(length // timedelta(microseconds=1))
        raise RetentionError(
            f"epoch {moment.epoch} is too old to be read: epochs are kept for {kept} after the next one. "
            "Name epochs that you need with a checkpoint, or SET retention to a longer time."
        )
    return moment


def time_of(given: str | datetime) -> datetime:
    """The moment in UTC that a text or a datetime means."""
    found = times.in_utc(given) if isinstance(given, datetime) else times.moment(given)
    if found is None:
        raise SqlError(
            f"{given!r} is no time. Write it as '2026-01-31 12:00:00', in UTC, or with an offset: "
            "'2026-01-31 12:00:00+01:00'."
        )
    return found


def _now() -> datetime:
    return datetime.now(timezone.utc)


def run_past(
    spark: SparkSession,
    catalog: Catalog,
    text: str,
    seen: Callable[[Keys], Reading],
    current: Callable[[Reading, str], DataFrame],
) -> DataFrame:
    """A query some of whose tables may be AS OF; the others are ``current``, as they are ``seen`` at one moment."""
    text, past = find_past(text)
    world = catalog.world()
    text = in_query(world, text) if past else in_current_query(world, text)
    outside = outside_names(world, text)
    if not past:
        now = seen(lambda world: read_keys(world, text))
        return run_query(spark, text, lambda key: current(now, key), outside=outside)
    names = [name for name in table_names(parse_query(text)) if key_of(name) not in past and name not in outside]
    now = seen(lambda world: [known(world, name) for name in names])

    def frame(key: str) -> DataFrame:
        if key not in past:
            return current(now, known(now.world, key))
        return past_table(spark, catalog, past[key])

    return run_query(spark, text, frame, outside=outside)


def past_table(spark: SparkSession, catalog: Catalog, past: Past) -> DataFrame:
    if past.version is not None:
        return _version_of(spark, catalog.world(), past.name, past.version)
    moment = moment_at(catalog, epoch=past.epoch, timestamp=past.timestamp)
    return Reader(lambda: spark, moment).table(past.name)


def _version_of(spark: SparkSession, world: World, name: str, version: int) -> DataFrame:
    """A table at a version of Delta's. A view has versions too, but which of them were published is ours to know."""
    key = world.resolve(name)
    if key not in world.tables:
        raise DefinitionError(
            f"{name!r} is a view: it is read AS OF EPOCH n or AS OF TIMESTAMP '..', not at a version of its table."
        )
    path = world.tables[key].path
    newest = pin(world, key).snapshot().version
    if version > newest:
        raise NotFoundError(f"table {name!r} has no version {version}: its newest is {newest}.")
    try:
        found = Snapshot(path, version)
        check_files(found)
    except HistoryGone:
        raise RetentionError(
            f"version {version} of table {name!r} can no longer be read: its files are gone."
        ) from None
    return read_snapshot(spark, found)


def changes(spark: SparkSession, catalog: Catalog, name: str, since: int, until: int | None) -> DataFrame:
    """A view's rows that came (+) and went (-) between two epochs, with ``__weight``."""
    return as_spark(changed(Running(spark), catalog, name, since, until)).frame


def changed(spark: SparkOnDemand, catalog: Catalog, name: str, since: int, until: int | None) -> Frame:
    """The same, wherever the rows are."""
    world = catalog.world()
    key = world.view_key(name)
    first, last = moment_at(catalog, epoch=since), moment_at(catalog, epoch=until if until is not None else world.epoch)
    if first.epoch > last.epoch:
        raise DefinitionError(f"changes since epoch {first.epoch} cannot end at {last.epoch}, which is earlier.")
    view = world.views[key]
    old, new = first.world.nodes[key].version, last.world.nodes[key].version
    if old is None or new is None:
        raise NotFoundError(f"view {view.name!r} has no rows at epoch {since}: it was created or replaced later.")
    before, after = Snapshot(world.nodes[key].path, old), Snapshot(world.nodes[key].path, new)
    columns = visible_columns(after)
    if visible_columns(before) != columns:
        raise DefinitionError(
            f"view {view.name!r} was replaced since epoch {since} and has other columns now: there is no change from "
            "one to the other. Ask for the changes since a later epoch."
        )
    try:
        change = read_change(spark, before, after, columns)
    except HistoryGone as problem:
        raise RetentionError(f"the changes of view {view.name!r} since epoch {since} are gone: {problem}") from None
    if change.rows is None:
        nothing = Pinned(spark=spark, snapshot=after, columns=tuple(columns)).read().nothing()
        return nothing.select([*((name, column(name)) for name in columns), (WEIGHT, tree("CAST(1 AS BIGINT)"))])
    return change.rows.consolidated().only([*columns, WEIGHT])
