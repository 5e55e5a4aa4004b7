"""What each statement does, and what is said of it: rows as a DataFrame, or a sentence (``Done``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.catalog.checkpoints import Checkpoints
from penstock.engine.callbacks import Committed
from penstock.engine.naming import is_read_model
from penstock.engine.options import plain_name
from penstock.engine.report import counted
from penstock.errors import NotSupportedError
from penstock.sql import statements as s
from penstock.sql.names import DEFAULT, OWN, key_of
from penstock.storage.log_listing import newest_version
from penstock.vocabulary import Action

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.engine.here import Found
    from penstock.engine.reading import Keys, Reading
    from penstock.engine.report import Report
    from penstock.engine.transactions import Transaction
    from penstock.observe.showing import Showing
    from penstock.storage.vacuum import Freed
    from penstock.warehouse import Warehouse


_NEEDS_SPARK = (s.TableStatement, s.ExplainCreate, s.ExplainQuery)
"""Statements that only read, but not what the catalog knows."""


@dataclass(frozen=True)
class Done:
    """The result of a statement that gives no rows."""

    message: str
    rows: int | None = None
    report: Report | None = None
    by_spark: str | None = None
    """Why a statement on rows was done by Spark; None if it was not."""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Answering:
    at: Warehouse
    within: Transaction | None = None
    """The transaction that the statements are part of."""
    schema: str | None = None
    """Of names that say none, if it is not the current one."""

    @property
    def current(self) -> str:
        return self.at.current if self.schema is None else self.at.catalog.world().schema(self.schema).name

    def answer(self, statement: s.Statement) -> DataFrame | Done:
        if self.within is not None:
            _check_within(statement)
        match statement:
            case s.Query():
                return self._query(statement.text)
            case s.TableStatement():
                return self._table_statement(statement)
            case s.CreateTable() if is_read_model(statement):
                return self._create_model(statement)
            case s.CreatePlainView() | s.DropPlainView():
                return Done(self._plain_view(statement))
            case s.CreateTable() | s.DropTable() | s.SetWatermark() | s.AdvanceWatermark():
                return Done(self._table(statement))
            case s.CreateView():
                return self._create_view(statement)
            case s.RefreshView():
                return _refreshed(statement.name, self.at.engine.refresh([statement.name], full=statement.full))
            case s.ReplayLate():
                return _refreshed(statement.name, self.at.engine.replay_late(statement.name))
            case s.AlterView():
                remark = self.at.engine.views.alter(statement)
                return Done(f"view {statement.name} altered" + (f". {remark}" if remark else ""))
            case s.SuspendView():
                name = self.at.engine.views.suspend(statement.name, suspended=statement.suspended)
                return Done(f"view {name} {'suspended' if statement.suspended else 'resumed'}")
            case s.DropView():
                drop = self.at.engine.views.drop
                gone = drop(statement.name, if_exists=statement.if_exists, cascade=statement.cascade)
                return Done(f"dropped {', '.join(gone)}" if gone else f"view {statement.name} does not exist")
            case s.CreateSchema() | s.DropSchema() | s.UseSchema():
                return Done(self._schema(statement))
            case s.MakeCheckpoint() | s.RestoreCheckpoint() | s.DropCheckpoint():
                return Done(self._checkpoint(statement))
            case s.Vacuum():
                return _vacuumed(self.at.engine.vacuum(None))
            case s.SetSetting():
                said = self.at.set(statement.name, statement.value)
                return Done(f"{statement.name.lower()} set" + (f". {said}" if said else ""))
        return self._show(statement)

    def _seen(self, keys: Keys) -> Reading:
        """What a statement sees of tables and views: one moment."""
        from penstock.engine.reading import reading

        return reading(self.at.catalog, keys) if self.within is None else self.within.reading(keys)

    def _query(self, text: str) -> DataFrame:
        from penstock.engine.relations import newest
        from penstock.engine.snapshots import run_past

        spark = self.at.spark.session()

        def current(seen: Reading, key: str) -> DataFrame:
            return self._own(key) if key.startswith(OWN) else newest(spark, seen, key)

        return run_past(spark, self.at.catalog, text, self._seen, current)

    def table(self, name: str) -> DataFrame:
        """A view's rows at the published epoch, a table's newest, or what tells of Penstock itself."""
        from penstock.engine.relations import known, newest

        name = self.at.meant(name)
        seen = self._seen(lambda world: [known(world, name)])
        key = known(seen.world, name)
        return self._own(key) if key.startswith(OWN) else newest(self.at.spark.session(), seen, key)

    def _own(self, name: str) -> DataFrame:
        from penstock.engine.relations import as_frame
        from penstock.observe.own_tables import own_table

        listing = own_table(self.at.catalog, name)
        return as_frame(self.at.spark.session(), listing.ddl, listing.rows)

    def read_here(self, text: str) -> Found | None:
        """The rows of a query, SHOW or DESCRIBE, if it needs no Spark."""
        from penstock.engine.here import Found, read
        from penstock.frames.arrow.frame import ArrowFrame
        from penstock.observe.own_tables import own_table
        from penstock.sql.parser import parse

        statement = parse(text, self.current)
        if isinstance(statement, s.Query):
            from penstock.engine.writing_out import in_current_query
            from penstock.sql.as_of import clauses_of_past

            if any(clauses_of_past(statement.text)):
                return None
            text = in_current_query(self.at.watched.world(), statement.text)
            return read(text, self._seen, self.at.spark, lambda n: own_table(self.at.catalog, n).arrow())
        if (
            isinstance(statement, s.TableStatement)
            and statement.verb == "DESCRIBE"
            and self._is_no_table(statement.target)
        ):
            statement = s.DescribeView(statement.text, statement.target)
        if not statement.only_reads or isinstance(statement, (*_NEEDS_SPARK, s.UseSchema)):
            return None
        names, rows = self._showing().listing(statement, self.at.catalog.world()).arrow()
        return Found(names, ArrowFrame.of(self.at.spark, rows))

    def _table(self, statement: s.CreateTable | s.DropTable | s.SetWatermark | s.AdvanceWatermark) -> str:
        """What is done to a table as a whole."""
        match statement:
            case s.CreateTable():
                created = self.at.tables.create(statement)
                return f"table {statement.name} {'created' if created else 'exists already'}"
            case s.DropTable() if key_of(statement.name) in self.at.catalog.world().models:
                return f"dropped {', '.join(self.at.engine.models.drop(statement.name, cascade=statement.cascade))}"
            case s.DropTable():
                gone = self.at.tables.drop(statement.name, if_exists=statement.if_exists, cascade=statement.cascade)
                if gone[1:]:
                    self.at.engine.views.names.settle()
                also = f", and with it {', '.join(gone[1:])}" if gone[1:] else ""
                return f"table {statement.name} dropped{also}" if gone else f"table {statement.name} does not exist"
            case s.SetWatermark():
                self.at.tables.set_watermark(statement.name, statement.watermark)
                return f"watermark of {statement.name} {'set' if statement.watermark else 'dropped'}"
            case s.AdvanceWatermark():
                from penstock.engine.snapshots import time_of

                if not self.at.tables.advance_watermark(statement.name, time_of(statement.moment)):
                    return f"watermark of {statement.name} stays where it is: it is not before that time"
                return f"watermark of {statement.name} advanced; refresh to see what it releases"

    def _table_statement(self, statement: s.TableStatement) -> DataFrame | Done:
        """What reads or writes the rows of a table."""
        from penstock.frames.frame import NotHere

        if not statement.writes and self._is_no_table(statement.target):
            if statement.verb != "DESCRIBE":
                raise NotSupportedError(
                    f"{statement.verb} is for tables, and {statement.target!r} is none. Use DESCRIBE MATERIALIZED VIEW "
                    f"{statement.target} or SHOW REFRESH HISTORY FOR {statement.target}."
                )
            return self._show(s.DescribeView(statement.text, statement.target))
        if statement.verb == "VACUUM" and key_of(statement.target) in self.at.catalog.world().views:
            return _vacuumed(self.at.engine.vacuum(statement.target))
        why: str | None = None
        try:
            written = self.at.tables.write_here(statement, self.within)
            self._committed(statement, written.rows, written.version)
            return Done(f"{statement.verb}: {counted(written.rows)}", rows=written.rows, report=written.report)
        except NotHere as reason:
            why = str(reason) or "only Spark computes it"
        result, report = self.at.tables.run(statement, self.within)
        if statement.returns_rows:
            return result
        row = result.first() if "num_affected_rows" in result.columns else None
        rows = None if row is None else row["num_affected_rows"]
        self._committed(statement, rows)
        said = f"{statement.verb} done" if rows is None else f"{statement.verb}: {counted(rows)}"
        return Done(said, rows=rows, by_spark=why, report=report)

    def _is_no_table(self, name: str) -> bool:
        world = self.at.catalog.world()
        return key_of(name) in world.plain or world.resolve(name) not in world.tables

    def _committed(self, statement: s.TableStatement, rows: int | None, version: int | None = None) -> None:
        """Tell of a statement that has changed a table; in a transaction, keep it until that is committed."""
        if not statement.writes or rows == 0 or not (self.at.committed or self.within):
            return
        world = self.at.catalog.world() if self.within is None else self.within.reading().world
        table = world.tables.get(key_of(statement.target))
        if table is None:
            return
        if self.within is not None:
            self.within.done.append(Committed(table=table.name, operation=statement.verb, version=None, rows=rows))
            return
        version = newest_version(table.path) if version is None else version
        self.at.committed(Committed(table=table.name, operation=statement.verb, version=version, rows=rows))

    def commit(self) -> Done:
        """Publish the transaction, and tell of it."""
        assert self.within is not None
        report, done = self.within.commit(), tuple(self.within.done)
        if done:
            tables, rows = ", ".join(dict.fromkeys(one.table for one in done)), [one.rows for one in done]
            total = None if None in rows else sum(count for count in rows if count is not None)
            self.at.committed(Committed(table=tables, operation="COMMIT", version=None, rows=total, parts=done))
        count = f"{len(done)} statement{'' if len(done) == 1 else 's'}"
        return Done(f"COMMIT: {count}" if done else "COMMIT: nothing was written", report=report)

    def _create_view(self, statement: s.CreateView) -> Done:
        views = self.at.engine.views
        report = views.create(statement)
        if report is None:
            state = "created without rows" if not statement.initialize else "exists already"
            return Done(f"materialized view {statement.name} {state}")
        remark = views.remark(key_of(statement.name))
        filled = report[statement.name]
        said = f"materialized view {statement.name} created: {counted(filled.rows_inserted)}"
        if filled.action in (Action.NO_DATA, Action.INCREMENTAL):
            said = f"materialized view {statement.name} replaced; the query means the same, so its rows are kept"
        return Done(f"{said}. {remark}" if remark else said, report=report)

    def _create_model(self, statement: s.CreateTable) -> Done:
        report = self.at.engine.models.create(statement)
        if report is None:
            return Done(f"read model {statement.name} exists already")
        return Done(
            f"read model {statement.name} created: {counted(report[statement.name].rows_inserted)}", report=report
        )

    def _plain_view(self, statement: s.CreatePlainView | s.DropPlainView) -> str:
        plain, name = self.at.engine.plain, statement.name
        if isinstance(statement, s.DropPlainView):
            gone = plain.drop(name, if_exists=statement.if_exists)
            return f"view {name} dropped" if gone else f"view {name} does not exist"
        readers = plain.create(statement)
        if readers is None:
            return f"view {name} exists already"
        also = f"; planned again: {', '.join(readers)}" if readers else ""
        return f"view {name} created{also}"

    def _schema(self, statement: s.CreateSchema | s.DropSchema | s.UseSchema) -> str:
        name = statement.name
        if isinstance(statement, s.UseSchema):
            self.at.current = self.at.catalog.world().schema(name).name
            return f"names without a schema are in {self.at.current} from now on"
        if isinstance(statement, s.CreateSchema):
            made = self.at.engine.schemas.create(name, if_not_exists=statement.if_not_exists)
            return f"schema {name} {'created' if made else 'exists already'}"
        gone = self.at.engine.schemas.drop(name, if_exists=statement.if_exists, cascade=statement.cascade)
        if gone is None:
            return f"schema {name} does not exist"
        if self.at.current.lower() == name.lower():
            self.at.current = DEFAULT
        also = f", and with it {', '.join(gone)}" if gone else ""
        return f"schema {name} dropped{also}"

    def _checkpoint(self, statement: s.MakeCheckpoint | s.RestoreCheckpoint | s.DropCheckpoint) -> str:
        match statement:
            case s.MakeCheckpoint():
                made = Checkpoints(self.at.catalog).add(plain_name(statement.name))
                return f"checkpoint {statement.name} is epoch {made.epoch}"
            case s.RestoreCheckpoint():
                epoch = self.at.engine.past.restore(statement.name)
                return f"checkpoint {statement.name} restored as epoch {epoch}; refresh to catch up"
            case s.DropCheckpoint():
                self.at.engine.past.drop_checkpoint(statement.name)
                return f"checkpoint {statement.name} dropped"

    def _show(self, statement: s.Statement) -> DataFrame:
        """SHOW, DESCRIBE and EXPLAIN."""
        return self._showing().show(statement)

    def _showing(self) -> Showing:
        from penstock.observe.showing import Showing

        return Showing(self.at.catalog, self.at.spark, self.at.engine.views.planned, self._query)


def _check_within(statement: s.Statement) -> None:
    if not statement.only_reads and not isinstance(statement, s.TableStatement):
        what = " ".join(re.findall(r"\w+", statement.text)[:3])
        raise NotSupportedError(
            f"{what} .. cannot be part of a transaction: only INSERT, UPDATE, DELETE, MERGE, TRUNCATE and what reads. "
            "COMMIT or ROLLBACK first."
        )


def _refreshed(name: str, report: Report) -> Done:
    return Done(str(report[name]), report=report)


def _vacuumed(freed: Freed) -> Done:
    return Done(f"VACUUM: {freed.files:,} files, {freed.bytes:,} bytes deleted")
