"""What is sent to every executor is surely small; of what may be, Spark judges, which knows sizes in the end."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.frames import limits
from penstock.frames.sizes import UNKNOWN, Size
from penstock.frames.spark.frame import SparkFrame
from penstock.sql.trees import tree

FEW, GUESSED, MANY = Size.exactly(limits.LOCAL_ROWS), Size(10, 10), Size.exactly(limits.LOCAL_ROWS + 1)


def joined(left: Size, right: Size, how: Any = "inner", *, few: bool = False) -> str:
    """The query of a join of frames that nobody has asked Spark for."""
    spark: Any = None
    sides = [SparkFrame.of(spark, lambda: None, [name], size) for name, size in (("a", left), ("b", right))]  # type: ignore[arg-type, return-value]
    return sides[0].join(sides[1], [tree("a = b")], how, few=few)._source


@pytest.mark.parametrize("unsure", [GUESSED, MANY, UNKNOWN])
def test_only_what_is_surely_small_is_sent_to_every_executor(unsure: Size) -> None:
    assert "BROADCAST(__left" in joined(FEW, unsure)
    assert "BROADCAST(__right" in joined(unsure, FEW)
    assert "BROADCAST(__right" in joined(unsure, FEW, "left")
    for how in ("inner", "left", "left_semi", "left_anti", "full"):
        assert "BROADCAST" not in joined(unsure, unsure, how, few=True)
    assert "BROADCAST" not in joined(FEW, unsure, "left"), "of a left join the left cannot be sent"
    assert "BROADCAST" not in joined(FEW, FEW, "full")
