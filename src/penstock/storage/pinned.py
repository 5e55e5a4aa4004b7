"""A version of a table, of which some rows are wanted: as much as the log tells to be of no interest is not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.bounded import Span, superset
from penstock.frames.clock import phase
from penstock.frames.frame import Frame
from penstock.frames.keys import Place, Sought
from penstock.frames.names import LOCATED
from penstock.frames.spark.session import SparkOnDemand
from penstock.storage.delta_log import DataFile, Snapshot
from penstock.storage.lookup import look_up
from penstock.storage.parquet import table_frame
from penstock.storage.patch import can_locate
from penstock.storage.reader import found_frame, schema_of
from penstock.storage.skipping import files_near, rows_near


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """Some columns of a version (all without), and what is known of where the wanted rows are."""

    spark: SparkOnDemand
    snapshot: Snapshot
    columns: tuple[str, ...] | None = None
    files: tuple[DataFile, ...] | None = None
    """Those of the table's files that are of interest; None: all of them."""
    condition: exp.Expr | None = None
    """What all rows of interest fulfil."""
    near_rows: int | None = None
    """About how many rows are of interest, if that is told by more than files."""
    found: pa.Table | None = None
    """The rows of interest with their places, if they are at hand; others may be among them."""

    @property
    def count(self) -> int:
        return self.snapshot.rows

    @property
    def expected(self) -> int:
        if self.near_rows is not None:
            return self.near_rows
        return self.snapshot.rows if self.files is None else sum(file.rows or 0 for file in self.files)

    @property
    def worth_locating(self) -> bool:
        return self.snapshot.rows > limits.SMALL_TABLE_ROWS and can_locate(self.snapshot)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(schema_of(self.snapshot).names) if self.columns is None else self.columns

    def read(self, *, located: bool = False) -> Frame:
        if self.found is not None:
            plain = self.found if located else self.found.drop_columns(list(LOCATED))
            return found_frame(self.spark, self.snapshot, plain)
        return table_frame(
            self.spark, self.snapshot, self.names, self.files, located=located, condition=self.condition,
            expected=self.near_rows,
        )  # fmt: skip

    def only(self, columns: Sequence[str]) -> Pinned:
        """The same rows, of which only some columns are read."""
        return replace(self, columns=tuple(columns))

    def near(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Pinned:
        """The rows that may have one of these keys; ``columns``: of the table, and which of the keys each is."""
        if keys is None or not self.snapshot.plain:
            return self
        near = replace(self, files=files_near(self.snapshot, keys, columns))
        return near.looked_up(keys, columns) or near

    def looked_up(self, keys: pa.Table | None, columns: Mapping[str, str]) -> Pinned | None:
        """With the rows that have these keys at hand, if they can be found without Spark."""
        places = {key: Place(name) for name, key in columns.items() if keys is not None and key in keys.column_names}
        return None if keys is None or not places else self.seeking(Sought(keys.select(list(places)), places))

    def seeking(self, sought: Sought) -> Pinned | None:
        """The same for keys that are found in other ways than as they are."""
        with phase("reading"):
            found = look_up(self.snapshot, self.names, sought, self.files, located=True)
        return None if found is None else replace(self, found=found, near_rows=found.num_rows)

    def within(self, reach: pa.Table | None, columns: Mapping[str, str]) -> Pinned:
        """The rows between the least and the greatest key; ``columns`` as above."""
        known = {name: key for name, key in columns.items() if reach is not None and key in reach.column_names}
        if reach is None or not known or not self.snapshot.plain:
            return self
        condition = superset(reach, {key: Span(name) for name, key in known.items()}, listed=False)
        return replace(self._between(reach, known), condition=condition)

    def between(self, bounds: pa.Table | None, columns: Mapping[str, str]) -> Pinned:
        """The rows of the files that reach into some bounds."""
        if bounds is None or not columns or not (self.snapshot.plain or self.snapshot.is_known):
            return self
        return self._between(bounds, columns)

    def _between(self, bounds: pa.Table, columns: Mapping[str, str]) -> Pinned:
        files, rows = files_near(self.snapshot, bounds, columns), rows_near(self.snapshot, bounds, columns)
        return replace(self, files=files, near_rows=rows)
