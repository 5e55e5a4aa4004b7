"""The oracle: after any change, a view equals its defining query as a multiset, and the recorded action is expected.

The query is run by Spark on the source versions of the view's epoch, with the views below it written out. The sources
are read by delta-rs, which takes a twentieth of the time, or else by Spark's own Delta reader. So nothing of what is
tested computes the expected rows.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, VariantVal

import penstock
from penstock.catalog import Frontier, World
from penstock.engine.planning import emitted_by
from penstock.engine.report import Report
from penstock.frames.spark.types import collected, nullable, to_arrow_schema
from penstock.sql import emission
from penstock.sql.query import spark_text, substitute_tables

SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.decimalOperations.allowPrecisionLoss")
"""What the rows of a query depend on: it is to be run under those that its view was created under."""


def assert_fresh(
    db: penstock.Database, view: str, action: str | Iterable[str] | None = None, strategy: str | None = None
) -> None:
    """The view equals its query at its epoch, in rows and schema; its last refresh was this action and strategy."""
    world = db._catalog.world()
    expected = defining_query(db, world, view.lower(), view.lower())
    actual = db.table(view)
    names = [name for name, _, _ in world.views[view.lower()].columns]
    assert actual.columns == names
    assert types(actual) == types(expected), f"schema of {view}"
    assert_same_rows(actual, expected, view)
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
    found, wanted = multiset(actual), multiset(expected)
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


def defining_query(db: penstock.Database, world: World, key: str, top: str) -> DataFrame:
    """The rows of a view's query on the source versions that the view ``top`` has consumed."""
    sources = world.views_graph().ancestors([key]) & set(world.tables)
    versions = sorted(
        (world.tables[s].path, world.frontiers[top][s].table_id, world.frontiers[top][s].version) for s in sources
    )
    below = sorted((k, _shown(world, k)) for k in world.views_graph().ancestors([key]) & set(world.views))

    def compute() -> DataFrame:
        views: dict[str, str] = {}

        def replace(name: str) -> str:
            read = name.lower()
            if read in world.tables:
                frame = _source(db, world.tables[read].path, world.frontiers[top][read])
            else:
                frame = defining_query(db, world, read, top)
                frame = frame.toDF(*[column for column, _, _ in world.views[read].columns])
            views[read] = re.sub(r"\W", "_", f"oracle_{next(_numbers)}_{read}_{key}")
            frame.createOrReplaceTempView(views[read])
            return views[read]

        return db.spark.sql(substitute_tables(spark_text(_shown(world, key)), replace))

    settings = (db.spark.conf.get(name) for name in SETTINGS)
    return _kept((_shown(world, key), *below, *versions, *settings), compute)


def _shown(world: World, key: str) -> str:
    """A view's query; of one that waits for the watermark, without the windows that it has not passed."""
    mark = world.watermarks.get(key)
    return emission.at(emitted_by(world.views[key]), None if mark is None else mark.value)


def _source(db: penstock.Database, path: str, consumed: Frontier) -> DataFrame:
    """A version of a source table."""

    def read() -> DataFrame:
        found = _by_delta_rs(path, consumed.version)
        if found is None:
            return db.spark.read.format("delta").option("versionAsOf", consumed.version).load(path)
        rows, schema = found
        return db.spark.createDataFrame(rows if rows.num_rows else [], schema)

    return _kept((path, consumed.table_id, consumed.version), read)


def _by_delta_rs(path: str, version: int) -> tuple[pa.Table, StructType] | None:
    """The rows of a version with Spark's types, if delta-rs can read it and they are few."""
    try:
        table = DeltaTable(path, version=version)
        text = table.schema().to_json()
        if any(word in text for word in ("__CHAR_VARCHAR", "columnMapping", "variant", "interval")):
            return None
        schema = StructType.fromJson(json.loads(text))
        rows = pa.table(QueryBuilder().register("t", table).execute(f"SELECT * FROM t LIMIT {_FEW + 1}"))
        wanted = to_arrow_schema(schema, timezone="UTC")
        found = pa.table([rows.column(name).cast(wanted.field(name).type) for name in schema.names], wanted.names)
    except (DeltaError, pa.ArrowInvalid, pa.ArrowNotImplementedError, PySparkException):
        return None
    return (found, nullable(schema)) if found.num_rows <= _FEW else None


_numbers = count()
"""Each temporary view has a name of its own: Spark Connect looks it up again whenever the query is computed."""
_FEW = 20_000
_frames: dict[Any, DataFrame] = {}


def _kept(key: Any, compute: Callable[[], DataFrame]) -> DataFrame:
    """A version never changes, nor does a query on it: if its rows are few, they are computed once and kept here."""
    if key not in _frames:
        if len(_frames) > 100:
            _frames.clear()
        frame = compute()
        padded = '"char(' in frame.schema.json()  # what is kept would no longer be compared as Spark compares CHAR
        if not padded and not any("variant" in kind for kind in types(frame)):
            found = collected(frame)  # all of them: with a LIMIT, Spark would take half as long again
            if found.num_rows <= _FEW:
                fields = [StructField(f.name, nullable(f.dataType)) for f in frame.schema.fields]
                frame = frame.sparkSession.createDataFrame(found, StructType(fields))
        _frames[key] = frame
    return _frames[key]


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
