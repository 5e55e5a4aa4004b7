"""The inputs of an epoch: source versions pinned once, every change read once and shared by all its readers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from penstock.catalog import World
from penstock.errors import PenstockError
from penstock.ivm.context import Moment
from penstock.ivm.materialize import Materialized, Materializer
from penstock.plan.operators import Scan, Values
from penstock.storage import limits
from penstock.storage.arrow import nullable
from penstock.storage.changes import NO_EXTENT, Change, Extent, read_change
from penstock.storage.clock import phase
from penstock.storage.delta_log import Snapshot
from penstock.storage.frames import select
from penstock.storage.local_frame import on_driver
from penstock.storage.lookup import Anywhere, look_up
from penstock.storage.parquet import lazily
from penstock.storage.reader import found_frame, quoted, read_files, read_snapshot, schema_of
from penstock.storage.skipping import files_near, rows_near
from penstock.storage.view_settings import in_force
from penstock.storage.zset import WEIGHT, Delta, Rows, consolidate, narrowed


@dataclass
class Relation:
    """A source or node as the epoch sees it: where it was, where it is, and its change if that is in memory."""

    name: str
    path: str
    before: int | None
    """The version that readers which are up to date have consumed."""
    after: Snapshot | None = None
    delta: Delta | None = None
    in_memory: bool = False
    """Whether ``delta`` is the change from ``before`` to ``after`` (None then means: nothing changed)."""
    extent: Extent = NO_EXTENT
    """How many rows that change adds and removes."""
    error: PenstockError | None = None
    columns: dict[int, set[str]] = field(default_factory=dict)
    """The columns that readers need, by the version up to which they have read."""


def pinned(world: World, nodes: Iterable[str]) -> dict[str, Relation]:
    """The newest version of every table that these nodes read; one that cannot be opened fails its readers only."""
    graph = world.nodes_graph()
    ancestors = graph.ancestors([name for name in nodes if name in world.nodes])
    found = {}
    for key, table in world.tables.items():
        if key in ancestors:
            relation = Relation(key, table.path, None)
            try:
                relation.after = Snapshot(table.path)
            except PenstockError as problem:
                relation.error = type(problem)(f"table {table.name!r}: {problem}")
            found[key] = relation
    return found


class Inputs:
    """All relations of an epoch, and the changes read so far."""

    def __init__(self, spark: SparkSession, materializer: Materializer):
        self._spark = spark
        self._materializer = materializer
        self._relations: dict[str, Relation] = {}
        self._changes: dict[tuple[str, int], Delta | None] = {}
        self._locks: dict[tuple[str, int], Lock] = {}

    def add(self, relation: Relation) -> None:
        self._relations[relation.name] = relation

    def __getitem__(self, name: str) -> Relation:
        return self._relations[name]

    def change(self, name: str, since: int) -> Delta | None:
        """The change of a relation since a version; None when it is known to be empty."""
        relation = self._relations[name]
        assert relation.after is not None
        if relation.in_memory and since == relation.before:
            return relation.delta
        if since == relation.after.version:
            return None
        key = (name, since)
        with self._locks.setdefault(key, Lock()):  # two nodes may ask for it at once
            if key not in self._changes:
                with phase("reading"):
                    self._changes[key] = self._read(relation, since)
            return self._changes[key]

    def _read(self, relation: Relation, since: int) -> Delta | None:
        assert relation.after is not None
        before = Snapshot(relation.path, since)
        # A column that is gone fails the view that needs it, not those that share the change with it.
        present = {name.lower() for name in schema_of(relation.after).names}
        columns = sorted(c for c in relation.columns[since] if c.lower() in present)
        change = read_change(self._spark, before, relation.after, columns)
        if change.rows is None:
            return None
        if change.table is not None:
            little = change.table.num_rows <= limits.LITTLE_ROWS
            small = change.table.num_rows <= limits.LOCAL_ROWS
            return Delta(change.rows, change.append_only, small=small, table=change.table, little=little)
        if change.append_only and self._appended_rows(before, relation.after) > limits.LOCAL_ROWS:
            return Delta(change.rows, append_only=True)
        return self._materialized(change)

    @staticmethod
    def _appended_rows(before: Snapshot, after: Snapshot) -> int:
        old = {file.path for file in before.files}
        return sum(file.rows or limits.LOCAL_ROWS for file in after.files if file.path not in old)

    def _materialized(self, change: Change) -> Delta | None:
        assert change.rows is not None
        rows = change.rows if change.append_only else consolidate(change.rows, small=change.small)
        result = self._materializer.materialize(rows, few=change.small, little=change.small)
        inserted, deleted = result.totals(WEIGHT)
        if not inserted and not deleted:
            return None
        return Delta(
            result.frame, append_only=deleted == 0, small=result.local, table=result.table, little=result.little
        )

    def keep(self, frame: DataFrame, *, few: bool = False, little: bool = False) -> Materialized:
        return self._materializer.materialize(frame, few=few, little=little)


class NodeInputs:
    """The inputs of one node: a rule's ``Context``. ``since`` says what the node has consumed of each."""

    def __init__(
        self,
        spark: SparkSession,
        inputs: Inputs,
        since: dict[str, int],
        watermarks: tuple[int | None, int | None] = (None, None),
    ):
        self._spark = spark
        self._inputs = inputs
        self._since = since
        self._watermarks = watermarks
        self._bounds: pa.Table | None = None
        self._sought: Anywhere | None = None
        self._snapshots: dict[tuple[str, int], Snapshot] = {}

    def count(self, scan: Scan) -> int:
        after = self._inputs[scan.relation].after
        assert after is not None
        return after.rows

    @property
    def utc(self) -> bool:
        return in_force(self._spark).utc

    def near(self, bounds: pa.Table | None, sought: Anywhere | None = None) -> NodeInputs:
        nearer = NodeInputs(self._spark, self._inputs, self._since, self._watermarks)
        nearer._bounds, nearer._sought = bounds, sought
        return nearer

    def watermark(self, moment: Moment) -> int | None:
        return self._watermarks[0 if moment == "pre" else 1]

    def changed(self, name: str) -> bool:
        return self._inputs.change(name, self._since[name]) is not None

    def delta(self, scan: Scan) -> Delta | None:
        change = self._inputs.change(scan.relation, self._since[scan.relation])
        if change is None:
            return None
        change = self._narrowed(change, sorted({stored for _, stored in scan.stored}))
        if change is None:
            return None
        frame = select(change.frame, *_renamed(scan), WEIGHT)
        return replace(change, frame=frame, table=None, known=_known(change.table, scan))

    def _narrowed(self, change: Delta, columns: list[str]) -> Delta | None:
        """The change of some columns: rows that differ in others only are no change. None when nothing is left."""
        if change.table is None or change.append_only or len(columns) + 1 == change.table.num_columns:
            return change
        names = {name.lower(): name for name in change.table.column_names}
        columns = [names[c.lower()] for c in columns]
        table = narrowed(change.table, columns)
        if table is None:
            return change
        if not table.num_rows:
            return None
        if table.num_rows == change.table.num_rows:  # nothing came together, so there is nothing to send anew
            return replace(change, table=table)
        types = change.frame.schema
        schema = StructType([StructField(name, nullable(types[name].dataType)) for name in [*columns, WEIGHT]])
        append_only = int(table.column(WEIGHT).to_numpy().min()) > 0
        little, small = table.num_rows <= limits.LITTLE_ROWS, table.num_rows <= limits.LOCAL_ROWS
        return Delta(on_driver(self._spark, table, schema), append_only, small=small, table=table, little=little)

    def keep(self, frame: DataFrame, *, few: bool = False, little: bool = False) -> Materialized:
        return self._inputs.keep(frame, few=few, little=little)

    def read(self, scan: Scan, moment: Moment) -> Rows:
        relation = self._inputs[scan.relation]
        assert relation.after is not None
        if moment == "pre":
            return self._rows(self._snapshot(relation, self._since[scan.relation]), scan)
        return self._rows(relation.after, scan)

    def given(self, values: Values) -> Rows:
        return Rows(self.keep(self._spark.sql(values.text), few=True, little=True).frame, small=True, light=True)

    def _rows(self, snapshot: Snapshot, scan: Scan) -> Rows:
        columns = [stored for _, stored in scan.stored]
        found = self._looked_up(snapshot, scan, columns)
        if found is not None:
            frame = found_frame(self._spark, snapshot, found)
            small, light = found.num_rows <= limits.SMALL_TABLE_ROWS, found.num_rows <= limits.LIGHT_ROWS
            return Rows(select(frame, *_renamed(scan)), small=small, light=light)
        bounded = {stored: name for name, stored in scan.stored if self._bounds and name in self._bounds.column_names}
        if self._bounds is None or not bounded or not (snapshot.plain or snapshot.is_known):
            most = expected = snapshot.rows
            frame = lazily(self._spark, snapshot, columns) or read_snapshot(self._spark, snapshot, columns)
        else:
            files = files_near(snapshot, self._bounds, bounded)
            most, expected = sum(file.most for file in files), rows_near(snapshot, self._bounds, bounded)
            frame = lazily(self._spark, snapshot, columns, files) or (
                read_files(self._spark, snapshot, [file.path for file in files], columns)
                if snapshot.plain
                else read_snapshot(self._spark, snapshot, columns)
            )
        small, light = expected <= limits.SMALL_TABLE_ROWS, most <= limits.SMALL_TABLE_ROWS
        return Rows(select(frame, *_renamed(scan)), small=small, light=light)

    def _looked_up(self, snapshot: Snapshot, scan: Scan, columns: list[str]) -> pa.Table | None:
        """The rows that are sought, if anything is and they are found without Spark."""
        sought = self._sought.within(dict(scan.stored)) if self._sought is not None else None
        if sought is None:
            return None
        names = {place.column: key for key, place in sought.places.items() if place.unit is None}
        with phase("reading"):
            return look_up(snapshot, columns, sought, files_near(snapshot, sought.keys, names))

    def _snapshot(self, relation: Relation, version: int) -> Snapshot:
        key = (relation.name, version)
        if key not in self._snapshots:
            self._snapshots[key] = Snapshot(relation.path, version)
        return self._snapshots[key]


def _renamed(scan: Scan) -> list[str]:
    return [f"{quoted(stored)} AS {name}" for name, stored in scan.stored]


def _known(table: pa.Table | None, scan: Scan) -> pa.Table | None:
    """The rows of a change under the scan's names."""
    if table is None:
        return None
    names = {name.lower(): name for name in table.column_names}
    return pa.table({name: table.column(names[stored.lower()]) for name, stored in scan.stored})
