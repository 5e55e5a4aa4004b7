"""The rows of a table or view at one moment, batch by batch from its files: never all of them in memory.

What Arrow does not read as Spark does is left to Spark, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.catalog import Catalog
from penstock.engine.reading import reading
from penstock.engine.snapshots import Reader, moment_at
from penstock.errors import InternalError
from penstock.frames.frame import NotHere
from penstock.storage.delta_log import Snapshot
from penstock.storage.parquet import batches


@dataclass(frozen=True)
class Stored:
    """A version of a table that can be read here. The order of its rows never changes."""

    epoch: int
    """The epoch that it was asked for, or the newest."""
    schema: pa.Schema
    snapshot: Snapshot

    @property
    def rows(self) -> int:
        return self.snapshot.rows

    def batches(self, start: int = 0) -> Iterator[pa.Table]:
        """The rows from one on. Files that lie wholly before it are not opened."""
        return batches(self.snapshot, self.schema.names, start)[1]()


def stored(catalog: Catalog, name: str, epoch: int | None) -> Stored | None:
    """None if Spark must read it."""
    moment = moment_at(catalog, epoch=epoch)
    key = moment.world.resolve(name)
    snapshot, columns = Reader(_no_spark, moment).snapshot(name)
    if epoch is None and key in moment.world.tables:
        snapshot = reading(catalog, lambda world: [key]).tables[key]
    try:
        return Stored(moment.epoch, batches(snapshot, columns)[0], snapshot)
    except NotHere:
        return None


def _no_spark() -> SparkSession:
    raise InternalError("Spark was asked for by what does without it.")
