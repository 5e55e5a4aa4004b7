"""The oracle: after any change, a view equals its defining query as a multiset, and the recorded action is expected.

The query is run by Spark on the source versions of the view's epoch, with the views below it written out. Its sources
and the view's own table are read by delta-rs, which takes a twentieth of the time, or else by Spark's Delta reader and
by Penstock. So nothing of what is tested computes the expected rows, and a check costs Spark one query.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import count
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, VariantVal

import penstock
from penstock.catalog import Frontier, World
from penstock.engine.planning import emitted_by
from penstock.engine.report import Report
from penstock.frames.spark.types import collected, nullable, to_arrow_schema
from penstock.sql import emission
from penstock.sql.names import key_of
from penstock.sql.query import spark_text, substitute_tables

SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.decimalOperations.allowPrecisionLoss")
"""What the rows of a query depend on: it is to be run under those that its view was created under."""


def assert_fresh(
    db: penstock.Database, view: str, action: str | Iterable[str] | None = None, strategy: str | None = None
) -> None:
    """The view equals its query at its epoch, in rows and schema; its last refresh was this action and strategy."""
    world = db._catalog.world()
    record = world.views[key_of(view)]
    own, names = world.nodes[record.key], [name for name, _, _ in record.columns]
    expected = defining_query(db, world, record.key, record.key)
    assert own.version is not None, f"{view} has no rows yet"
    actual = Rows.at(own.path, own.version, names) or Rows.of(db.table(view))
    assert actual.schema.names == names
    assert actual.types == expected.types, f"schema of {view}"
    found, wanted = actual.counted, expected.counted
    if found is None or wanted is None:
        found, wanted = multiset(db.table(view)), multiset(expected.frame(db.spark))
    _assert_same(found, wanted, view)
    last = db.history(view, 1)[0]
    assert last.status == "SUCCEEDED", last
    if action is not None:
        allowed = (action,) if isinstance(action, str) else tuple(action)
        assert last.action in allowed, f"{view}: {last.action} ({last.reason}), expected {' or '.join(allowed)}"
    if strategy is not None:
        assert last.strategy == strategy, f"{view}: {last.strategy}, expected {strategy}"


def assert_all_fresh(db: penstock.Database, action: str | Iterable[str] | None = None) -> None:
    for status in db.status():
        assert_fresh(db, status.name, action)


def after(
    db: penstock.Database, *changes: str, action: str | Iterable[str] = "INCREMENTAL", **others: str | Iterable[str]
) -> Report:
    """Make changes, refresh, and check every view; ``others`` are views whose action is another than ``action``."""
    for change in changes:
        db.sql(change)
    report = db.refresh()
    for status in db.status():
        assert_fresh(db, status.name, others.get(status.name, action))
    return report


def assert_same_rows(actual: DataFrame, expected: DataFrame, what: str = "rows") -> None:
    _assert_same(multiset(actual), multiset(expected), what)


def _assert_same(found: Counter[Any], wanted: Counter[Any], what: str) -> None:
    unexpected, missing = list((found - wanted).elements()), list((wanted - found).elements())
    for row in list(unexpected):
        twin = next((other for other in missing if _nearly(row, other)), None)
        if twin is not None:
            unexpected.remove(row)
            missing.remove(twin)
    problem = f"{what}: unexpected {Counter(unexpected)}, missing {Counter(missing)}"
    assert not unexpected, problem
    assert not missing, problem


def types(frame: DataFrame) -> list[str]:
    return [field.dataType.simpleString() for field in frame.schema]


def multiset(frame: DataFrame) -> Counter[Any]:
    """The rows, counted; dates and times as text, since Spark knows years that Python does not."""
    timed = ("date", "timestamp", "timestamp_ntz")
    columns = [
        F.col(f"`{f.name}`").cast("string") if f.dataType.simpleString() in timed else F.col(f"`{f.name}`")
        for f in frame.schema.fields
    ]
    return Counter(_plain(row) for row in frame.select(*columns).collect())


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows as sorted tuples, for short tests that write the expected rows down."""
    return sorted((tuple(row) for row in frame.collect()), key=lambda r: tuple((v is not None, str(v)) for v in r))


class Rows:
    """What a query or a version of a table gives: in Arrow if that can hold it and it is not much, else as Spark's."""

    def __init__(self, schema: StructType, table: pa.Table | None, frame: DataFrame | None = None):
        self.schema = schema
        self._table = table
        self._frame = frame

    @classmethod
    def of(cls, frame: DataFrame) -> Rows:
        """What a query gives, computed now."""
        schema = frame.schema
        padded = '"char(' in schema.json()  # what is kept would no longer be compared as Spark compares CHAR
        if padded or any("variant" in field.dataType.simpleString() for field in schema):
            return cls(schema, None, frame)
        found = collected(frame)  # all of them: with a LIMIT, Spark would take half as long again
        return cls(schema, found) if found.num_rows <= _FEW else cls(schema, None, frame)

    @classmethod
    def at(cls, path: str, version: int, columns: Sequence[str] | None = None) -> Rows | None:
        """Some columns of a version of a table, if delta-rs can read it with Spark's types, and it is not large."""
        try:
            table = DeltaTable(path, version=version)
            text = table.schema().to_json()
            if any(word in text for word in ("__CHAR_VARCHAR", "columnMapping", "variant", "interval")):
                return None
            stored = StructType.fromJson(json.loads(text))
            schema = StructType([stored[name] for name in columns]) if columns is not None else stored
            rows = pa.table(QueryBuilder().register("t", table).execute(f"SELECT * FROM t LIMIT {_FEW + 1}"))
            wanted = to_arrow_schema(schema, timezone="UTC")
            found = pa.table([rows.column(name).cast(wanted.field(name).type) for name in schema.names], wanted.names)
        except (DeltaError, pa.ArrowInvalid, pa.ArrowNotImplementedError, PySparkException):
            return None
        return cls(schema, found) if found.num_rows <= _FEW else None

    def frame(self, spark: SparkSession) -> DataFrame:
        if self._frame is None:
            assert self._table is not None
            schema = StructType([StructField(f.name, nullable(f.dataType)) for f in self.schema.fields])
            self._frame = spark.createDataFrame(self._table if self._table.num_rows else [], schema)
        return self._frame

    @property
    def types(self) -> list[str]:
        return [field.dataType.simpleString() for field in self.schema]

    @cached_property
    def counted(self) -> Counter[Any] | None:
        """The rows, counted; None if Python does not know their values."""
        if self._table is None:
            return None
        try:
            return Counter(_plain(row) for row in zip(*map(_values, self._table.columns), strict=True))
        except (ValueError, OverflowError):  # a year that Python does not know, fields of the same name
            return None


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return list(column.to_pylist(maps_as_pydicts="strict"))


def defining_query(db: penstock.Database, world: World, key: str, top: str) -> Rows:
    """The rows of a view's query on the source versions that the view ``top`` has consumed."""
    sources = world.views_graph().ancestors([key]) & set(world.tables)
    versions = sorted(
        (world.tables[s].path, world.frontiers[top][s].table_id, world.frontiers[top][s].version) for s in sources
    )
    below = sorted((k, _shown(world, k)) for k in world.views_graph().ancestors([key]) & set(world.views))

    def compute() -> Rows:
        views: dict[str, str] = {}

        def replace(name: str) -> str:
            read = key_of(name)
            if read in world.tables:
                frame = _source(db, world.tables[read].path, world.frontiers[top][read]).frame(db.spark)
            else:
                frame = defining_query(db, world, read, top).frame(db.spark)
                frame = frame.toDF(*[column for column, _, _ in world.views[read].columns])
            views[read] = re.sub(r"\W", "_", f"oracle_{next(_numbers)}_{read}_{key}", flags=re.ASCII)
            frame.createOrReplaceTempView(views[read])
            return views[read]

        return Rows.of(db.spark.sql(substitute_tables(spark_text(_shown(world, key)), replace)))

    settings = (db.spark.conf.get(name) for name in SETTINGS)
    return _kept((_shown(world, key), *below, *versions, *settings), compute)


def _shown(world: World, key: str) -> str:
    """A view's query; of one that waits for the watermark, without the windows that it has not passed."""
    mark = world.watermarks.get(key)
    return emission.at(emitted_by(world.views[key]), None if mark is None else mark.value)


def _source(db: penstock.Database, path: str, consumed: Frontier) -> Rows:
    """A version of a source table."""

    def read() -> Rows:
        by_spark = db.spark.read.format("delta").option("versionAsOf", consumed.version)
        return Rows.at(path, consumed.version) or Rows.of(by_spark.load(path))

    return _kept((path, consumed.table_id, consumed.version), read)


_numbers = count()
"""Each temporary view has a name of its own: Spark Connect looks it up again whenever the query is computed."""
_FEW = 20_000
_known: dict[Any, Rows] = {}


def _kept(key: Any, compute: Callable[[], Rows]) -> Rows:
    """A version never changes, nor does a query on it: they are computed once and kept here."""
    if key not in _known:
        if len(_known) > 100:
            _known.clear()
        _known[key] = compute()
    return _known[key]


def _nearly(one: Any, other: Any) -> bool:
    """The same but for one in the last digit that is kept of a float: two sums may lie just beside a half of it."""
    match one, other:
        case tuple(), tuple():
            return len(one) == len(other) and all(map(_nearly, one, other))
        case float(), float():
            return math.isclose(one, other, rel_tol=1e-11)
    return bool(one == other)


def _plain(value: Any) -> Any:
    """A value that can be counted: NaN equals NaN, sums of floats may differ in their last bits."""
    match value:
        case Row() | tuple() | list():
            return tuple(_plain(v) for v in value)
        case dict():
            return frozenset((_plain(k), _plain(v)) for k, v in value.items())
        case float():
            return "NaN" if math.isnan(value) else float(f"{value:.11e}")
        case datetime.datetime():
            return value.isoformat()
        case VariantVal():
            return value.toJson()
    return value
