"""The graph of views and tables, as plain data: order, ancestors, descendants, cycles. No Spark, no database."""

from penstock.graph.dag import CycleError, Dag

__all__ = ["CycleError", "Dag"]
