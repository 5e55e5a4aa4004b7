"""The values of expressions over rows on the driver: a rule for each kind of node, with exactly Spark's result.

``values`` has the table of rules and looks them up; the other modules hold the rules, by subject.
"""

from penstock.frames.arrow.expressions import (
    arithmetic,
    calendar,
    casts,
    conditions,
    formats,
    hashes,
    json_text,
    nested,
    numbers,
    patterns,
    sameness,
    texts,
    times,
)
from penstock.frames.arrow.expressions.values import Rows, computed, parsed, written_rows

__all__ = [
    "Rows",
    "arithmetic",
    "calendar",
    "casts",
    "computed",
    "conditions",
    "formats",
    "hashes",
    "json_text",
    "nested",
    "numbers",
    "parsed",
    "patterns",
    "sameness",
    "texts",
    "times",
    "written_rows",
]
