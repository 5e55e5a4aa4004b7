"""Names in a FROM clause: which column a name means, by Spark's rules (case does not matter)."""

from __future__ import annotations

from collections.abc import Sequence
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
    starred: list[tuple[str, str]] = field(default_factory=list)
    """What ``*`` stands for: names and internal names."""

    @classmethod
    def of(cls, relation: str | None, columns: Sequence[tuple[str, str]]) -> Scope:
        return cls([Visible(relation, name, internal) for name, internal in columns], {}, list(columns))

    def joined(self, right: Scope, using: Sequence[str]) -> Scope:
        """Both sides of a join. In ``*``, columns of USING come first and once, then the rest of both sides."""
        names = {name.lower() for name in using}
        shared = [next(pair for pair in self.starred if pair[0].lower() == name.lower()) for name in using]
        rest = [pair for pair in self.starred + right.starred if pair[0].lower() not in names]
        merged = {**self.merged, **right.merged, **{name.lower(): internal for name, internal in shared}}
        return Scope(self.columns + right.columns, merged, shared + rest)

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
        """What ``*`` or ``relation.*`` stands for: names and internal names."""
        if relation is None:
            return self.starred
        return [(c.name, c.internal) for c in self.columns if (c.relation or "").lower() == relation.lower()]


def _fields(internal: str, fields: list[str]) -> exp.Expr:
    result: exp.Expr = column(internal)
    for name in fields:
        result = exp.Dot(this=result, expression=exp.to_identifier(name, quoted=True))
    return result
