"""What the engine tells of refreshes while they happen: when work on a view begins, and what came of it.

A view of which nothing changes is not told of. Who listens is not known here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import TracebackType

from penstock.catalog import Publication, World
from penstock.engine.callbacks import Callbacks
from penstock.engine.report import ViewReport
from penstock.sql.names import key_of
from penstock.vocabulary import Status


@dataclass(frozen=True, kw_only=True)
class Began:
    id: str
    """One of its own for each refresh of a view."""
    view: str
    """The view's key."""
    at: datetime
    world: World = field(repr=False)

    def __str__(self) -> str:
        return f"the beginning of a refresh of {self.view!r}"


@dataclass(frozen=True, kw_only=True)
class Ended:
    began: Began
    at: datetime
    report: ViewReport | None
    """None if it was given up before anything came of it."""
    epoch: int | None = None
    """The epoch that is to be seen after it."""
    run: str = ""
    """The word that its commits have in their metadata."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Of tables as they were read, and of views as they are now, by key."""

    def __str__(self) -> str:
        return f"the end of a refresh of {self.began.view!r}"


@dataclass(frozen=True, kw_only=True)
class Worked:
    """One node of an epoch is through. Nothing of it is published yet."""

    views: tuple[str, ...]
    """The names of the views that it belongs to."""
    report: ViewReport
    """Of the node."""

    def __str__(self) -> str:
        return f"the work on {self.report.name!r}"


Listeners = Callbacks[Began | Ended]


class Telling:
    """Of one epoch. What has begun ends in any case: a refresh that is given up ends with an error."""

    def __init__(self, listeners: Listeners):
        self._listeners = listeners
        self._begun: dict[str, Began] = {}

    def working(self, node: str, world: World) -> None:
        """There is something to do for a node, and so for the views that it belongs to."""
        for view in world.owners(node) if self._listeners else ():
            if view.key not in self._begun:
                self._begin(view.key, world)

    def ended(self, reports: Iterable[ViewReport], epoch: int, published: Publication, world: World) -> None:
        versions = {key: node.version for key, node in world.nodes.items() if node.version is not None}
        versions |= published.sources | published.versions
        for report in reports if self._listeners else ():
            key = key_of(report.name)
            if key not in self._begun and report.status == Status.FAILED and key in world.views:
                self._begin(key, world)
            if key in self._begun:
                self._listeners(
                    Ended(
                        began=self._begun.pop(key), at=_now(), report=report, epoch=epoch, run=published.run,
                        versions=versions,
                    )
                )  # fmt: skip

    def _begin(self, key: str, world: World) -> None:
        self._begun[key] = began = Began(id=str(uuid.uuid4()), view=key, at=_now(), world=world)
        self._listeners(began)

    def __enter__(self) -> Telling:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for began in self._begun.values():
            self._listeners(Ended(began=began, at=_now(), report=None))
        self._begun.clear()


def _now() -> datetime:
    return datetime.now(timezone.utc)
