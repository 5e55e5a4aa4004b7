"""What a refresh means for how its views stand: errors are counted of those that refresh by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from penstock.catalog import Catalog, World
from penstock.catalog.states import ACTIVE
from penstock.engine.faults import after_error, after_success
from penstock.engine.report import ViewReport
from penstock.engine.settings import number_of
from penstock.storage.log_listing import newest_version
from penstock.vocabulary import Action, Fault, Reason, Status


def note_outcomes(catalog: Catalog, world: World, reports: Iterable[ViewReport]) -> None:
    """Keep the states that have changed."""
    most = number_of(world.settings, "max_consecutive_errors")
    for report in reports:
        key = report.name.lower()
        view, before = world.views.get(key), world.states.get(key, ACTIVE)
        if view is None or not view.refreshes_itself:
            continue
        after = before
        if report.status == Status.SUCCEEDED and report.action != Action.SKIP:
            after = after_success(before)
        elif report.status == Status.FAILED and report.reason not in (Reason.LEASE_LOST, Reason.INTERRUPTED):
            after = after_error(
                before, report.fault or Fault.SYSTEM, datetime.now(timezone.utc), newest_versions(world, key), most
            )
        if after != before:
            catalog.set_state(key, after)


def newest_versions(world: World, key: str) -> dict[str, int | None]:
    """The newest version of each table that a view is made of."""
    tables = world.views_graph().ancestors([key]) & set(world.tables)
    return {name: newest_version(world.tables[name].path) for name in sorted(tables)}
