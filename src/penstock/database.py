"""What a Python user calls. A Database is a warehouse that is open; it delegates to the rooms below."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from penstock.catalog import Catalog, HistoryRecord
from penstock.catalog.alerts import Alert
from penstock.catalog.checkpoints import Checkpoint, Checkpoints
from penstock.catalog.connection import refusal
from penstock.engine.options import check_options, choice, emission, length, patience, plain_name
from penstock.engine.report import counted
from penstock.engine.said import Said
from penstock.errors import NotSupportedError, PenstockError, WarehouseError
from penstock.observe.explain import Explanation
from penstock.observe.graph import Graph
from penstock.observe.graph import graph as view_graph
from penstock.observe.status import ViewStatus
from penstock.observe.status import status as view_status
from penstock.sql import statements as s
from penstock.storage.locations import local_path
from penstock.vocabulary import Policy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.engine.engine import Engine
    from penstock.engine.here import Found
    from penstock.engine.report import Report
    from penstock.engine.session import Spark
    from penstock.engine.snapshots import Reader
    from penstock.engine.source_tables import SourceTables
    from penstock.observe.verify import Verification
    from penstock.storage.vacuum import Freed


@dataclass(frozen=True)
class Done:
    """The result of a statement that gives no rows."""

    message: str
    rows: int | None = None
    report: Report | None = None

    def __str__(self) -> str:
        return self.message


def connect(
    path: str | os.PathLike[str],
    spark: SparkSession | None = None,
    catalog: str | None = None,
    *,
    progress: Callable[[str], None] | None = None,
) -> Database:
    """Open a warehouse, creating it if there is none.

    ``path`` is the directory of the warehouse, or its ``file:`` URL. ``spark`` is your own Spark session, which must
    have Delta Lake; without it, an embedded one is started when it is first needed and stopped by ``close``.
    ``catalog`` is the URL of the catalog's database; without it, the catalog is a SQLite file in the warehouse.
    ``progress`` is called with a few words whenever something that takes time begins.
    """
    return Database(path, spark, catalog, progress)


class Database:
    def __init__(
        self,
        path: str | os.PathLike[str],
        spark: SparkSession | None = None,
        catalog: str | None = None,
        progress: Callable[[str], None] | None = None,
    ):
        self.path = local_path(path, "a warehouse")
        try:
            os.makedirs(self.path, exist_ok=True)
        except OSError as problem:
            raise WarehouseError(
                f"the warehouse {self.path!r} cannot be created: {problem.strerror}. Choose a directory you can write."
            ) from None
        # A path may have characters that mean something in a URL.
        url = catalog or f"sqlite:///{quote(os.path.join(self.path, 'catalog.sqlite'))}"
        self._refusal = refusal(self.path, url)
        self._catalog = Catalog(url, self._refusal)
        if catalog is None and not self._refusal:
            self._catalog.settle_at(self.path)
        self._given_spark = spark
        self._progress = Said(progress)
        self._closed = False
        self._rooms: tuple[Engine, SourceTables] | None = None
        self._spark: Spark | None = None

    # -- opening and closing ------------------------------------------------------------------------------------------

    @property
    def catalog_url(self) -> str:
        return self._catalog.url

    @property
    def spark(self) -> SparkSession:
        """The Spark session; it starts now if nothing needed it before."""
        return self._way_to_spark.session()

    @property
    def _way_to_spark(self) -> Spark:
        self._open_rooms()
        assert self._spark is not None
        return self._spark

    @property
    def _engine(self) -> Engine:
        return self._open_rooms()[0]

    @property
    def _tables(self) -> SourceTables:
        return self._open_rooms()[1]

    def _open_rooms(self) -> tuple[Engine, SourceTables]:
        """Everything that knows Spark is imported late: status, graph and history answer without it."""
        self._check_open()
        if self._rooms is None:
            from penstock.engine.engine import Engine
            from penstock.engine.session import Spark
            from penstock.engine.source_tables import SourceTables

            spark = Spark(self._given_spark, self._progress)
            engine = Engine(self.path, spark, self._catalog, self._progress)
            self._spark = spark
            tables = SourceTables(spark, self._catalog, engine.locate, engine.tell)
            self._rooms = engine, tables
        return self._rooms

    def _check_open(self, *, to_change: bool = False) -> None:
        if self._closed:
            raise PenstockError("this database is closed. Open it again with penstock.connect(path).")
        if to_change and self._refusal:
            raise WarehouseError(self._refusal)

    def close(self) -> None:
        """Close the warehouse; an embedded Spark stops with the last database that uses it."""
        if self._closed:
            return
        self._closed = True
        if self._spark is not None:
            from penstock.engine.session import Spark

            assert isinstance(self._spark, Spark)
            self._spark.close()
        self._catalog.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<penstock.Database {self.path!r}{' (closed)' if self._closed else ''}>"

    # -- reading ------------------------------------------------------------------------------------------------------

    def sql(self, text: str) -> DataFrame | Done:
        """Run one statement: a DataFrame for queries and SHOW, DESCRIBE, EXPLAIN; a small result for the rest."""
        from penstock.sql.parser import parse

        statement = parse(text)
        self._check_open(to_change=not statement.only_reads)
        self._progress("running the statement")
        return self._run(statement)

    def read_here(self, text: str) -> Found | None:
        """The rows of a query, if it needs no Spark; for whoever wants rows and no DataFrame."""
        from penstock.engine.here import read

        self._check_open()
        return read(text, self._catalog.world(), self._way_to_spark)

    def table(self, name: str, epoch: int | None = None) -> DataFrame:
        """A view's rows at the published epoch, or a table's newest; with ``epoch``, either as it was then."""
        from penstock.engine.relations import newest

        self._check_open()
        if epoch is not None:
            return self.snapshot(epoch).table(name)
        world = self._catalog.world()
        return newest(self.spark, world, world.resolve(name))

    def snapshot(self, epoch: int | None = None) -> Reader:
        """Views and tables as of one epoch (the newest), so that they agree, whatever is published meanwhile."""
        from penstock.engine.snapshots import Reader, moment_at

        self._check_open()
        return Reader(lambda: self.spark, moment_at(self._catalog, epoch=epoch))

    def changes(self, name: str, since: int, until: int | None = None) -> DataFrame:
        """A view's rows that came and went between two epochs (up to the newest), with their ``__weight``."""
        from penstock.engine.snapshots import changes

        self._check_open()
        return changes(self.spark, self._catalog, name, since, until)

    def status(self) -> list[ViewStatus]:
        """One record a view, inputs before readers."""
        self._check_open()
        return view_status(self._catalog)

    def history(self, name: str | None = None, limit: int | None = None) -> list[HistoryRecord]:
        """What refreshes did, newest first."""
        self._check_open()
        key = self._catalog.world().view_key(name) if name is not None else None
        return self._catalog.history(key, limit)

    def alerts(self, name: str | None = None) -> list[Alert]:
        """What somebody should know of, of one view or of all: first what goes on, then what is over."""
        self._check_open()
        return self._catalog.alerts(self._catalog.world().view_key(name) if name is not None else None)

    def verify(self, *names: str, sample: float | None = None) -> list[Verification]:
        """Compare views (all without names) with their queries, on the versions that they were computed from.

        ``sample`` is the share of rows to compare, such as 0.01; without it, all are.
        """
        from penstock.observe.verify import verify_views

        return verify_views(self.spark, self._catalog.world(), names, sample)

    def graph(self) -> Graph:
        """Tables and views and who reads whom; ``print`` it."""
        self._check_open()
        return view_graph(self._catalog)

    def explain(self, name: str) -> Explanation:
        """How a view is maintained, or would be: takes a name or CREATE MATERIALIZED VIEW ..; ``print`` the answer."""
        from penstock.observe.explained import explain_known, explain_planned
        from penstock.sql.parser import parse

        self._check_open()
        world = self._catalog.world()
        if re.match(r"\s*CREATE\s", name, re.IGNORECASE):
            statement = parse(name)
            if not isinstance(statement, s.CreateView):
                raise NotSupportedError("explain takes the name of a view, or CREATE MATERIALIZED VIEW ..")
            self._progress("planning")
            return explain_planned(world, self._engine.views.define(world, statement))
        return explain_known(self._catalog, world, name)

    # -- changing -----------------------------------------------------------------------------------------------------

    def refresh(self, *names: str | Sequence[str], full: bool = False, wait: bool | str = False) -> Report:
        """Bring views up to date, upstream first; without names all of them.

        A view that another process is refreshing is skipped (``HELD_BY_ANOTHER``). With ``wait`` that is waited for, or
        at most for a time such as ``wait="5 minutes"``.
        """
        self._check_open(to_change=True)
        wanted = [n for name in names for n in ([name] if isinstance(name, str) else name)]
        return self._engine.refresh(wanted if names else None, full=full, wait=patience(wait))

    def register_table(self, name: str, path: str | os.PathLike[str]) -> None:
        """Make an existing Delta table known under a name."""
        self._check_open(to_change=True)
        self._tables.register(plain_name(name), os.fspath(path))

    def create_view(
        self,
        name: str,
        query: str,
        *,
        refresh: str = "MANUAL",
        policy: str = Policy.AUTO,
        target_lag: str | None = None,
        initialize: bool = True,
        comment: str | None = None,
        columns: Sequence[str] = (),
        partitioned_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        buckets: int | None = None,
        consistency: str | None = None,
        schedule_policy: str | None = None,
        emit: str = s.ON_UPDATE,
        emit_every: str | None = None,
        allow_lateness: str | None = None,
        properties: Mapping[str, str] | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> Report | None:
        """CREATE MATERIALIZED VIEW without SQL around the query."""
        self._check_open(to_change=True)
        chosen = check_options(refresh, policy, target_lag)
        emitted, every = emission(emit, emit_every)
        options = s.Options(
            consistency=choice("consistency", consistency), schedule=choice("schedule_policy", schedule_policy),
            emit=emitted, every=every, lateness=length("allow_lateness", allow_lateness),
        )  # fmt: skip
        return self._engine.views.create(
            s.CreateView(
                query, name=plain_name(name), query=query, or_replace=or_replace, if_not_exists=if_not_exists,
                columns=tuple((c, None) for c in columns), comment=comment,
                properties=tuple((properties or {}).items()), refresh=refresh.upper(), policy=chosen,
                initialize=initialize, placement=s.Placement(tuple(partitioned_by), tuple(cluster_by), buckets),
                options=options,
            )
        )  # fmt: skip

    def alter_view(
        self,
        name: str,
        *,
        refresh: str | None = None,
        policy: str | None = None,
        consistency: str | None = None,
        schedule_policy: str | None = None,
    ) -> None:
        """Change when or how a view is refreshed."""
        self._check_open(to_change=True)
        chosen = check_options(refresh or "MANUAL", policy or Policy.AUTO, None)
        self._alter(
            s.AlterView(
                "", name=name, policy=chosen if policy else None, refresh=refresh, consistency=consistency,
                schedule=schedule_policy,
            )
        )  # fmt: skip

    def _alter(self, change: s.AlterView) -> str | None:
        """Do it; gives a remark when it has no effect."""
        self._check_open(to_change=True)
        check_options(change.refresh or "MANUAL", change.policy or Policy.AUTO, None)
        consistency, schedule = choice("consistency", change.consistency), choice("schedule_policy", change.schedule)
        self._catalog.world().view_key(change.name)
        if change.policy is not None:
            self._engine.views.set_policy(change.name, change.policy)
        if consistency is None and schedule is None:
            return None
        return self._engine.views.set_options(change.name, consistency=consistency, schedule=schedule)

    def set(self, name: str, value: str) -> None:
        """Change a setting of the warehouse."""
        from penstock.engine.settings import checked

        self._check_open(to_change=True)
        self._catalog.set_setting(*checked(name, value))

    def advance_watermark(self, name: str, moment: str | datetime) -> bool:
        """Say that no row before a moment (UTC) is expected any more in a table, though none after it has come.

        False if the table's watermark is there already: it never moves back.
        """
        from penstock.engine.snapshots import time_of

        self._check_open(to_change=True)
        return self._tables.advance_watermark(name, time_of(moment))

    def replay_late(self, name: str) -> Report:
        """Take the rows that came too late for a view after all, and refresh it."""
        self._check_open(to_change=True)
        return self._engine.replay_late(name)

    def checkpoint(self, name: str) -> int:
        """Name the newest epoch, so that it is kept and can be gone back to; gives its number."""
        self._check_open(to_change=True)
        return Checkpoints(self._catalog).add(plain_name(name)).epoch

    def checkpoints(self) -> list[Checkpoint]:
        self._check_open()
        return Checkpoints(self._catalog).all()

    def drop_checkpoint(self, name: str) -> None:
        self._check_open(to_change=True)
        self._engine.past.drop_checkpoint(name)

    def restore(self, name: str) -> int:
        """Bring all views back to a checkpoint, in one step; gives the epoch that this is. Tables stay as they are."""
        self._check_open(to_change=True)
        return self._engine.past.restore(name)

    def vacuum(self, name: str | None = None) -> Freed:
        """Delete what epochs beyond the setting ``retention`` have left of a view (of all); happens daily anyway."""
        self._check_open(to_change=True)
        return self._engine.vacuum(name)

    def settings(self) -> dict[str, str]:
        """The settings of the warehouse, as they hold now."""
        from penstock.engine.settings import in_force

        self._check_open()
        return in_force(self._catalog.world().settings)

    def drop_view(self, name: str, cascade: bool = False) -> None:
        """Drop a view; with ``cascade`` also the views that read it."""
        self._check_open(to_change=True)
        self._engine.views.drop(name, cascade=cascade)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _run(self, statement: s.Statement) -> DataFrame | Done:
        match statement:
            case s.Query():
                return self._query(statement.text)
            case s.TableStatement():
                return self._table_statement(statement)
            case s.CreateTable():
                created = self._tables.create(statement)
                return Done(f"table {statement.name} {'created' if created else 'exists already'}")
            case s.DropTable():
                dropped = self._tables.drop(statement.name, if_exists=statement.if_exists)
                return Done(f"table {statement.name} {'dropped' if dropped else 'does not exist'}")
            case s.CreateView():
                return self._create_view(statement)
            case s.RefreshView():
                report = self.refresh(statement.name, full=statement.full)
                return Done(str(report[statement.name]), report=report)
            case s.AlterView():
                remark = self._alter(statement)
                return Done(f"view {statement.name} altered" + (f". {remark}" if remark else ""))
            case s.ReplayLate():
                report = self.replay_late(statement.name)
                return Done(str(report[statement.name]), report=report)
            case s.MakeCheckpoint():
                return Done(f"checkpoint {statement.name} is epoch {self.checkpoint(statement.name)}")
            case s.RestoreCheckpoint():
                epoch = self.restore(statement.name)
                return Done(f"checkpoint {statement.name} restored as epoch {epoch}; refresh to catch up")
            case s.DropCheckpoint():
                self.drop_checkpoint(statement.name)
                return Done(f"checkpoint {statement.name} dropped")
            case s.Vacuum():
                return _vacuumed(self.vacuum())
            case s.SetWatermark():
                self._tables.set_watermark(statement.name, statement.watermark)
                return Done(f"watermark of {statement.name} {'set' if statement.watermark else 'dropped'}")
            case s.AdvanceWatermark():
                if not self.advance_watermark(statement.name, statement.moment):
                    return Done(f"watermark of {statement.name} stays where it is: it is not before that time")
                return Done(f"watermark of {statement.name} advanced; refresh to see what it releases")
            case s.SetSetting():
                self.set(statement.name, statement.value)
                return Done(f"{statement.name.lower()} set")
            case s.DropView():
                gone = self._engine.views.drop(statement.name, if_exists=statement.if_exists, cascade=statement.cascade)
                return Done(f"dropped {', '.join(gone)}" if gone else f"view {statement.name} does not exist")
        return self._show(statement)

    def _query(self, text: str) -> DataFrame:
        from penstock.engine.relations import newest
        from penstock.engine.snapshots import run_past

        return run_past(self.spark, self._catalog, text, lambda world, key: newest(self.spark, world, key))

    def _table_statement(self, statement: s.TableStatement) -> DataFrame | Done:
        world = self._catalog.world()
        if not statement.writes and world.resolve(statement.target) not in world.tables:
            if statement.verb != "DESCRIBE":
                raise NotSupportedError(
                    f"{statement.verb} is for tables, and {statement.target!r} is none. Use DESCRIBE MATERIALIZED VIEW "
                    f"{statement.target} or SHOW REFRESH HISTORY FOR {statement.target}."
                )
            return self._show(s.DescribeView(statement.text, statement.target))
        if statement.verb == "VACUUM" and statement.target.lower() in world.views:
            return _vacuumed(self.vacuum(statement.target))
        inserted = self._tables.insert_here(statement)
        if inserted is not None:
            return Done(f"{statement.verb}: {counted(inserted)}", rows=inserted)
        result = self._tables.run(statement)
        if statement.returns_rows:
            return result
        row = result.first() if "num_affected_rows" in result.columns else None
        if row is None:
            return Done(f"{statement.verb} done")
        return Done(f"{statement.verb}: {counted(row['num_affected_rows'])}", rows=row["num_affected_rows"])

    def _create_view(self, statement: s.CreateView) -> Done:
        report = self._engine.views.create(statement)
        if report is None:
            state = "created without rows" if not statement.initialize else "exists already"
            return Done(f"materialized view {statement.name} {state}")
        own = report[statement.name]
        remark = self._engine.views.remark(statement.name.lower())
        said = f"materialized view {statement.name} created: {counted(own.rows_inserted)}"
        return Done(f"{said}. {remark}" if remark else said, report=report)

    def _show(self, statement: s.Statement) -> DataFrame:
        """SHOW, DESCRIBE and EXPLAIN."""
        from penstock.observe.showing import Showing

        showing = Showing(self._catalog, lambda: self.spark, self._engine.views.define, self._query)
        return showing.show(statement)


def _vacuumed(freed: Freed) -> Done:
    return Done(f"VACUUM: {freed.files:,} files, {freed.bytes:,} bytes deleted")
