"""What a commit to a view's table says of itself: whose work it is, and which versions of its sources it stands for."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

RUN, TOLD = "penstock.run", "userMetadata"
"""Names in a commit's ``commitInfo``; the second is the one that DESCRIBE HISTORY shows."""


@dataclass(frozen=True)
class Run:
    """One epoch's work on one node: a word that its files and commits have in their names and metadata."""

    name: str
    sources: Mapping[str, int] = field(default_factory=dict)
    """The versions of the tables, by name, that the node's rows are its query's rows on."""

    @classmethod
    def begun(cls, sources: Mapping[str, int] | None = None) -> Run:
        return cls(uuid.uuid4().hex[:12], sources or {})

    def metadata(self) -> dict[str, str]:
        """
        >>> Run("4f1c", {"orders": 3}).metadata()["userMetadata"]
        '{"penstock": {"run": "4f1c", "sources": {"orders": 3}}}'
        """
        told = {"run": self.name, "sources": dict(sorted(self.sources.items()))}
        return {RUN: self.name, TOLD: json.dumps({"penstock": told}, ensure_ascii=False)}
