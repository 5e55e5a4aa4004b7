"""The contenders: ways to bring views up to date after the tables have changed."""

from penstock.bench.contenders.contender import Contender, GaveUp
from penstock.bench.contenders.disk import OnDisk
from penstock.bench.contenders.duckdb import DuckDb
from penstock.bench.contenders.insisting import Insisting
from penstock.bench.contenders.merge import Feed, HandWritten, Merges
from penstock.bench.contenders.penstock import Penstock
from penstock.bench.contenders.pipelines import Pipelines
from penstock.bench.contenders.recomputation import Recomputation

__all__ = [
    "Contender",
    "DuckDb",
    "Feed",
    "GaveUp",
    "HandWritten",
    "Insisting",
    "Merges",
    "OnDisk",
    "Penstock",
    "Pipelines",
    "Recomputation",
]
