"""A warehouse that is open: its catalog at once, and what knows Spark when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote

from penstock.catalog import Catalog
from penstock.catalog.connection import refusal
from penstock.catalog.watched import Watched
from penstock.engine.callbacks import Callbacks, Committed
from penstock.engine.said import Said
from penstock.errors import PenstockError, WarehouseError
from penstock.lineage import Lineage, wanted
from penstock.sql.names import DEFAULT, QualifiedName, is_path
from penstock.storage.locations import checked_options, forget, is_store, location, use
from penstock.telling import Telling, log_refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.engine import Engine
    from penstock.engine.session import Spark
    from penstock.engine.source_tables import SourceTables
    from penstock.engine.transactions import Transaction


class Warehouse:
    """Everything that knows Spark is imported late: status, graph and history answer without it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        spark: SparkSession | None,
        catalog: str | None,
        progress: Callable[[str], None] | None,
        storage_options: Mapping[str, str] | None = None,
    ):
        self._options = checked_options(storage_options)
        self.path = location(path, "a warehouse", self._options)
        if not is_store(self.path):
            self._make_directory()
        url = catalog or self._own_catalog()
        self._refusal = refusal(None if is_store(self.path) else self.path, url)
        use(self.path, self._options)
        try:
            self.catalog = Catalog(url, self._refusal)
        except BaseException:
            forget(self.path, self._options)
            raise
        if catalog is None:
            self.catalog.settle_at(self.path)
        self.catalog.end_what_was_killed()
        self.progress = Said(progress)
        self.closed = False
        self.committed: Callbacks[Committed] = Callbacks()
        """Who is told of commits to tables that were made here."""
        self.watched = Watched(self.catalog)
        self.alerting = Telling(self.path, self.catalog.world)
        self.catalog.alerted = self.alerting
        self.transaction: Transaction | None = None
        """What BEGIN has begun."""
        self.current = DEFAULT
        """The schema of names that say none: what USE has said."""
        self._lineage: Lineage | None = None
        self._given_spark = spark

    def _own_catalog(self) -> str:
        """The URL of the catalog in the warehouse."""
        if is_store(self.path):
            raise WarehouseError(
                f"the warehouse {self.path!r} lies in an object store or HDFS, where no catalog can be kept. Name a "
                "database, in Python with catalog=.., in the shell with --catalog or PENSTOCK_CATALOG: "
                "'postgresql://host/database', or for one process 'sqlite:////path/catalog.sqlite'."
            )
        # A path may have characters that mean something in a URL.
        return f"sqlite:///{quote(os.path.join(self.path, 'catalog.sqlite'))}"

    def _make_directory(self) -> None:
        try:
            os.makedirs(self.path, exist_ok=True)
        except OSError as problem:
            raise WarehouseError(
                f"the warehouse {self.path!r} cannot be created: {problem.strerror}. Choose a directory you can write."
            ) from None

    def check_open(self, *, to_change: bool = False) -> None:
        if self.closed:
            raise PenstockError("this database is closed. Open it again with penstock.connect(path).")
        if to_change and self._refusal:
            raise WarehouseError(self._refusal)

    def meant(self, name: str) -> str:
        """A name of a table or view as it is meant here: in the current schema, if it says none."""
        as_it_is = self.current == DEFAULT or is_path(name)  # which is told when it is looked for
        return name if as_it_is else str(QualifiedName.read(name, self.current))

    @property
    def spark(self) -> Spark:
        """The way to Spark, which starts when a session is asked of it."""
        self.check_open()
        return self._spark

    @cached_property
    def _spark(self) -> Spark:
        from penstock.engine.session import Spark

        return Spark(self._given_spark, self.progress)

    @cached_property
    def engine(self) -> Engine:
        from penstock.engine.engine import Engine

        engine = Engine(self.path, self.spark, self.catalog, self.progress)
        engine.refreshing.add(log_refresh)
        if wanted():
            self._lineage = Lineage(self.path)
            engine.refreshing.add(self._lineage)
        return engine

    @cached_property
    def tables(self) -> SourceTables:
        from penstock.engine.source_tables import SourceTables

        engine = self.engine
        return SourceTables(
            self.spark, self.catalog, engine.locate, engine.tell, engine.leave_unused, engine.committing,
            engine.refresh, self.path,
        )  # fmt: skip

    def set(self, name: str, value: str) -> str | None:
        """Change a setting of the warehouse; gives what is to be said about it."""
        from penstock.engine.settings import OF_NAMES, checked

        name, value = checked(name, value)
        if name in OF_NAMES:
            return " ".join(self.engine.views.names.change_setting(name, value)) or None
        self.catalog.set_setting(name, value)
        return None

    @property
    def all_is_sent(self) -> bool:
        """Whether nobody outside is still to be told of something."""
        return self.alerting.idle and (self._lineage is None or self._lineage.idle)

    def close(self) -> None:
        """An embedded Spark stops with the last warehouse that uses it."""
        if self.closed:
            return
        self.closed = True
        if self.transaction is not None:
            self.transaction.rollback()
        if "_spark" in self.__dict__:  # somebody has asked for it
            self._spark.close()
        self.alerting.close()
        if self._lineage is not None:
            self._lineage.close()
        self.watched.close()
        self.catalog.close()
        forget(self.path, self._options)
