"""The files of a Delta log: which there are, and what they hold; fast enough to ask of every source.

Of a log in an object store the names are kept, so that one look tells what has come since; a commit is read once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence

from penstock.errors import StoreError
from penstock.storage.file_cache import FILES, Identity
from penstock.storage.files import FileInfo, Files, files_of
from penstock.storage.locations import is_store

LOG = "_delta_log"

_COMMIT = re.compile(r"(\d{20})\.(?:json|checkpoint\b.*)")
_WEIGHT = 200
"""About what a name takes in memory."""


def commit_name(version: int) -> str:
    """The file of a commit.

    >>> commit_name(3)
    '_delta_log/00000000000000000003.json'
    """
    return f"{LOG}/{version:020d}.json"


def newest_version(path: str) -> int | None:
    """The newest version of the table at a path; None if there is none, or it cannot be told by listing."""
    try:
        files = files_of(path)
        names: Iterable[str] = files.names(LOG) if files.local else log_files(files)
    except StoreError:
        raise
    except (OSError, ValueError):
        return None
    return max((version for version in map(_version, names) if version is not None), default=None)


def newest_versions(paths: Iterable[str]) -> dict[str, int | None]:
    """The same of several tables; stores are asked for all of theirs at once. One that does not answer tells none."""

    def newest(path: str) -> int | None:
        try:
            return newest_version(path)
        except StoreError:
            return None

    paths = list(dict.fromkeys(paths))
    far = [path for path in paths if is_store(path)]
    found = dict(zip(far, files_of(far[0]).each(newest, far), strict=True)) if far else {}
    return {path: found[path] if path in found else newest(path) for path in paths}


def bytes_to_read(path: str, version: int) -> int | None:
    """How much of a log is read to know a version: its last checkpoint and what follows; None if there is no log."""
    try:
        names = known_files(files_of(path))
    except (OSError, ValueError):
        return None
    sizes = [(number, name, info.size) for name, info in names.items() if (number := _version(name)) is not None]
    if not sizes:
        return None
    known = [(number, "checkpoint" in name, size) for number, name, size in sizes if number <= version]
    base = max((number for number, checkpoint, _ in known if checkpoint), default=-1)
    return sum(size for number, checkpoint, size in known if number > base or (checkpoint and number == base))


def log_files(files: Files) -> Mapping[str, FileInfo]:
    """The files of a log by their names in it, as they are now; those that are written beside it are left out."""
    if files.local:
        return _named(files.listing(LOG))
    known: Mapping[str, FileInfo] | None = FILES.get(_key(files))
    newest = None if known is None else max((n for n in known if n.endswith(".json")), default=None)
    if known is not None and newest is not None:
        came = _named(files.listing(LOG, after=f"{LOG}/{newest.partition('.')[0]}"))
        if newest in came and came[newest].tag == known[newest].tag:  # else another table is there now
            return _keep(files, {**known, **came})
    return _keep(files, _named(files.listing(LOG)))


def known_files(files: Files) -> Mapping[str, FileInfo]:
    """The same as they were last seen, where looking takes a round trip."""
    known: Mapping[str, FileInfo] | None = None if files.local else FILES.get(_key(files))
    return log_files(files) if known is None else known


def identity_of(files: Files, version: int) -> Identity | None:
    """What tells the commit of a version from others of that number; None if there is none."""
    if files.local:
        try:
            return files.identity(commit_name(version))
        except OSError:
            return None
    name, known = commit_name(version).removeprefix(f"{LOG}/"), known_files(files)
    found = known.get(name)
    if found is None and name > max(known, default=""):  # one of before would have been seen
        found = log_files(files).get(name)
    return None if found is None else (files.root, name, found.size, found.tag)


def read_commit(files: Files, version: int) -> bytes:
    """What a commit holds; ``FileNotFoundError`` if it is no longer there."""
    return read_commits(files, [version])[0]


def read_commits(files: Files, versions: Sequence[int]) -> list[bytes]:
    """The same for several, read at once from a store, and only those that were not read before."""
    if files.local:
        return files.read_all([commit_name(version) for version in versions])
    keys = {version: identity_of(files, version) for version in versions}
    found = {version: FILES.get(key) for version, key in keys.items() if key is not None}
    known: dict[int, bytes] = {version: data for version, data in found.items() if data is not None}
    missing = [version for version in versions if version not in known]
    for version, data in zip(missing, files.read_all([commit_name(version) for version in missing]), strict=True):
        known[version] = data
        key = keys[version]
        if key is not None:
            FILES.put(key, data, len(data))
    return [known[version] for version in versions]


def committed(files: Files, version: int, data: bytes, tag: str) -> None:
    """Know what was just committed here, which then need not be asked."""
    if files.local:
        return
    known: Mapping[str, FileInfo] | None = FILES.get(_key(files))
    if known is not None or version == 0:  # else what was before it is not known
        name = commit_name(version).removeprefix(f"{LOG}/")
        info = FileInfo(name=commit_name(version), size=len(data), modified=time.time(), tag=tag)
        _keep(files, {**(known or {}), name: info})
        FILES.put((files.root, name, info.size, tag), data, len(data))


def _key(files: Files) -> Identity:
    return files.root, LOG


def _keep(files: Files, names: Mapping[str, FileInfo]) -> Mapping[str, FileInfo]:
    FILES.put(_key(files), names, _WEIGHT * len(names))
    return names


def _named(found: Sequence[FileInfo]) -> dict[str, FileInfo]:
    return {info.name.removeprefix(f"{LOG}/"): info for info in found}


def _version(name: str) -> int | None:
    match = _COMMIT.fullmatch(name)
    return None if match is None else int(match[1])
