"""Going back to a checkpoint: views, their tables and frontiers as they were, in one step."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog import World
from penstock.catalog.checkpoints import Checkpoint, Checkpoints
from penstock.catalog.leases import Leases
from penstock.engine.spark_names import SparkNames
from penstock.engine.workplace import Workplace
from penstock.errors import AlreadyExistsError, BusyError, NotFoundError, SourceError
from penstock.storage.delta_log import Snapshot
from penstock.storage.runs import Run
from penstock.storage.view_table import restore as restore_table


class Past:
    def __init__(self, work: Workplace, refresh: Callable[[list[str]], object], names: SparkNames):
        self._work = work
        self._refresh = refresh
        self._names = names

    def drop_checkpoint(self, name: str) -> None:
        paths = [path for path, _ in Checkpoints(self._work.catalog).get(name).nodes.values()]
        Checkpoints(self._work.catalog).drop(name)
        self._work.leave_paths(paths)

    def restore(self, name: str) -> int:
        """Bring views, their tables and frontiers back to a checkpoint, in one step; gives the new epoch.

        The tables of the views go back first, which no reader sees: readers have the versions that the catalog says.
        IMMEDIATE views follow their tables again at once, in the next epoch.
        """
        checkpoint = Checkpoints(self._work.catalog).get(name)
        before = self._work.catalog.world()
        everything = sorted(set(before.nodes) | set(checkpoint.nodes))
        leases = Leases(self._work.catalog, everything, self._work.patience(before, f"restoring checkpoint {name}"))
        with leases:
            before = self._work.catalog.world()
            if not set(before.nodes) <= set(everything):
                raise BusyError(f"checkpoint {name!r} was not restored: views were created in this moment. Try again.")
            missing = self._missing_tables(before, checkpoint)
            found = {node: (path, version) for node, (path, version) in checkpoint.nodes.items() if version is not None}
            with leases.writing():
                versions = {
                    node: restore_table(path, version, Run.begun(checkpoint.sources_of(node)))
                    for node, (path, version) in found.items()
                }
            epoch = Checkpoints(self._work.catalog).restore(checkpoint, versions, missing, leases.fence)
        self._work.leave_unused(before)
        immediate = [view.name for view in self._work.catalog.world().views.values() if view.immediate]
        if immediate:  # which are where their tables are
            self._refresh(immediate)
        self._names.settle()
        return epoch

    @staticmethod
    def _missing_tables(world: World, checkpoint: Checkpoint) -> list[str]:
        """The source tables that a checkpoint needs and the catalog no longer has. They must still be there."""
        _check_names(world, checkpoint)
        missing = []
        for row in checkpoint.tables:
            if row["key"] not in world.tables:
                try:
                    Snapshot(row["path"])
                except SourceError:
                    raise NotFoundError(
                        f"checkpoint {checkpoint.name!r} cannot be restored: table {row['name']!r}, which its views "
                        "may read, was dropped and its data deleted."
                    ) from None
                missing.append(row["key"])
        return missing


def _check_names(world: World, checkpoint: Checkpoint) -> None:
    """What comes back finds its name free."""
    views = checkpoint.views
    shown = {model.plain_view for model in world.models.values()}  # which go
    taken = [(views[key], "table") for key in views if key in world.tables]
    taken += [(views[key], "view") for key in views if key in world.plain and key not in shown]
    taken += [(row["name"], "table") for row in checkpoint.plain_views if row["key"] in world.tables]
    for name, kind in taken:
        raise AlreadyExistsError(
            f"checkpoint {checkpoint.name!r} has a view {name!r}, and now a {kind} has that name. "
            f"Drop the {kind} first."
        )
