"""Starting and stopping the embedded Spark: a JVM that belongs to this process.

PySpark's public API starts a JVM, but does not hand its process over while it is on its way, end it, or say where its
log goes. Here alone more than that API is used: PySpark's gateway, and where ``SparkContext`` keeps it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, is_remote

from penstock.engine.far_spark import far_packages, far_settings
from penstock.engine.versions import delta_package
from penstock.errors import SparkError
from penstock.frames.spark.turns import Turns, turns_of

JAVA_HELP = "Install it with 'sudo apt-get install openjdk-17-jre-headless' (macOS: 'brew install openjdk@17')."

_ENDING = 3.0
"""Seconds that a JVM which was killed may take to be gone."""


def settings() -> dict[str, str]:
    """Spark settings for small work: of this machine, or of the cluster that PENSTOCK_SPARK_MASTER names."""
    master = os.environ.get("PENSTOCK_SPARK_MASTER") or f"local[{os.cpu_count() or 2}]"
    return {
        "spark.master": master,
        "spark.app.name": "penstock",
        "spark.jars.packages": delta_package(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.memory": os.environ.get("PENSTOCK_DRIVER_MEMORY", "4g"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.ui.explainMode": "simple",  # every query writes its plan for a page that nobody sees
        "spark.databricks.delta.snapshotPartitions": "1",
        # A join that sends the smaller side leaves the larger one in order, and there is room for more than 10m.
        "spark.sql.autoBroadcastJoinThreshold": "32m",
        "spark.scheduler.mode": "FAIR",
        # A view must not depend on which machine refreshes it.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.cache.maxEntries": "2000",  # a graph of views has more plans than the usual 100
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.datetime.java8API.enabled": "true",  # the old dates of Java have no 10 October 1582
        # Listing a few hundred known files is faster here than as a Spark job.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        # What looks a few rows up reads whole row groups: as many rows of a large table as of a small one.
        "spark.hadoop.parquet.block.row.count.limit": "250000",
        "spark.sql.variable.substitute": "false",  # ${name} in a text is text, whoever reads it
        # Recording the caller's line for every Column costs more than making the Column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "penstock-spark-warehouse"),
        **(_of_one_machine() if is_local(master) else {}),
    }


def is_local(master: str) -> bool:
    """Whether Spark computes in this process, so that nobody else need reach it."""
    return master.startswith("local")


def _there() -> str:
    """Which cluster it did not start on, and what to look for."""
    master = settings()["spark.master"]
    told = f" on {master}. See that the master which PENSTOCK_SPARK_MASTER names runs and can be reached. Spark says"
    return "" if is_local(master) else told


def _of_one_machine() -> dict[str, str]:
    """What follows from its cores, and that nobody else is to talk to it. A cluster has its own in spark-defaults."""
    cores = str(os.cpu_count() or 2)
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": cores,
        # VACUUM lists files in as many tasks as this says; by default ten thousand.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": cores,
    }


def _far_settings() -> dict[str, str]:
    packages = far_packages()
    return {**far_settings(), "spark.jars.packages": ",".join([delta_package(), *packages])} if packages else {}


def _of_launch(conf: SparkConf) -> SparkConf:
    """Without what opens stores: everybody may read a process's command line. The context is told when it is made."""
    told = [(name, value) for name, value in conf.getAll() if not name.startswith("spark.hadoop.fs.")]
    return SparkConf(loadDefaults=False).setAll(told)


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


class Embedded:
    """A Spark in this process, shared by all who asked for it; ``more``: settings beside the usual ones."""

    def __init__(self, more: Mapping[str, str] | None = None) -> None:
        self._more = dict(more or {})
        self.turns = Turns()
        self._lock = threading.Lock()
        self._users = 0
        self._session: SparkSession | None = None
        self._lost: WeakSet[SparkSession] = WeakSet()
        """Sessions whose JVM has died."""
        self._gateway: Any = None
        self._log: IO[str] | None = None

    @property
    def running(self) -> bool:
        return self._session is not None

    def died(self, session: SparkSession) -> bool:
        """Whether a session that does not answer has no JVM any more: it was killed, or had too little memory."""
        with self._lock:
            if session is not self._session:  # another one has been started since, or none
                return session in self._lost
            return self._ended()

    def _ended(self) -> bool:
        """Whether the JVM has ended; one that was killed in this moment closes its sockets first."""
        if self._gateway is None:
            return False
        with suppress(subprocess.TimeoutExpired):
            self._gateway.proc.wait(timeout=_ENDING)
        return self._gateway.proc.poll() is not None

    def acquire(self) -> SparkSession:
        with self._lock:
            if self._session is not None and is_stopped(self._session):  # by hand, with ``stop``, or it died
                if self._ended():
                    self._lost.add(self._session)
                self._users = 0
                self.stop()
            if self._session is None:
                self._start()
            assert self._session is not None
            turns_of(self._session, self.turns)
            self._users += 1
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
        if is_remote() or "SPARK_REMOTE" in os.environ:
            raise SparkError(
                "this process is set up for Spark Connect, and no embedded Spark can start in it. Pass a session on: "
                "penstock.connect(path, spark=SparkSession.builder.getOrCreate()), or unset the environment variables "
                "SPARK_REMOTE and SPARK_CONNECT_MODE_ENABLED."
            )
        check_java()
        conf = SparkConf(loadDefaults=False)
        conf.setAll([*settings().items(), *_far_settings().items(), *self._more.items()])
        output: dict[str, Any] = {}
        if not spark_log_is_wanted():
            self._log = tempfile.NamedTemporaryFile("w+", prefix="penstock-spark-", suffix=".log")  # noqa: SIM115
            output = {"stdout": self._log, "stderr": self._log}
        try:
            self._gateway = _Launch(_of_launch(conf), output).run()
            self._session = SparkSession(SparkContext(conf=conf, gateway=self._gateway))
        except (PySparkException, Py4JError, OSError) as problem:
            detail = self._last_words() or str(problem)
            self.stop()
            raise SparkError(f"Spark did not start{_there()}: {detail}") from None
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
        if session is not None:
            _stop(session)
        with suppress(Py4JError, OSError):  # a JVM that died has nothing to shut down
            if gateway is not None:
                gateway.shutdown()
        if gateway is not None:
            with suppress(OSError):
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


def _stop(session: SparkSession) -> None:
    """Stop a session. Of one whose JVM has died, PySpark keeps what it stumbles over when the next is to start."""
    with suppress(Py4JError, OSError, AssertionError), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # which says of a JVM that died that it died
        session.stop()
    kept: Any = SparkSession
    kept._instantiatedSession = kept._activeSession = None
    context: Any = SparkContext
    context._active_spark_context = None


def is_stopped(session: SparkSession) -> bool:
    """Whether nothing can be asked of a classic session any more."""
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
