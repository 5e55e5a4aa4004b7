"""Names in a FROM clause: which column a name means, by Spark's rules (case does not matter)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.plan.operators import column, names_in
from penstock.plan.unsupported import Unsupported
from penstock.vocabulary import Reason


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
    outer: Scope | None = None
    """The names of the query around a subquery; they are asked last."""

    @classmethod
    def of(cls, relation: str | None, columns: Sequence[tuple[str, str]]) -> Scope:
        return cls([Visible(relation, name, internal) for name, internal in columns], {}, list(columns))

    def joined(self, right: Scope, using: Mapping[str, str]) -> Scope:
        """Both sides of a join. In ``*``, columns of USING come first and once, then the rest of both sides.

        ``using`` maps each column of USING to the internal name that it has behind the join.
        """
        names = {name.lower() for name in using}
        spelled = {name.lower(): name for name, _ in self.starred}
        shared = [(spelled[name.lower()], internal) for name, internal in using.items()]
        rest = [pair for pair in self.starred + right.starred if pair[0].lower() not in names]
        merged = {**self.merged, **right.merged, **{name.lower(): internal for name, internal in shared}}
        return Scope(self.columns + right.columns, merged, shared + rest)

    def within(self, outer: Scope | None) -> Scope:
        """These names, and behind them those of the query around."""
        return replace(self, outer=outer)

    def renamed(self, names: Mapping[str, str]) -> Scope:
        """The same names for columns that are called otherwise inside."""
        return replace(
            self,
            columns=[replace(c, internal=names.get(c.internal, c.internal)) for c in self.columns],
            merged={name: names.get(internal, internal) for name, internal in self.merged.items()},
            starred=[(name, names.get(internal, internal)) for name, internal in self.starred],
        )

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
            raise Unsupported(Reason.UNRESOLVED_NAME, f"the ambiguous name {name!r}")
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


@dataclass(kw_only=True)
class NotedScope(Scope):
    """Names that note which of them were asked for."""

    used: set[str] = field(default_factory=set)

    @classmethod
    def noting(cls, scope: Scope) -> NotedScope:
        return cls(scope.columns, scope.merged, scope.starred, scope.outer)

    def resolve(self, node: exp.Column) -> exp.Expr | None:
        found = super().resolve(node)
        self.used |= names_in(found) if found is not None else set()
        return found


def _fields(internal: str, fields: list[str]) -> exp.Expr:
    result: exp.Expr = column(internal)
    for name in fields:
        result = exp.Dot(this=result, expression=exp.to_identifier(name, quoted=True))
    return result


def resolve_columns(
    root: exp.Expr, columns: Sequence[exp.Column], scope: Scope, aliases: Mapping[str, exp.Expr]
) -> None:
    """Replace names by internal columns: those of the scope, else an earlier alias, else those of the query around."""
    for node in columns:
        new = scope.resolve(node)
        if new is None and node.parts[0].name.lower() in aliases:
            if len(node.parts) > 1:
                raise Unsupported(Reason.UNRESOLVED_NAME, f"the field {node.sql()!r} of an alias")
            new = exp.paren(aliases[node.name.lower()].copy())
        around = scope.outer
        while new is None and around is not None:
            new, around = around.resolve(node), around.outer
        if new is None:
            raise Unsupported(Reason.UNRESOLVED_NAME, f"the unknown name {node.sql()!r}")
        node.replace(new)
