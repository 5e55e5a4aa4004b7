"""Random expressions over random values, under random settings: what the driver computes is what Spark computes.

Every story is told by its seed. ``make test`` tells some under every combination of settings; ``make test-fuzz`` goes
on for as long as it is asked to.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import count, product
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import penstock
from penstock.frames.arrow.expressions.values import computed, parsed
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import NotHere
from penstock.frames.settings import Settings, under
from penstock.frames.spark.session import Running
from penstock.frames.spark.types import collected, to_arrow_schema

MINUTES = float(os.environ.get("PENSTOCK_FUZZ_MINUTES", "0"))
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu")
ALL = [
    {
        "spark.sql.session.timeZone": zone,
        "spark.sql.ansi.enabled": ansi,
        "spark.sql.decimalOperations.allowPrecisionLoss": loss,
    }
    for zone, ansi, loss in product(ZONES, ("true", "false"), ("true", "false"))
]
EXPRESSIONS, BATCHES, ROWS = 150, 1, 6

BITS = {"t": 8, "s": 16, "i": 32, "l": 64}
DECIMALS = {"d": (10, 2), "e": (20, 6), "w": (38, 0), "q": (38, 10), "z": (25, 12), "h": (38, 38)}
SCHEMA = (
    "t TINYINT, s SMALLINT, i INT, l BIGINT, "
    + ", ".join(f"{name} DECIMAL({p},{s})" for name, (p, s) in DECIMALS.items())
    + ", g FLOAT, f DOUBLE, x STRING, y STRING, b BOOLEAN, c BOOLEAN, day DATE, at TIMESTAMP, n TIMESTAMP_NTZ, "
    "p STRUCT<at: TIMESTAMP, value: INT>"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOMENTS = (
    0, -1, 1_774_738_800_000_000, 1_774_744_200_123_456, 1_792_888_200_000_000, 1_792_891_800_000_001, -86_400_000_001,
    -62_135_596_800_000_000, -5_000_000_000_000_000,
)  # fmt: skip
"""Among them those around the hours that Berlin leaves out and has twice, the first of all, and one of 1811."""


class Values:
    """Values of columns: ordinary ones, or extremes among them."""

    def __init__(self, chance: random.Random, extreme: bool):
        self.chance, self.extreme = chance, extreme

    def row(self) -> dict[str, Any]:
        return {
            **{name: self.maybe(lambda bits=bits: self.whole(bits)) for name, bits in BITS.items()},
            **{name: self.maybe(lambda kind=kind: self.decimal(*kind)) for name, kind in DECIMALS.items()},
            "g": self.maybe(self.number), "f": self.maybe(self.number), "x": self.maybe(self.text),
            "y": self.maybe(self.text), "b": self.maybe(lambda: self.chance.random() < 0.5),
            "c": self.maybe(lambda: self.chance.random() < 0.5), "day": self.maybe(self.day),
            "at": self.maybe(self.moment), "n": self.maybe(lambda: self.moment().replace(tzinfo=None)),
            "p": self.maybe(lambda: {"at": self.maybe(self.moment), "value": self.maybe(lambda: self.whole(32))}),
        }  # fmt: skip

    def maybe(self, value: Callable[[], Any]) -> Any:
        return None if self.chance.random() < 0.15 else value()

    def whole(self, bits: int) -> int:
        limit = 2 ** (bits - 1)
        return self.chance.choice([0, 1, -1, limit - 1, -limit] if self.extreme else [0, 1, 2, 3, 7, -7, 20, 12, -1])

    def decimal(self, precision: int, scale: int) -> Decimal:
        limit = 10**precision - 1
        ordinary = [0, 1, -1, 5, -5, 50, 10**scale % limit, 3 * 10**scale % limit, 12345]
        return Decimal(f"{self.chance.choice([*ordinary, limit, -limit] if self.extreme else ordinary)}E-{scale}")

    def number(self) -> float:
        ordinary = [0.0, 1.5, -2.25, 3.0, 100.0]
        return self.chance.choice([*ordinary, -0.0, math.nan, math.inf, -math.inf] if self.extreme else ordinary)

    def text(self) -> str:
        return self.chance.choice(
            [
                "",
                "a",
                "A",
                "ab",
                "é",
                "日本",
                " 7",
                "7",
                "-1",
                "1.50",
                "2026-03-29",
                "2026-10-25 02:30:00",
                "true",
                "1e3",
            ]
        )

    def day(self) -> date:
        days = [date(1970, 1, 1), date(2026, 3, 29), date(2024, 2, 29), date(2026, 10, 25)]
        return self.chance.choice(
            [*days, date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)] if self.extreme else days
        )

    def moment(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.chance.choice(_MOMENTS if self.extreme else _MOMENTS[:6]))


LEAVES = {
    "whole": ["t", "s", "i", "l", "7", "0", "1", "-3", "2147483648", "p.value"],
    "decimal": [*DECIMALS, "1.50", "0.05", "3BD", "0.000001", "100.0"],
    "number": ["f", "g", "1D", "2.5D", "0D"],
    "truth": ["b", "c", "true", "b IS NULL", "NULL"],
    "text": ["x", "y", "'a'", "'7'", "'2026-03-29'"],
    "day": ["day", "DATE'2026-03-29'"],
    "moment": ["at", "p.at", "TIMESTAMP'2026-03-29 00:30:00'"],
    "local": ["n", "TIMESTAMP_NTZ'2026-03-29 02:30:00'"],
}
RULES: dict[str, list[tuple[str, ...]]] = {
    "whole": [
        ("({} + {})", "whole", "whole"), ("({} - {})", "whole", "whole"), ("({} * {})", "whole", "whole"),
        ("(- {})", "whole"), ("({} % {})", "whole", "whole"), ("PMOD({}, 7)", "whole"), ("LENGTH({})", "text"),
        ("YEAR({})", "day"), ("EXTRACT(MONTH FROM {})", "day"), ("EXTRACT(DAY FROM {})", "moment"),
        ("HOUR({})", "moment"), ("CAST({} AS BIGINT)", "decimal"), ("CAST({} AS INT)", "whole"),
        ("CAST({} AS INT)", "text"), ("UNIX_MICROS({})", "moment"), ("CAST({} AS TINYINT)", "number"),
        ("DATEDIFF({}, {})", "day", "moment"), ("CAST({} AS BIGINT)", "moment"), ("TRY_CAST({} AS INT)", "text"),
        ("({} DIV 3)", "whole"), ("ROUND({}, -1)", "whole"), ("INSTR({}, {})", "text", "text"), ("ABS({})", "whole"),
        ("GREATEST({}, {})", "whole", "whole"), ("TIMESTAMPDIFF(HOUR, {}, {})", "moment", "moment"),
        ("TIMESTAMPDIFF(MONTH, {}, {})", "day", "local"), ("EXTRACT(WEEK FROM {})", "moment"),
        ("UNIX_TIMESTAMP({})", "moment"), ("MINUTE({})", "local"), ("PMOD({}, {})", "whole", "whole"),
    ],
    "decimal": [
        ("({} + {})", "decimal", "decimal"), ("({} - {})", "decimal", "decimal"),
        ("({} * {})", "decimal", "decimal"), ("({} / {})", "decimal", "decimal"),
        ("({} % {})", "decimal", "decimal"), ("(- {})", "decimal"), ("({} * {})", "whole", "decimal"),
        ("({} / {})", "decimal", "whole"), ("({} / {})", "whole", "decimal"),
        ("CAST({} AS DECIMAL(12,3))", "decimal"),
        ("CAST({} AS DECIMAL(20,0))", "whole"), ("CAST({} AS DECIMAL(38,18))", "decimal"),
        ("CAST({} AS DECIMAL(10,2))", "text"), ("ROUND({}, 1)", "decimal"),
        ("BROUND({}, 2)", "decimal"), ("FLOOR({})", "decimal"), ("ABS({})", "decimal"),
        ("EXTRACT(SECOND FROM {})", "moment"), ("LEAST({}, {})", "decimal", "whole"),
        ("CAST({} AS DECIMAL(20,4))", "number"),
    ],
    "number": [
        ("({} + {})", "number", "number"), ("({} * {})", "number", "number"), ("({} / {})", "whole", "whole"),
        ("CAST({} AS DOUBLE)", "whole"), ("(- {})", "number"), ("({} / {})", "number", "number"),
        ("CAST({} AS DOUBLE)", "decimal"), ("CAST({} AS DOUBLE)", "text"), ("({} + {})", "number", "whole"),
        ("ROUND({}, 1)", "number"), ("SQRT({})", "number"), ("SIGN({})", "decimal"), ("({} * {})", "number", "decimal"),
        ("MONTHS_BETWEEN({}, {})", "moment", "day"), ("TRY_DIVIDE({}, {})", "whole", "whole"),
    ],
    "truth": [
        *[(f"({{}} {op} {{}})", a, b)
          for op in ("=", "<", ">=", "<>", "<=>")
          for a, b in [("whole", "whole"), ("decimal", "decimal"), ("whole", "decimal"), ("text", "text"),
                       ("day", "day"), ("day", "moment"), ("moment", "moment"), ("local", "moment"),
                       ("day", "local"), ("text", "whole"), ("text", "day"), ("moment", "text"),
                       ("number", "number"), ("number", "whole"), ("truth", "truth"), ("number", "decimal")]],
        *[("({} AND {})", "truth", "truth"), ("({} OR {})", "truth", "truth"), ("(NOT {})", "truth")] * 6,
        *[("({} IN ({}, {}))", kind, kind, kind) for kind in ("whole", "decimal", "text", "day", "moment")],
        *[("({} BETWEEN {} AND {})", kind, kind, kind) for kind in ("whole", "decimal", "day", "moment", "text")],
        *[("({} IS NULL)", kind) for kind in ("whole", "decimal", "moment")] * 2,
        ("({} LIKE 'a%')", "text"), ("({} NOT LIKE '_')", "text"), ("CAST({} AS BOOLEAN)", "text"),
        ("({} ILIKE '%A%')", "text"), ("({} RLIKE '^[a-z0-9]+$')", "text"), ("({} IS TRUE)", "truth"),
        ("({} IS DISTINCT FROM {})", "whole", "decimal"), ("STARTSWITH({}, {})", "text", "text"),
        ("({} IS NOT FALSE)", "truth"), ("CONTAINS({}, {})", "text", "text"),
    ],
    "text": [
        ("({} || {})", "text", "text"), ("CONCAT({}, {})", "text", "text"), ("SUBSTRING({}, 1, 2)", "text"),
        ("CAST({} AS STRING)", "moment"), ("CAST({} AS STRING)", "day"), ("CAST({} AS STRING)", "decimal"),
        ("CAST({} AS STRING)", "whole"), ("CAST({} AS STRING)", "number"), ("CAST({} AS STRING)", "local"),
        ("DATE_FORMAT({}, 'yyyy-MM-dd HH')", "moment"), ("UPPER({})", "text"),
        ("TRIM({})", "text"), ("SUBSTRING({}, {}, 2)", "text", "whole"), ("REPLACE({}, {}, 'x')", "text", "text"),
        ("LPAD({}, 4, '0')", "text"), ("CONCAT_WS('-', {}, {})", "text", "whole"), ("MD5({})", "text"),
        ("SPLIT({}, '-')[0]", "text"), ("REVERSE({})", "text"), ("REGEXP_REPLACE({}, '[0-9]+', '#')", "text"),
        ("DATE_FORMAT({}, 'yyyyMM')", "day"), ("RIGHT({}, 2)", "text"), ("{} || {}", "decimal", "number"),
    ],
    "day": [
        ("CAST({} AS DATE)", "moment"), ("CAST({} AS DATE)", "local"), ("CAST({} AS DATE)", "text"),
        ("({} + INTERVAL 1 DAY)", "day"), ("({} - INTERVAL '3' MONTH)", "day"), ("({} + INTERVAL '1' YEAR)", "day"),
        ("DATE({})", "moment"), ("DATE_ADD({}, 3)", "day"),
        ("LAST_DAY({})", "moment"), ("ADD_MONTHS({}, {})", "day", "whole"), ("TRUNC({}, 'QUARTER')", "day"),
        ("TO_DATE({}, 'yyyy-MM-dd')", "text"), ("NEXT_DAY({}, 'MO')", "day"),
    ],
    "moment": [
        *[(f"DATE_TRUNC('{unit}', {{}})", "moment")
          for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "MILLISECOND")],
        ("DATE_TRUNC('DAY', {})", "day"), ("DATE_TRUNC('HOUR', {})", "local"), ("TIMESTAMP_MICROS({})", "whole"),
        ("CAST({} AS TIMESTAMP)", "day"), ("CAST({} AS TIMESTAMP)", "text"), ("CAST({} AS TIMESTAMP)", "local"),
        ("({} + INTERVAL 1 HOUR)", "moment"), ("CAST({} AS TIMESTAMP)", "whole"),
        ("TIMESTAMPADD(MICROSECOND, -PMOD(UNIX_MICROS({0}), 90000000), {0})", "moment"),
        ("({} + INTERVAL 1 MONTH)", "moment"), ("({} - INTERVAL 1 DAY)", "moment"),
        ("TIMESTAMPADD(DAY, {}, {})", "whole", "moment"), ("TO_UTC_TIMESTAMP({}, 'Europe/Berlin')", "moment"),
    ],
    "local": [("CAST({} AS TIMESTAMP_NTZ)", "moment"), ("CAST({} AS TIMESTAMP_NTZ)", "day"),
              ("({} + INTERVAL 1 HOUR)", "local"), ("TIMESTAMPADD(MONTH, 1, {})", "local")],
}  # fmt: skip

for kind, rules in RULES.items():
    rules += [
        ("IF({}, {}, {})", "truth", kind, kind), ("COALESCE({}, {})", kind, kind), ("NULLIF({}, {})", kind, kind),
        ("CASE {} WHEN {} THEN {} END", kind, kind, kind),
        ("CASE WHEN {} THEN {} WHEN {} THEN {} END", "truth", kind, "truth", kind),
    ]  # fmt: skip


class Expressions:
    """Expressions of a kind, made of others down to columns and literals."""

    def __init__(self, chance: random.Random):
        self.chance = chance

    def any(self, depth: int) -> str:
        return self.of(
            self.chance.choice(["whole", "decimal", "number", "truth", "text", "day", "moment", "local"]), depth
        )

    def of(self, kind: str, depth: int) -> str:
        leaves: list[str] = LEAVES[kind]
        if depth == 0 or self.chance.random() < 0.15:
            return self.chance.choice(leaves)
        made = self.chance.choice(RULES[kind])
        parts = [self.of(part, depth - 1) if part in LEAVES else part for part in made[1:]]
        return made[0].format(*parts)


class Story:
    """Expressions over a few rows, under settings; all of it follows from the seed."""

    def __init__(self, spark: SparkSession, seed: int, settings: dict[str, str], rows: int = ROWS):
        chance = random.Random(f"{seed} {sorted(settings.items())}")
        self.spark, self.settings, self.seed = spark, Settings.of(settings), seed
        schema = StructType.fromDDL(SCHEMA)
        values = Values(chance, extreme=chance.random() < 0.4)
        table = pa.Table.from_pylist([values.row() for _ in range(rows)], to_arrow_schema(schema, timezone="UTC"))
        self.frame = ArrowFrame.of(Running(spark), table)
        made = Expressions(chance)
        self.texts = list(dict.fromkeys(made.any(chance.choice([1, 1, 2, 3])) for _ in range(EXPRESSIONS)))

    def told(self) -> int:
        """How many of the expressions were computed on the driver; all of them as Spark does."""
        with under(self.spark, self.settings):
            here = {}
            for text in self.texts:
                try:
                    here[text] = computed(parsed(text), self.frame.batch)
                except NotHere:
                    continue
            compared = 0
            for text, kind, there in self.by_spark(list(here)):
                mine = pa.table({"v": here[text]})
                known = from_arrow_schema(mine.schema, prefer_timestamp_ntz=True)["v"].dataType.simpleString()
                about = f"{text} under {self.settings.shown}, seed {self.seed}: {self.frame.table.to_pylist()}"
                assert known in (kind, "void"), f"{known}, not {kind}: {about}"
                found, wanted = ([identity(v) for v in column] for column in (mine.column("v"), there))
                assert found == wanted, f"{found}, not {wanted}: {about}"
                compared += 1
            return compared

    def by_spark(self, texts: Sequence[str]) -> Iterator[tuple[str, str, pa.ChunkedArray]]:
        """Spark's type and values of expressions; those that it does not accept at all are left out."""
        if not texts:
            return
        numbered = self.frame.table.append_column("__at", pa.array(range(self.frame.table.num_rows)))
        frame = ArrowFrame.of(Running(self.spark), numbered).by_spark.frame
        try:
            asked = frame.selectExpr("__at", *[f"{text} AS v{number}" for number, text in enumerate(texts)])
            found = collected(asked).sort_by("__at")
        except (AnalysisException, PySparkException) as problem:
            if len(texts) > 1:
                half = len(texts) // 2
                yield from self.by_spark(texts[:half])
                yield from self.by_spark(texts[half:])
                return
            if not isinstance(problem, AnalysisException):
                raise AssertionError(f"{texts[0]} is an error, seed {self.seed}") from problem
            return
        for number, text in enumerate(texts):
            yield text, asked.schema[f"v{number}"].dataType.simpleString(), found.column(f"v{number}")


def identity(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    if pa.types.is_timestamp(value.type) or pa.types.is_date(value.type):
        return str(value.cast(pa.int64() if pa.types.is_timestamp(value.type) else pa.int32()))
    found = value.as_py()
    return repr(found) if isinstance(found, float) else found


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with penstock.connect(tmp_path_factory.mktemp("fuzz")) as db:
        before = {name: db.spark.conf.get(name, None) for name in INTERPRETED}
        for name, value in INTERPRETED.items():
            db.spark.conf.set(name, value)
        yield db.spark
        for name, old in before.items():
            db.spark.conf.unset(name) if old is None else db.spark.conf.set(name, old)


INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.mark.parametrize("settings", ALL, ids=lambda s: "-".join(s.values()))
def test_expressions_are_what_spark_computes(spark: SparkSession, settings: dict[str, str]) -> None:
    compared = sum(Story(spark, seed, settings).told() for seed in range(BATCHES))
    assert compared > BATCHES * EXPRESSIONS // 8, "hardly anything is computed on the driver"


@pytest.mark.skipif(not MINUTES, reason="PENSTOCK_FUZZ_MINUTES says how long to go on")
def test_expressions_for_a_while(spark: SparkSession) -> None:
    end = time.monotonic() + 60 * MINUTES
    for seed in count(1_000):
        if time.monotonic() > end:
            break
        Story(spark, seed, ALL[seed % len(ALL)]).told()
