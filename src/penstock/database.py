"""What a Python user calls. A Database is a warehouse that is open; it delegates to the rooms below."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.answering import Answering, Done
from penstock.catalog.alerts import Alert
from penstock.catalog.checkpoints import Checkpoint, Checkpoints
from penstock.engine.options import choice, emission, lag_of, length, patience, plain_name, policy_of, relation_name
from penstock.errors import NotSupportedError
from penstock.looking import Looking
from penstock.sql import statements as s
from penstock.sql.clauses import trigger_of
from penstock.sql.qualifying import qualified
from penstock.vocabulary import Policy
from penstock.warehouse import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.engine.adopting import Imported
    from penstock.engine.callbacks import Committed
    from penstock.engine.events import Began, Ended, Worked
    from penstock.engine.here import Found
    from penstock.engine.model_rows import Model
    from penstock.engine.report import Report
    from penstock.engine.snapshots import Reader
    from penstock.engine.stored import Stored
    from penstock.running import Runner
    from penstock.schedule.scheduler import Finished
    from penstock.storage.vacuum import Freed
    from penstock.transacting import OpenTransaction


def connect(
    path: str | os.PathLike[str],
    spark: SparkSession | None = None,
    catalog: str | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Database:
    """Open a warehouse, creating it if there is none.

    ``path`` is the directory of the warehouse, or its URL: ``file:``, or ``s3://bucket/folder`` and its like.
    ``spark`` is your own Spark session, which must have Delta Lake; without it, an embedded one is started when it is
    first needed and stopped by ``close``.
    ``catalog`` is the URL of the catalog's database; without it, the catalog is a SQLite file in the warehouse.
    A warehouse in an object store needs one that is named. ``progress`` is called with a few words whenever something
    that takes time begins. ``storage_options`` open object stores, under the names of the usual environment variables:
    ``{"AWS_ENDPOINT_URL": .., "AWS_ACCESS_KEY_ID": ..}``. They are kept in memory only.
    """
    return Database(path, spark, catalog, progress, storage_options)


class Database(Looking):
    def __init__(
        self,
        path: str | os.PathLike[str],
        spark: SparkSession | None = None,
        catalog: str | None = None,
        progress: Callable[[str], None] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ):
        self._at = Warehouse(path, spark, catalog, progress, storage_options)
        self._catalog = self._at.catalog

    # -- opening and closing ------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The directory of the warehouse."""
        return self._at.path

    @property
    def catalog_url(self) -> str:
        return self._catalog.url

    @property
    def spark(self) -> SparkSession:
        """The Spark session; it starts now if nothing needed it before."""
        return self._at.spark.session()

    def interrupt(self) -> None:
        """Cancel what Spark is computing in this session. A Spark that has not been needed is not started for it."""
        if self._at.spark.started:
            self.spark.interruptAll()

    def close(self) -> None:
        """Close the warehouse; an embedded Spark stops with the last database that uses it."""
        self._at.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<penstock.Database {self.path!r}{' (closed)' if self._at.closed else ''}>"

    # -- reading ------------------------------------------------------------------------------------------------------

    def sql(self, text: str, *, schema: str | None = None) -> DataFrame | Done:
        """Run one statement: a DataFrame for queries and SHOW, DESCRIBE, EXPLAIN; a small result for the rest.

        ``schema``: that of names which say none, if it is not the one of the last USE.
        """
        from penstock.sql.parser import parse

        answering = Answering(self._at, self._at.transaction, schema)
        statement = parse(text, answering.current)
        self._at.check_open(to_change=not statement.only_reads)
        self._at.progress("running the statement")
        if isinstance(statement, s.Begin | s.Commit | s.Rollback):
            from penstock.transacting import bounded

            return bounded(self._at, statement)
        return answering.answer(statement)

    def read_here(self, text: str, *, schema: str | None = None) -> Found | None:
        """The rows of a query or of SHOW, if it needs no Spark; for whoever wants rows and no DataFrame."""
        self._at.check_open()
        return Answering(self._at, self._at.transaction, schema).read_here(text)

    def table(self, name: str, epoch: int | None = None) -> DataFrame:
        """A view's rows at the published epoch, or a table's newest; with ``epoch``, either as it was then."""
        self._at.check_open()
        return (
            Answering(self._at, self._at.transaction).table(name) if epoch is None else self.snapshot(epoch).table(name)
        )

    def get(self, name: str, /, **key: object) -> dict[str, Any] | None:
        """The row of a read model with this key, its document parsed; None if there is none.

        ``db.get("tv_post", pk_post=7)``, or by another column that tells rows apart: ``db.get("tv_post", id="..")``.
        """
        from penstock.engine.model_rows import find_rows, only_row

        self._at.check_open()
        if not key:
            raise NotSupportedError(f"get takes a key, such as db.get({name!r}, id=..). Use db.find for several rows.")
        return only_row(find_rows(self._at.spark, self._at.watched.world(), self._at.meant(name), key, None), name, key)

    def find(self, name: str, /, *, limit: int | None = None, **columns: object) -> list[dict[str, Any]]:
        """The rows of a read model whose columns have these values, in the order of its key, documents parsed."""
        from penstock.engine.model_rows import find_rows

        self._at.check_open()
        return find_rows(self._at.spark, self._at.watched.world(), self._at.meant(name), columns, limit)

    def model(self, name: str) -> Model:
        """A read model as it is now: what tells whether it has changed, and its rows with documents as JSON texts."""
        from penstock.engine.model_rows import Model

        self._at.check_open()
        return Model.of(self._at.spark, self._at.watched.world(), self._at.meant(name))

    def snapshot(self, epoch: int | None = None) -> Reader:
        """Views and tables as of one epoch (the newest), so that they agree, whatever is published meanwhile."""
        from penstock.engine.snapshots import Reader, moment_at

        self._at.check_open()
        return Reader(lambda: self.spark, moment_at(self._catalog, epoch=epoch), self._at.current)

    def changes(self, name: str, since: int, until: int | None = None) -> DataFrame:
        """A view's rows that came and went between two epochs (up to the newest), with their ``__weight``."""
        from penstock.engine.snapshots import changes

        self._at.check_open()
        return changes(self.spark, self._catalog, self._at.meant(name), since, until)

    def stored(self, name: str, epoch: int | None = None) -> Stored | None:
        """The rows of ``table(name, epoch)`` batch by batch, if their files can be read without Spark."""
        from penstock.engine.stored import stored

        self._at.check_open()
        return stored(self._catalog, self._at.meant(name), epoch)

    def changes_here(self, name: str, since: int, until: int | None = None) -> pa.Table | None:
        """The rows of ``changes``, if they are few and need no Spark."""
        from penstock.engine.snapshots import changed

        self._at.check_open()
        return changed(self._at.spark, self._catalog, self._at.meant(name), since, until).rows()

    # -- changing -----------------------------------------------------------------------------------------------------

    def refresh(self, *names: str | Sequence[str], full: bool = False, wait: bool | str = False) -> Report:
        """Bring views up to date, upstream first; without names all of them.

        A view that another process is refreshing is skipped (``HELD_BY_ANOTHER``). With ``wait`` that is waited for, or
        at most for a time such as ``wait="5 minutes"``.
        """
        self._at.check_open(to_change=True)
        wanted = [self._at.meant(n) for name in names for n in ([name] if isinstance(name, str) else name)]
        return self._at.engine.refresh(wanted if names else None, full=full, wait=patience(wait))

    @property
    def in_transaction(self) -> bool:
        """Whether ``BEGIN`` has begun a transaction here, which goes on."""
        return self._at.transaction is not None

    def transaction(self) -> OpenTransaction:
        """Several statements on several tables, all or nothing: ``with db.transaction() as tx: tx.sql(..)``.

        They see the warehouse as it was when the transaction began, and their own writes. Leaving the block publishes
        all of it together with the IMMEDIATE views; an exception leaves nothing behind. ``ConflictError`` if another
        writer has changed one of its tables meanwhile: run the block again.
        """
        from penstock.transacting import OpenTransaction

        self._at.check_open(to_change=True)
        return OpenTransaction(self._at)

    def register_table(self, name: str, path: str | os.PathLike[str]) -> None:
        """Make an existing Delta table known under a name."""
        self._at.check_open(to_change=True)
        self._at.tables.register(relation_name(name, self._at.current), os.fspath(path))

    def import_tables(self, name: str) -> list[Imported]:
        """Make tables and views of Spark's catalogs known: ``catalog.schema.table``, or all of ``catalog.schema``.

        Delta tables are external tables of the same schema and name here, and stay where they are; views are plain
        views whose definition is watched.
        """
        self._at.check_open(to_change=True)
        return self._at.engine.adopting.imported(name)

    def create_view(
        self,
        name: str,
        query: str,
        *,
        refresh: str = "MANUAL",
        policy: str = Policy.AUTO,
        target_lag: str | None = None,
        priority: int = 0,
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
        self._at.check_open(to_change=True)
        emitted, every = emission(emit, emit_every)
        options = s.Options(
            consistency=choice("consistency", consistency), schedule=choice("schedule_policy", schedule_policy),
            emit=emitted, every=every, lateness=length("allow_lateness", allow_lateness), lag=lag_of(target_lag),
            priority=priority,
        )  # fmt: skip
        return self._at.engine.views.create(
            s.CreateView(
                query, name=relation_name(name, self._at.current), query=qualified(query, self._at.current),
                or_replace=or_replace, if_not_exists=if_not_exists, columns=tuple((c, None) for c in columns),
                comment=comment, properties=tuple((properties or {}).items()), trigger=trigger_of(refresh),
                policy=policy_of(policy), initialize=initialize, options=options,
                placement=s.Placement(tuple(partitioned_by), tuple(cluster_by), buckets),
            )
        )  # fmt: skip

    def alter_view(
        self,
        name: str,
        *,
        refresh: str | None = None,
        policy: str | None = None,
        target_lag: str | None = None,
        priority: int | None = None,
        consistency: str | None = None,
        schedule_policy: str | None = None,
    ) -> None:
        """Change when or how a view is refreshed. ``target_lag="NONE"`` takes a target lag away."""
        self._at.check_open(to_change=True)
        self._at.engine.views.alter(
            s.AlterView(
                "", name=self._at.meant(name), policy=policy, trigger=None if refresh is None else trigger_of(refresh),
                lag=lag_of(target_lag, none=True), consistency=consistency, schedule=schedule_policy,
                priority=priority,
            )
        )  # fmt: skip

    def suspend(self, name: str) -> None:
        """Leave a view out of what is refreshed by itself, until ``resume``."""
        self._at.check_open(to_change=True)
        self._at.engine.views.suspend(self._at.meant(name), suspended=True)

    def resume(self, name: str) -> None:
        """Refresh a view by itself again, whatever went wrong before."""
        self._at.check_open(to_change=True)
        self._at.engine.views.suspend(self._at.meant(name), suspended=False)

    def on_commit(self, callback: Callable[[Committed], object]) -> Callable[[], None]:
        """Have a function called after each commit that a statement makes to a table here.

        It is called once, when the commit can be seen, in the order of registration; never after a statement that
        failed. A transaction is one commit (``operation`` COMMIT, with its statements as ``parts``), and one that is
        rolled back is none.
        What it raises is logged, and stops neither the commit nor the other callbacks. Gives a function that takes it
        back.
        """
        self._at.check_open()
        return self._at.committed.add(callback)

    def on_alert(self, callback: Callable[[Alert], object]) -> Callable[[], None]:
        """Have a function called with each alert that is raised here, and again when it is cleared.

        What it raises is logged, and stops nothing. Gives a function that takes it back.
        """
        self._at.check_open()
        return self._at.alerting.callbacks.add(callback)

    def on_refresh(self, callback: Callable[[Began | Worked | Ended], object]) -> Callable[[], None]:
        """Have a function called when work on a view begins here, when a piece of it is through, and when it ends.

        What it raises is logged, and stops nothing. Gives a function that takes it back.
        """
        self._at.check_open()
        begun, worked = self._at.engine.refreshing.add(callback), self._at.engine.worked.add(callback)

        def forget() -> None:
            begun()
            worked()

        return forget

    def run(
        self,
        *,
        background: bool = False,
        tell: Callable[[Finished], None] | None = None,
        shard: str | None = None,
    ) -> Runner:
        """Keep the views fresh that say when they refresh, until ``stop`` (or Ctrl-C).

        With ``background`` it returns at once and works in threads of its own. ``tell`` hears of every refresh.
        ``shard="2/8"``: only the second of eight parts of the views; the other seven are for other processes.
        """
        runner = self.runner(tell, shard=shard)
        if background:
            runner.start()
        else:
            runner.run()
        return runner

    def runner(
        self,
        tell: Callable[[Finished], None] | None = None,
        *,
        lets_java_go: bool = False,
        sleeps: bool = False,
        shard: str | None = None,
    ) -> Runner:
        """What ``run`` runs, not begun yet; for who decides when it begins and ends.

        ``lets_java_go``: an embedded Spark stops after a while without work, and DataFrames of it are lost.
        ``sleeps``: it ends after a while without work, and its ``nap`` says when to begin again.
        """
        from penstock.graph.shards import Shard
        from penstock.running import Runner

        self._at.check_open(to_change=True)
        own = None if shard is None else Shard.read(shard)
        return Runner(self._at, tell, lets_java_go=lets_java_go, sleeps=sleeps, shard=own)

    def set(self, name: str, value: str) -> None:
        """Change a setting of the warehouse."""
        self._at.check_open(to_change=True)
        self._at.set(name, value)

    def advance_watermark(self, name: str, moment: str | datetime) -> bool:
        """Say that no row before a moment (UTC) is expected any more in a table, though none after it has come.

        False if the table's watermark is there already: it never moves back.
        """
        from penstock.engine.snapshots import time_of

        self._at.check_open(to_change=True)
        return self._at.tables.advance_watermark(self._at.meant(name), time_of(moment))

    def replay_late(self, name: str) -> Report:
        """Take the rows that came too late for a view after all, and refresh it."""
        self._at.check_open(to_change=True)
        return self._at.engine.replay_late(self._at.meant(name))

    def checkpoint(self, name: str) -> int:
        """Name the newest epoch, so that it is kept and can be gone back to; gives its number."""
        self._at.check_open(to_change=True)
        return Checkpoints(self._catalog).add(plain_name(name)).epoch

    def checkpoints(self) -> list[Checkpoint]:
        self._at.check_open()
        return Checkpoints(self._catalog).all()

    def drop_checkpoint(self, name: str) -> None:
        self._at.check_open(to_change=True)
        self._at.engine.past.drop_checkpoint(name)

    def restore(self, name: str) -> int:
        """Bring all views back to a checkpoint, in one step; gives the epoch that this is. Tables stay as they are."""
        self._at.check_open(to_change=True)
        return self._at.engine.past.restore(name)

    def vacuum(self, name: str | None = None) -> Freed:
        """Delete what epochs beyond the setting ``retention`` have left of a view (of all); happens daily anyway."""
        self._at.check_open(to_change=True)
        return self._at.engine.vacuum(None if name is None else self._at.meant(name))

    def settings(self) -> dict[str, str]:
        """The settings of the warehouse, as they hold now."""
        from penstock.engine.settings import in_force

        self._at.check_open()
        return in_force(self._catalog.world().settings)

    def drop_view(self, name: str, cascade: bool = False) -> None:
        """Drop a view; with ``cascade`` also the views that read it."""
        self._at.check_open(to_change=True)
        self._at.engine.views.drop(self._at.meant(name), cascade=cascade)
