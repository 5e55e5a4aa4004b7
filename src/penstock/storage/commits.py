"""What single commits of a Delta table did, as its log says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deltalake.exceptions import DeltaError

from penstock.storage.delta_log import HistoryGone, opened
from penstock.storage.files import files_of
from penstock.storage.log_listing import read_commits as read_commits_of
from penstock.storage.log_replay import actions_in


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The actions of one commit that matter to a reader of changes."""

    version: int
    adds: tuple[dict[str, Any], ...]
    removes: tuple[dict[str, Any], ...]
    changes: tuple[dict[str, Any], ...]
    """Files of the change data feed."""
    metadata: dict[str, Any] | None
    made_at: int = 0
    """In milliseconds, as far as the commit says so."""

    @property
    def changed(self) -> bool:
        return any(a.get("dataChange", True) for a in self.adds + self.removes)


def read_commits(path: str, since: int, until: int) -> list[Commit]:
    """The commits after ``since`` up to ``until``; ``HistoryGone`` when the log no longer holds them all."""
    versions = range(since + 1, until + 1)
    return [_commit(version, actions) for version, actions in zip(versions, _read(path, versions), strict=True)]


def _commit(version: int, actions: Sequence[dict[str, Any]]) -> Commit:
    return Commit(
        version=version,
        adds=tuple(a["add"] for a in actions if "add" in a),
        removes=tuple(a["remove"] for a in actions if "remove" in a),
        changes=tuple(a["cdc"] for a in actions if "cdc" in a),
        metadata=next((a["metaData"] for a in actions if "metaData" in a), None),
        made_at=next((int(a["commitInfo"].get("timestamp") or 0) for a in actions if "commitInfo" in a), 0),
    )


def actions_of(path: str, version: int) -> list[dict[str, Any]]:
    """All that a commit says."""
    return _read(path, [version])[0]


def _read(path: str, versions: Sequence[int]) -> list[list[dict[str, Any]]]:
    try:
        return [actions_in(data) for data in read_commits_of(files_of(path), versions)]
    except FileNotFoundError:
        raise HistoryGone(f"the log of {path!r} no longer holds all versions from {versions[0]} on") from None


def version_at(path: str, moment: datetime) -> int:
    """The version that a table had at a time; ``HistoryGone`` when it had none, or the log does not say."""
    table = opened(path)
    try:
        table.load_as_version(moment)
    except (DeltaError, OSError) as problem:
        raise HistoryGone(f"the version of {path!r} at {moment} is not known: {problem}") from None
    version = int(table.version())
    # For a time before the first version delta-rs gives the first.
    if version == 0 and any(commit.made_at > moment.timestamp() * 1000 for commit in read_commits(path, -1, 0)):
        raise HistoryGone(f"{path!r} had no version at {moment}")
    return version
