"""What frames need of Spark: a session that starts when it is first asked for. Who starts it is not known here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from penstock.frames.spark.turns import Turns, turns_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@runtime_checkable
class SparkOnDemand(Protocol):
    """A way to Spark. Whoever only may need a session holds this; whoever needs one asks for it."""

    def session(self) -> SparkSession:
        """A session that runs, under the settings that are in force here; it starts now if it has to."""

    @property
    def started(self) -> bool:
        """Whether asking for the session starts nothing."""

    @property
    def turns(self) -> Turns:
        """Who computes under which settings: the same for all ways to one session, also before it starts."""


@dataclass(frozen=True)
class Running:
    """A session that runs already."""

    given: SparkSession

    def session(self) -> SparkSession:
        return self.given

    @property
    def started(self) -> bool:
        return True

    @property
    def turns(self) -> Turns:
        return turns_of(self.given)


def on_demand(spark: SparkSession | SparkOnDemand) -> SparkOnDemand:
    return spark if isinstance(spark, SparkOnDemand) else Running(spark)


def over_connect(session: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, which has no JVM in reach."""
    from pyspark.errors import PySparkException

    try:
        return not session.sparkContext
    except PySparkException:
        return True
    except AttributeError:  # a classic session that was stopped
        return False


def is_spread(session: SparkSession) -> bool:
    """Whether others than the driver compute, so that one of them may be lost."""
    return not (session.conf.get("spark.master", None) or "local").startswith("local")
