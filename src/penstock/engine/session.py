"""The Spark session: the caller's, or an embedded one that starts when it is first needed and stops with its last user.

A process can hold one Spark at a time, so the embedded session is shared by all open databases of the process.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import IO, Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from penstock.engine.said import Said
from penstock.engine.versions import check_session, delta_package
from penstock.errors import QueryError, SparkError

JAVA_HELP = "Install it with 'sudo apt-get install openjdk-17-jre-headless' (macOS: 'brew install openjdk@17')."


_JOB_GROUP = "spark.jobGroup.id"

EXACT_DATES = {"spark.sql.datetime.java8API.enabled": "true"}
"""Delta's change feed and pushed filters take dates through Java objects; the old ones have no 10 October 1582."""


def settings() -> dict[str, str]:
    """Spark settings for one machine and small work."""
    cores = str(os.cpu_count() or 2)
    return {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "penstock",
        "spark.jars.packages": delta_package(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": os.environ.get("PENSTOCK_DRIVER_MEMORY", "4g"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": cores,
        "spark.databricks.delta.snapshotPartitions": "1",
        # A join that sends the smaller side leaves the larger one in order, and there is room for more than 10m.
        "spark.sql.autoBroadcastJoinThreshold": "32m",
        "spark.scheduler.mode": "FAIR",
        # A view must not depend on which machine refreshes it.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.cache.maxEntries": "2000",  # a graph of views has more plans than the usual 100
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        **EXACT_DATES,
        # Listing a few hundred known files is faster here than as a Spark job.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        # VACUUM lists files in as many tasks as this says; by default ten thousand.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": cores,
        # Recording the caller's line for every Column costs more than making the Column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "penstock-spark-warehouse"),
    }


def quiet_python_loggers() -> None:
    """PySpark writes each failed query with its JVM stack to standard error; what matters of it is in our error."""
    if not spark_log_is_wanted():
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def spark_log_is_wanted() -> bool:
    """PENSTOCK_SPARK_LOG=1 shows what Spark itself has to say."""
    return os.environ.get("PENSTOCK_SPARK_LOG", "") not in ("", "0")


class _Launch:
    """A JVM on its way. PySpark gives its process away only when it has connected to it, which takes as long as
    fetching Delta's jar does; to end it before that, it is caught where PySpark makes it."""

    def __init__(self, conf: SparkConf, output: dict[str, Any]):
        self._conf, self._output = conf, output
        self._process: subprocess.Popen[bytes] | None = None
        self._abandoned = False

    def run(self) -> Any:
        """PySpark's gateway to the JVM. In a thread: an interrupt must not lose the process that is being made."""
        module: Any = java_gateway
        usual, module.Popen = module.Popen, self._popen
        try:
            with ThreadPoolExecutor(1) as pool:
                launched = pool.submit(java_gateway.launch_gateway, self._conf, self._output)
                try:
                    return launched.result()
                except KeyboardInterrupt:
                    self._abandon()
                    raise
        finally:
            module.Popen = usual

    def _popen(self, *command: Any, **options: Any) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(*command, **options)
        if self._abandoned:
            self._process.kill()
        return self._process

    def _abandon(self) -> None:
        self._abandoned = True
        if self._process is not None:
            self._process.kill()


class _Embedded:
    """The one embedded Spark of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._session: SparkSession | None = None
        self._gateway: Any = None
        self._log: IO[str] | None = None

    def acquire(self) -> SparkSession:
        with self._lock:
            if self._session is not None and is_stopped(self._session):  # by hand, with ``stop``
                self._users = 0
                self.stop()
            if self._session is None:
                self._start()
            self._users += 1
            assert self._session is not None
            return self._session

    def release(self, session: SparkSession) -> None:
        with self._lock:
            if session is not self._session:  # it was stopped by hand, and another one may have been started since
                return
            self._users -= 1
            if self._users == 0:
                self.stop()

    def _start(self) -> None:
        if SparkSession.getActiveSession() is not None:
            raise SparkError(
                "this process already runs a Spark session. Pass it on: penstock.connect(path, spark=your_session)."
            )
        check_java()
        conf = SparkConf(loadDefaults=False)
        conf.setAll(list(settings().items()))
        output: dict[str, Any] = {}
        if not spark_log_is_wanted():
            self._log = tempfile.NamedTemporaryFile("w+", prefix="penstock-spark-", suffix=".log")  # noqa: SIM115
            output = {"stdout": self._log, "stderr": self._log}
        try:
            self._gateway = _Launch(conf, output).run()
            self._session = SparkSession(SparkContext(conf=conf, gateway=self._gateway))
        except (PySparkException, Py4JError, OSError) as problem:
            detail = self._last_words() or str(problem)
            self.stop()
            raise SparkError(f"Spark did not start: {detail}") from None
        except BaseException:
            self.stop(at_once=True)
            raise
        if not spark_log_is_wanted():
            self._session.sparkContext.setLogLevel("OFF")

    def _last_words(self) -> str:
        if self._log is None:
            return ""
        self._log.flush()
        with open(self._log.name) as log:
            lines = [line.strip() for line in log if re.search(r"error|exception|unresolved", line, re.IGNORECASE)]
        return lines[0] if lines else ""

    def stop(self, *, at_once: bool = False) -> None:
        """Stop Spark and its JVM; nothing of it is left running. ``at_once``: whatever it is doing."""
        session, self._session = self._session, None
        gateway, self._gateway = self._gateway, None
        if at_once and gateway is not None:
            gateway.proc.kill()
        with suppress(Py4JError, OSError):  # a JVM that died has nothing to stop
            if session is not None:
                session.stop()
            if gateway is not None:
                gateway.shutdown()
        if gateway is not None:
            gateway.proc.stdin.close()
            try:
                gateway.proc.wait(timeout=10)
            except subprocess.TimeoutExpired:
                gateway.proc.kill()
                gateway.proc.wait()
            # PySpark keeps the gateway of a stopped context for the next one, and has no way to say that it is gone.
            for kept in ("_gateway", "_jvm"):
                setattr(SparkContext, kept, None)
        if self._log is not None:
            self._log.close()
            self._log = None


_embedded = _Embedded()
atexit.register(_embedded.stop)


class Spark:
    """A database's way to Spark: the caller's session, or a share in the embedded one."""

    def __init__(self, given: SparkSession | None, said: Said | None = None):
        quiet_python_loggers()
        self._given = given
        self._session: SparkSession | None = None
        self._said = said or Said()

    @property
    def session(self) -> SparkSession:
        """A session that runs."""
        known = self._session or self._given
        if known is not None and is_stopped(known):
            whose = "given to this database" if self._given is not None else "of this database"
            raise SparkError(
                f"the Spark session {whose} was stopped. Close the database, and open it again: penstock.connect(path"
                + (", spark=a_running_session)." if self._given is not None else ").")
            )
        if self._session is None:
            self._session = self._given_session() if self._given is not None else self._embedded_session()
        return self._session

    @property
    def started(self) -> bool:
        return self._session is not None

    def _given_session(self) -> SparkSession:
        assert self._given is not None
        extensions = self._given.conf.get("spark.sql.extensions", "") or ""
        if "DeltaSparkSessionExtension" not in extensions:
            raise SparkError(
                "the given Spark session has no Delta Lake. Build it with spark.sql.extensions="
                "io.delta.sql.DeltaSparkSessionExtension and spark.sql.catalog.spark_catalog="
                "org.apache.spark.sql.delta.catalog.DeltaCatalog (see delta.configure_spark_with_delta_pip)."
            )
        check_session(self._given.version, self._given.conf.get("spark.jars.packages", "") or "")
        for name, value in EXACT_DATES.items():
            self._given.conf.set(name, value)
        return self._given

    def _embedded_session(self) -> SparkSession:
        with self._said.instead("starting Spark"):
            return _embedded.acquire()

    def close(self) -> None:
        if self._session is not None and self._given is None:
            _embedded.release(self._session)
        self._session = None


def is_stopped(session: SparkSession) -> bool:
    """Whether nothing can be asked of a session any more."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return bool(getattr(session, "is_stopped", False))
    try:
        return session.sparkContext.startTime is None
    except (AttributeError, Py4JError, OSError):  # a stopped context has lost its way to the JVM, or the JVM is gone
        return True


def check_java() -> None:
    """Say in one sentence that Java is missing or too old, before Spark says it in a hundred lines."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    if shutil.which(java) is None:
        where = f"JAVA_HOME is {home!r}, which has no bin/java" if home else "there is no 'java' on the PATH"
        raise SparkError(f"Spark needs Java 17 or newer, and {where}. {JAVA_HELP}")
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    if match and int(match.group(1)) < 17:
        raise SparkError(f"Spark needs Java 17 or newer, and {java!r} is Java {match.group(1)}. {JAVA_HELP}")


@contextmanager
def counting_jobs(session: SparkSession) -> Iterator[Callable[[], int]]:
    """Gives a function that says how many Spark jobs ran inside; zero where Spark does not tell, as in Spark Connect.

    Jobs are counted by their group: the caller's, if this thread has one, else one made for this.
    """
    try:
        context = session.sparkContext
    except PySparkException:
        yield lambda: 0
        return
    given = context.getLocalProperty(_JOB_GROUP)
    group = given or f"penstock-{uuid.uuid4().hex}"
    tracker = context.statusTracker()
    before = len(tracker.getJobIdsForGroup(group))
    context.setLocalProperty(_JOB_GROUP, group)
    try:
        yield lambda: len(tracker.getJobIdsForGroup(group)) - before
    finally:
        context.setLocalProperty(_JOB_GROUP, given)  # type: ignore[arg-type]  # None takes it away


@contextmanager
def spark_errors(what: str, names: dict[str, str] | None = None) -> Iterator[None]:
    """Turn Spark's exceptions into ``QueryError``: its message, without the stack, and with the user's names."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as problem:
        said = clean_message(problem, names or {})
        raise QueryError(said if said.startswith(_UNKNOWN) else f"{what}: {said}") from None


_UNKNOWN = "the function "


def _unknown_function(message: str) -> str | None:
    """What to say of a function that Spark does not find: it may be the user's, in another process."""
    found = re.search(r"UNRESOLVED_ROUTINE\].*?routine (`[^ ]+`)", message)
    if found is None:
        return None
    return (
        f"{_UNKNOWN}{found[1]} is not known to this Spark session. Check its name; if it is a function of yours, "
        "register it in a session (spark.udf.register) and pass that on: penstock.connect(path, spark=your_session)."
    )


def message_of(problem: BaseException) -> str:
    """Spark's own message. PySpark cannot look up the messages of Delta's errors and fails while raising them; then
    the exception that it was about to raise is further down the chain."""
    try:
        if isinstance(problem, PySparkException):
            return str(problem.getMessage())
    except Py4JError:
        pass
    original = problem
    while isinstance(original.__context__, Py4JJavaError):
        original = original.__context__
    if isinstance(original, Py4JJavaError):
        found = original.java_exception
        while found.getCause() is not None and "Exception thrown in awaitResult" in str(found.getMessage()):
            found = found.getCause()
        return str(found.getMessage() or found)
    return str(original)


def clean_message(problem: Exception, names: dict[str, str]) -> str:
    """The first, telling part of a Spark message."""
    text = message_of(problem)
    unknown = _unknown_function(text)
    if unknown is not None:
        return unknown
    text = re.split(r"\n\s*at |\nJVM stacktrace|;\n'|\n== SQL", text)[0].strip()
    for internal, name in names.items():
        text = text.replace(internal, name)
    return re.sub(r"\s*SQLSTATE: \w+\s*$", "", text).strip()
