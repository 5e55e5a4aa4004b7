"""How a view is maintained: its nodes, each node's rule and what it reads, and why it is recomputed if it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from penstock.catalog import HistoryRecord, NodeRecord, ViewRecord, World
from penstock.engine.catalog_names import wanted_name
from penstock.observe.epochs import in_phases
from penstock.observe.listings import estimate
from penstock.observe.suggestions import for_table, next_step
from penstock.vocabulary import Action, Policy, Reason


@dataclass(frozen=True, kw_only=True)
class NodeExplanation:
    name: str
    hidden: bool
    rule: str
    computes: str
    reads: str
    inputs: tuple[str, ...]
    incremental: bool
    estimated_rows: int | None = None
    """A guess made when the view was planned."""
    rows: int | None = None
    """The rows of its table now, when it has one."""
    shared_with: tuple[str, ...] = ()
    folder: str | None = None
    """Where in the warehouse the table of a hidden node is."""

    def title(self) -> tuple[str, str]:
        """
        >>> hidden = NodeExplanation(
        ...     name="node 1", hidden=True, rule="", computes="", reads="", inputs=(), incremental=True,
        ...     folder="nodes/f5607c0338b42898",
        ... )
        >>> hidden.title()
        ('hidden', 'node 1 (nodes/f5607c0338b42898)')
        """
        return ("hidden", f"{self.name} ({self.folder})") if self.hidden else ("view", self.name)

    def size(self) -> str | None:
        if self.rows is not None:
            return f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        return None if self.estimated_rows is None else f"about {self.estimated_rows:,} rows"


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """An explained view; ``str()`` of it is meant to be read."""

    view: str
    policy: Policy
    incremental: bool
    reason_code: Reason | None
    reason: str | None
    nodes: tuple[NodeExplanation, ...]
    constructs: tuple[tuple[str, str], ...] = ()
    """What the query is made of, and how each is maintained."""
    moves: str | None = None
    """Whether it moves with its tables, or what it reads does and it does not."""
    last_refresh: str | None = None
    advice: tuple[str, ...] = ()
    """What could be done about it."""
    published: str | None = None
    """What it is in Spark's catalog, if it is published there."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.view}: {self.verdict()}"]
        if self.moves:
            lines.append(f"  {self.moves}")
        if self.published:
            lines.append(f"  published as {self.published}")
        width = max((len(construct) for construct, _ in self.constructs), default=0)
        lines += [f"  {construct:{width}}  {how}" for construct, how in self.constructs]
        for node in self.nodes:
            lines += [
                f"  {' '.join(node.title())}",
                f"    computes  {node.computes}",
                f"    rule      {node.rule}{'' if node.incremental else ' (not incremental)'}",
                f"    reads     {node.reads}",
                f"    inputs    {', '.join(node.inputs) or 'none'}",
            ]
            if node.size():
                lines.append(f"    state     {node.size()}")
            if node.shared_with:
                lines.append(f"    shared    with {', '.join(node.shared_with)}")
        if self.last_refresh:
            lines.append(f"  last refresh: {self.last_refresh}")
        lines += [f"  advice: {sentence}" for sentence in self.advice]
        return "\n".join(lines)

    def verdict(self) -> str:
        if self.incremental:
            return f"maintained incrementally (policy {self.policy})"
        when = "refresh" if self.reason_code == Reason.POLICY_FULL else "change"
        return f"recomputed in full at every {when}, because of {self.reason} ({self.reason_code})"


def _jobs(count: int | None) -> str:
    """
    >>> _jobs(1), _jobs(0), _jobs(None)
    ('; 1 Spark job', '; 0 Spark jobs', '')
    """
    if count is None:  # Spark did not tell
        return ""
    return "; 1 Spark job" if count == 1 else f"; {count} Spark jobs"


def _costs(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a refresh cost, line by line."""
    lines = [("spent", f"{in_phases(details['phases'])}{_jobs(details['jobs'])}")]
    moved = {"read": details["bytes_read"], "written": details["bytes_written"]}
    if any(moved.values()):
        lines.append(("moved", ", ".join(f"{size:,} bytes {how}" for how, size in moved.items() if size)))
    if details.get("weighed"):
        ways = [f"{rows:,} by {strategy}" for strategy, rows in sorted(details["weighed"].items())]
        took = f"; writing took {details['wrote']:.2f} s" if "wrote" in details else ""
        lines.append(("weighed", f"rows to write: {', '.join(ways)}{took}"))
    lines += [("by Spark", note) for note in details.get("by_spark", ())]
    expected = estimate(details)
    return lines if expected is None else [*lines, ("expected", expected)]


def explain(
    world: World,
    view: ViewRecord,
    nodes: Iterable[NodeRecord],
    last: HistoryRecord | None = None,
    rows: Mapping[str, int] | None = None,
    properties: Mapping[str, Mapping[str, str]] | None = None,
) -> Explanation:
    """A view's nodes in words. The nodes are given, so that a view which was only planned can be explained too.

    ``rows``: how many rows the nodes' tables hold. ``properties``: of the tables that the view reads.
    """
    nodes = list(nodes)

    numbers = {node.name: f"node {i}" for i, node in enumerate((n for n in nodes if n.hidden), start=1)}

    def shown(name: str) -> str:
        return numbers.get(name) or world.display_name(name)

    explained = []
    for node in nodes:
        others = tuple(v.name for v in world.views.values() if v.key != view.key and node.name in v.nodes)
        computes = node.details.operator
        for read in node.inputs:
            computes = computes.replace(read, shown(read))
        explained.append(
            NodeExplanation(
                name=view.name if not node.hidden else shown(node.name), hidden=node.hidden,
                rule=node.details.rule, computes=computes, reads=node.details.reads,
                inputs=(*(shown(n) for n in node.inputs), *node.details.outside), incremental=node.details.incremental,
                estimated_rows=node.details.estimated_rows, rows=(rows or {}).get(node.name), shared_with=others,
                folder=f"nodes/{PurePath(node.path).name}" if node.hidden else None,
            )
        )  # fmt: skip
    done = None
    if last is not None:
        how = f" by {last.strategy}" if last.strategy else ""
        done = (
            f"{last.action}{how} ({last.reason}), +{last.rows_inserted:,} -{last.rows_deleted:,} rows, "
            f"{last.seconds:.2f} s, epoch {last.epoch}, {last.status}"
        )
        if last.details is not None and last.action != Action.NO_DATA:
            done += "".join(f"\n    {label:9} {text}" for label, text in _costs(last.details))
    constructs = dict.fromkeys(construct for node in nodes for construct in node.details.constructs)
    if view.reason_code == Reason.POLICY_FULL:
        constructs = {}
    elif not view.incremental:
        constructs = {(str(view.reason), f"has no incremental rule ({view.reason_code})"): None}
    name = wanted_name(world, view)
    return Explanation(
        view=view.name,
        published=None if name is None else name.told,
        policy=view.policy,
        incremental=view.incremental,
        reason_code=view.reason_code,
        reason=view.reason,
        nodes=tuple(explained),
        constructs=tuple(constructs),
        moves=_moves(world, view),
        last_refresh=done,
        advice=_advice(world, view, last, properties or {}),
    )


def _moves(world: World, view: ViewRecord) -> str | None:
    """IMMEDIATE, or where what is IMMEDIATE ends."""
    if view.immediate:
        tables = ", ".join(sorted(world.display_name(t) for t in _tables_of(world, view)))
        return f"REFRESH IMMEDIATE: it moves in the statement that writes {tables}"
    above = [world.views[read].name for read in view.reads if read in world.views and world.views[read].immediate]
    if not above:
        return None
    return f"REFRESH {view.trigger}: it follows later than {', '.join(above)}, which moves with its tables (IMMEDIATE)"


def _tables_of(world: World, view: ViewRecord) -> set[str]:
    return ({*view.reads} | world.views_graph().ancestors(view.reads)) & set(world.tables)


def _advice(
    world: World, view: ViewRecord, last: HistoryRecord | None, properties: Mapping[str, Mapping[str, str]]
) -> tuple[str, ...]:
    steps = [next_step(view.reason_code), next_step(last.reason) if last is not None else None]
    noted = (last.details or {}) if last is not None else {}
    steps.append(noted.get("remark"))
    if view.incremental:
        steps += [for_table(world.display_name(table), found) for table, found in properties.items()]
    return tuple(dict.fromkeys(step for step in steps if step is not None))
