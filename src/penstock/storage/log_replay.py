"""What a version of a Delta table consists of, word for word as its log says it.

delta-rs tells which files a version has, but not their deletion vectors' descriptors, which a commit must repeat to
remove such a file. So the log is read here too: the newest checkpoint, then the commits after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

Action = dict[str, Any]

_ROWS = re.compile(r'\s*\{\s*"numRecords"\s*:\s*(\d+)\s*[,}]')
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(.*)\.parquet")


class UnknownLog(Exception):
    """The log is written in a way that is not read here (checkpoints in parts), or some of it is gone."""


@dataclass(frozen=True)
class TableState:
    """The actions that make up a version. ``adds`` goes by the path that the log gives a file."""

    protocol: Action
    metadata: Action
    adds: dict[str, Action]


def read_state(filesystem: fs.FileSystem, root: str, version: int) -> TableState:
    """All of a version."""
    checkpoint, commits = _read(filesystem, root, version, ["add", "protocol", "metaData"])
    actions = [*_checkpointed(checkpoint, "protocol"), *_checkpointed(checkpoint, "metaData"), *commits]
    protocol = next((a["protocol"] for a in reversed(actions) if "protocol" in a), None)
    metadata = next((a["metaData"] for a in reversed(actions) if "metaData" in a), None)
    if protocol is None or metadata is None:
        raise UnknownLog(f"the log of {root!r} says nothing of its protocol or its columns")
    adds = _live(_checkpointed(checkpoint, "add"), commits)
    return TableState(protocol, metadata, adds)


def next_state(before: TableState, filesystem: fs.FileSystem, root: str, version: int) -> TableState:
    """A version, from all of the one before it."""
    commit = _read_commit(filesystem, root, version)
    protocol = next((a["protocol"] for a in commit if "protocol" in a), before.protocol)
    metadata = next((a["metaData"] for a in commit if "metaData" in a), before.metadata)
    return TableState(protocol, metadata, _followed(dict(before.adds), commit))


def rows_told(add: Action) -> int | None:
    """How many rows a file has, those among them that are hidden; None if the log does not say.

    >>> rows_told({"path": "a", "stats": '{"numRecords":3,"minValues":{"numRecords":9}}'}), rows_told({"path": "a"})
    (3, None)
    """
    stats = add.get("stats")
    if not stats:
        return None
    found = _ROWS.match(stats)  # it stands first, where all writers put it
    rows = int(found[1]) if found else json.loads(stats).get("numRecords")
    return None if rows is None else int(rows)


def vectors_among(adds: Mapping[str, Action]) -> dict[str, Action]:
    """The descriptors of deletion vectors, by the path of their file."""
    return {path: add["deletionVector"] for path, add in adds.items() if add.get("deletionVector")}


def partitions_among(adds: Mapping[str, Action]) -> dict[str, dict[str, str | None]]:
    """The values of the partition columns, by the path of the file."""
    return {path: add.get("partitionValues") or {} for path, add in adds.items()}


def read_vectors(filesystem: fs.FileSystem, root: str, version: int) -> dict[str, Action]:
    """The descriptors of a version's deletion vectors, by the path of their file."""
    checkpoint, commits = _read(filesystem, root, version, ["add.path", "add.deletionVector"])
    live = _live(_checkpointed(checkpoint, "add", having="deletionVector"), commits)
    return vectors_among(live)


def read_partitions(filesystem: fs.FileSystem, root: str, version: int) -> dict[str, dict[str, str | None]]:
    """The values of the partition columns that the log gives a version's files, by their path."""
    checkpoint, commits = _read(filesystem, root, version, ["add.path", "add.partitionValues"])
    live = _live(_checkpointed(checkpoint, "add"), commits)
    return partitions_among(live)


def _read(
    filesystem: fs.FileSystem, root: str, version: int, columns: Sequence[str]
) -> tuple[pa.Table | None, list[Action]]:
    """The checkpoint to begin with, if there is one, and the actions after it; within a commit, removals first."""
    base = _newest_checkpoint(filesystem, root, version)
    checkpoint = None
    if base is not None:
        path = f"{root}/_delta_log/{base:020d}.checkpoint.parquet"
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            checkpoint = file.read(columns=[*columns, "sidecar"])
        if "sidecar" in checkpoint.column_names and checkpoint.column("sidecar").null_count < checkpoint.num_rows:
            raise UnknownLog(f"the checkpoint of version {base} of {root!r} is spread over other files")
    actions: list[Action] = []
    for number in range(0 if base is None else base + 1, version + 1):
        actions += _read_commit(filesystem, root, number)
    return checkpoint, actions


def _read_commit(filesystem: fs.FileSystem, root: str, version: int) -> list[Action]:
    """The actions of a commit, removals first."""
    try:
        with filesystem.open_input_stream(f"{root}/_delta_log/{version:020d}.json") as stream:
            commit = [json.loads(line) for line in stream.read().split(b"\n") if line.strip()]
    except FileNotFoundError:
        raise UnknownLog(f"the log of {root!r} does not hold version {version}") from None
    return sorted(commit, key=lambda action: "remove" not in action)


def _newest_checkpoint(filesystem: fs.FileSystem, root: str, version: int) -> int | None:
    """The version of the last checkpoint that is not too new. A long log is listed only if its last one is."""
    with suppress(FileNotFoundError, ValueError, KeyError):
        with filesystem.open_input_stream(f"{root}/_delta_log/_last_checkpoint") as stream:
            last = json.loads(stream.read())
        one_piece = f"{root}/_delta_log/{last['version']:020d}.checkpoint.parquet"
        if last["version"] <= version and filesystem.get_file_info(one_piece).type == fs.FileType.File:
            return int(last["version"])
    names = [info.base_name for info in filesystem.get_file_info(fs.FileSelector(f"{root}/_delta_log"))]
    matches = [match for match in map(_CHECKPOINT.fullmatch, names) if match and int(match[1]) <= version]
    newest = max(matches, key=lambda match: (int(match[1]), match[2] == ""), default=None)
    if newest is None:
        return None
    if newest[2]:
        raise UnknownLog(f"the checkpoint {newest[0]!r} is not in one piece")
    return int(newest[1])


def _checkpointed(checkpoint: pa.Table | None, kind: str, having: str | None = None) -> list[Action]:
    """The actions of a kind that a checkpoint holds, without what it leaves empty, or says twice (``stats_parsed``)."""
    if checkpoint is None:
        return []
    column = checkpoint.column(kind)
    column = column.filter(pc.is_valid(column))
    if having is not None:
        if column.type.get_field_index(having) < 0:
            return []
        column = column.filter(pc.is_valid(pc.struct_field(column, having)))
    rows = column.to_pylist(maps_as_pydicts="strict")
    return [
        {kind: {name: value for name, value in row.items() if value is not None and not name.endswith("_parsed")}}
        for row in rows
    ]


def _live(checkpointed: Sequence[Action], commits: Sequence[Action]) -> dict[str, Action]:
    return _followed({action["add"]["path"]: action["add"] for action in checkpointed}, commits)


def _followed(adds: dict[str, Action], commits: Sequence[Action]) -> dict[str, Action]:
    for action in commits:
        if "remove" in action:
            adds.pop(action["remove"]["path"], None)
        elif "add" in action:
            adds[action["add"]["path"]] = action["add"]
    return adds
