"""Spark's SQL as sqlglot reads and writes it, with what sqlglot's own Spark dialect has otherwise than Spark 4."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.transforms import (
    eliminate_distinct_on,
    preprocess,
    unnest_to_explode,
)


class SparkSql(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']  # 'it''s' is one string

    class Generator(Spark.Generator):
        """Writes what was read: QUALIFY and WITHIN GROUP stay."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
            **{kind: text for kind, text in Spark.Generator.TRANSFORMS.items() if kind is not exp.WithinGroup},
            exp.Select: preprocess([eliminate_distinct_on, unnest_to_explode]),
        }
