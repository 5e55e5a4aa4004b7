"""Directories for new tables. Each belongs to one claimant: whoever made it, and may therefore remove it again."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock import points
from penstock.catalog import Catalog, Definition, NodeRecord, World
from penstock.errors import AlreadyExistsError
from penstock.storage.locations import is_store
from penstock.storage.view_table import delete_table


def check_not_ours(world: World, name: str, path: str) -> None:
    """A directory of the warehouse's own is not another table too: that would be read beside the epochs."""
    owner = next((node for node in world.nodes.values() if node.path == path), None)
    if owner is not None:
        views = ", ".join(view.name for view in world.owners(owner.name))
        what = f"state of {views}" if owner.hidden else f"the view {views}"
    else:
        own = next((table for table in world.tables.values() if table.path == path and not table.external), None)
        what = "" if own is None else f"the table {own.name}"
    if what:
        then = "Only their refresh reads it." if owner is not None and owner.hidden else "Use that name."
        raise AlreadyExistsError(
            f"{name!r} cannot be the Delta table at {path!r}: that is {what} of this warehouse. {then}"
        )


def claim(path: str) -> str:
    """A new directory, by that name or with a number behind it; in a store, a name that no table ever has again."""
    if is_store(path):
        points.reached(points.CLAIMED)
        return f"{path}-{uuid.uuid4().hex[:8]}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    found, number = path, 2
    while True:
        try:
            os.mkdir(found)
            points.reached(points.CLAIMED)
            return found
        except FileExistsError:
            found, number = f"{path}-{number}", number + 1


class Claims:
    """Definitions whose new nodes have directories of their own."""

    def __init__(self, world: World, definitions: Iterable[Definition]):
        definitions = list(definitions)
        new = {n.name: n.path for d in definitions for n in d.nodes if n.name not in world.nodes}
        self._paths = {name: claim(path) for name, path in new.items()}
        self.definitions = [replace(d, nodes=tuple(self._placed(node) for node in d.nodes)) for d in definitions]

    def world(self, amended: World) -> World:
        """The catalog as it will be, with the nodes where they will lie."""
        nodes: Mapping[str, NodeRecord] = {name: self._placed(node) for name, node in amended.nodes.items()}
        return replace(amended, nodes=nodes) if self._paths else amended

    def _placed(self, node: NodeRecord) -> NodeRecord:
        return replace(node, path=self._paths[node.name]) if node.name in self._paths else node

    def settle(self, catalog: Catalog) -> None:
        """Remove the directories of nodes that did not come to be."""
        if self._paths:
            known = {node.path for node in catalog.world().nodes.values()}
            for path in self._paths.values():
                if path not in known:
                    delete_table(path)
