"""Spark's SQL as sqlglot reads and writes it, with what sqlglot's own Spark dialect has otherwise than Spark 4."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.transforms import eliminate_distinct_on, preprocess, unnest_to_explode

_OWN = (exp.WithinGroup, exp.TsOrDsAdd)


class SparkSql(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']  # 'it''s' is one string

    class Generator(Spark.Generator):
        """Writes what was read as it mostly was written: QUALIFY, WITHIN GROUP, IS NOT NULL, DATE'..' stay."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
            **{kind: text for kind, text in Spark.Generator.TRANSFORMS.items() if kind not in _OWN},
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

        def log_sql(self, expression: exp.Log) -> str:
            base, value = expression.this, expression.expression
            if value is not None and isinstance(base, exp.Literal) and base.this in ("2", "10"):
                return f"LOG{base.this}({self.sql(value)})"  # the other form differs in the last bits
            return str(super().log_sql(expression))

        def tsordsadd_sql(self, expression: exp.TsOrDsAdd) -> str:
            days = expression.expression
            if isinstance(days, exp.Mul) and isinstance(days.right, exp.Neg) and days.right.this.this == "1":
                return f"DATE_SUB({self.sql(expression, 'this')}, {self.sql(days.left)})"
            return str(Spark.Generator.TRANSFORMS[exp.TsOrDsAdd](self, expression))

        def join_sql(self, expression: exp.Join) -> str:
            if expression.kind == "CROSS" and not expression.args.get("on"):
                return f" INNER JOIN {self.sql(expression, 'this')}"  # a comma, to Spark
            return str(super().join_sql(expression))
