"""The inputs of an epoch: source versions pinned once, every change read once and shared by all its readers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from threading import Lock

import pyarrow as pa

from penstock.catalog import World
from penstock.engine.reading import readable
from penstock.errors import PenstockError
from penstock.frames import limits
from penstock.frames.arrow.expressions import written_rows
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.clock import phase
from penstock.frames.frame import Frame
from penstock.frames.keeping import Keeper
from penstock.frames.keys import Anywhere
from penstock.frames.names import WEIGHT
from penstock.frames.settings import in_force
from penstock.frames.sizes import Size
from penstock.frames.spark.frame import SparkFrame
from penstock.frames.spark.session import SparkOnDemand
from penstock.frames.zset import Delta, ZSet, narrowed, totals
from penstock.ivm.context import Moment
from penstock.plan.operators import Scan, Values
from penstock.sql.trees import Named, column, columns
from penstock.storage.changes import NO_EXTENT, Change, Extent, read_change
from penstock.storage.delta_log import Snapshot, snapshot_of
from penstock.storage.log_listing import newest_versions
from penstock.storage.pinned import Pinned
from penstock.storage.reader import schema_of
from penstock.storage.skipping import files_near


@dataclass(kw_only=True)
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


def pinned(
    world: World, nodes: Iterable[str], run: str | None = None, also: Collection[str] = ()
) -> dict[str, Relation]:
    """Every table that these nodes read, as it is now; one that cannot be opened fails its readers only.

    ``also``: tables that will be read too. ``run``: of the transaction that is to see what it has committed itself.
    """
    graph = world.nodes_graph()
    ancestors = graph.ancestors([name for name in nodes if name in world.nodes])
    wanted = [key for key in world.tables if key in ancestors or key in also]
    versions = newest_versions(world.tables[key].path for key in wanted)
    found = {}
    for key in wanted:
        table = world.tables[key]
        relation = Relation(name=key, path=table.path, before=None)
        try:
            after = snapshot_of(table.path, readable(world, key, versions[table.path], run))
            assert after.head  # read now, so that a log that cannot be fails the readers of this table only
            relation.after = after
        except PenstockError as problem:
            relation.error = type(problem)(f"table {table.name!r}: {problem}")
        found[key] = relation
    return found


class Inputs:
    """All relations of an epoch, and the changes read so far."""

    def __init__(self, spark: SparkOnDemand, keeper: Keeper):
        self._spark = spark
        self._keeper = keeper
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
        before = snapshot_of(relation.path, since)
        # A column that is gone fails the view that needs it, not those that share the change with it.
        present = {name.lower() for name in schema_of(relation.after).names}
        names = sorted(c for c in relation.columns[since] if c.lower() in present)
        change = read_change(self._spark, before, relation.after, names)
        if change.rows is None:
            return None
        if change.rows.rows() is not None:
            return Delta(change.rows, change.append_only)
        if change.append_only and self._appended_rows(before, relation.after) > limits.LOCAL_ROWS:
            return Delta(change.rows, append_only=True)
        return self._kept(change)

    @staticmethod
    def _appended_rows(before: Snapshot, after: Snapshot) -> int:
        old = {file.path for file in before.files}
        return sum(file.rows or limits.LOCAL_ROWS for file in after.files if file.path not in old)

    def _kept(self, change: Change) -> Delta | None:
        assert change.rows is not None
        rows = self.keep(change.rows if change.append_only else change.rows.consolidated())
        inserted, deleted = totals(rows)
        return Delta(rows, append_only=deleted == 0) if inserted or deleted else None

    def keep(self, frame: Frame) -> Frame:
        return self._keeper.keep(frame)


class NodeInputs:
    """The inputs of one node: a rule's ``Context``. ``since`` says what the node has consumed of each."""

    def __init__(
        self,
        spark: SparkOnDemand,
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
        nearer._bounds, nearer._sought, nearer._snapshots = bounds, sought, self._snapshots
        return nearer

    def watermark(self, moment: Moment) -> int | None:
        return self._watermarks[0 if moment == "pre" else 1]

    def keep(self, frame: Frame) -> Frame:
        return self._inputs.keep(frame)

    def changed(self, name: str) -> bool:
        return self._inputs.change(name, self._since[name]) is not None

    def delta(self, scan: Scan) -> Delta | None:
        change = self._inputs.change(scan.relation, self._since[scan.relation])
        if change is None:
            return None
        change = self._narrowed(change, sorted({stored for _, stored in scan.stored}))
        if change is None:
            return None
        return replace(change, frame=change.frame.select([*_renamed(scan, change.frame), *columns([WEIGHT])]))

    def _narrowed(self, change: Delta, names: list[str]) -> Delta | None:
        """The change of some columns: rows that differ in others only are no change. None when nothing is left."""
        rows = change.frame.rows()
        if rows is None or change.append_only or len(names) + 1 == rows.num_columns:
            return change
        known = {name.lower(): name for name in rows.column_names}
        table = narrowed(rows, [known[c.lower()] for c in names])
        if table is None:
            return change
        if not table.num_rows:
            return None
        append_only = int(table.column(WEIGHT).to_numpy().min()) > 0
        return Delta(ArrowFrame.of(self._spark, table, settled=True), append_only)

    def read(self, scan: Scan, moment: Moment) -> ZSet:
        relation = self._inputs[scan.relation]
        assert relation.after is not None
        version = self._since[scan.relation] if moment == "pre" else None
        snapshot = relation.after if version is None else self._snapshot(relation, version)
        frame = self._wanted(snapshot, scan).read()
        return ZSet(frame.select(_renamed(scan, frame)))

    def given(self, values: Values) -> ZSet:
        here = written_rows(values.rows, values.columns, in_force(self._spark))
        if here is not None:
            return ZSet(ArrowFrame.of(self._spark, here))
        size = Size.exactly(len(values.rows))
        rows = SparkFrame.of(self._spark, lambda: self._spark.session().sql(values.text), values.columns, size)
        return ZSet(self.keep(rows))

    def _wanted(self, snapshot: Snapshot, scan: Scan) -> Pinned:
        """The rows that are sought, if anything is and they are found without Spark; else those within bounds."""
        pinned = Pinned(spark=self._spark, snapshot=snapshot, columns=tuple(stored for _, stored in scan.stored))
        sought = self._sought.within(dict(scan.stored)) if self._sought is not None else None
        if sought is not None:
            names = {place.column: key for key, place in sought.places.items() if place.unit is None}
            found = replace(pinned, files=files_near(snapshot, sought.keys, names)).seeking(sought)
            if found is not None:
                return found
        bounds = self._bounds
        bounded = {stored: name for name, stored in scan.stored if bounds is not None and name in bounds.column_names}
        return pinned.between(bounds, bounded)

    def _snapshot(self, relation: Relation, version: int) -> Snapshot:
        key = (relation.name, version)
        if key not in self._snapshots:
            self._snapshots[key] = snapshot_of(relation.path, version)
        return self._snapshots[key]


def _renamed(scan: Scan, frame: Frame) -> list[Named]:
    """A table's columns under the scan's names; Spark does not mind their case."""
    known = {name.lower(): name for name in frame.columns}
    return [(name, column(known[stored.lower()])) for name, stored in scan.stored]
