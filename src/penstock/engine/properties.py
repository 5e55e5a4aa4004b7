"""TBLPROPERTIES of a view: those of Delta are set on its table and honoured, or refused. Those of Penstock say where
its state is kept and what it is called in Spark's catalog. Others are kept and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock.catalog.published import PUBLISH
from penstock.errors import DefinitionError, nearest


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


# -- what is Penstock's own to honour ---------------------------------------------------------------------------------

_STATE, PUBLISH_AS = "penstock.state", "penstock.publish.as"
BESIDE, WITHIN = "beside", "within"
VIEW, TABLE = "view", "table"
_OWN: dict[str, tuple[str, ...]] = {_STATE: (WITHIN, BESIDE), PUBLISH: (), PUBLISH_AS: (VIEW, TABLE)}
"""Properties of ours, and the values that each takes; without any, it is a name."""


def own_property(properties: Mapping[str, str], name: str) -> str | None:
    """What a view says of a property of ours, however it is spelled."""
    found = next((value.strip() for given, value in properties.items() if given.lower() == name), None)
    return found.lower() if found is not None and _OWN[name] else found


def is_beside(properties: Mapping[str, str]) -> bool:
    """Whether a view's state is kept beside it, so that its table has the view's columns and no others."""
    return own_property(properties, _STATE) == BESIDE


def check_own(view: str, given: Iterable[tuple[str, str]]) -> None:
    """A property of ours that nobody knows, or a value that it does not take, is an error.

    >>> check_own("v", [("team", "sales"), ("Penstock.State", "BESIDE")])
    """
    for name, value in given:
        if not name.lower().startswith("penstock."):
            continue
        if name.lower() not in _OWN:
            raise DefinitionError(f"view {view!r}: there is no property {name!r}. {nearest(name, _OWN)}")
        takes = _OWN[name.lower()]
        if takes and value.strip().lower() not in takes:
            raise DefinitionError(
                f"view {view!r}: the property {name!r} is {' or '.join(map(repr, takes))}, not {value!r}."
            )
