"""Tables and views as a graph that can be printed: who reads whom, and how fresh each view is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from penstock.catalog import Catalog
from penstock.engine.consistency import groups_of
from penstock.engine.writing_out import outside_of, shown_graph
from penstock.observe.status import ViewStatus, status
from penstock.sql.names import key_of
from penstock.vocabulary import State, Status


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    name: str
    kind: str
    """``table``, ``view``, or ``plain view``."""
    reads: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    state: State | None = None
    """Of a view: how it stands."""
    stale: bool = False
    """Whether there is something that the view has not seen."""
    lag: timedelta | None = field(default=None, compare=False)
    """How old the view is."""
    remark: str = field(default="", compare=False)
    """How fresh the view is, in words."""
    immediate: bool = False
    """Whether the view moves in the statements that write its tables."""
    failed: bool = False
    """Whether its last refresh failed."""
    held_back_by: tuple[str, ...] = ()
    """Views above it that do not advance: suspended, or in error."""
    read_model: bool = False
    """Whether the view is the table of a read model."""
    outside: bool = False
    """Whether it is a table that only Spark knows: it has no versions, and tells no changes."""
    status: ViewStatus | None = field(default=None, compare=False)
    """Of a view: all that is told of it."""

    @property
    def failing(self) -> bool:
        return self.failed or self.state in (State.ERROR, State.SUSPENDED)


@dataclass(frozen=True)
class Graph:
    """Every table and view, inputs before readers."""

    nodes: tuple[GraphNode, ...] = field(default_factory=tuple)
    groups: tuple[tuple[str, ...], ...] = ()
    """Views that are published together, because paths meet in one of them."""

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of input and reader."""
        return tuple((read, node.name) for node in self.nodes for read in node.reads)

    def node(self, name: str) -> GraphNode:
        return next(node for node in self.nodes if node.name == name)

    def roots(self) -> list[GraphNode]:
        return [node for node in self.nodes if not node.reads]

    def __str__(self) -> str:
        lines: list[str] = []
        for root in self.roots():
            lines.append(f"{root.name} ({root.kind}{', read by Spark' if root.outside else ''})")
            lines.extend(self._branch(root, ""))
        return "\n".join(lines) or "no tables yet"

    def _branch(self, node: GraphNode, indent: str) -> Iterator[str]:
        for place, reader in enumerate(node.readers):
            last = place == len(node.readers) - 1
            found = self.node(reader)
            mark = " [IMMEDIATE]" if found.immediate else ""
            mark += f" [{found.remark}]" if found.failing or found.held_back_by else ""
            yield f"{indent}{'└── ' if last else '├── '}{reader}{mark}"
            yield from self._branch(found, indent + ("    " if last else "│   "))


def graph(catalog: Catalog) -> Graph:
    world = catalog.world()
    dag, known = shown_graph(world), {key_of(view.name): view for view in status(catalog)}
    outside = {key_of(name): name for key in world.views for name in outside_of(world, key)}
    return Graph(
        tuple(
            GraphNode(
                name=outside.get(key) or world.display_name(key),
                outside=key in outside,
                kind="view" if key in world.views else "plain view" if key in world.plain else "table",
                reads=tuple(outside.get(read) or world.display_name(read) for read in dag.inputs(key)),
                readers=tuple(world.display_name(reader) for reader in dag.readers(key)),
                **(_freshness(known[key]) if key in known else {}),
                immediate=key in world.views and world.views[key].immediate,
                read_model=key in world.models,
                status=known.get(key),
            )
            for key in dag.order()
        ),
        groups=tuple(
            tuple(world.display_name(member) for member in group.members)
            for group in groups_of(world)
            if group.convergence
        ),
    )


def _freshness(view: ViewStatus) -> dict[str, Any]:
    return {
        "state": view.state, "stale": view.stale, "lag": view.lag, "held_back_by": view.held_back_by,
        "failed": view.last_status == Status.FAILED, "remark": _remark(view),
    }  # fmt: skip


def _remark(view: ViewStatus) -> str:
    if view.state in (State.ERROR, State.SUSPENDED) or view.held_back_by:
        return view.state_in_words()
    if view.last_status == Status.FAILED:
        return "its last refresh failed"
    if view.lag is None:
        return "no rows yet"
    behind = f", behind {view.behind_in_words()}" if view.stale else ""
    return f"{view.lag_in_words()} old{behind}"
