"""What this run of the tests has shown: docs/operators.md is made of it, and of nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from constructs import Construct
from penstock.observe.explain import Explanation


@dataclass(frozen=True)
class Evidence:
    """A construct that was run: how its view is maintained, and what its refreshes did."""

    construct: Construct
    explanation: Explanation
    actions: list[str]


constructs: dict[str, Evidence] = {}
"""By the construct's name."""

tpch: dict[str, list[str]] = {}
"""The actions of each query of TPC-H."""
