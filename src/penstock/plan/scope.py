"""Names in a FROM clause: which column a name means, by Spark's rules (case does not matter)."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from penstock.plan.operators import column
from penstock.plan.unsupported import Unsupported


@dataclass(frozen=True)
class Visible:
    """A column that can be named: by its own name, and by the alias of the relation it comes from."""

    relation: str | None
    name: str
    internal: str


@dataclass
class Scope:
    columns: list[Visible] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    """Columns that USING or NATURAL made one: lower-case name to internal name."""

    def lookup(self, name: str, relation: str | None = None) -> str | None:
        """The internal name of a column, or None; two candidates are an error that Spark reports in its own words."""
        name = name.lower()
        if relation is None and name in self.merged:
            return self.merged[name]
        found = {
            c.internal
            for c in self.columns
            if c.name.lower() == name and (relation is None or (c.relation or "").lower() == relation.lower())
        }
        if len(found) > 1:
            raise Unsupported("UNRESOLVED_NAME", f"the ambiguous name {name!r}")
        return next(iter(found), None)

    def has_relation(self, name: str) -> bool:
        return any((c.relation or "").lower() == name.lower() for c in self.columns)

    def resolve(self, node: exp.Column) -> exp.Expr | None:
        """The column that a name means, followed by the struct fields after it; None when there is no such column."""
        parts = [identifier.name for identifier in node.parts]
        if len(parts) > 1 and self.has_relation(parts[0]):
            internal = self.lookup(parts[1], parts[0])
            if internal is not None:
                return _fields(internal, parts[2:])
        internal = self.lookup(parts[0])
        return None if internal is None else _fields(internal, parts[1:])

    def star(self, relation: str | None = None) -> list[tuple[str, str]]:
        """What ``*`` or ``relation.*`` stands for: names and internal names. Merged columns come first and once."""
        if relation is not None:
            return [(c.name, c.internal) for c in self.columns if (c.relation or "").lower() == relation.lower()]
        first = [
            (next(c.name for c in self.columns if c.name.lower() == name), internal)
            for name, internal in self.merged.items()
        ]
        return first + [(c.name, c.internal) for c in self.columns if c.name.lower() not in self.merged]


def _fields(internal: str, fields: list[str]) -> exp.Expr:
    result: exp.Expr = column(internal)
    for name in fields:
        result = exp.Dot(this=result, expression=exp.to_identifier(name, quoted=True))
    return result
