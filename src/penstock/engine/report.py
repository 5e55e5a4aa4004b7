"""What a refresh did, view by view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

SUCCEEDED, FAILED, SKIPPED = "SUCCEEDED", "FAILED", "SKIPPED"
_WEIGHT = {"SKIP": 0, "NO_DATA": 1, "INCREMENTAL": 2, "FULL": 3, "REINITIALIZE": 4}


def counted(rows: int) -> str:
    """
    >>> counted(1), counted(12345)
    ('1 row', '12,345 rows')
    """
    return "1 row" if rows == 1 else f"{rows:,} rows"


@dataclass
class ViewReport:
    """What a refresh did to one view (or node): the action, how it was applied, and why."""

    name: str
    action: str
    reason: str
    strategy: str | None = None
    rows_inserted: int = 0
    rows_deleted: int = 0
    seconds: float = 0.0
    status: str = SUCCEEDED
    error: str | None = None

    def __str__(self) -> str:
        rows = f"+{self.rows_inserted:,} -{self.rows_deleted:,}"
        how = f" by {self.strategy}" if self.strategy else ""
        tail = f": {self.error}" if self.error else ""
        return f"{self.name}: {self.action}{how} ({self.reason}), {rows} rows, {self.seconds:.2f} s{tail}"


class Report(Mapping[str, ViewReport]):
    """The reports of one refresh by view name; names do not depend on case."""

    def __init__(self, views: list[ViewReport], epoch: int):
        self._views = {view.name.lower(): view for view in views}
        self.epoch = epoch

    def __getitem__(self, name: str) -> ViewReport:
        return self._views[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return (view.name for view in self._views.values())

    def __len__(self) -> int:
        return len(self._views)

    @property
    def failed(self) -> list[ViewReport]:
        return [view for view in self._views.values() if view.status == FAILED]

    def __repr__(self) -> str:
        return f"<Report of epoch {self.epoch}: {', '.join(map(str, self._views.values())) or 'no views'}>"

    def __str__(self) -> str:
        return "\n".join(map(str, self._views.values())) or "no views"


def combine(name: str, own: ViewReport, hidden: list[ViewReport]) -> ViewReport:
    """A view's report from that of its visible node and those of the hidden nodes under it.

    The weightiest action is the view's: one recomputed node makes the refresh a recomputation, whatever came after.
    """
    broken = next((r for r in hidden if r.status == FAILED), None)
    if broken is not None:
        own = replace(own, status=FAILED, action=broken.action, reason=broken.reason, error=broken.error)
    heaviest = max([own, *hidden], key=lambda r: _WEIGHT[r.action])
    leading = heaviest if own.status == SUCCEEDED and _WEIGHT[heaviest.action] > _WEIGHT[own.action] else own
    return ViewReport(
        name, leading.action, leading.reason, own.strategy, own.rows_inserted, own.rows_deleted,
        own.seconds + sum(r.seconds for r in hidden), own.status, own.error,
    )  # fmt: skip
