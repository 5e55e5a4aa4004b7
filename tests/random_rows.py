"""Random rows with NULLs, duplicates, ties and awkward numbers, to compare the driver's rules with Spark."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.frames.arrow.expressions.values import Rows
from penstock.frames.arrow.groups import whole
from penstock.frames.arrow.tables import loosened
from penstock.frames.settings import USUAL, Settings
from penstock.frames.spark.types import to_arrow_schema

SCHEMA = (
    "id BIGINT, k STRING, kf DOUBLE, i INT, l BIGINT, s SMALLINT, t TINYINT, d DECIMAL(10,2), e DECIMAL(25,6), "
    "w DECIMAL(38,4), f DOUBLE, q DOUBLE, g FLOAT, x STRING, b BOOLEAN, day DATE, ts TIMESTAMP, n TIMESTAMP_NTZ, "
    "y BINARY, p STRUCT<a: INT, b: STRING>, pf STRUCT<a: DOUBLE, b: INT>"
)
"""``f`` has doubles whose sum depends on the order of adding them; those of ``q`` add up exactly."""

_EPOCH = datetime(2024, 1, 30, 22, tzinfo=timezone.utc)
_AWKWARD = (0.0, -0.0, 0.1, 0.2, 0.7, -3.3, 1e16, -1e16, 1 / 3, 123456.789)
_TEXTS = ("", "a", "A", "b", "ab", "é", "日本", "\U0001f600", "\uffee")
_WILD = (math.nan, math.inf, -math.inf, 1e300, 5e-324)


class RandomRows:
    """Some rows; all of it follows from the seed. ``wild``: with numbers that are none, or at the end of their type."""

    def __init__(self, seed: int, count: int, *, wild: bool = False, spread: int = 6):
        self.chance, self.wild, self.spread = random.Random(f"{seed} {count} {wild}"), wild, spread
        self.about = f"seed {seed}, {count} rows, wild: {wild}, spread {spread}"
        schema = to_arrow_schema(StructType.fromDDL(SCHEMA), timezone="UTC")
        self.table = loosened(pa.Table.from_pylist([self._row(number) for number in range(count)], schema))

    def rows(self, settings: Settings = USUAL) -> Rows:
        columns = {name: whole(self.table.column(name)) for name in self.table.column_names}
        return Rows(columns, self.table.num_rows, settings)

    def frame(self, spark: SparkSession) -> DataFrame:
        """The same rows for Spark, in one partition and in this order."""
        return spark.createDataFrame(self.table, StructType.fromDDL(SCHEMA)).coalesce(1)

    def _row(self, number: int) -> dict[str, Any]:
        small = self._small
        return {
            "id": number, "k": self._maybe(lambda: self.chance.choice("abc")),
            "kf": self._maybe(lambda: self.chance.choice([0.0, -0.0, math.nan, -math.nan, 1.5])),
            "i": self._whole(32), "l": self._whole(64), "s": self._whole(16), "t": self._whole(8),
            "d": self._maybe(lambda: Decimal(small()) / 4), "e": self._decimal(25, 6), "w": self._decimal(38, 4),
            "f": self._maybe(lambda: self.chance.choice(_AWKWARD + (_WILD if self.wild else ()))),
            "q": self._maybe(lambda: small() / 4 + 0.0), "g": self._maybe(lambda: self.chance.choice(_AWKWARD)),
            "x": self._maybe(lambda: self.chance.choice(_TEXTS)),
            "b": self._maybe(lambda: self.chance.random() < 0.5),
            "day": self._maybe(lambda: date(2024, 1, 31) + timedelta(days=small() * 10)),
            "ts": self._maybe(lambda: _EPOCH + timedelta(minutes=small() * 30)),
            "n": self._maybe(lambda: (_EPOCH + timedelta(hours=small() * 30)).replace(tzinfo=None)),
            "y": self._maybe(lambda: self.chance.choice([b"", b"a", b"\xff", b"\x7f"])),
            "p": self._maybe(lambda: {"a": self._maybe(small), "b": self._maybe(lambda: self.chance.choice("ab"))}),
            "pf": self._maybe(lambda: {"a": self._maybe(lambda: self.chance.choice([0.0, -0.0, math.nan, 1.5])),
                                       "b": self._maybe(lambda: self.chance.choice([1, 2]))}),
        }  # fmt: skip

    def _maybe(self, value: Callable[[], Any]) -> Any:
        return None if self.chance.random() < 0.15 else value()

    def _small(self) -> int:
        return self.chance.randint(-self.spread, self.spread)

    def _whole(self, bits: int) -> int | None:
        if self.wild and self.chance.random() < 0.1:
            return self.chance.choice([2 ** (bits - 1) - 1, -(2 ** (bits - 1))])
        return self._maybe(self._small)

    def _decimal(self, precision: int, scale: int) -> Decimal | None:
        if self.chance.random() < (0.2 if self.wild else 0.0):
            return Decimal(f"{self.chance.choice(['', '-'])}{10**precision - 1}E-{scale}")
        return self._maybe(lambda: Decimal(f"{self.chance.randint(-(10**14), 10**14)}E-{scale}"))


def spark_type(values: pa.Array) -> str:
    field = from_arrow_schema(pa.schema([pa.field("v", values.type)]), prefer_timestamp_ntz=True)["v"]
    return field.dataType.simpleString()


def identities(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values that can be compared: NaN is NaN, and 0.0 is not -0.0."""
    return [identity(value) for value in values.to_pylist()]


def identity(value: Any) -> Any:
    match value:
        case float():
            return repr(value)
        case dict():
            return tuple((name, identity(inner)) for name, inner in value.items())
        case list():
            return [identity(inner) for inner in value]
    return value


def check_same(text: str, found: pa.Array, there: DataFrame, name: str, values: pa.ChunkedArray, about: str) -> None:
    """What the driver found is what Spark has, in value and type."""
    kind = there.schema[name].dataType.simpleString()
    assert spark_type(found) == kind, f"{text}: {spark_type(found)}, not {kind}, {about}"
    mine, theirs = identities(found), identities(values)
    unlike = [(at, a, b) for at, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b]
    assert not unlike, f"{text}: {len(unlike)} unlike Spark's, first {unlike[:3]} (place, here, there), {about}"


SEEDS: Sequence[tuple[int, int, bool]] = (
    (1, 0, False), (2, 1, False), (3, 7, False), (4, 40, False), (5, 40, True), (6, 300, False)
)  # fmt: skip
"""Seed, rows, and whether they are wild."""
