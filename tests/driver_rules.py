"""An oracle for expressions on the driver: what a rule computes is what Spark computes, value by value and in type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from sqlglot import exp

from driver_values import SCHEMA
from penstock.frames.arrow.expressions.values import Rows, computed, parsed
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import NotHere
from penstock.frames.settings import Settings, under
from penstock.frames.spark.session import Running
from penstock.frames.spark.types import collected, to_arrow_schema

_AT = "__at"
_PARTS = 60
"""Expressions of one query: Spark plans many columns slower than it computes them."""


class Trial:
    """Rows on the driver, the same rows for Spark, and settings that both compute under."""

    def __init__(self, spark: SparkSession, rows: Sequence[dict[str, Any]], settings: Mapping[str, str]):
        self.spark, self.settings = spark, Settings.of(settings)
        self.schema = StructType.fromDDL(SCHEMA)
        self.table = pa.Table.from_pylist(list(rows), to_arrow_schema(self.schema, timezone="UTC"))
        with under(spark, self.settings):
            self.rows: Rows = ArrowFrame.of(Running(spark), self.table).batch

    def wrong(self, texts: Sequence[str], *, whole: bool) -> list[str]:
        """What is not as it should be. ``whole``: a rule must compute all rows; else only what it does is compared."""
        with under(self.spark, self.settings):
            here = {text: found for text in texts if (found := self._here(text, whole=whole)) is not None}
            missing = [f"{text} is not computed on the driver" for text in texts if text not in here] if whole else []
            return [*missing, *self._unlike(here)]

    def computed(self, texts: Sequence[str]) -> list[str]:
        """Those that are computed, which they should not be."""
        with under(self.spark, self.settings):
            return [text for text in texts if self._here(text, whole=True) is not None]

    def _here(self, text: str, *, whole: bool) -> tuple[list[int], pa.Array] | None:
        """The places of rows that a rule computes, and its values for them."""
        try:
            return list(range(self.rows.count)), computed(parsed(text), self.rows)
        except NotHere:
            if whole:
                return None
        places, values = [], []
        for place in range(self.rows.count):
            try:
                values.append(computed(parsed(text), self.rows.some(np.array([place]))))
                places.append(place)
            except NotHere:
                continue
        kinds = {v.type for v in values if not pa.types.is_null(v.type)}
        if len(kinds) > 1:
            raise AssertionError(f"{text} is of several types: {kinds}")
        return (places, pa.concat_arrays([v.cast(*kinds) if kinds else v for v in values])) if places else None

    def _unlike(self, here: Mapping[str, tuple[list[int], pa.Array]]) -> Iterator[str]:
        texts = list(here)
        for begin in range(0, len(texts), _PARTS):
            part = texts[begin : begin + _PARTS]
            for text, kind, there in self._by_spark(part, here):
                if there is None:
                    yield f"{text}: {kind}"
                    continue
                places, mine = here[text]
                known = from_arrow_schema(pa.table({"v": mine}).schema, prefer_timestamp_ntz=True)["v"].dataType
                if known.simpleString() not in (kind, "void"):
                    yield f"{text} is {kind}, not {known.simpleString()}"
                for place, value in zip(places, mine, strict=True):
                    one, other = _identity(value), _identity(there[place])
                    if one != other:
                        yield f"{text} is {other!r}, not {one!r}, for {self._shown(text, place)}"
                        break

    def _by_spark(
        self, texts: Sequence[str], here: Mapping[str, tuple[list[int], pa.Array]]
    ) -> Iterator[tuple[str, str, pa.ChunkedArray | None]]:
        """Spark's type and values, for the rows that a rule computed: the others may be an error."""
        numbered = self.table.append_column(_AT, pa.array(range(self.table.num_rows)))
        frame = self.spark.createDataFrame(numbered, StructType([*self.schema.fields]).add(_AT, "long"))
        try:
            asked = frame.selectExpr(_AT, *[f"{self._only(t, here[t][0])} AS v{i}" for i, t in enumerate(texts)])
            found = collected(asked).sort_by(_AT)
        except (AnalysisException, PySparkException) as problem:
            if len(texts) == 1:
                yield texts[0], f"Spark says: {str(problem)[:300]}", None
                return
            half = len(texts) // 2
            yield from self._by_spark(texts[:half], here)
            yield from self._by_spark(texts[half:], here)
            return
        for number, text in enumerate(texts):
            yield text, asked.schema[f"v{number}"].dataType.simpleString(), found.column(f"v{number}")

    def _only(self, text: str, places: Sequence[int]) -> str:
        if len(places) == self.rows.count:
            return text
        return f"CASE WHEN {_AT} IN ({', '.join(map(str, places))}) THEN {text} END"

    def _shown(self, text: str, place: int) -> dict[str, Any]:
        row = self.table.slice(place, 1)
        named = {column.name for column in parsed(text).find_all(exp.Identifier)}
        return {name: row.column(name)[0] for name in row.column_names if name in named}


def _identity(value: pa.Scalar) -> Any:
    """A value that is equal only to the same one: NaN to NaN, 0.0 not to -0.0."""
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return str(value.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32()))
    if pa.types.is_map(kind):
        return [(_identity(pair["key"]), _identity(pair["value"])) for pair in value.values]
    if pa.types.is_list(kind):
        return [_identity(element) for element in value.values]
    if pa.types.is_struct(kind):
        return {field.name: _identity(value[i]) for i, field in enumerate(kind)}
    found = value.as_py()
    return repr(found) if isinstance(found, float) else found
