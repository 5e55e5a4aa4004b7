"""Tables and views as a graph that can be printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.catalog import Catalog


@dataclass(frozen=True)
class GraphNode:
    name: str
    kind: str
    """``table`` or ``view``."""
    reads: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Every table and view, inputs before readers."""

    nodes: tuple[GraphNode, ...] = field(default_factory=tuple)

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
            lines.append(f"{root.name} ({root.kind})")
            lines.extend(self._branch(root, ""))
        return "\n".join(lines) or "no tables yet"

    def _branch(self, node: GraphNode, indent: str) -> Iterator[str]:
        for place, reader in enumerate(node.readers):
            last = place == len(node.readers) - 1
            yield f"{indent}{'└── ' if last else '├── '}{reader}"
            yield from self._branch(self.node(reader), indent + ("    " if last else "│   "))


def graph(catalog: Catalog) -> Graph:
    world = catalog.world()
    dag = world.views_graph()
    return Graph(
        tuple(
            GraphNode(
                world.display_name(key),
                "view" if key in world.views else "table",
                tuple(world.display_name(read) for read in dag.inputs(key)),
                tuple(world.display_name(reader) for reader in dag.readers(key)),
            )
            for key in dag.order()
        )
    )
