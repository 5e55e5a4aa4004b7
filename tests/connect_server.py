"""A Spark Connect server of the tests' own: a JVM beside them, with Delta Lake, that ends with them."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from socket import create_connection, socket

import pyspark
from pyspark.sql import SparkSession

import penstock
from catalogs import connected
from penstock.engine.embedded import settings

OVER_CONNECT = "PENSTOCK_TEST_CONNECT" in os.environ
"""Whether the tests run over Spark Connect. It is one or the other: so are PySpark's functions, for a whole process."""

_OF_CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE")
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server() -> Iterator[str]:
    """The address of a server that runs until the block ends."""
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="penstock-connect-", ignore_cleanup_errors=True) as scratch:
        place = os.path.join(scratch, "log")
        with open(place, "w") as log:
            process = subprocess.Popen(_command(port, scratch), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait_for(port, process, place)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


@contextmanager
def connect_session() -> Iterator[SparkSession]:
    """A session of a server; PENSTOCK_TEST_CONNECT may name one that runs already, such as sc://127.0.0.1:15002."""
    named = os.environ.get("PENSTOCK_TEST_CONNECT", "")
    with nullcontext(named) if named.startswith("sc://") else connect_server() as address:
        os.environ["PENSTOCK_TEST_CONNECT_ADDRESS"] = address  # for processes of the tests' own
        session = SparkSession.builder.remote(address).getOrCreate()
        yield session
        session.stop()


def opened(path: Path, spark: SparkSession) -> penstock.Database:
    """A warehouse that is opened in the session of the tests."""
    return connected(path, spark=spark if OVER_CONNECT else None)


def without_connect() -> dict[str, str]:
    """The environment for a process with an embedded Spark; PySpark tells its children of a Connect session."""
    return {name: value for name, value in os.environ.items() if name not in _OF_CONNECT}


def _command(port: int, scratch: str) -> list[str]:
    submit = os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-submit")
    given = {
        **settings(),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": os.path.join(scratch, "warehouse"),
    }
    options = [part for name, value in given.items() for part in ("--conf", f"{name}={value}")]
    return [submit, "--class", _SERVER, *options, "spark-internal"]


def _free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: str) -> None:
    while process.poll() is None:
        try:
            create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    with open(log) as said:
        raise AssertionError(f"the Spark Connect server ended with {process.returncode}:\n{said.read()[-4000:]}")
