"""The catalog in SQL: ``SELECT .. FROM penstock.views`` and its like. Only queries can read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from penstock.catalog import Catalog, World
from penstock.engine.writing_out import outside_of
from penstock.errors import NotFoundError, PenstockError, nearest
from penstock.observe import column_lineage, listings, models
from penstock.observe.alerting import current_alerts
from penstock.observe.epochs import epochs, in_phases, in_words, listed
from penstock.observe.listings import Listing
from penstock.observe.statistics import ViewStatistics, statistics
from penstock.observe.status import status
from penstock.observe.suggestions import next_step
from penstock.sql.names import OWN, key_of
from penstock.storage.delta_log import Snapshot
from penstock.storage.reader import schema_of


def own_table(catalog: Catalog, name: str) -> Listing:
    """``name`` with or without ``penstock.`` before it."""
    short = key_of(name).removeprefix(OWN)
    if short not in TABLES:
        raise NotFoundError(f"there is no table {OWN + short!r}. {nearest(OWN + short, [OWN + n for n in TABLES])}")
    return TABLES[short](catalog)


def _views(catalog: Catalog) -> Listing:
    world, counted = catalog.world(), statistics(catalog)
    rows = []
    for view in status(catalog):
        key = key_of(view.name)
        record, did = world.views[key], counted.get(key, ViewStatistics(view=key))
        rows.append(
            (view.name, record.query, record.comment, view.refresh, view.policy, view.incremental, view.reason,
             next_step(view.reason), view.state, view.stale, view.building, view.errors, view.populated,
             view.data_time, _seconds(view.lag), _seconds(view.target_lag), view.lag_from, view.watermark,
             view.last_refresh, view.last_action, view.last_status, view.last_reason, view.last_error, did.refreshes,
             did.incremental, did.full, did.without_change, did.skips, did.errors, round(did.seconds, 3),
             did.rows_inserted, did.rows_deleted, _seconds(did.last_lag), _seconds(did.largest_lag),
             view.location, record.created_at, view.catalog_name)
        )  # fmt: skip
    return Listing(
        "name STRING, query STRING, comment STRING, refresh STRING, policy STRING, incremental BOOLEAN, reason STRING, "
        "suggestion STRING, state STRING, stale BOOLEAN, building BOOLEAN, errors_in_a_row INT, populated BOOLEAN, "
        "data_time TIMESTAMP, lag_seconds DOUBLE, target_lag_seconds DOUBLE, target_lag_from STRING, "
        "watermark TIMESTAMP, last_refresh TIMESTAMP, last_action STRING, last_status STRING, last_reason STRING, "
        "last_error STRING, refreshes BIGINT, incremental_refreshes BIGINT, full_refreshes BIGINT, "
        "refreshes_without_change BIGINT, skips BIGINT, errors BIGINT, seconds DOUBLE, rows_inserted BIGINT, "
        "rows_deleted BIGINT, last_lag_seconds DOUBLE, largest_lag_seconds DOUBLE, "
        "location STRING, created_at TIMESTAMP, catalog_name STRING",
        rows,
    )


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else round(length.total_seconds(), 3)


def _history(catalog: Catalog) -> Listing:
    return listings.history(catalog.world(), catalog.history())


def _epochs(catalog: Catalog) -> Listing:
    rows = [
        (e.id, e.published_at, e.restored, e.run, ", ".join(e.views), listed(e.sources), in_words(e.due),
         "; ".join(e.work) or None, in_phases(e.phases) or None, round(e.seconds, 3), e.rows_inserted, e.rows_deleted)
        for e in epochs(catalog)
    ]  # fmt: skip
    return Listing(
        "epoch INT, published_at TIMESTAMP, restored INT, run STRING, views STRING, source_versions STRING, "
        "due STRING, work STRING, phases STRING, seconds DOUBLE, rows_inserted BIGINT, rows_deleted BIGINT",
        rows,
    )


def _dependencies(catalog: Catalog) -> Listing:
    world = catalog.world()
    rows = [
        (view.name, world.display_name(read), "view" if read in world.views else "table")
        for view in world.views.values()
        for read in view.reads
    ]
    rows += [(view.name, name, "table") for view in world.views.values() for name in outside_of(world, view.key)]
    return Listing("view STRING, reads STRING, kind STRING", rows)


def _alerts(catalog: Catalog) -> Listing:
    return listings.alerts(catalog.world(), current_alerts(catalog))


def _columns(catalog: Catalog) -> Listing:
    world = catalog.world()
    rows: list[tuple[object, ...]] = []
    for view in world.views.values():
        for place, (name, kind, comment) in enumerate(view.columns, 1):
            rows.append((view.name, "view", place, name, kind, comment))
    for key in world.tables:
        rows += _columns_of_table(world, key)
    return Listing("name STRING, kind STRING, position INT, column STRING, type STRING, comment STRING", rows)


def _columns_of_table(world: World, key: str) -> list[tuple[object, ...]]:
    """Of a table that cannot be opened there is nothing to tell."""
    table = world.tables[key]
    try:
        fields = schema_of(Snapshot(table.path)).fields
    except PenstockError:
        return []
    return [
        (table.name, "table", place, field.name, field.dataType.simpleString(), field.metadata.get("comment"))
        for place, field in enumerate(fields, 1)
    ]


TABLES: Mapping[str, Callable[[Catalog], Listing]] = {
    "views": _views,
    "history": _history,
    "epochs": _epochs,
    "dependencies": _dependencies,
    "alerts": _alerts,
    "columns": _columns,
    "column_lineage": lambda catalog: column_lineage.listing(catalog.world()),
    "plain_views": lambda catalog: models.plain_views(catalog.world()),
    "read_models": lambda catalog: models.read_models(catalog.world()),
    "document_parts": lambda catalog: models.document_parts(catalog.world()),
}
