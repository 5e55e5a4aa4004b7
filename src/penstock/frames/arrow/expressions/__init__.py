"""The values of expressions over rows on the driver: a rule for each kind of node, with exactly Spark's result.

``values`` has the table of rules and looks them up; the other modules hold the rules, by subject.
"""

from penstock.frames.arrow.expressions import arithmetic, conditions, sameness, texts, times
from penstock.frames.arrow.expressions.values import Rows, computed, parsed

__all__ = ["Rows", "arithmetic", "computed", "conditions", "parsed", "sameness", "texts", "times"]
