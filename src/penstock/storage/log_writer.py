"""Commits that we write ourselves: those with deletion vectors, which delta-rs cannot write, and those that are nothing
but their files, for which it would open the table once more.

A commit is a file named after its version. It is written under another name first and then linked to its own, which
fails if another writer was first. That needs a local file system; elsewhere tables are kept without vectors.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable
from pyarrow import fs

from penstock import points
from penstock.storage.deletion_vectors import Descriptor
from penstock.storage.delta_log import filesystem_of, table_uri
from penstock.storage.log_replay import Action

CHECKPOINT_EVERY = 20
"""Commits between checkpoints; what is read since the last is parsed in Python."""

_FEATURE, _ENABLED = "deletionVectors", "delta.enableDeletionVectors"
_IMPLIED = ["appendOnly", "invariants"]
"""What writer version 2 stands for in the words of version 7."""


class VersionTaken(Exception):
    """Another writer has committed this version."""


class TableGone(FileNotFoundError):
    """The table that was to be written is not there any more. Another one may be in its place."""


@contextmanager
def held_log(path: str) -> Iterator[int]:
    """The log of the table that is at a path now. What is put into it goes to no table that comes in its place.

    Open it before the table is looked at. It is the directory that is held, not its name: of a table that was dropped
    it is gone for good.
    """
    try:
        log = os.open(f"{filesystem_of(path)[1]}/_delta_log", os.O_RDONLY)
    except FileNotFoundError:
        raise TableGone(path) from None
    try:
        yield log
    finally:
        os.close(log)


def can_write(path: str) -> bool:
    return isinstance(filesystem_of(path)[0], fs.LocalFileSystem)


def is_held(path: str, log: int) -> bool:
    """Whether the log that is held is still that of the table at the path."""
    try:
        return os.path.samestat(os.fstat(log), os.stat(f"{filesystem_of(path)[1]}/_delta_log"))
    except FileNotFoundError:
        return False


def put(
    path: str, version: int, actions: Sequence[Action], *, checkpoint_every: int | None = None, log: int | None = None
) -> None:
    """Make a version of these actions, or raise ``VersionTaken``; nothing else is left behind.

    ``log``: that of the table as it was ``held_log``; ``TableGone`` if it is gone.
    """
    points.reached(points.COMMIT)
    if log is None:
        with held_log(path) as log:
            _put(log, version, actions)
    else:
        _put(log, version, actions)
    points.reached(points.COMMITTED)
    if version % (checkpoint_every or CHECKPOINT_EVERY) == 0:
        _make_checkpoint(path, version)


def _put(log: int, version: int, actions: Sequence[Action]) -> None:
    draft = f".{version:020d}.{uuid4().hex}.draft"
    try:
        with open(draft, "x", encoding="utf-8", opener=partial(os.open, dir_fd=log)) as out:
            out.writelines(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        os.link(draft, f"{version:020d}.json", src_dir_fd=log, dst_dir_fd=log)
    except FileExistsError:
        raise VersionTaken(f"version {version} exists") from None
    except FileNotFoundError:
        raise TableGone from None
    finally:
        with suppress(OSError):  # it is committed or not, whatever becomes of the draft
            os.unlink(draft, dir_fd=log)


def _make_checkpoint(path: str, version: int) -> None:
    """A checkpoint. The commit stands whether or not this works."""
    with suppress(Exception):
        DeltaTable(table_uri(path), version=version).create_checkpoint()


def said(operation: str, **details: Any) -> Action:
    """What a commit says of itself."""
    info = {"timestamp": now(), "operation": operation, "operationParameters": {}, "engineInfo": "penstock"}
    return {"commitInfo": {**info, **details}}


def removed(add: Action, *, data_change: bool = True) -> Action:
    """The removal of a file as it was added: with the same vector, else nothing would be removed."""
    kept = {name: add[name] for name in ("path", "size", "deletionVector") if name in add}
    about = {"deletionTimestamp": now(), "dataChange": data_change, "extendedFileMetadata": True}
    return {"remove": {**kept, **about, "partitionValues": add.get("partitionValues", {})}}


def marked(add: Action, vector: Descriptor) -> Action:
    """A file added again with a vector. Its bounds may now be those of rows that are gone."""
    stats = {**json.loads(add["stats"]), "tightBounds": False}
    return {"add": {**add, "dataChange": True, "stats": json.dumps(stats), "deletionVector": vector}}


def enabling(protocol: Action, metadata: Action) -> list[Action]:
    """What a table must say before its first vector; nothing if it says so already."""
    actions: list[Action] = []
    if _FEATURE not in (protocol.get("readerFeatures") or ()):
        written = protocol.get("writerFeatures") or _IMPLIED
        features = {
            "readerFeatures": sorted([*(protocol.get("readerFeatures") or ()), _FEATURE]),
            "writerFeatures": sorted([*written, _FEATURE]),
        }
        actions.append({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    configuration = metadata.get("configuration") or {}
    if configuration.get(_ENABLED) != "true":
        actions.append({"metaData": {**metadata, "configuration": {**configuration, _ENABLED: "true"}}})
    return actions


def reshaping(protocol: Action, metadata: Action, shape: tuple[Action, Action]) -> list[Action]:
    """What a table must say to have the columns, partitions and properties of another from this commit on.

    ``shape`` is the protocol and the metadata of a table that has them. A feature cannot be taken back.
    """
    wanted_protocol, wanted = shape
    reads, writes = (set(protocol.get(kind) or ()) for kind in ("readerFeatures", "writerFeatures"))
    reading = reads | set(wanted_protocol.get("readerFeatures") or ())
    writing = (writes or set(_IMPLIED)) | set(wanted_protocol.get("writerFeatures") or _IMPLIED)
    actions: list[Action] = []
    if reading != reads or writing != (writes or set(_IMPLIED)):
        features = {"readerFeatures": sorted(reading), "writerFeatures": sorted(writing)}
        actions.append({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    told = {name: wanted[name] for name in ("schemaString", "partitionColumns")}
    configuration = dict(wanted.get("configuration") or {})
    vectors = (metadata.get("configuration") or {}).get(_ENABLED)
    if vectors is not None:
        configuration.setdefault(_ENABLED, vectors)
    actions.append({"metaData": {**metadata, **told, "configuration": configuration}})
    return actions


def now() -> int:
    return time.time_ns() // 1_000_000
