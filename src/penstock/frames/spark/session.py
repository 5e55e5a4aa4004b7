"""The Spark session that frames use when they need one. It may not have been started before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Spark(Protocol):
    """Where a session comes from."""

    def session(self) -> SparkSession:
        """The session; it is started if need be."""


class Later:
    """A session that is asked for when it is needed."""

    def __init__(self, get: Callable[[], SparkSession]):
        self.session = get
