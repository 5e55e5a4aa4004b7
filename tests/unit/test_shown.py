"""What is told of a step that was left to Spark."""

from __future__ import annotations

from penstock.frames.arrow.frame import _shown
from penstock.sql.trees import column, same, tree


def test_conditions_of_a_join_can_be_shown() -> None:
    assert _shown(same(column("a"), column("b"))) == "`a` <=> `b`"
    assert _shown(tree("a > 1")) == "a > 1"
