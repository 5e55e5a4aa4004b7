"""The workloads, in the order in which they run."""

from penstock.bench.workloads.brokerage import BROKERAGE
from penstock.bench.workloads.cascade import APPEND, RECENT, SCATTERED
from penstock.bench.workloads.chains import CHAINS
from penstock.bench.workloads.crossover import CROSSOVER
from penstock.bench.workloads.driver import DRIVER
from penstock.bench.workloads.growth import GROWTH
from penstock.bench.workloads.history import HISTORY
from penstock.bench.workloads.large import LARGE
from penstock.bench.workloads.layouts import LAYOUTS
from penstock.bench.workloads.medallion import MEDALLION
from penstock.bench.workloads.models import MODELS
from penstock.bench.workloads.nexmark import NEXMARK
from penstock.bench.workloads.nothing import NOTHING
from penstock.bench.workloads.shell import SHELL
from penstock.bench.workloads.stores import STORES
from penstock.bench.workloads.tpch import TPCH
from penstock.bench.workloads.workload import Workload
from penstock.bench.workloads.writes import WRITES

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        APPEND, RECENT, SCATTERED, CROSSOVER, GROWTH, LARGE, LAYOUTS, HISTORY, CHAINS, NOTHING, TPCH, MEDALLION,
        BROKERAGE, NEXMARK, MODELS, DRIVER, SHELL, WRITES, STORES,
    )
}  # fmt: skip

__all__ = ["WORKLOADS", "Workload"]
