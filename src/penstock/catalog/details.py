"""How a node is maintained, as it was decided when its view was planned: what Spark said of types, words for people.

It is kept as JSON, which is read and written here alone. What an older version did not write has a meaning all the
same, and what a newer one wrote is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from penstock.sql.statements import ANYWHERE, Placement
from penstock.vocabulary import Reason


@dataclass(frozen=True, kw_only=True)
class NodeDetails:
    """What a node's record holds beside what the catalog asks for.

    >>> details = NodeDetails.of_json({"incremental": False, "reason_code": "PIVOT", "schemas": {"t": ["a"]}, "new": 1})
    >>> details.reason_code, details.schemas, details.late, details.other
    ('PIVOT', {'t': ('a',)}, False, {'new': 1})
    """

    incremental: bool = False
    types: Mapping[str, str] = field(default_factory=dict)
    """Of the measures of its rule, as Spark said."""
    schemas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns that each table and view of the query had."""
    input_types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The columns that are read of each, with their types."""
    held_by_watermark: bool = False
    """Whether rows wait until their window has ended."""
    rule: str = ""
    operator: str = ""
    reads: str = ""
    estimated_rows: int | None = None
    late: bool = False
    """Whether it keeps the rows that came too late for its view."""
    lateness: tuple[tuple[Any, ...], ...] = ()
    """What may be how late: see ``plan.lateness``."""
    constructs: tuple[tuple[str, str], ...] = ()
    """What the node is made of in the user's words, and how each is kept."""
    reason_code: Reason | None = None
    reason: str = ""
    """Why it is recomputed at every change, if it is."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Nodes that have another name than their plan gives them: see ``engine.typed_nodes``."""
    placement: Placement = ANYWHERE
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those that the view was made under, as far as they are not the usual ones."""
    seal: str | None = None
    """Of a view's own node: of what and by whom the view was planned. See ``engine.planning``."""
    key: str | None = None
    """Of a read model: the column that tells its rows apart. When a row was written stands in ``updated_at``."""
    outside: tuple[str, ...] = ()
    """Of a view's own node: the names of what it reads that only Spark knows, and that has no versions."""
    other: Mapping[str, Any] = field(default_factory=dict)
    """What is known to another version only."""

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> NodeDetails:
        known = {name: value for name, value in kept.items() if name in _NAMES}
        read = {name: _READ[name](value) if name in _READ else value for name, value in known.items()}
        return cls(**read, other={name: value for name, value in kept.items() if name not in _NAMES})

    def to_json(self) -> dict[str, Any]:
        """What is kept; a node that is recomputed has a reason, and one that is maintained has the rest."""
        either = _MAINTAINED if self.incremental else _RECOMPUTED
        said = {name: getattr(self, name) for name in (*_ALWAYS, *either)}
        said |= {
            name: getattr(self, name)
            for name in ("renamed", "settings", "seal", "key", "outside")
            if getattr(self, name)
        }
        said |= {"placement": asdict(self.placement)} if self.placement != ANYWHERE else {}
        return {**said, **self.other}


_NAMES = {one.name for one in fields(NodeDetails)} - {"other"}
_ALWAYS = ("types", "schemas", "input_types", "incremental", "held_by_watermark", "rule", "operator", "reads")
_MAINTAINED = ("estimated_rows", "late", "lateness", "constructs")
_RECOMPUTED = ("reason_code", "reason")

_READ: Mapping[str, Callable[[Any], Any]] = {
    "schemas": lambda schemas: {name: tuple(columns) for name, columns in schemas.items()},
    "lateness": lambda lateness: tuple(tuple(late) for late in lateness),
    "constructs": lambda constructs: tuple((str(construct), str(how)) for construct, how in constructs),
    "reason_code": lambda code: None if code is None else Reason.recorded(code),
    "placement": Placement.read,
    "outside": tuple,
}
"""What is not in JSON as it is here."""
