"""A row of the history as a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.catalog.records import HistoryRecord
from penstock.catalog.tables import utc
from penstock.vocabulary import Action, Reason, Status, Strategy, Word


def history_of(row: object) -> HistoryRecord:
    fields = dict(row)  # type: ignore[call-overload]
    fields.pop("id")
    fields["started_at"] = utc(fields["started_at"])
    fields["times"] = fields["times"] or 1
    fields["since"] = fields["since"] and utc(fields["since"])
    return HistoryRecord(**{**fields, **_words(fields)})


def _words(row: Mapping[str, Any]) -> dict[str, Word | None]:
    """What a row says in words that may be those of another version."""
    kinds: dict[str, type[Word]] = {"status": Status, "action": Action, "strategy": Strategy, "reason": Reason}
    return {name: None if row[name] is None else kind.recorded(row[name]) for name, kind in kinds.items()}
