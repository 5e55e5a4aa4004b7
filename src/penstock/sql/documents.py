"""JSON documents as text, as nodes of their own: the text of a value, and the values of a group joined by commas.

The same document is the same text: keys stand as they were written, NULL fields stay, numbers have all their digits,
times are in UTC with microseconds. NaN and Infinity, which JSON has no numbers for, are text, as in PostgreSQL.
"""

from __future__ import annotations

import json
import re
from typing import ClassVar

from sqlglot import exp

_OPTIONS = {
    "ignoreNullFields": "false", "timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}  # fmt: skip


class JsonText(exp.Expression, exp.Func):
    """The JSON text of a value; that of NULL is null."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def spelled(self) -> exp.Expr:
        """The same in functions that Spark has: TO_JSON takes arrays and structs, so it is put into an array."""
        pairs = [exp.Literal.string(part) for pair in _OPTIONS.items() for part in pair]
        listed = exp.Anonymous(this="ARRAY", expressions=[self.this.copy()])
        text = exp.Anonymous(this="TO_JSON", expressions=[listed, exp.Anonymous(this="MAP", expressions=pairs)])
        ends = [exp.Literal.string("^.|.$"), exp.Literal.string("")]
        return exp.Anonymous(this="REGEXP_REPLACE", expressions=[text, *ends])


class JsonAgg(exp.Expression, exp.AggFunc):
    """The texts of a group, joined by commas in an order; NULLs are left out, and of no texts it is NULL."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "order": True}

    @property
    def keys(self) -> list[exp.Ordered]:
        return list(self.args["order"].expressions)


class JsonOrder(JsonAgg):
    """What is kept beside the joined texts of a group, so that one is found again: see ``frames.arrow.elements``.

    Spark keeps nothing. A group without it is aggregated again, by the driver, which then keeps it.
    """


def quoted(found: str) -> str:
    r"""A text as JSON has it, escaped as Spark does.

    >>> print(quoted('a "b" é'))
    "a \"b\" é"
    """
    text_of = json.dumps(found, ensure_ascii=False)
    return re.sub(r"\\u00[01][0-9a-f]", lambda code: code[0][:4] + code[0][4:].upper(), text_of)
