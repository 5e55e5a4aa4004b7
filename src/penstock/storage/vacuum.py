"""Deleting the files of a node's table that no version in use has, and the log of the versions before.

Whoever calls this holds the node's lease, so nobody who could still publish is writing: a file that no version has,
and that is not new, was left by a failure.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from penstock import points
from penstock.storage.commits import read_commits
from penstock.storage.deletion_vectors import stored_at
from penstock.storage.delta_log import Snapshot, latest_version
from penstock.storage.files import FileInfo, Files, files_of

_LOG = "_delta_log"
_LEFT = "_left"
"""The name of a file in the folder of a table that nobody needs any more; its time says since when."""

_DRAFTS = (".draft", ".tmp")
"""How commits are named before they are made: whoever is killed then leaves them, ours and those of delta-rs."""


@dataclass(frozen=True)
class Freed:
    """What was deleted."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Freed) -> Freed:
        return Freed(self.files + other.files, self.bytes + other.bytes)


def vacuum(path: str, since: int, pinned: Iterable[int] = (), *, written_before: datetime) -> Freed:
    """Delete what neither the versions from ``since`` on nor the ``pinned`` ones before it need.

    Data files that were written since ``written_before`` stay: somebody may be about to commit them.
    """
    files = files_of(path)
    found = {info.name: info for info in files.listing()}
    pinned = set(pinned)
    needed = {file for version in (*pinned, since) for file in _files(Snapshot(path, version).state.adds.values())}
    for commit in read_commits(path, since, latest_version(path)):
        needed |= _files(commit.adds)
    first = min(pinned | {since})
    log = {name for name in found if name.startswith(f"{_LOG}/")}
    old = {name for name, info in found.items() if info.modified <= written_before.timestamp()}
    data = {name for name in old - log if _checked(name) not in needed}
    drafts = {name for name in old & log if name.endswith(_DRAFTS)}
    gone = [found[name] for name in sorted(data | drafts | _old_log(log, first))]
    points.reached(points.DELETION)
    for some in _at_once(files, gone):
        files.delete([info.name for info in some])
        points.reached(points.DELETED)
    files.drop_empty_folders(but=_LOG)
    return Freed(len(gone), sum(info.size for info in gone))


def _at_once(files: Files, gone: list[FileInfo]) -> list[list[FileInfo]]:
    """Files to delete, by how many are deleted in one go."""
    return [[info] for info in gone] if files.local else [gone]


def leave(path: str) -> None:
    """Say of a table that nobody needs it any more, but for those who are reading it."""
    with suppress(FileNotFoundError):
        files_of(path).write(_LEFT, lambda out: out.write(b""))


def leave_forgotten(folder: str, used: Collection[str], cutoff: datetime, *, empty: bool = False) -> None:
    """Leave the tables of a folder that nobody knows of and nobody has written since then: a CREATE was killed.

    ``empty``: only directories in which there is nothing.
    """
    for table in files_of(folder).folders():
        path = f"{folder}/{table.name}"
        if path in used:
            continue
        files = files_of(path).listing()
        newest = max(info.modified for info in [table, *files])
        if empty and files:
            continue
        if newest <= cutoff.timestamp() and not any(info.name == _LEFT for info in files):
            leave(path)


def delete_left(folder: str, used: Collection[str], cutoff: datetime) -> Freed:
    """Delete the tables of a folder that were left before then, unless they are ``used`` again.

    Several may do so at once, and a table may get the name of one that has just been deleted. So each is deleted by
    the one who takes its marker away, and by nobody else; who dies before it is through leaves a forgotten table.
    """
    freed = Freed()
    for table in files_of(folder).folders():
        path = f"{folder}/{table.name}"
        if path in used:
            continue
        files = files_of(path)
        with suppress(FileNotFoundError):
            if files.info(_LEFT).modified <= cutoff.timestamp():
                points.reached(points.DELETION)
                files.move(_LEFT, f"{_LEFT}-{uuid.uuid4().hex}")  # another one may be first
                freed += _delete(files)
    return freed


def _delete(files: Files) -> Freed:
    sizes = [info.size for info in files.listing() if not info.name.startswith(_LEFT)]
    points.reached(points.DELETION)
    files.delete_folder()
    points.reached(points.DELETED)
    return Freed(len(sizes), sum(sizes))


def _files(adds: Iterable[Mapping[str, Any]]) -> set[str]:
    """The data files and the files with deletion vectors that some actions name."""
    adds = list(adds)
    vectors = (stored_at(dict(add["deletionVector"])) for add in adds if add.get("deletionVector"))
    return {unquote(add["path"]) for add in adds} | {file for file in vectors if file is not None}


def _checked(name: str) -> str:
    """A file, or for a checksum the file that it belongs to.

    >>> _checked("run-1/.part-0.parquet.crc"), _checked("run-1/part-0.parquet")
    ('run-1/part-0.parquet', 'run-1/part-0.parquet')
    """
    folder, slash, base = name.rpartition("/")
    if base.startswith(".") and base.endswith(".crc"):
        base = base[1:].removesuffix(".crc")
    return f"{folder}{slash}{base}"


def _old_log(names: Iterable[str], first: int) -> set[str]:
    """The log before the last checkpoint from which a version can be read.

    >>> sorted(_old_log({f"_delta_log/{v:020d}{kind}" for v in range(4) for kind in (".json",)}, 3))
    []
    >>> names = {f"_delta_log/{v:020d}.json" for v in range(4)} | {f"_delta_log/{2:020d}.checkpoint.parquet"}
    >>> [name[-6:] for name in sorted(_old_log(names, 3))]
    ['0.json', '1.json']
    >>> _old_log(names, 1)
    set()
    """
    versions = {name: _version(name) for name in names}
    whole = [v for name, v in versions.items() if v is not None and v <= first and name.endswith(".checkpoint.parquet")]
    last = max(whole, default=0)
    return {name for name, version in versions.items() if version is not None and version < last}


def _version(name: str) -> int | None:
    number = name.removeprefix(f"{_LOG}/").lstrip(".")[:20]
    return int(number) if len(number) == 20 and number.isdigit() else None
