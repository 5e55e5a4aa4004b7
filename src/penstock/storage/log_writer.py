"""Commits that we write ourselves: those with deletion vectors, which delta-rs cannot write, and those that are nothing
but their files, for which it would open the table once more.

A commit is a file named after its version. It is written under another name first and then linked to its own, which
fails if another writer was first; in an object store it is put on the condition that there is none (``files.py``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from penstock import points
from penstock.storage.deletion_vectors import Descriptor
from penstock.storage.delta_log import delta_rs
from penstock.storage.files import Held, files_of
from penstock.storage.locations import is_store
from penstock.storage.log_listing import LOG, commit_name, committed
from penstock.storage.log_replay import Action

CHECKPOINT_EVERY = 20
"""Commits between checkpoints; what is read since the last is parsed in Python."""
_CHECKPOINT_EVERY_FAR = 100
"""The same in an object store, where delta-rs takes some ninety requests to make one, and commits are read at once."""

_FEATURE, _ENABLED = "deletionVectors", "delta.enableDeletionVectors"
_IMPLIED = ["appendOnly", "invariants"]
"""What writer version 2 stands for in the words of version 7."""


class VersionTaken(Exception):
    """Another writer has committed this version."""


class TableGone(FileNotFoundError):
    """The table that was to be written is not there any more. Another one may be in its place."""


@contextmanager
def held_log(path: str) -> Iterator[Held]:
    """The log of the table that is at a path now. What is put into it goes to no table that comes in its place.

    Open it before the table is looked at.
    """
    with ExitStack() as held:
        try:
            log = held.enter_context(files_of(path).hold(LOG))
        except FileNotFoundError:
            raise TableGone(path) from None
        yield log


def put(
    path: str, version: int, actions: Sequence[Action], *, checkpoint_every: int | None = None, log: Held | None = None
) -> None:
    """Make a version of these actions, or raise ``VersionTaken``; nothing else is left behind.

    ``log``: that of the table as it was ``held_log``; ``TableGone`` if it is gone.
    """
    points.reached(points.COMMIT)
    if log is None:
        with held_log(path) as log:
            _put(path, log, version, actions)
    else:
        _put(path, log, version, actions)
    points.reached(points.COMMITTED)
    every = checkpoint_every or (_CHECKPOINT_EVERY_FAR if is_store(path) else CHECKPOINT_EVERY)
    if version and version % every == 0:
        _make_checkpoint(path, version)


def _put(path: str, log: Held, version: int, actions: Sequence[Action]) -> None:
    data = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions).encode()
    try:
        tag = log.put_if_absent(commit_name(version).removeprefix(f"{LOG}/"), data)
    except FileExistsError:
        raise VersionTaken(f"version {version} exists") from None
    except FileNotFoundError:
        raise TableGone from None
    committed(files_of(path), version, data, tag)


def _make_checkpoint(path: str, version: int) -> None:
    """A checkpoint. The commit stands whether or not this works."""
    with suppress(Exception):
        delta_rs(path, version).create_checkpoint()


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
