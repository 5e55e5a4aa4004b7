"""What a refresh means for how its views stand, and for what somebody should know of.

Errors are counted of views that refresh by themselves; alerts are raised of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from penstock.catalog import Catalog, World
from penstock.catalog.states import ACTIVE
from penstock.engine.faults import after_error, after_success
from penstock.engine.report import ViewReport
from penstock.engine.settings import number_of
from penstock.engine.sources import Relation
from penstock.sql.names import key_of
from penstock.storage.log_listing import newest_versions
from penstock.vocabulary import Action, AlertKind, Fault, Reason, Status

_NOT_FOLLOWED = {
    Reason.SOURCE_REPLACED: "a table that it reads was replaced, or put back to an older state",
    Reason.HISTORY_GONE: "the changes of a table that it reads are gone from its log or its files",
    Reason.SCHEMA_CHANGED: "a column that it reads has another type or is gone",
}


def alerts_of(report: ViewReport) -> dict[AlertKind, str]:
    """What a refresh of a view gives reason to tell.

    >>> alerts_of(ViewReport(name="v", action=Action.REINITIALIZE, reason=Reason.SOURCE_REPLACED))
    {'reinitialize_needed': 'a table that it reads was replaced, or put back to an older state: it was filled anew'}
    """
    found = dict(report.alerts)
    if report.status == Status.FAILED and report.fault == Fault.SCHEMA:
        found[AlertKind.REINITIALIZE_NEEDED] = report.told or "a source is no longer what the query was written for"
    elif report.action == Action.REINITIALIZE and report.reason in _NOT_FOLLOWED:
        found[AlertKind.REINITIALIZE_NEEDED] = f"{_NOT_FOLLOWED[report.reason]}: it was filled anew"
    if report.reason in (Reason.UPSTREAM_FAILED, Reason.GROUP_FAILED):
        failed = ", ".join(report.waits_for) or "another view"
        found[AlertKind.UPSTREAM_FAILED] = f"it waits for {failed}, which failed"
    if report.action == Action.FULL and report.reason == Reason.CHEAPER and report.estimate is not None:
        found[AlertKind.FELL_BACK_TO_FULL] = (
            f"it was recomputed: that was expected to take {report.estimate.full:.1f} s, and maintaining it "
            f"{report.estimate.incremental:.1f} s"
        )
    return found


def note_outcomes(
    catalog: Catalog, world: World, reports: Iterable[ViewReport], pinned: Mapping[str, int | None]
) -> None:
    """Keep the states that have changed. ``pinned``: the versions of the tables that the refresh saw."""
    most = number_of(world.settings, "max_consecutive_errors")
    for report in reports:
        key = key_of(report.name)
        view, before = world.views.get(key), world.states.get(key, ACTIVE)
        if view is None or not view.refreshes_itself:
            continue
        after, error = before, None
        if report.status == Status.SUCCEEDED and report.action != Action.SKIP:
            after = after_success(before)
        elif report.status == Status.FAILED and report.reason not in (Reason.LEASE_LOST, Reason.INTERRUPTED):
            after = after_error(
                before, report.fault or Fault.SYSTEM, datetime.now(timezone.utc), _failed_on(world, key, pinned), most
            )
            if after.suspended and not before.suspended:
                error = f"it failed {after.errors} times in a row, and is no longer tried: {report.told}"
        if after != before:
            catalog.set_state(key, after, error)


def _failed_on(world: World, key: str, pinned: Mapping[str, int | None]) -> dict[str, int | None]:
    """The version that was read of each table that a view is made of. What came since may be what mends it."""
    tables = world.views_graph().ancestors([key]) & set(world.tables)
    found = newest_versions(world.tables[name].path for name in tables if name not in pinned)
    return {name: pinned[name] if name in pinned else found[world.tables[name].path] for name in tables}


def versions_of(sources: Mapping[str, Relation]) -> dict[str, int | None]:
    """The versions of tables that were pinned; of one that could not be opened, what its log is named by."""
    found = newest_versions(source.path for source in sources.values() if source.after is None)
    return {name: found[s.path] if s.after is None else s.after.version for name, s in sources.items()}
