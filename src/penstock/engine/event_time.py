"""Watermarks in an epoch: how far each table's event time has come, and from that how far each view's has."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from penstock.catalog import Mark, Seen, TableRecord, World
from penstock.engine.missing import missing_file
from penstock.errors import DefinitionError, nearest
from penstock.frames.frame import Frame
from penstock.frames.settings import ZONE, Settings
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.zset import ADDED
from penstock.graph.watermarks import advanced, moment_in
from penstock.sql.trees import column as column_of
from penstock.sql.trees import tree
from penstock.storage.changes import read_change
from penstock.storage.delta_log import Snapshot
from penstock.storage.pinned import Pinned
from penstock.storage.reader import schema_of

_TIMES = ("timestamp", "timestamp_ntz", "date")


def check_column(table: str, snapshot: Snapshot, column: str) -> str:
    """The column of a watermark as the table spells it. It must hold times."""
    for field in schema_of(snapshot).fields:
        if field.name.lower() == column.lower():
            kind = field.dataType.simpleString()
            if kind not in _TIMES:
                raise DefinitionError(f"table {table!r}: the watermark's column {column!r} is {kind}, not a timestamp.")
            return field.name
    columns = nearest(column, schema_of(snapshot).names)
    raise DefinitionError(f"table {table!r} has no column {column!r} for a watermark. {columns}")


class Watermarks:
    """Those of an epoch. A table's moves with the rows that came since the last one; it never moves back."""

    def __init__(self, spark: SparkOnDemand, world: World):
        self._spark = spark
        self._world = world
        self._after: dict[str, Mark | None] = {}

    def before(self, relation: str) -> int | None:
        mark = self._world.watermarks.get(relation)
        return None if mark is None else mark.value

    def table(self, table: TableRecord, after: Snapshot) -> Mark | None:
        """A table's watermark after the epoch; None without one, or as long as no row has come."""
        if table.key not in self._after:
            self._after[table.key] = self._moved(table, after)
        return self._after[table.key]

    def node(self, name: str, inputs: Mapping[str, int | None]) -> int | None:
        """A node's watermark after the epoch: that of its slowest input. It stays when an input no longer has one."""
        values = [value for value in inputs.values() if value is not None]
        least = min(values) if values and len(values) == len(inputs) else None
        value = advanced(self.before(name), least)
        self._after[name] = None if value is None else Mark(value)
        return value

    def after(self, relation: str) -> int | None:
        """The watermark after the epoch; of a node that does not take part in it, that of before."""
        if relation not in self._after:
            return self.before(relation)
        mark = self._after[relation]
        return None if mark is None else mark.value

    def moved(self, relation: str) -> Mark | None:
        """The mark to publish, if it is another one than before."""
        mark = self._after.get(relation)
        return None if mark == self._world.watermarks.get(relation) else mark

    def _moved(self, table: TableRecord, after: Snapshot) -> Mark | None:
        if table.watermark is None:
            return None
        _check_still_there(table, after)
        known = self._world.watermarks.get(table.key)
        seen = known.seen if known is not None else None
        if seen is None or seen.column != table.watermark.column or not _is_of(seen, after):
            seen = None
        latest = self._latest(after, table.watermark.column, seen)
        value = advanced(table.floor, None if latest is None else latest - table.watermark.delay)
        value = advanced(None if known is None else known.value, value)
        if value is None:
            return None
        if latest is None:
            return Mark(value)
        return Mark(
            value,
            Seen(
                column=table.watermark.column,
                latest=latest,
                version=after.version,
                table_id=after.table_id,
                fingerprint=after.fingerprint(),
            ),
        )

    def _latest(self, after: Snapshot, column: str, seen: Seen | None) -> int | None:
        """The latest event time of the rows that are there, and of those that were when it was last told.

        A row that came and went in between counts nowhere: what is read of a change is what is left of it.
        """
        if seen is None:
            return self._latest_of_all(after, column)
        if seen.fingerprint is not None and after.fingerprint(seen.version) is None:  # the log no longer tells
            return advanced(seen.latest, self._latest_of_all(after, column))
        if seen.version == after.version:
            return seen.latest
        return advanced(seen.latest, self._latest_since(after, column, seen.version))

    def _latest_of_all(self, after: Snapshot, column: str) -> int | None:
        return _greatest(Pinned(spark=self._spark, snapshot=after, columns=(column,)).read(), column)

    def _latest_since(self, after: Snapshot, column: str, since: int) -> int | None:
        """That of the rows of which there are more than at a version; where this cannot be told, of all rows."""
        try:
            return self._latest_of_change(after, column, since)
        except Exception as problem:
            if missing_file(problem) is None:
                raise
            return self._latest_of_all(after, column)

    def _latest_of_change(self, after: Snapshot, column: str, since: int) -> int | None:
        change = read_change(self._spark, Snapshot(after.path, since), after, [column])
        if change.rows is None:
            return None
        rows = change.rows if change.append_only else change.rows.consolidated()
        return _greatest(rows.where(ADDED), column)

    def for_node(self, table: TableRecord, after: Snapshot, settings: Settings) -> int | None:
        """A table's watermark after the epoch as a moment, for a node that is computed under some settings.

        What has no zone, a date too, is a time of the view's zone: that is how Spark compares it with a moment, and
        what it makes of it in DATE_TRUNC. A table's own watermark has no zone then, either.
        """
        mark = self.table(table, after)
        if mark is None or settings.utc or table.watermark is None:
            return None if mark is None else mark.value
        kind = next(f.dataType for f in schema_of(after).fields if f.name.lower() == table.watermark.column.lower())
        if kind.typeName() == "timestamp":
            return mark.value
        moment = moment_in(settings[ZONE], mark.value)
        return self._moment_by_spark(settings[ZONE], mark.value) if moment is None else moment

    def _moment_by_spark(self, zone: str, local: int) -> int:
        """Spark knows zones by more names than Python does."""
        row = (
            self._spark.session()
            .sql(f"SELECT UNIX_MICROS(TO_UTC_TIMESTAMP(TIMESTAMP_MICROS({local}), '{zone}'))")
            .first()
        )
        assert row is not None
        return int(row[0])


def _is_of(seen: Seen, after: Snapshot) -> bool:
    """Whether what was seen was this table. One that was made again, or put back from a backup, is another."""
    if seen.table_id != after.table_id or seen.version > after.version:
        return False
    return seen.fingerprint is None or after.fingerprint(seen.version) in (None, seen.fingerprint)


def _check_still_there(table: TableRecord, after: Snapshot) -> None:
    assert table.watermark is not None
    try:
        check_column(table.name, after, table.watermark.column)
    except DefinitionError as problem:
        raise DefinitionError(
            f"{problem} Give it another one with ALTER TABLE {table.name} SET WATERMARK FOR .., or none: "
            f"ALTER TABLE {table.name} DROP WATERMARK."
        ) from None


def _greatest(rows: Frame, column: str) -> int | None:
    (name,) = (name for name in rows.columns if name.lower() == column.lower())
    found = rows.group([], [("latest", tree("MAX(x)", x=column_of(name)))]).arrow()
    return _micros(found.column("latest")[0])


def _micros(time: pa.Scalar) -> int | None:
    """A time or the beginning of a day in microseconds; what has no zone is counted as in UTC."""
    if not time.is_valid:
        return None
    return int(time.cast(pa.timestamp("us") if pa.types.is_date(time.type) else time.type).value)
