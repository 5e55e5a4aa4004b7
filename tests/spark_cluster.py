"""A Spark standalone cluster of the tests' own: a master and two workers, each a process, reachable from here only.

The session of the tests goes there as a user's would: by PENSTOCK_SPARK_MASTER, and settings in spark-defaults.conf.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from socket import socket
from urllib.error import URLError
from urllib.request import urlopen

import pyspark
import pytest

ON_CLUSTER = "PENSTOCK_TEST_CLUSTER" in os.environ
"""Whether the tests run on a cluster."""

_CLASS = os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-class")
_DEFAULTS = {
    # Two executors, one on each worker; the workers have room for the processes that tests start beside this one.
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    # What Spark hands to the driver is bounded; whoever asks for more than the limits let through is found out.
    "spark.driver.maxResultSize": "256m",
}
_CORES = 8


class Cluster:
    """Processes by their ids, so that a test can kill one."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._port, self._page = _free_port(), _free_port()
        self._master = self._started("master.Master", "--port", str(self._port), "--webui-port", str(self._page))
        self.workers: list[subprocess.Popen[bytes]] = []
        self._await(lambda: self._said() is not None, "the master does not answer")

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def start_worker(self) -> None:
        """One more worker, which the master knows when this is done."""
        before = self._alive()
        work = self._scratch / f"worker-{len(self.workers)}"
        room = ("--cores", str(_CORES), "--memory", "8g")
        self.workers.append(
            self._started("worker.Worker", "--webui-port", "0", *room, "--work-dir", str(work), self.url)
        )
        self._await(lambda: self._alive() > before, "a worker has not come")

    def kill_worker(self) -> None:
        """Kill a worker; its executors, which are other processes, find out and end."""
        worker = self.workers.pop(0)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def kill_executor(self) -> int:
        """Kill the oldest executor; gives its process id."""
        first = self.executors()[0]
        os.kill(first, signal.SIGKILL)
        return first

    def executors(self) -> list[int]:
        """The process ids of all executors, the oldest first."""
        parents = {worker.pid for worker in self.workers}
        found = []
        for place in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                told = (place / "stat").read_text().rpartition(")")[2].split()
                command = (place / "cmdline").read_text()
                if int(told[1]) in parents and "CoarseGrainedExecutorBackend" in command:
                    found.append((int(told[19]), int(place.name)))
        return [pid for _, pid in sorted(found)]

    def stop(self) -> None:
        executors = self.executors()
        for process in [*self.workers, self._master]:
            process.kill()
            process.wait()
        for pid in executors:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _started(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [_CLASS, f"org.apache.spark.deploy.{what}", "--host", "127.0.0.1", *options]
        with open(self._scratch / f"{what}-{time.monotonic_ns()}.log", "w") as log:
            environment = {**os.environ, "SPARK_DAEMON_MEMORY": "384m"}
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def _said(self) -> dict[str, object] | None:
        try:
            with urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=5) as answer:
                found: dict[str, object] = json.load(answer)
                return found
        except (URLError, OSError, ValueError):
            return None

    def _alive(self) -> int:
        found = (self._said() or {}).get("workers", [])
        assert isinstance(found, list)
        return sum(worker["state"] == "ALIVE" for worker in found)

    def _await(self, there: Callable[[], bool], problem: str) -> None:
        while not there():
            ended = [process.args for process in [self._master, *self.workers] if process.poll() is not None]
            said = "\n".join(log.read_text()[-2000:] for log in self._scratch.glob("*.log")) if ended else ""
            assert not ended, f"{problem}: {ended} ended\n{said}"
            time.sleep(0.2)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster of two workers, to which Spark goes that is started inside: also that of other processes."""
    with ExitStack() as things:
        patch = things.enter_context(pytest.MonkeyPatch.context())
        scratch = Path(things.enter_context(tempfile.TemporaryDirectory(prefix="penstock-cluster-")))
        defaults = scratch / "spark-defaults.conf"
        defaults.write_text("".join(f"{name} {value}\n" for name, value in _DEFAULTS.items()))
        patch.setenv("SPARK_CONF_DIR", str(scratch))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        cluster = Cluster(scratch)
        things.callback(cluster.stop)
        patch.setenv("PENSTOCK_SPARK_MASTER", cluster.url)
        cluster.start_worker()
        cluster.start_worker()
        yield cluster


def _free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
