"""What a contender can do. Only ``refresh`` is timed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.bench.stage import Stage


class GaveUp(Exception):
    """A contender failed at its work, for a reason of its own; the others go on."""


class Contender(ABC):
    name: ClassVar[str]

    def __init__(self, stage: Stage):
        self.stage = stage
        self.ready = False
        """Whether it was prepared."""
        self.remark = ""
        """What readers of its times must know."""

    def missing(self) -> str | None:
        """Why it cannot run here at all."""
        return None

    def prepare(self) -> None:  # noqa: B027
        """Make what it needs before the first change."""

    def follow(self) -> None:  # noqa: B027
        """Do after a change what is not to be timed."""

    def refuses(self, views: Sequence[str]) -> str | None:
        """Why it cannot bring these views up to date."""
        return None

    def noted(self, case: str, views: Sequence[str], seconds: Mapping[str, Sequence[float]]) -> None:  # noqa: B027
        """Learn how long each contender has taken for the views of a case, run by run."""

    def close(self) -> None:  # noqa: B027
        """Let go of what it holds."""

    @abstractmethod
    def refresh(self, views: Sequence[str]) -> None:
        """Bring the views up to date."""

    def check(self, view: str, expected: DataFrame) -> None:  # noqa: B027
        """Compare what it made of a view with the recomputation."""
