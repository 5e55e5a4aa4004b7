"""The plan of a view's query, made from its text and what is recorded of it. No Spark, and nothing is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from penstock.catalog import ViewRecord, World
from penstock.frames.settings import USUAL, Settings
from penstock.plan import NodePlan, Plan, Unsupported, build, split
from penstock.plan.lateness import Lateness, without_late_rows
from penstock.plan.operators import (
    Ended,
    Filter,
    Operator,
    Project,
)
from penstock.sql.emission import ended, is_moving
from penstock.sql.query import parse_query
from penstock.sql.statements import AFTER_WATERMARK, Options
from penstock.vocabulary import Reason


def plan_nodes(
    query: str,
    key: str,
    names: list[str],
    schemas: Mapping[str, tuple[str, ...]],
    lateness: tuple[Lateness, ...] = (),
    settings: Settings = USUAL,
    renamed: Mapping[str, str] | None = None,
) -> tuple[NodePlan, ...]:
    """The nodes of a query whose visible columns have these names. A plan never changes, so it is made once."""
    own = tuple(sorted((renamed or {}).items()))
    return _planned(query, key, tuple(names), tuple(sorted(schemas.items())), lateness, settings, own)


def plans_of(world: World, view: ViewRecord) -> tuple[NodePlan, ...]:
    """The plans of a view's nodes, made again from its query."""
    own = world.nodes[view.key].details
    lateness = tuple(Lateness(*late) for late in own.lateness)
    names, settings = [name for name, _, _ in view.columns], Settings.of(own.settings)
    return plan_nodes(emitted_by(view), view.key, names, own.schemas, lateness, settings, own.renamed)


@lru_cache(maxsize=5_000)  # more than a large graph has: beyond it every refresh would plan all views anew
def _planned(
    query: str,
    key: str,
    names: tuple[str, ...],
    schemas: tuple[tuple[str, tuple[str, ...]], ...],
    lateness: tuple[Lateness, ...],
    settings: Settings,
    renamed: tuple[tuple[str, str], ...],
) -> tuple[NodePlan, ...]:
    plan = build(parse_query(query), dict(schemas))
    gates, plan = without_late_rows(plan, lateness)
    plan = replace(plan, root=_with_ended(plan.root))
    if len(plan.outputs) != len(names):
        raise Unsupported(Reason.PLAN_MISMATCH, "a select list that Spark reads differently")
    outputs = tuple((name, internal) for name, (_, internal) in zip(names, plan.outputs, strict=True))
    return (*gates, *split(Plan(plan.root, outputs), key, settings.text, dict(renamed)))


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
