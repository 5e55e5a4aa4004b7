"""A database's way to Spark: the caller's session, classic or of Spark Connect, or a share in the embedded one.

A process can hold one embedded Spark at a time, so all of its open databases share it. It starts when a session is
first asked for and stops with its last user.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable

from pyspark import inheritable_thread_target
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from penstock.engine.cores import Cores
from penstock.engine.embedded import Embedded, is_stopped, spark_log_is_wanted
from penstock.engine.jobs import noticed
from penstock.engine.said import Said
from penstock.engine.versions import check_session
from penstock.errors import SparkError
from penstock.frames.clock import phase
from penstock.frames.spark.problems import SPARK_PROBLEMS, clean_message
from penstock.frames.spark.session import over_connect
from penstock.frames.spark.turns import Turns, turns_of

_embedded = Embedded()
atexit.register(_embedded.stop)


class Spark:
    """A ``SparkOnDemand`` for one database."""

    def __init__(self, given: SparkSession | None, said: Said | None = None):
        quiet_python_loggers()
        self._given = given
        self._session: SparkSession | None = None
        self._starting = threading.Lock()
        self._said = said or Said()
        self._cores = Cores()

    @property
    def cores(self) -> int | None:
        """How many tasks Spark runs at once; None if it has not started, or does not tell."""
        known = self._session or self._given
        return None if known is None else self._cores.of(known)

    def session(self) -> SparkSession:
        """A session that runs, under the settings that are in force here."""
        with self._starting:
            self._check_running()
            if self._session is None:
                self._session = self._embedded_session() if self._given is None else _checked(self._given)
            session = self._session
        self.turns.meet(session)
        noticed(session)
        return session

    @property
    def given(self) -> bool:
        """Whether the session is the caller's."""
        return self._given is not None

    @property
    def started(self) -> bool:
        """Whether asking for the session starts nothing."""
        return self._given is not None or _embedded.running

    @property
    def turns(self) -> Turns:
        return _embedded.turns if self._given is None else turns_of(self._given)

    def in_thread(self, work: Callable[[], None]) -> Callable[[], None]:
        """The work for another thread: what this one has set for Spark, such as a job group or tags, holds there."""
        return inheritable_thread_target(self.session())(work) if self.started else work

    def _check_running(self) -> None:
        """A session that was stopped is an error. One whose JVM has died is forgotten, so that another one starts."""
        known = self._session or self._given
        if known is None or not _is_over(known):
            return
        if self._given is None and _embedded.died(known):
            self._session = None
            return
        whose = "given to this database" if self._given is not None else "of this database"
        raise SparkError(
            f"the Spark session {whose} was stopped. Close the database, and open it again: penstock.connect(path"
            + (", spark=a_running_session)." if self._given is not None else ").")
        )

    def _embedded_session(self) -> SparkSession:
        with self._said.instead("starting Spark"), phase("starting"):  # which is not any view's time
            return _embedded.acquire()

    def rest(self) -> None:
        """Let an embedded Spark go, if nobody else uses it; the next who needs one starts another."""
        self.close()

    def close(self) -> None:
        if self._session is not None and self._given is None:
            _embedded.release(self._session)
        self._session = None


def _checked(given: SparkSession) -> SparkSession:
    """The caller's session, if it can do what is needed. Nothing of it is changed."""
    try:
        extensions = given.conf.get("spark.sql.extensions", "") or ""
        packages = given.conf.get("spark.jars.packages", "") or ""
        version = given.version
    except SPARK_PROBLEMS as problem:
        raise SparkError(f"the given Spark session cannot be used: {clean_message(problem, {})}") from None
    if "DeltaSparkSessionExtension" not in extensions:
        whose = "its server" if over_connect(given) else "it"
        raise SparkError(
            f"the given Spark session has no Delta Lake. Start {whose} with spark.sql.extensions="
            "io.delta.sql.DeltaSparkSessionExtension and spark.sql.catalog.spark_catalog="
            "org.apache.spark.sql.delta.catalog.DeltaCatalog (see delta.configure_spark_with_delta_pip)."
        )
    check_session(version, packages)
    return given


def _is_over(session: SparkSession) -> bool:
    """Whether nothing can be asked of a session any more."""
    return bool(getattr(session, "is_stopped", False)) if over_connect(session) else is_stopped(session)


def quiet_python_loggers() -> None:
    """PySpark writes each failed query with its JVM stack to standard error; what matters of it is in our error."""
    if not spark_log_is_wanted():
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
        for name in ("py4j.java_gateway", "py4j.clientserver"):  # which tell of a JVM that has died
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
