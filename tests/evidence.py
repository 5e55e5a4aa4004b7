"""What a run of the tests has shown, in files under build/: docs/operators.md is made of it, and of nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

_PLACE = Path(__file__).parents[1] / "build" / "evidence"


@dataclass(frozen=True)
class Evidence:
    """A view that a test took through changes and found right: how it is maintained, and what its refreshes did."""

    section: str
    name: str
    code: str | None
    rules: list[str]
    reads: list[str]
    actions: list[str]


def forget(topic: str) -> None:
    """What an earlier run has shown counts no more."""
    (_PLACE / f"{topic}.json").unlink(missing_ok=True)


def save(topic: str, found: list[Evidence]) -> None:
    _PLACE.mkdir(parents=True, exist_ok=True)
    (_PLACE / f"{topic}.json").write_text(json.dumps([asdict(item) for item in found], indent=1))


def load(topic: str) -> list[Evidence]:
    """What the last run has shown on a topic; nothing when it did not get to the end."""
    path = _PLACE / f"{topic}.json"
    return [Evidence(**item) for item in json.loads(path.read_text())] if path.exists() else []
