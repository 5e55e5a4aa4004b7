"""Relational operators: building them from a query, cutting them into nodes, and what can be derived from them.

Everything here is a value and needs neither Spark nor a catalog.
"""

from penstock.plan.build import Plan, Schema, build
from penstock.plan.nodes import NodePlan, split
from penstock.plan.unsupported import Unsupported

__all__ = ["NodePlan", "Plan", "Schema", "Unsupported", "build", "split"]
