"""The plan of a view's query, made from its text and what is recorded of it. No Spark, and nothing is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

import sqlglot

from penstock import plan as planner
from penstock import sql as reader
from penstock.catalog import NodeRecord, ViewRecord, World
from penstock.engine.properties import is_beside
from penstock.frames.settings import USUAL, Settings
from penstock.ivm import rules
from penstock.plan import NodePlan, Plan, Unsupported, build, split
from penstock.plan.lateness import Lateness, without_late_rows
from penstock.plan.operators import Aggregate, Distinct, Ended, Filter, Operator, Project, Sessions
from penstock.sql.emission import ended, is_moving
from penstock.sql.query import parse_query
from penstock.sql.statements import AFTER_WATERMARK, Options
from penstock.sql.trees import unplaced
from penstock.vocabulary import Reason


def plan_nodes(
    query: str,
    key: str,
    names: list[str],
    schemas: Mapping[str, tuple[str, ...]],
    lateness: tuple[Lateness, ...] = (),
    settings: Settings = USUAL,
    renamed: Mapping[str, str] | None = None,
    beside: bool = False,
) -> tuple[NodePlan, ...]:
    """The nodes of a query whose visible columns have these names. A plan never changes, so it is made once."""
    own = tuple(sorted((renamed or {}).items()))
    return _planned(query, key, tuple(names), tuple(sorted(schemas.items())), lateness, settings, own, beside)


def plans_of(world: World, view: ViewRecord) -> tuple[NodePlan, ...]:
    """The plans of a view's nodes, made again from its query."""
    own = world.nodes[view.key].details
    lateness = tuple(Lateness(*late) for late in own.lateness)
    names, settings = [name for name, _, _ in view.columns], Settings.of(own.settings)
    beside = is_beside(view.properties)
    return plan_nodes(emitted_by(view), view.key, names, own.schemas, lateness, settings, own.renamed, beside)


def seal(view: ViewRecord, nodes: Sequence[NodeRecord]) -> str:
    """What a view's plan is made from, who makes it, and what came of it: with the same seal the plan is the same.

    So a process that has not planned a view yet need not, only to learn that nothing has changed. ``nodes`` are the
    view's, its own last.
    """
    own = nodes[-1].details
    told = [own.schemas, own.lateness, own.settings, own.renamed, is_beside(view.properties)]
    names, made = [name for name, _, _ in view.columns], [(node.name, node.fingerprint) for node in nodes]
    text = json.dumps([_planner(), view.key, view.query, view.options.emit, names, told, made], default=dict)
    return sha256(text.encode()).hexdigest()[:32]


@cache
def _planner() -> str:
    """The code that reads and plans queries. A version's number would not do: it stays the same while we work on it."""
    told = sha256(sqlglot.__version__.encode())
    for package in (reader, planner):
        for file in sorted(Path(package.__path__[0]).glob("*.py")):
            told.update(file.read_bytes())
    told.update(Path(__file__).read_bytes())
    return told.hexdigest()


@lru_cache(maxsize=5_000)  # more than a large graph has: beyond it every refresh would plan all views anew
def _planned(
    query: str,
    key: str,
    names: tuple[str, ...],
    schemas: tuple[tuple[str, tuple[str, ...]], ...],
    lateness: tuple[Lateness, ...],
    settings: Settings,
    renamed: tuple[tuple[str, str], ...],
    beside: bool,
) -> tuple[NodePlan, ...]:
    tree = parse_query(query)
    unplaced(tree)
    plan = build(tree, dict(schemas))
    gates, plan = without_late_rows(plan, lateness)
    plan = replace(plan, root=_with_ended(plan.root))
    if len(plan.outputs) != len(names):
        raise Unsupported(Reason.PLAN_MISMATCH, "a select list that Spark reads differently")
    outputs = tuple((name, internal) for name, (_, internal) in zip(names, plan.outputs, strict=True))
    plan = Plan(plan.root, outputs)
    nodes = split(plan, key, settings.text, dict(renamed))
    if beside and _has_state(nodes[-1]):
        nodes = split(plan, key, settings.text, dict(renamed), beside=True)
    return (*gates, *nodes)


def _has_state(plan: NodePlan) -> bool:
    """Whether the table of a node has columns that are not the view's. Which ones an aggregate has, only types tell."""
    match plan.body:
        case Distinct():
            return True
        case Aggregate() if not isinstance(plan.body, Sessions):
            return True
    layout = rules.layout(plan, {})
    return layout is not None and set(layout.stored) != {name for name, _ in plan.outputs}


def _with_ended(op: Operator) -> Operator:
    """The plan with filters by the watermark marked as such."""
    match op:
        case Project(child=child):
            return replace(op, child=_with_ended(child))
        case Filter(child=child, condition=condition) if is_moving(condition):
            return Ended(child, condition)
    return op


def emitted(query: str, options: Options, names: Sequence[str], view: str) -> str:
    """The query of what a view shows: its own, or of its windows those that have ended."""
    return ended(query, names, view) if options.emit == AFTER_WATERMARK else query


def emitted_by(view: ViewRecord) -> str:
    return emitted(view.query, view.options, [name for name, _, _ in view.columns], view.name)
