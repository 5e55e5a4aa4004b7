"""What an epoch is asked for, what it does with each node, and what comes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from penstock.catalog import NodeRecord, Publication
from penstock.engine.cost import Estimate
from penstock.engine.report import ViewReport
from penstock.errors import PenstockError
from penstock.ivm.node import Maintained
from penstock.storage.apply import Applied
from penstock.vocabulary import Action, Reason


@dataclass(kw_only=True)
class Request:
    """What to refresh: nodes in graph order (inputs before readers), those to recompute, those that others hold."""

    nodes: list[str]
    recompute: Collection[str] = ()
    held: Collection[str] = ()
    waiting: Collection[str] = ()
    """Nodes that are not to change yet: EMIT PERIODICALLY."""
    replayed: Collection[str] = ()
    """Nodes with late rows, which are to be taken after all."""
    renewed: Mapping[str, Reason] = field(default_factory=dict)
    """Nodes that are planned in another way from this epoch on, with the reason."""
    failing: Mapping[str, PenstockError] = field(default_factory=dict)
    """Nodes whose query no longer holds, with the reason."""
    broken: Collection[str] = ()
    """Nodes whose stored rows are not to be trusted."""
    standing: Collection[str] = ()
    """Nodes of IMMEDIATE views, which have seen all that there is; others may move them on meanwhile."""


@dataclass(kw_only=True)
class Step:
    """One node in one epoch."""

    node: NodeRecord
    action: Action
    reason: Reason
    maintained: Maintained | None
    since: dict[str, int]
    estimate: Estimate | None = None
    applied: Applied | None = None
    inserted: int = 0
    deleted: int = 0
    replayed: bool = False


@dataclass
class Result:
    """What an epoch did: reports by node, and what is to be published."""

    reports: dict[str, ViewReport] = field(default_factory=dict)
    publication: Publication = field(default_factory=Publication)
    mismatches: dict[str, str] = field(default_factory=dict)
    """Nodes whose stored rows were found not to fit their inputs, and what was found."""
