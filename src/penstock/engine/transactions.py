"""Several statements on several tables, all of them or none, on the warehouse as it was when the first of them began.

A table that is written gets a branch (``storage/branch.py``), which only this transaction reads. Its end is one commit
for each such table, with the IMMEDIATE views that follow (``committing.py``). Nothing is locked until then: who commits
first wins.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.catalog import Catalog, TableRecord
from penstock.catalog.leases import identity
from penstock.engine.callbacks import Committed
from penstock.engine.committing import Committing, Write, disk_errors
from penstock.engine.reading import Keys, Pin, Reading, at_one_moment, pin, pins
from penstock.engine.report import Report
from penstock.errors import ConflictError, NotSupportedError, PenstockError
from penstock.storage.branch import change_of, check_can_branch, make_branch, take_files
from penstock.storage.delta_log import Snapshot, snapshot_of
from penstock.storage.files import files_of

FOLDER = "tx"
"""Where branches lie in a warehouse."""


@dataclass(frozen=True, kw_only=True)
class Branch:
    table: TableRecord
    base: Snapshot
    path: str


class Transaction:
    def __init__(self, catalog: Catalog, committing: Committing, warehouse: str, doing: str = "the transaction"):
        """``doing`` is what errors call it."""
        host, pid = identity()
        self._folder = os.path.join(warehouse, FOLDER, f"{host}-{pid}-{uuid.uuid4().hex[:12]}")
        self._catalog = catalog
        self._committing = committing
        self._doing = doing
        self._branches: dict[str, Branch] = {}
        self._pins: dict[str, Pin] = {}
        self.done: list[Committed] = []
        """What its statements have done so far."""
        self.over = False
        self._world = at_one_moment(catalog, self._pin_all, lambda world: world.tables).world

    def _pin_all(self, seen: Reading) -> None:
        self._pins = pins(seen.world, seen.world.tables)

    def reading(self, keys: Keys | None = None) -> Reading:
        """What a statement of it sees: everything as it was, and its own writes."""
        self._check_open()
        return Reading(world=self._world, tables=_Tables(self._pins, self._branches))

    def branched(self, key: str) -> TableRecord:
        """A table as the transaction writes it."""
        self._check_open()
        table = self._world.tables[key]
        if table.external:
            raise NotSupportedError(
                f"{table.name!r} is an external table, which others write without Penstock, so it cannot be written in "
                "a transaction. Write it before or after, or copy it into a table made by CREATE TABLE."
            )
        if key not in self._branches:
            base = self._pins[key].snapshot()
            check_can_branch(base, table.name)
            path = os.path.join(self._folder, f"{len(self._branches)}")
            with disk_errors(f"{self._doing} on {table.name!r}"):
                make_branch(base, path)
            self._branches[key] = Branch(table=table, base=base, path=path)
        return replace(table, path=self._branches[key].path)

    def commit(self) -> Report | None:
        """Publish all of it; None if nothing was written. Whatever comes of it, the transaction is over."""
        self._check_open()
        try:
            writes = [write for branch in self._branches.values() if (write := self._write(branch)) is not None]
            world = self._catalog.world()
            for write in writes:  # before any file is moved; what comes later, the commit finds out
                key = write.table.key
                if key in world.tables and pin(world, key).snapshot().version != write.base.version:
                    raise ConflictError(
                        f"table {write.table.name!r} was changed by another writer since {self._doing} began, and the "
                        "first one wins. Nothing has changed; try again."
                    )
            with disk_errors(self._doing):
                for write in writes:
                    take_files(write.base, self._branches[write.table.key].path, write.actions)
            return self._committing.commit(writes, self._doing) if writes else None
        finally:
            self.rollback()

    def _write(self, branch: Branch) -> Write | None:
        actions = change_of(branch.base, branch.path)
        if not actions:
            return None
        verbs = {one.operation for one in self.done if one.table == branch.table.name}
        operation = next(iter(verbs)) if len(verbs) == 1 else "WRITE"
        return Write(table=branch.table, base=branch.base, actions=actions, operation=operation)

    def rollback(self) -> None:
        """Leave nothing of it."""
        if not self.over:
            self.over = True
            if self._branches:
                with suppress(OSError):  # who comes later clears it
                    files_of(self._folder).delete_folder()

    def _check_open(self) -> None:
        if self.over:
            raise PenstockError("this transaction is over: it was committed or rolled back. Begin another.")


@dataclass(frozen=True)
class _Tables(Mapping[str, Snapshot]):
    """Tables as a transaction sees them."""

    pins: Mapping[str, Pin]
    branches: Mapping[str, Branch]

    def __getitem__(self, key: str) -> Snapshot:
        return snapshot_of(self.branches[key].path) if key in self.branches else self.pins[key].snapshot()

    def __iter__(self) -> Iterator[str]:
        return iter(self.pins)

    def __len__(self) -> int:
        return len(self.pins)


def clear_left(warehouse: str) -> None:
    """Remove what transactions have left whose processes died."""
    host, _ = identity()
    files = files_of(os.path.join(warehouse, FOLDER))
    for left in files.folders():
        where, _, rest = left.name.rpartition("-")[0].rpartition("-")
        if where == host and rest.isdigit() and not _runs(int(rest)):
            with suppress(OSError):
                files.delete_folder(left.name)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
