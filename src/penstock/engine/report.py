"""What a refresh did, view by view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from penstock.engine.cost import Estimate
from penstock.frames.clock import Span
from penstock.sql.names import key_of
from penstock.vocabulary import Action, AlertKind, Fault, Reason, Status, Strategy

_WEIGHT = {Action.SKIP: 0, Action.NO_DATA: 1, Action.INCREMENTAL: 2, Action.FULL: 3, Action.REINITIALIZE: 4}


def counted(rows: int) -> str:
    """
    >>> counted(1), counted(12345)
    ('1 row', '12,345 rows')
    """
    return "1 row" if rows == 1 else f"{rows:,} rows"


@dataclass(frozen=True, kw_only=True)
class Part:
    """What was done to one node, and when. It tells no error: values of rows may be in one, and the view's says it."""

    name: str
    span: Span
    status: Status
    action: Action
    reason: Reason
    strategy: Strategy | None
    rows_inserted: int
    rows_deleted: int
    jobs: int | None
    phases: Mapping[str, float]

    def told(self, since: float) -> dict[str, Any]:
        """With times in seconds since a moment."""
        begun, ended = (round(max(moment - since, 0.0), 4) for moment in (self.span.begun, self.span.ended))
        known: dict[str, Any] = {
            "node": self.name, "begun": begun, "ended": ended, "status": str(self.status),
            "action": str(self.action), "reason": str(self.reason), "rows_inserted": self.rows_inserted,
            "rows_deleted": self.rows_deleted, "jobs": self.jobs,
            "phases": {name: round(seconds, 4) for name, seconds in self.phases.items() if seconds >= 0.0005},
        }  # fmt: skip
        if self.strategy is not None:
            known["strategy"] = str(self.strategy)
        if self.span.waited >= 0.001:
            known["waited"] = round(self.span.waited, 4)
        return known


@dataclass(kw_only=True)
class ViewReport:
    """What a refresh did to one view (or node): the action, how it was applied, and why."""

    name: str
    action: Action
    reason: Reason
    strategy: Strategy | None = None
    rows_inserted: int = 0
    rows_deleted: int = 0
    seconds: float = 0.0
    status: Status = Status.SUCCEEDED
    error: str | None = None
    told: str | None = None
    """The error where no value of a row may be said: in logs, alerts and events."""
    fault: Fault | None = None
    """Whose fault the error is."""
    jobs: int | None = 0
    """Spark jobs; None where Spark does not tell them, as over Spark Connect."""
    in_line: float = 0.0
    """Seconds that the refresh stood in line for a processor of a busy machine."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds by phase: planning, reading, computing, writing, committing."""
    bytes_read: int = 0
    """The size of the files that were opened."""
    bytes_written: int = 0
    late: int = 0
    """Changed rows that came too late and were not taken."""
    estimate: Estimate | None = None
    """What maintaining and recomputing were expected to take, when there was a choice."""
    weighed: Mapping[Strategy, int] | None = None
    """About how many rows each strategy would have written, when there was a choice."""
    wrote: float = 0.0
    """Seconds that writing the view's own table took."""
    by_spark: list[str] = field(default_factory=list)
    """What of a small change was left to Spark, though the driver computes most."""
    alerts: dict[AlertKind, str] = field(default_factory=dict)
    """What somebody should know of, by the kind of alert."""
    waits_for: tuple[str, ...] = ()
    """Views that failed, of a view that was skipped since it reads them or must advance together with them."""
    remark: str | None = None
    """What else is to be said of the view, though nothing is wrong."""
    nodes: list[str] = field(default_factory=list)
    """What was done to each hidden node under the view, in words."""
    unlike: list[str] = field(default_factory=list)
    """The view's own settings that it was computed under, where the session has others."""
    span: Span | None = None
    """When it was worked on; None of a node that there was nothing to do for."""
    parts: list[Part] = field(default_factory=list)
    """Of a view: its nodes that were worked on, inputs before readers."""

    def details(self) -> dict[str, Any]:
        """What the history keeps beside the columns of its own."""
        known: dict[str, Any] = {
            "jobs": self.jobs,
            "phases": {name: round(seconds, 4) for name, seconds in self.phases.items()},
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
        }
        if self.late:
            known["late"] = self.late
        if self.estimate is not None:
            known["estimate"] = {
                "incremental": round(self.estimate.incremental, 3),
                "full": round(self.estimate.full, 3),
                "readers": round(self.estimate.readers, 3),
                "raw": {action: round(seconds, 3) for action, seconds in self.estimate.raw.items()},
            }
            if self.estimate.retry is not None:
                known["estimate"]["retry"] = asdict(self.estimate.retry)
            known["in_line"] = round(self.in_line, 4)
        if self.weighed is not None:
            known["weighed"] = dict(self.weighed)
            known["wrote"] = round(self.wrote, 4)
        if self.by_spark:
            known["by_spark"] = self.by_spark
        if self.nodes:
            known["nodes"] = self.nodes
        if self.remark:
            known["remark"] = self.remark
        if self.unlike:
            known["settings"] = self.unlike
        return known

    def part(self) -> list[Part]:
        """This node as a part of its views, if it was worked on."""
        if self.span is None:
            return []
        return [Part(**{each.name: getattr(self, each.name) for each in fields(Part)})]

    def timeline(self, started: datetime) -> list[dict[str, Any]]:
        """What was done to each node, and when: in seconds since the refresh began."""
        return [part.told(started.timestamp()) for part in self.parts]

    def briefly(self) -> str:
        """
        >>> ViewReport(name="n", action=Action.FULL, reason=Reason.INITIAL, rows_inserted=2, seconds=0.5).briefly()
        'n: FULL (INITIAL), +2 -0 rows, 0.50 s'
        """
        rows = f"+{self.rows_inserted:,} -{self.rows_deleted:,}"
        return f"{self.name}: {self.action} ({self.reason}), {rows} rows, {self.seconds:.2f} s"

    def __str__(self) -> str:
        rows = f"+{self.rows_inserted:,} -{self.rows_deleted:,}"
        how = f" by {self.strategy}" if self.strategy else ""
        tail = f", {counted(self.late)} came late" if self.late else ""
        tail += f", under its own {', '.join(self.unlike)}" if self.unlike else ""
        tail += f": {self.error}" if self.error else ""
        tail += "".join(f" [{message}]" for message in (*self.alerts.values(), self.remark) if message)
        return f"{self.name}: {self.action}{how} ({self.reason}), {rows} rows, {self.seconds:.2f} s{tail}"


class Report(Mapping[str, ViewReport]):
    """The reports of one refresh by view name; names do not depend on case."""

    def __init__(self, views: list[ViewReport], epoch: int):
        self._views = {key_of(view.name): view for view in views}
        self.epoch = epoch

    def __getitem__(self, name: str) -> ViewReport:
        return self._views[key_of(name)]

    def __iter__(self) -> Iterator[str]:
        return (view.name for view in self._views.values())

    def __len__(self) -> int:
        return len(self._views)

    @property
    def failed(self) -> list[ViewReport]:
        return [view for view in self._views.values() if view.status == Status.FAILED]

    def __repr__(self) -> str:
        return f"<Report of epoch {self.epoch}: {', '.join(map(str, self._views.values())) or 'no views'}>"

    def __str__(self) -> str:
        return "\n".join(map(str, self._views.values())) or "no views"


def combine(name: str, own: ViewReport, hidden: list[ViewReport]) -> ViewReport:
    """A view's report from that of its visible node and those of the hidden nodes under it.

    The weightiest action is the view's: one recomputed node makes the refresh a recomputation, whatever came after. But
    a view that is skipped, because it is not due, stays as it was, though nodes under it move.
    """
    broken = next((r for r in hidden if r.status == Status.FAILED), None)
    if broken is not None:
        own = replace(
            own,
            status=Status.FAILED,
            action=broken.action,
            reason=broken.reason,
            error=broken.error,
            told=broken.told,
            fault=broken.fault,
        )
    heaviest = max([own, *hidden], key=lambda r: _WEIGHT[r.action])
    touched = own.status == Status.SUCCEEDED and own.action != Action.SKIP
    leading = heaviest if touched and _WEIGHT[heaviest.action] > _WEIGHT[own.action] else own
    every = [own, *hidden]
    estimates = [r.estimate for r in every if r.estimate is not None]
    return ViewReport(
        name=name,
        action=leading.action,
        reason=_reason(leading, every),
        strategy=own.strategy,
        rows_inserted=own.rows_inserted,
        rows_deleted=own.rows_deleted,
        seconds=sum(r.seconds for r in every),
        status=own.status,
        error=own.error,
        told=own.told,
        fault=own.fault,
        jobs=all_jobs(r.jobs for r in every),
        in_line=sum(r.in_line for r in every),
        phases={phase: sum(r.phases.get(phase, 0.0) for r in every) for phase in own.phases},
        bytes_read=sum(r.bytes_read for r in every),
        bytes_written=sum(r.bytes_written for r in every),
        late=sum(r.late for r in every),
        estimate=sum(estimates[1:], estimates[0]) if estimates else None,
        weighed=own.weighed,
        wrote=own.wrote,
        by_spark=list(dict.fromkeys(note for r in every for note in r.by_spark)),
        alerts={kind: message for r in every for kind, message in r.alerts.items()},
        nodes=[r.briefly() for r in hidden if r.action not in (Action.NO_DATA, Action.SKIP)],
        unlike=own.unlike or next((r.unlike for r in hidden if r.unlike), []),
        parts=[part for r in (*hidden, own) for part in r.part()],
    )


def _reason(leading: ViewReport, every: list[ViewReport]) -> Reason:
    """The reason of the node that decided; but that a way was tried again, in any of them, is told."""
    tried = any(r.reason == Reason.TRIED_AGAIN and r.action == leading.action for r in every)
    return Reason.TRIED_AGAIN if tried and leading.reason in (Reason.CHANGED, Reason.CHEAPER) else leading.reason


def all_jobs(counts: Iterable[int | None]) -> int | None:
    """
    >>> all_jobs([1, 2]), all_jobs([1, None])
    (3, None)
    """
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
