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

from penstock.storage.files import Files
from penstock.storage.log_listing import LOG, known_files, read_commits

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


def read_state(files: Files, version: int) -> TableState:
    """All of a version."""
    checkpoint, commits = _read(files, version, ["add", "protocol", "metaData"])
    actions = [*_checkpointed(checkpoint, "protocol"), *_checkpointed(checkpoint, "metaData"), *commits]
    protocol = next((a["protocol"] for a in reversed(actions) if "protocol" in a), None)
    metadata = next((a["metaData"] for a in reversed(actions) if "metaData" in a), None)
    if protocol is None or metadata is None:
        raise UnknownLog(f"the log of {files.root!r} says nothing of its protocol or its columns")
    adds = _live(_checkpointed(checkpoint, "add"), commits)
    return TableState(protocol, metadata, adds)


def next_state(before: TableState, files: Files, version: int) -> TableState:
    """A version, from all of the one before it."""
    commit = _read_commits(files, [version])
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


def read_vectors(files: Files, version: int) -> dict[str, Action]:
    """The descriptors of a version's deletion vectors, by the path of their file."""
    checkpoint, commits = _read(files, version, ["add.path", "add.deletionVector"])
    live = _live(_checkpointed(checkpoint, "add", having="deletionVector"), commits)
    return vectors_among(live)


def read_partitions(files: Files, version: int) -> dict[str, dict[str, str | None]]:
    """The values of the partition columns that the log gives a version's files, by their path."""
    checkpoint, commits = _read(files, version, ["add.path", "add.partitionValues"])
    live = _live(_checkpointed(checkpoint, "add"), commits)
    return partitions_among(live)


def _read(files: Files, version: int, columns: Sequence[str]) -> tuple[pa.Table | None, list[Action]]:
    """The checkpoint to begin with, if there is one, and the actions after it; within a commit, removals first."""
    base = _newest_checkpoint(files, version)
    checkpoint = None
    if base is not None:
        try:
            with files.open(_checkpoint(base)) as source, pq.ParquetFile(source) as file:
                checkpoint = file.read(columns=[*columns, "sidecar"])
        except FileNotFoundError:
            raise UnknownLog(f"the checkpoint of version {base} of {files.root!r} is gone") from None
        if "sidecar" in checkpoint.column_names and checkpoint.column("sidecar").null_count < checkpoint.num_rows:
            raise UnknownLog(f"the checkpoint of version {base} of {files.root!r} is spread over other files")
    return checkpoint, _read_commits(files, range(0 if base is None else base + 1, version + 1))


def _read_commits(files: Files, versions: Sequence[int]) -> list[Action]:
    """The actions of commits, of each the removals first."""
    try:
        found = read_commits(files, versions)
    except FileNotFoundError:
        raise UnknownLog(f"the log of {files.root!r} does not hold all versions up to {versions[-1]}") from None
    return [action for data in found for action in sorted(actions_in(data), key=lambda action: "remove" not in action)]


def actions_in(commit: bytes) -> list[Action]:
    return [json.loads(line) for line in commit.split(b"\n") if line.strip()]  # Unicode has more ends of lines


def _newest_checkpoint(files: Files, version: int) -> int | None:
    """The version of the last checkpoint that is not too new. A long log is listed only if its last one is."""
    if files.local:
        with suppress(FileNotFoundError, ValueError, KeyError):
            last = json.loads(files.read(f"{LOG}/_last_checkpoint"))
            if last["version"] <= version and files.exists(_checkpoint(last["version"])):
                return int(last["version"])
    names = files.names(LOG) if files.local else known_files(files)
    matches = [match for match in map(_CHECKPOINT.fullmatch, names) if match and int(match[1]) <= version]
    newest = max(matches, key=lambda match: (int(match[1]), match[2] == ""), default=None)
    if newest is None:
        return None
    if newest[2]:
        raise UnknownLog(f"the checkpoint {newest[0]!r} is not in one piece")
    return int(newest[1])


def _checkpoint(version: int) -> str:
    return f"{LOG}/{version:020d}.checkpoint.parquet"


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
