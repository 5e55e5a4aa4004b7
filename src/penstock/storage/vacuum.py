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

from pyarrow import fs

from penstock import points
from penstock.storage.commits import read_commits
from penstock.storage.deletion_vectors import stored_at
from penstock.storage.delta_log import Snapshot, filesystem_of, latest_version

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
    filesystem, root = filesystem_of(path)
    found = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
    pinned = set(pinned)
    needed = {file for version in (*pinned, since) for file in _files(Snapshot(path, version).state.adds.values())}
    for commit in read_commits(path, since, latest_version(path)):
        needed |= _files(commit.adds)
    first = min(pinned | {since})
    files = {info.path.removeprefix(f"{root}/"): info for info in found if info.type == fs.FileType.File}
    log = {name for name in files if name.startswith(f"{_LOG}/")}
    old = {name for name, info in files.items() if info.mtime is None or info.mtime <= written_before}
    data = {name for name in old - log if _checked(name) not in needed}
    drafts = {name for name in old & log if name.endswith(_DRAFTS)}
    gone = [files[name] for name in sorted(data | drafts | _old_log(log, first))]
    points.reached(points.DELETION)
    for info in gone:
        with suppress(FileNotFoundError):  # another one was here who took our lease for lost
            filesystem.delete_file(info.path)
        points.reached(points.DELETED)
    _drop_empty_folders(filesystem, root, found, {files[name].path for name in files} - {info.path for info in gone})
    return Freed(len(gone), sum(info.size for info in gone))


def leave(path: str) -> None:
    """Say of a table that nobody needs it any more, but for those who are reading it."""
    filesystem, root = filesystem_of(path)
    if filesystem.get_file_info(root).type == fs.FileType.Directory:
        with suppress(FileNotFoundError), filesystem.open_output_stream(f"{root}/{_LEFT}") as marker:
            marker.write(b"")


def leave_forgotten(folder: str, used: Collection[str], cutoff: datetime, *, empty: bool = False) -> None:
    """Leave the tables of a folder that nobody knows of and nobody has written since then: a CREATE was killed.

    ``empty``: only directories in which there is nothing.
    """
    filesystem, root = filesystem_of(folder)
    for table in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        if table.path in used or table.type != fs.FileType.Directory:
            continue
        files = filesystem.get_file_info(fs.FileSelector(table.path, recursive=True, allow_not_found=True))
        newest = max(info.mtime for info in [table, *files])
        if empty and files:
            continue
        if newest <= cutoff and not any(info.base_name == _LEFT for info in files):
            leave(table.path)


def delete_left(folder: str, used: Collection[str], cutoff: datetime) -> Freed:
    """Delete the tables of a folder that were left before then, unless they are ``used`` again.

    Several may do so at once, and a table may get the name of one that has just been deleted. So each is deleted by
    the one who takes its marker away, and by nobody else; who dies before it is through leaves a forgotten table.
    """
    filesystem, root = filesystem_of(folder)
    freed = Freed()
    for table in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        if table.path in used:
            continue
        marker = filesystem.get_file_info(f"{table.path}/{_LEFT}")
        if marker.type == fs.FileType.File and marker.mtime is not None and marker.mtime <= cutoff:
            points.reached(points.DELETION)
            if _take(filesystem, marker.path):
                freed += _delete(filesystem, table.path)
    return freed


def _take(filesystem: fs.FileSystem, marker: str) -> bool:
    """Take a marker away; False if another one was first."""
    try:
        filesystem.move(marker, f"{marker}-{uuid.uuid4().hex}")
    except FileNotFoundError:
        return False
    return True


def _delete(filesystem: fs.FileSystem, path: str) -> Freed:
    files = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    sizes = [info.size for info in files if info.type == fs.FileType.File and not info.base_name.startswith(_LEFT)]
    points.reached(points.DELETION)
    filesystem.delete_dir(path)
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


def _drop_empty_folders(
    filesystem: fs.FileSystem, root: str, found: Iterable[fs.FileInfo], files: Iterable[str]
) -> None:
    filled = {f"{root}/{_LOG}"}
    for file in files:
        while (folder := file.rpartition("/")[0]) not in filled and folder != root:
            filled.add(folder)
            file = folder
    folders = [info.path for info in found if info.type == fs.FileType.Directory and info.path not in filled]
    for folder in sorted(folders, key=len, reverse=True):
        if not folder.startswith(f"{root}/{_LOG}/"):
            filesystem.delete_dir(folder)
