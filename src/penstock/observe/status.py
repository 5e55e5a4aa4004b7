"""The state of every view in one line each, from the catalog and the names of the files in the sources' logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from penstock.catalog import Catalog, HistoryRecord, ViewRecord, World
from penstock.catalog.catalog import utc
from penstock.catalog.states import ACTIVE
from penstock.engine.catalog_names import wanted_name
from penstock.engine.faults import state_of
from penstock.engine.lags import lags_of, pace, seconds_to_see
from penstock.engine.readable import versions_now
from penstock.graph.watermarks import as_time
from penstock.sql.intervals import described
from penstock.vocabulary import Action, Policy, Reason, State, Status


@dataclass(frozen=True, kw_only=True)
class ViewStatus:
    """A view as it stands: how it is maintained, and what its last refresh did."""

    name: str
    policy: Policy
    refresh: str
    incremental: bool
    reason: Reason | None
    reads: tuple[str, ...]
    populated: bool
    frontier: dict[str, int]
    """The version of every source table that the view's rows are equal to its query on."""
    last_action: Action | None = None
    last_status: Status | None = None
    last_reason: Reason | None = None
    last_refresh: datetime | None = None
    last_seconds: float | None = None
    last_error: str | None = None
    watermark: datetime | None = None
    """How far event time has come in the view; None while that is not known."""
    last_late: int = 0
    """Changed rows that came too late for the last refresh to take them."""
    location: str = ""
    """Where the view's Delta table is."""
    catalog_name: str | None = None
    """What it is called in Spark's catalog, if it is published there."""
    data_time: datetime | None = None
    """The moment up to which the view has seen its sources; None for a view without rows."""
    behind: dict[str, int | None] = field(default_factory=dict)
    """What the view reads and has not seen all of: how many commits are new, None where that cannot be told."""
    state: State = State.ACTIVE
    building: bool = False
    """Whether it is being refreshed now, by whatever process."""
    errors: int = 0
    """Refreshes that failed in a row, of a view that refreshes by itself."""
    target_lag: timedelta | None = None
    """How old the view may get."""
    lag_from: str | None = None
    """Whose word the target is: the view's own, or that of the reader that DOWNSTREAM comes from; else a setting's."""
    lag: timedelta | None = field(default=None, compare=False)
    """How old it is: the time since the refresh began that saw its sources last."""
    held_back_by: tuple[str, ...] = ()
    """Views that it reads, directly or not, which do not advance: suspended, or in error."""
    refreshes_itself: bool = False
    every: timedelta | None = None
    """How often it is to be refreshed, by its lag or its schedule."""
    takes: timedelta | None = None
    """How long the last refresh took that saw its sources, with those of what it reads."""

    @property
    def stale(self) -> bool:
        """Whether there is something that it has not seen."""
        return bool(self.behind)

    def state_in_words(self) -> str:
        """
        >>> ViewStatus(
        ...     name="v", policy=Policy.AUTO, refresh="MANUAL", incremental=True, reason=None, reads=(),
        ...     populated=True, frontier={}, state=State.ERROR, errors=2, held_back_by=("u",),
        ... ).state_in_words()
        'ERROR (2 in a row), held back by u'
        """
        beside = [word for word, holds in (("STALE", self.stale), ("BUILDING", self.building)) if holds]
        said = f"{self.state}" + (f", {' and '.join(beside)}" if self.state == State.ACTIVE and beside else "")
        said += f" ({self.errors} in a row)" if self.errors else ""
        if self.takes is not None and self.every is not None and self.too_slow:
            said += f", {slowness(self.takes, self.every)}"
        return said + (f", held back by {', '.join(self.held_back_by)}" if self.held_back_by else "")

    def lag_in_words(self) -> str:
        return "" if self.lag is None else in_words(self.lag)

    def target_in_words(self) -> str:
        if self.target_lag is None:
            return ""
        whose = "" if self.lag_from == self.name else f" ({self.lag_from or 'min_target_lag'})"
        return described(int(self.target_lag.total_seconds() * 10**6)) + whose

    @property
    def too_slow(self) -> bool:
        """Whether a refresh takes longer than the time to the next one, so that its lag or schedule cannot be kept."""
        return self.takes is not None and self.every is not None and self.takes > self.every

    @property
    def too_old(self) -> bool:
        """Whether it is older than it may get."""
        return self.target_lag is not None and self.lag is not None and self.lag > self.target_lag

    def behind_in_words(self) -> str:
        """
        >>> status = ViewStatus(
        ...     name="v", policy=Policy.AUTO, refresh="MANUAL", incremental=True, reason=None, reads=("a", "b"),
        ...     populated=True, frontier={}, behind={"a": 2, "b": None},
        ... )
        >>> status.behind_in_words()
        'a (2 commits), b (gone or replaced)'
        """
        return ", ".join(
            f"{name} ({'gone or replaced' if new is None else f'{new:,} commit' + ('' if new == 1 else 's')})"
            for name, new in self.behind.items()
        )


def status(catalog: Catalog) -> list[ViewStatus]:
    world, last, seen = catalog.world(), catalog.last_refreshes(), catalog.last_refreshes(that_saw_sources=True)
    newest = versions_now(world)
    newest |= {key: world.nodes[key].version for key in world.views}
    lags, leased, now = lags_of(world), catalog.leased(), datetime.now(timezone.utc)
    took = seconds_to_see(world, seen)
    stuck = {key for key, state in world.states.items() if state != ACTIVE}
    found = []
    for key in world.views_graph().order(world.views):
        view = world.views[key]
        frontier = {
            world.display_name(name): f.version
            for name, f in sorted(world.frontiers.get(key, {}).items())
            if name in world.tables
        }
        data_time, kept = data_time_of(world, view, seen.get(key)), world.states.get(key, ACTIVE)
        lag, behind, name = lags.get(key), _behind(world, key, newest), wanted_name(world, view)
        if view.immediate and data_time is not None and not behind:  # nothing was written since
            data_time = now
        found.append(
            ViewStatus(
                name=view.name, policy=view.policy, refresh=view.refresh, incremental=view.incremental,
                reason=view.reason_code,
                reads=(*(world.display_name(r) for r in view.reads), *world.nodes[key].details.outside),
                populated=world.nodes[key].version is not None, frontier=frontier,
                watermark=as_time(world.watermarks[key].value) if key in world.watermarks else None,
                location=world.nodes[key].path, catalog_name=None if name is None else name.shown,
                data_time=data_time, behind=behind,
                state=state_of(kept, filled=world.nodes[key].version is not None), errors=kept.errors,
                building=key in leased,
                target_lag=None if lag is None else lag.length, lag=None if data_time is None else now - data_time,
                lag_from=None if lag is None or lag.said_by is None else world.views[lag.said_by].name,
                held_back_by=tuple(sorted(world.views[k].name for k in world.views_graph().ancestors([key]) & stuck)),
                refreshes_itself=view.refreshes_itself, every=pace(view, lag),
                takes=timedelta(seconds=took[key]) if key in took else None, **_last(last.get(key)),
            )
        )  # fmt: skip
    return found


def in_words(length: timedelta) -> str:
    """
    >>> in_words(timedelta(seconds=4.6)), in_words(timedelta(seconds=125)), in_words(timedelta(hours=30))
    ('4 s', '2 min 5 s', '1 d 6 h')
    """
    seconds = max(0, int(length.total_seconds()))
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    shown = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(shown[:2]) or "0 s"


def slowness(takes: timedelta, every: timedelta) -> str:
    """
    >>> slowness(timedelta(seconds=6.25), timedelta(seconds=5))
    'too slow: a refresh takes 6.2 s, and one is due every 5.0 s'
    """
    return f"too slow: a refresh takes {_exactly(takes)}, and one is due every {_exactly(every)}"


def _exactly(length: timedelta) -> str:
    return f"{length.total_seconds():.1f} s" if length < timedelta(minutes=1) else in_words(length)


def data_time_of(world: World, view: ViewRecord, seen: HistoryRecord | None) -> datetime | None:
    """When the refresh began that saw the sources last. What a view of the same name saw before does not count."""
    if seen is None or world.nodes[view.key].version is None or seen.started_at < utc(view.created_at):
        return None
    return seen.started_at


def _behind(world: World, key: str, newest: Mapping[str, int | None]) -> dict[str, int | None]:
    """What has versions that the view has not consumed."""
    found: dict[str, int | None] = {}
    for name, consumed in sorted(world.frontiers.get(key, {}).items()):
        version = newest.get(name, consumed.version)  # a hidden node is not the user's
        if version != consumed.version:
            known = version is not None and version > consumed.version
            found[world.display_name(name)] = version - consumed.version if version is not None and known else None
    return found


def _last(record: HistoryRecord | None) -> dict[str, Any]:
    """What the last refresh did, as the fields of a status."""
    if record is None:
        return {}
    return {
        "last_action": record.action, "last_status": record.status, "last_reason": record.reason,
        "last_refresh": record.started_at, "last_seconds": record.seconds, "last_error": record.error,
        "last_late": (record.details or {}).get("late", 0),
    }  # fmt: skip
