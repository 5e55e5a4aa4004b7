"""The Spark of a benchmark: Penstock's own settings and, for Declarative Pipelines, a Connect server in its Java."""

from __future__ import annotations

import importlib.util
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT = "org.apache.spark.sql.connect.SparkConnectPlugin"
INSTALL = "pip install 'penstock-spark[bench]'"


@dataclass(frozen=True)
class Sparks:
    """The session for all contenders (None: Penstock's embedded one), and the address of its Connect server."""

    session: SparkSession | None
    remote: str | None
    no_remote: str = ""
    """Why there is no Connect server."""


def pipelines_missing() -> str | None:
    """What keeps Declarative Pipelines from running, as far as packages go."""
    wanted = {"grpc": "grpcio", "grpc_status": "grpcio-status", "google.protobuf": "protobuf", "yaml": "PyYAML"}
    missing = [package for module, package in wanted.items() if not _found(module)]
    return f"{', '.join(missing)} not installed: {INSTALL}" if missing else None


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


@contextmanager
def sparks(pipelines: bool) -> Iterator[Sparks]:
    """A Spark for the benchmark. One that this process has already is used as it is."""
    from pyspark.sql import SparkSession

    if not pipelines:
        yield Sparks(None, None, "not asked for")
    elif SparkSession.getActiveSession() is not None:
        yield Sparks(None, None, "this process already runs a Spark without a Connect server")
    elif (problem := pipelines_missing()) is not None:
        yield Sparks(None, None, problem)
    else:
        with _with_connect() as made:
            yield made


@contextmanager
def _with_connect() -> Iterator[Sparks]:
    from penstock.engine.embedded import Embedded

    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as scratch:
        embedded = Embedded(
            {
                "spark.plugins": _CONNECT,
                "spark.connect.grpc.binding.address": "127.0.0.1",
                "spark.connect.grpc.binding.port": str(port),
                "spark.sql.warehouse.dir": scratch,
            }
        )
        try:
            yield Sparks(embedded.acquire(), f"sc://127.0.0.1:{port}")
        finally:
            embedded.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
