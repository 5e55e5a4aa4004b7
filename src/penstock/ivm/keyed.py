"""Nodes that are maintained partition by partition: what changed touches some keys, and their rows are made anew.

delta:  f(R.post by K) - the stored rows of K,   where K are the keys in dR

The stored rows are what was computed before, so nothing is computed twice, and a function that breaks ties in its own
way does not have to break them in the same way again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.expressions.types import has_floats
from penstock.frames.arrow.frame import as_local, table_of
from penstock.frames.arrow.groups import Groups, can_tell_apart, consolidated, to_remove, whole
from penstock.frames.arrow.tables import NotHere, loosened
from penstock.frames.bounded import Span, superset
from penstock.frames.clock import phase
from penstock.frames.mismatch import check_removed
from penstock.frames.spark.frame import select
from penstock.frames.zset import WEIGHT, Delta, Rows, add, consolidate, weighted
from penstock.ivm.materialize import Materialized, Materializer
from penstock.ivm.touched import Touched
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import render
from penstock.sql.dialect import quoted
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.lookup import Place, Sought, look_up
from penstock.storage.parquet import lazily
from penstock.storage.patch import can_locate
from penstock.storage.reader import LOCATED, found_frame, read_files, read_snapshot, schema_of
from penstock.storage.skipping import files_near, rows_near


@dataclass(frozen=True)
class Stored:
    """A node's table before the epoch. ``small``: few rows are of interest; ``tiny``: so few that all may be read."""

    spark: SparkSession
    snapshot: Snapshot
    files: tuple[DataFile, ...] | None = None
    """Those of the table's files that are of interest; None: all of them."""
    condition: str | None = None
    """What all rows of interest fulfil."""
    expected: int | None = None
    """About how many rows do."""
    found: pa.Table | None = None
    """The rows of interest with their places, if they are at hand; others may be among them."""

    @cached_property
    def frame(self) -> DataFrame:
        return self._read(located=False)

    @property
    def worth_locating(self) -> bool:
        """Whether the places of rows that go are worth being known: a small table is written anew."""
        return self.snapshot.rows > limits.SMALL_TABLE_ROWS and can_locate(self.snapshot)

    @cached_property
    def located(self) -> DataFrame:
        """The rows with their places."""
        return self._read(located=True)

    def _read(self, *, located: bool) -> DataFrame:
        if self.found is not None:
            return found_frame(self.spark, self.snapshot, self.found if located else self.found.drop_columns(LOCATED))
        files = self.snapshot.files if self.files is None else self.files
        names = schema_of(self.snapshot).names
        here = lazily(self.spark, self.snapshot, names, files, located=located, condition=self.condition)
        if here is not None:
            return here
        if self.files is None and not located:
            frame = read_snapshot(self.spark, self.snapshot)
        else:
            frame = read_files(self.spark, self.snapshot, [file.path for file in files], located=located)
        return frame if self.condition is None else frame.where(self.condition)

    @property
    def rows(self) -> int:
        if self.expected is not None:
            return self.expected
        return self.snapshot.rows if self.files is None else sum(file.rows or 0 for file in self.files)

    def near(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored:
        """The table without the files that have no row with one of these keys; ``columns`` says which is which."""
        if keys is None or not self.snapshot.plain:
            return self
        near = replace(self, files=files_near(self.snapshot, keys, columns))
        return near._looked_up(keys, columns) or near

    def _looked_up(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Stored | None:
        """With the rows that have these keys at hand, if they can be found without Spark."""
        places = {key: Place(name) for name, key in columns.items() if keys is not None and key in keys.column_names}
        if keys is None or not places:
            return None
        with phase("reading"):
            sought = Sought(keys.select(list(places)), places)
            found = look_up(self.snapshot, schema_of(self.snapshot).names, sought, self.files, located=True)
        return None if found is None else replace(self, found=found, expected=found.num_rows)

    def holding(self, groups: Touched, columns: Mapping[str, str]) -> Stored:
        """The table without what cannot be of the groups."""
        if groups.keys.table is not None:
            return self.near(groups.keys.table, columns)
        within = self.within(groups.reach, columns)
        return within._looked_up(groups.known, columns) or within

    def within(self, reach: pa.Table | None, columns: Mapping[str, str]) -> Stored:
        """The table's rows between the least and the greatest key; ``columns`` as above."""
        known = {name: key for name, key in columns.items() if reach is not None and key in reach.column_names}
        if reach is None or not known or not self.snapshot.plain:
            return self
        condition = superset(reach, {key: Span(name) for name, key in known.items()}, listed=False)
        files, expected = files_near(self.snapshot, reach, known), rows_near(self.snapshot, reach, known)
        return replace(self, files=files, condition=condition, expected=expected)

    @property
    def small(self) -> bool:
        return self.rows <= limits.SMALL_TABLE_ROWS

    @property
    def light(self) -> bool:
        """Whether few rows are looked at, whatever comes of it."""
        if self.found is not None:
            return self.found.num_rows <= limits.LIGHT_ROWS
        files = self.snapshot.files if self.files is None else self.files
        return sum(file.most for file in files) <= limits.SMALL_TABLE_ROWS

    @property
    def tiny(self) -> bool:
        return self.rows <= limits.TINY_ROWS


@dataclass(frozen=True)
class Keyed:
    """The columns of a node's table: what the reader sees, and the keys, under names that begin with ``__`` if unseen.

    ``keys`` are pairs of internal name and name in the table; ``state`` are columns that the table has besides.
    """

    node: NodePlan
    keys: tuple[tuple[str, str], ...]
    state: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: NodePlan, columns: Sequence[str]) -> Keyed:
        shown = {e.name: visible for visible, e in reversed(node.outputs) if isinstance(e, exp.Column)}
        return cls(node, tuple((name, shown.get(name, f"__key{i}")) for i, name in enumerate(columns)))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.keys]

    @property
    def stored(self) -> tuple[str, ...]:
        """In the order of the table, which an aggregate's state tells."""
        visible = [name for name, _ in self.node.outputs]
        return tuple(dict.fromkeys([*visible, *self.state, *(stored for _, stored in self.keys)]))

    def project(self, frame: DataFrame) -> DataFrame:
        """The table's columns from those of the node's operator."""
        columns = {name: f"{render(e)} AS {quoted(name)}" for name, e in self.node.outputs}
        for name, stored in self.keys:
            columns.setdefault(stored, f"{name} AS {quoted(stored)}")
        return select(frame, *[columns[name] for name in self.stored])

    def under_keys(self, table: DataFrame) -> DataFrame:
        """The table with its keys under their internal names too."""
        return select(table, "*", *[f"{quoted(stored)} AS {name}" for name, stored in self.keys])


def replaced(
    keyed: Keyed,
    stored: Stored,
    groups: Touched | None,
    anew: Rows,
    materializer: Materializer,
    change_below: Delta | None = None,
) -> Materialized:
    """The change of the table when these groups' rows (all without) become others.

    ``change_below``, if given, is the change of what they are made of: a group that it removes from must be
    stored. That is looked at where all rows are on the driver; elsewhere it would take a query. What is touched is made
    anew either way.
    """
    beside: Sequence[str] = ()
    if groups is None:
        old = keyed.under_keys(stored.frame)
    else:
        stored = stored.holding(groups, {stored_as: name for name, stored_as in keyed.keys})
        if groups.local and stored.worth_locating and stored.rows <= limits.LOCATED_ROWS:
            beside = LOCATED
        old = groups.of(keyed.under_keys(stored.located if beside else stored.frame), many=not stored.small)
    if change_below is not None:
        _check_stored(keyed, change_below, old)
    old = weighted(old.select(*map(quoted, keyed.stored), *beside), -1)
    new = anew.frame if not beside else select(anew.frame, "*", *(f"NULL AS {name}" for name in beside))
    change = consolidate(add([old, weighted(new, 1)]), small=stored.small and anew.small, beside=beside)
    few = (stored.tiny and anew.small) if groups is None else groups.local
    little = stored.light and anew.light and (groups is None or groups.keys.little)
    result = materializer.materialize(change, few=few, little=little)
    return result.placed(stored.snapshot) if beside else result


def _check_stored(keyed: Keyed, change: Delta, old: DataFrame) -> None:
    """A group that loses a row was there, so it must be among the ``old`` rows."""
    if change.append_only or as_local(change.frame) is None or as_local(old) is None:
        return
    below, here = table_of(change.frame), table_of(old)
    if below is None or here is None or not _told_apart(below, keyed.names):
        return
    try:
        net = consolidated(loosened(below), WEIGHT)
    except NotHere:
        return
    removed = net.filter(pc.less(net.column(WEIGHT), 0))
    if not keyed.names:
        check_removed(min(removed.num_rows, 1), min(removed.num_rows, here.num_rows, 1))
    elif removed.num_rows:
        groups = removed.take(pa.array(Groups([whole(removed.column(c)) for c in keyed.names], 0).first))
        times = np.ones(groups.num_rows, np.int64)
        found = to_remove(loosened(here.select(keyed.names)), groups, keyed.names, times)
        check_removed(groups.num_rows, int(found.sum()))


def _told_apart(rows: pa.Table, columns: Sequence[str]) -> bool:
    """Whether groups by these columns are told apart here as Spark does: 0.0 and -0.0 are one group there."""
    types = [rows.schema.field(name).type for name in columns]
    return all(can_tell_apart(kind) and not has_floats(kind) for kind in types)
