"""Spark's SQL as sqlglot reads and writes it, with what sqlglot's own Spark dialect has otherwise than Spark 4."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.transforms import eliminate_distinct_on, preprocess, unnest_to_explode


class SparkSql(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']  # 'it''s' is one string

    class Generator(Spark.Generator):
        """Writes what was read as it mostly was written: QUALIFY, WITHIN GROUP, IS NOT NULL, DATE'..' stay."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
            **{kind: text for kind, text in Spark.Generator.TRANSFORMS.items() if kind is not exp.WithinGroup},
            exp.Select: preprocess([eliminate_distinct_on, unnest_to_explode]),
        }

        def not_sql(self, expression: exp.Not) -> str:
            inner = expression.this
            if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
                return f"{self.sql(inner, 'this')} IS NOT NULL"
            return str(super().not_sql(expression))

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            value, kind = expression.this, expression.to.this
            if isinstance(value, exp.Literal) and value.is_string and kind == exp.DataType.Type.DATE:
                return f"DATE{self.sql(value)}"
            return str(super().cast_sql(expression, safe_prefix))

        def join_sql(self, expression: exp.Join) -> str:
            if expression.kind == "CROSS" and not expression.args.get("on"):
                return f" INNER JOIN {self.sql(expression, 'this')}"  # a comma, to Spark
            return str(super().join_sql(expression))
