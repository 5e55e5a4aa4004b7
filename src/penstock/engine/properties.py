"""TBLPROPERTIES of a view: those of Delta are set on its table and honoured, or refused. Others are kept and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.errors import DefinitionError


@dataclass(frozen=True)
class _Known:
    """A property of Delta that a view may have: the values that it takes, and what to do about others."""

    name: str
    takes: Callable[[str], bool]
    otherwise: str
    is_set: Callable[[str], bool] = lambda value: True
    """Whether a table says so from the beginning."""


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value.lower() in values


def _is_count(value: str) -> bool:
    return value.isdecimal() and int(value) > 0


_KNOWN = {
    known.name.lower(): known
    for known in (
        # Vectors come with the first PATCH: a table that has none can be read by every reader.
        _Known("delta.enableDeletionVectors", _one_of("true", "false"), "It is 'true' or 'false'.", _one_of("false")),
        _Known("delta.checkpointInterval", _is_count, "It is a number of commits, from 1."),
        _Known(
            "delta.enableChangeDataFeed", _one_of("false"),
            "A view's table has no change feed. Read what changed with db.changes(view, since=epoch).",
        ),
        _Known("delta.appendOnly", _one_of("false"), "A refresh must be able to remove rows."),
        _Known("delta.columnMapping.mode", _one_of("none"), "The columns of a view are stored under their own names."),
        _Known(
            "delta.enableExpiredLogCleanup", _one_of("false"),
            "How long the past of a view is kept is a setting of the warehouse: SET retention = '30 days'.",
        ),
    )
}  # fmt: skip

_REFUSED = {
    "delta.logretentionduration": "How long the past of a view is kept is a setting of the warehouse: SET retention.",
    "delta.deletedfileretentionduration": "How long old files are kept is a setting of the warehouse: SET retention.",
    "delta.dataskippingnumindexedcols": "Statistics are kept of all columns: refreshes skip files by them.",
    "delta.dataskippingstatscolumns": "Statistics are kept of all columns: refreshes skip files by them.",
    "delta.minreaderversion": "A table's protocol is what its content needs.",
    "delta.minwriterversion": "A table's protocol is what its content needs.",
}


def delta_properties(view: str, given: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The properties that a view's table is made with; one that could not be honoured is an error.

    >>> delta_properties("v", [("delta.enabledeletionvectors", "FALSE"), ("team", "sales")])
    (('delta.enableDeletionVectors', 'false'),)
    """
    found = {}
    for name, value in given:
        if not name.lower().startswith("delta."):
            continue
        known = _KNOWN.get(name.lower())
        if known is None:
            why = _REFUSED.get(name.lower(), "Penstock writes the table, and does not know it.")
            if name.lower().startswith("delta.feature."):
                why = "A table's protocol is what its content needs."
            raise DefinitionError(f"view {view!r}: the property {name!r} cannot be set. {why} Leave it out.")
        if not known.takes(value.strip()):
            raise DefinitionError(f"view {view!r}: the property {name!r} cannot be {value!r}. {known.otherwise}")
        if known.is_set(value.strip()):
            found[known.name] = value.strip().lower()
    return tuple(sorted(found.items()))
