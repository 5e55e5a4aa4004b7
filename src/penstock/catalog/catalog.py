"""The transactions on the catalog. Each method is one transaction; what it returns are records, never rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Column, Connection, Select, Table, and_, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import OperationalError, ProgrammingError

from penstock import points
from penstock.catalog import tables as t
from penstock.catalog.alerts import Alert, Episode, alert_of, change, open_episodes
from penstock.catalog.connection import open_copy, open_engine, open_for_reading, sqlite_file, without_password
from penstock.catalog.details import NodeDetails
from penstock.catalog.history_rows import history_of
from penstock.catalog.intents import read_intents
from penstock.catalog.models import read_models
from penstock.catalog.moving import move_paths
from penstock.catalog.publishing import check_fence, claim_name, drop_views, listed, publish, read_or_reads, remember
from penstock.catalog.pulse import Pulse
from penstock.catalog.records import (
    EpochRecord,
    Fence,
    Frontier,
    HistoryRecord,
    Identity,
    Mark,
    NodeRecord,
    PastWork,
    Publication,
    Refreshing,
    Seen,
    TableRecord,
    ViewRecord,
)
from penstock.catalog.schemas import read_schemas
from penstock.catalog.states import ViewState, read_states, write_state
from penstock.catalog.tables import utc
from penstock.catalog.working import being_refreshed, dead_leases, take_away, working
from penstock.catalog.world import AsOf, World
from penstock.errors import BusyError, DependencyError, WarehouseError
from penstock.graph.watermarks import advanced
from penstock.sql.statements import Options, Watermark
from penstock.sql.times import in_utc
from penstock.vocabulary import Action, AlertKind, Policy, Reason, Status, Strategy

_LOCATION = "location"
"""Kept beside the settings: where the warehouse is that has the catalog in it."""


def now() -> datetime:
    return datetime.now(timezone.utc)


class Catalog:
    def __init__(self, url: str, refusal: str | None = None):
        """``refusal``: what to say to whoever wants to write, in a catalog that can only be read."""
        self._refusal = refusal
        self._file = sqlite_file(url)
        self._engine, self._copy = open_for_reading(url) if refusal else (open_engine(url), None)
        self._pulse = Pulse(self._engine)
        self.alerted: Callable[[Alert], None] = lambda alert: None
        """Who is told of each alert that was raised or cleared here, when it is written."""
        self.url = without_password(url if refusal else self._engine.url)

    @property
    def read_only(self) -> bool:
        return self._refusal is not None

    def close(self) -> None:
        self._pulse.close()
        self._engine.dispose()
        if self._copy is not None:
            self._copy.cleanup()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Connection]:
        """A transaction for this room's modules; a writer waits here for its turn."""
        points.reached(points.TRANSACTION)
        if writes and self._refusal:
            raise WarehouseError(self._refusal)
        with self._begun(writes) as connection:
            yield connection
            if writes:
                points.reached(points.WRITTEN)
        if writes:
            points.reached(points.TRANSACTED)

    @contextmanager
    def _begun(self, writes: bool) -> Iterator[Connection]:
        try:
            with self._engine.connect().execution_options(writes=writes) as connection, connection.begin():
                yield connection
        except (OperationalError, ProgrammingError) as problem:
            raise WarehouseError(f"the catalog {self.url!r} cannot be used: {problem.orig}") from None

    def settle_at(self, path: str) -> None:
        """Say where the warehouse is. One that was moved or copied has its tables with it, not where they were made."""
        place = select(t.settings.c.value).where(t.settings.c.name == _LOCATION)
        with self.transaction(writes=False) as connection:
            if connection.execute(place).scalar() == path:
                return
        if self._refusal and not self._read_a_copy():
            return
        with self._begun(writes=True) as connection:
            known = connection.execute(place).scalar()
            if known is not None and not (os.path.exists(known) and os.path.samefile(known, path)):
                move_paths(connection, known, path)
            connection.execute(delete(t.settings).where(t.settings.c.name == _LOCATION))
            connection.execute(insert(t.settings).values(name=_LOCATION, value=path))

    def _read_a_copy(self) -> bool:
        """Go on with a copy of a catalog that cannot be written; False if there is none of it."""
        if self._copy is None and self._file is not None:
            self._engine.dispose()
            self._engine, self._copy = open_copy(self._file)
        return self._copy is not None

    # -- reading ------------------------------------------------------------------------------------------------------

    def beat(self) -> object:
        """A value that differs from the last one if the catalog may have changed since; for one who asks often."""
        return self._pulse.beat()

    def pulse(self) -> Pulse:
        """The same for another one who asks, to be closed by them."""
        return Pulse(self._engine)

    def world(self) -> World:
        """Everything that a plan needs, read at one moment."""
        with self.transaction(writes=False) as connection:
            return read_world(connection)

    def history(self, view: str | None = None, limit: int | None = None) -> list[HistoryRecord]:
        """What refreshes did, newest first; those that go on are before all others."""
        query = select(t.history).order_by(t.history.c.id.desc())
        if view is not None:
            query = query.where(t.history.c.view == view)
        if limit is not None:
            query = query.limit(limit)
        with self.transaction(writes=False) as connection:
            going_on = working(connection, now(), view)
            return [*going_on, *(history_of(row) for row in connection.execute(query).mappings())][:limit]

    def end_what_was_killed(self) -> None:
        """Write down the refreshes of processes that have ended, and free their leases, where there are any."""
        with self._begun(writes=False) as connection:
            dead = dead_leases(connection)
        if dead and not self.read_only:
            with self._begun(writes=True) as connection:
                take_away(connection, dead_leases(connection))

    def past_work(self, view: str, limit: int) -> list[PastWork]:
        """What maintaining and recomputing a view took, newest first; what did nothing does not count."""
        columns = t.history.c.action, t.history.c.strategy, t.history.c.seconds, t.history.c.details
        done = (t.history.c.view == view, t.history.c.action.in_((Action.INCREMENTAL, Action.FULL)))
        query = select(*columns).where(*done).order_by(t.history.c.id.desc()).limit(limit)
        with self.transaction(writes=False) as connection:
            rows = connection.execute(query).all()
        return [
            PastWork(Action(action), None if strategy is None else Strategy.recorded(strategy), seconds, details or {})
            for action, strategy, seconds, details in rows
        ]

    def refreshes(self) -> list[Refreshing]:
        """All that the history has, in the order in which it was recorded."""
        columns = [t.history.c[field.name] for field in fields(Refreshing)]
        with self.transaction(writes=False) as connection:
            rows = connection.execute(select(*columns).order_by(t.history.c.id)).mappings().all()
        return [
            replace(Refreshing(**row), status=Status.recorded(row["status"]), action=Action.recorded(row["action"]),
                    started_at=utc(row["started_at"]), times=row["times"] or 1,
                    since=row["since"] and utc(row["since"]))
            for row in rows
        ]  # fmt: skip

    def epochs(self, limit: int | None = None, *, before: int | None = None) -> list[EpochRecord]:
        """What was published, newest first; ``before``: only epochs of a smaller number."""
        shown = select(t.epochs).where(t.epochs.c.published_at.is_not(None)).order_by(t.epochs.c.id.desc()).limit(limit)
        if before is not None:
            shown = shown.where(t.epochs.c.id < before)
        read: dict[int, dict[str, int]] = {}
        with self.transaction(writes=False) as connection:
            found = connection.execute(shown).mappings().all()
            if found:
                between = t.source_versions.c.epoch.between(found[-1]["id"], found[0]["id"])
                for row in connection.execute(select(t.source_versions).where(between)).mappings():
                    read.setdefault(row["epoch"], {})[row["source"]] = row["version"]
        return [
            EpochRecord(
                id=row["id"], published_at=utc(row["published_at"]), restored=row["restored"],
                sources=read.get(row["id"], {}), run=row["run"],
            )
            for row in found
        ]  # fmt: skip

    def refreshes_of(self, first: int, last: int) -> list[HistoryRecord]:
        """What was recorded with the epochs from one to another, both among them; newest first."""
        query = select(t.history).where(t.history.c.epoch.between(first, last)).order_by(t.history.c.id.desc())
        with self.transaction(writes=False) as connection:
            return [history_of(row) for row in connection.execute(query).mappings()]

    def last_refreshes(self, *, that_saw_sources: bool = False) -> dict[str, HistoryRecord]:
        """The newest history record of each view; or of those that count, which looked at the view's sources."""
        newest = select(func.max(t.history.c.id)).group_by(t.history.c.view)
        if that_saw_sources:
            back = t.epochs.alias()  # between it and the epoch that it went back to, nothing counts any more
            between = (t.epochs.c.id < back.c.id, t.epochs.c.id > back.c.restored)
            undone = select(t.epochs.c.id).join(back, and_(*between))
            saw = (
                t.history.c.status == Status.SUCCEEDED,
                t.history.c.action != Action.SKIP,
                t.history.c.epoch.not_in(undone),
            )
            newest = newest.where(*saw)
        with self.transaction(writes=False) as connection:
            rows = connection.execute(select(t.history).where(t.history.c.id.in_(newest))).mappings()
            return {row["view"]: history_of(row) for row in rows}

    def published_epochs(self) -> dict[str, int]:
        """The epoch in which each node changed last."""
        query = select(t.node_versions.c.node, func.max(t.node_versions.c.epoch)).group_by(t.node_versions.c.node)
        with self.transaction(writes=False) as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def changed_at(self) -> dict[str, datetime]:
        """When each node changed last."""
        joined = select(t.node_versions.c.node, func.max(t.epochs.c.published_at)).join(
            t.epochs, t.epochs.c.id == t.node_versions.c.epoch
        )
        with self.transaction(writes=False) as connection:
            rows = connection.execute(joined.group_by(t.node_versions.c.node))
            return {row[0]: utc(row[1]) for row in rows if row[1] is not None}

    def epoch_at(self, time: datetime) -> int | None:
        """The epoch that was current at a time; None before the first."""
        query = select(func.max(t.epochs.c.id)).where(t.epochs.c.published_at <= in_utc(time))  # SQLite keeps no zone
        with self.transaction(writes=False) as connection:
            return connection.execute(query).scalar()

    def moment(self, epoch: int | None = None) -> AsOf | None:
        """The catalog as of an epoch, without one the newest; None for an epoch that was never published."""
        if epoch is not None and not 0 <= epoch < 2**31:  # a number that no column holds
            return None
        with self.transaction(writes=False) as connection:
            world = read_world(connection)
            epoch = world.epoch if epoch is None else epoch
            shown = select(t.epochs.c.published_at).where(t.epochs.c.id == epoch, t.epochs.c.published_at.is_not(None))
            published = connection.execute(shown).scalar()
            if published is None and epoch != world.epoch:
                return None
            following = select(func.min(t.epochs.c.published_at)).where(t.epochs.c.id > epoch)
            replaced = connection.execute(following).scalar()
            named = select(t.checkpoints.c.name).where(t.checkpoints.c.epoch == epoch)
            kept = connection.execute(named).first() is not None
            versions = latest(connection, t.node_versions, t.node_versions.c.node, epoch)
            sources = latest(connection, t.source_versions, t.source_versions.c.source, epoch)
            identities = _identities(connection, epoch)
        nodes = {name: replace(node, version=versions.get(name)) for name, node in world.nodes.items()}
        sources = {key: version for key, version in sources.items() if key in world.tables}
        return AsOf(
            epoch=epoch, world=replace(world, nodes=nodes, epoch=epoch), sources=sources,
            published_at=utc(published or now()), replaced_at=None if replaced is None else utc(replaced), kept=kept,
            identities=identities,
        )  # fmt: skip

    def alerts(self, view: str | None = None) -> list[Alert]:
        """Those that go on first, then the newest first."""
        query = select(t.alerts).order_by(t.alerts.c.raised_at.desc(), t.alerts.c.view)
        if view is not None:
            query = query.where(t.alerts.c.view == view)
        with self.transaction(writes=False) as connection:
            found = [alert_of(row) for row in connection.execute(query).mappings()]
        return sorted(found, key=lambda alert: alert.cleared_at is not None)

    def open_alerts(self) -> set[Episode]:
        """Which alerts go on."""
        with self.transaction(writes=False) as connection:
            return open_episodes(connection)

    # -- tables and views ---------------------------------------------------------------------------------------------

    def add_table(self, table: TableRecord, fence: Fence | None = None) -> None:
        with self.transaction(writes=True) as connection:
            check_fence(connection, fence)
            claim_name(connection, table.key, table.name)
            connection.execute(
                insert(t.tables).values(
                    key=table.key,
                    name=table.name,
                    path=table.path,
                    external=table.external,
                    created_at=table.created_at,
                    watermark=asdict(table.watermark) if table.watermark else None,
                    catalog_name=table.catalog_name,
                )
            )

    def drop_table(self, key: str, fence: Fence | None = None, with_views: Collection[str] = ()) -> None:
        with self.transaction(writes=True) as connection:
            check_fence(connection, fence)
            world = read_world(connection)
            readers = [world.views[r].name for r in world.views_graph().readers(key) if r not in with_views]
            if readers:
                raise DependencyError(
                    f"table {world.display_name(key)!r} cannot be dropped: "
                    f"{listed(readers)} {read_or_reads(readers)} it. "
                    f"Drop the {'view' if len(readers) == 1 else 'views'} first, or use DROP TABLE .. CASCADE."
                )
            if with_views:
                drop_views(connection, with_views)
            connection.execute(delete(t.tables).where(t.tables.c.key == key))
            connection.execute(delete(t.intents).where(t.intents.c.source == key))
            connection.execute(delete(t.watermarks).where(t.watermarks.c.relation == key))

    def set_policy(self, view: ViewRecord, policy: Policy) -> None:
        """Change the policy of just this view, not of one that has replaced it meanwhile."""
        with self.transaction(writes=True) as connection:
            if read_world(connection).views.get(view.key) != view:
                raise BusyError(f"view {view.name!r} was changed by another process in this moment. Try again.")
            connection.execute(update(t.views).where(t.views.c.key == view.key).values(policy=policy))

    def set_options(self, key: str, options: Options, refresh: str) -> None:
        """Change how a view is kept, and when it is refreshed; a new time counts from now on."""
        with self.transaction(writes=True) as connection:
            known = connection.execute(select(t.views.c.refresh, t.views.c.options).where(t.views.c.key == key)).first()
            values: dict[str, Any] = {"options": asdict(options), "refresh": refresh}
            if known is not None and (known.refresh, (known.options or {}).get("lag")) != (refresh, options.lag):
                values["scheduled_at"] = datetime.now(timezone.utc)
            connection.execute(update(t.views).where(t.views.c.key == key).values(**values))

    def leased(self) -> set[str]:
        """The nodes that somebody is refreshing."""
        with self.transaction(writes=False) as connection:
            return being_refreshed(connection, now())

    def set_state(self, key: str, state: ViewState, suspended_because: str | None = None) -> None:
        """``suspended_because``: what went wrong, where it is not a person who suspends the view."""
        episode = (key, AlertKind.AUTO_SUSPENDED)
        raised = {} if suspended_because is None else {episode: suspended_because}
        with self.transaction(writes=True) as connection:
            write_state(connection, key, state)
            over = [] if state.suspended else [episode]
            alerts = change(connection, raised, over, _newest_epoch(connection), now())
        self._tell(alerts)

    def set_details(self, details: Mapping[str, NodeDetails], fence: Fence) -> None:
        """Change what is noted with nodes; whoever does has leases on them."""
        with self.transaction(writes=True) as connection:
            check_fence(connection, fence)
            changed = update(t.nodes).where(t.nodes.c.name == bindparam("node")).values(details=bindparam("noted"))
            connection.execute(changed, [{"node": name, "noted": noted.to_json()} for name, noted in details.items()])

    def set_watermark(self, key: str, watermark: Watermark | None, floor: int | None = None) -> bool:
        """Give a table a watermark, or take it away; what it was advanced to by hand stays.

        With a ``floor`` it is advanced; False if it has come as far already, and then nothing changes.
        """
        with self.transaction(writes=True) as connection:
            world = read_world(connection)
            known, mark = world.tables[key].floor, world.watermarks.get(key)
            reached = advanced(known, None if mark is None else mark.value)
            if floor is not None and reached is not None and floor <= reached:
                return False
            kept = None if watermark is None else {**asdict(watermark), "floor": advanced(known, floor)}
            connection.execute(update(t.tables).where(t.tables.c.key == key).values(watermark=kept))
            return True

    def set_setting(self, name: str, value: str) -> None:
        with self.transaction(writes=True) as connection:
            connection.execute(delete(t.settings).where(t.settings.c.name == name))
            connection.execute(insert(t.settings).values(name=name, value=value))

    def drop_views(self, keys: Iterable[str], fence: Fence | None = None) -> None:
        with self.transaction(writes=True) as connection:
            check_fence(connection, fence)
            drop_views(connection, list(keys))

    # -- epochs -------------------------------------------------------------------------------------------------------

    def publish(self, publication: Publication, fence: Fence | None = None) -> int:
        """Make an epoch visible: definitions, node versions, frontiers and history, all or nothing; gives its number.

        It is refused, and nothing changes, if a lease behind the ``fence`` has another owner by now.
        """
        with self.transaction(writes=True) as connection:
            epoch, alerts = publish(connection, publication, fence)
        self._tell(alerts)
        return epoch

    def record(self, history: Iterable[HistoryRecord]) -> None:
        """History of refreshes that had nothing to publish."""
        with self.transaction(writes=True) as connection:
            alerts = remember(connection, history)
        self._tell(alerts)

    def change_alerts(self, raised: Mapping[Episode, str], over: Collection[Episode]) -> None:
        """Raise what does not go on already, and clear what is over."""
        with self.transaction(writes=True) as connection:
            alerts = change(connection, raised, over, _newest_epoch(connection), now())
        self._tell(alerts)

    def _tell(self, alerts: Iterable[Alert]) -> None:
        for alert in alerts:
            self.alerted(alert)


def read_world(connection: Connection) -> World:
    tables = {
        row["key"]: TableRecord(
            key=row["key"], name=row["name"], path=row["path"], external=row["external"],
            created_at=row["created_at"], catalog_name=row["catalog_name"], **_watermark(row["watermark"]),
        )
        for row in connection.execute(select(t.tables).order_by(t.tables.c.created_at)).mappings()
    }  # fmt: skip
    inputs: dict[str, list[str]] = {}
    for row in connection.execute(select(t.dependencies).order_by(t.dependencies.c.position)).mappings():
        inputs.setdefault(row["node"], []).append(row["input"])
    nodes = {
        row["name"]: NodeRecord(
            name=row["name"], hidden=row["hidden"], path=row["path"], fingerprint=row["fingerprint"],
            schema_json=row["schema_json"], inputs=tuple(inputs.get(row["name"], ())),
            details=NodeDetails.of_json(row["details"]), version=row["version"],
        )
        for row in connection.execute(select(t.nodes)).mappings()
    }  # fmt: skip
    members: dict[str, list[str]] = {}
    for row in connection.execute(select(t.view_nodes).order_by(t.view_nodes.c.position)).mappings():
        members.setdefault(row["view"], []).append(row["node"])
    views = {
        row["key"]: ViewRecord(
            key=row["key"], name=row["name"], query=row["query"], columns=tuple(tuple(c) for c in row["columns"]),
            comment=row["comment"], properties=row["properties"], refresh=row["refresh"],
            policy=Policy.recorded(row["policy"]), reads=tuple(row["reads"]), nodes=tuple(members[row["key"]]),
            reason_code=Reason.recorded(row["reason_code"]) if row["reason_code"] else None, reason=row["reason"],
            created_at=row["created_at"], options=Options(**(row["options"] or {})),
            scheduled_at=row["scheduled_at"], written=row["written"],
        )
        for row in connection.execute(select(t.views).order_by(t.views.c.created_at)).mappings()
    }  # fmt: skip
    frontiers: dict[str, dict[str, Frontier]] = {}
    for row in connection.execute(select(t.frontiers)).mappings():
        frontier = Frontier(row["version"], row["table_id"], row["direct"], row["fingerprint"])
        frontiers.setdefault(row["node"], {})[row["relation"]] = frontier
    settings = {row.name: row.value for row in connection.execute(select(t.settings)) if row.name != "schema_version"}
    newest = select(t.watermarks.c.relation, func.max(t.watermarks.c.epoch).label("epoch"))
    last = newest.group_by(t.watermarks.c.relation).subquery()
    same = (t.watermarks.c.relation == last.c.relation) & (t.watermarks.c.epoch == last.c.epoch)
    marks = connection.execute(select(t.watermarks).join(last, same)).mappings()
    watermarks = {row["relation"]: Mark(row["value"], Seen(**row["seen"]) if row["seen"] else None) for row in marks}
    return World(
        tables=tables, views=views, nodes=nodes, frontiers=frontiers, epoch=_newest_epoch(connection),
        settings=settings, watermarks=watermarks, states=read_states(connection), **read_models(connection),
        **read_intents(connection), **read_schemas(connection),
    )  # fmt: skip


def _newest_epoch(connection: Connection) -> int:
    newest = select(func.max(t.epochs.c.id)).where(t.epochs.c.published_at.is_not(None))
    return connection.execute(newest).scalar() or 0


def _watermark(kept: dict[str, Any] | None) -> dict[str, Any]:
    if not kept:
        return {}
    return {"watermark": Watermark(kept["column"], kept["delay"]), "floor": kept.get("floor")}


def latest(connection: Connection, table: Table, name: Column[str], epoch: int) -> dict[str, int]:
    """The version of everything in a table of versions, as of an epoch; without what had no rows then."""
    rows = connection.execute(_newest_rows(table, name, epoch)).mappings()
    return {row[name.name]: row["version"] for row in rows if row["version"] != t.NO_ROWS}


def _newest_rows(table: Table, name: Column[str], epoch: int) -> Select[Any]:
    """The newest row of everything in a table of versions; the database finds it, since there is one for each epoch."""
    newest = select(name.label("name"), func.max(table.c.epoch).label("epoch")).where(table.c.epoch <= epoch)
    last = newest.group_by(name).subquery()
    return select(table).join(last, (name == last.c.name) & (table.c.epoch == last.c.epoch))


def _identities(connection: Connection, epoch: int) -> dict[str, Identity]:
    """Which table each source was, as of an epoch; one whose epoch did not record it is not among them."""
    rows = connection.execute(_newest_rows(t.source_versions, t.source_versions.c.source, epoch)).mappings()
    return {row["source"]: Identity(row["table_id"], row["fingerprint"]) for row in rows if row["table_id"]}
