"""The workloads, in the order in which they run."""

from penstock.bench.workloads.cascade import APPEND, RECENT, SCATTERED
from penstock.bench.workloads.chains import CHAINS
from penstock.bench.workloads.nothing import NOTHING
from penstock.bench.workloads.workload import Workload

WORKLOADS: dict[str, Workload] = {w.name: w for w in (APPEND, RECENT, SCATTERED, CHAINS, NOTHING)}

__all__ = ["WORKLOADS", "Workload"]
