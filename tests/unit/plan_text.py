"""Plans as short text, for tests: what each visible column is, in terms of the columns of tables."""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from penstock.plan import Plan, build, split
from penstock.plan.operators import Aggregate, Filter, Join, Operator, Project, Scan, Union, render
from penstock.sql.query import parse_query

SCHEMAS = {"t": ("a", "b", "k"), "u": ("k", "c", "d"), "w": ("a", "k", "Mixed")}


def plan(query: str) -> Plan:
    return build(parse_query(query), SCHEMAS)


def nodes(query: str, name: str = "v") -> tuple:  # type: ignore[type-arg]
    return split(plan(query), name)


def columns(query: str) -> dict[str, str]:
    """Visible name to meaning, in order. The second scan of a table is called ``t2``."""
    found = plan(query)
    meanings = _Meanings(found.root)
    return {name: meanings.of(internal) for name, internal in found.outputs}


def conditions(query: str) -> list[str]:
    """Every condition of filters and joins."""
    found = plan(query)
    return _Meanings(found.root).conditions


class _Meanings:
    def __init__(self, root: Operator):
        self._known: dict[str, str] = {}
        self._scans: Counter[str] = Counter()
        self.conditions: list[str] = []
        self._visit(root)

    def of(self, internal: str) -> str:
        return self._known[internal]

    def _text(self, expression: exp.Expression) -> str:
        wrapped = exp.paren(expression.unnest().copy())
        for node in list(wrapped.find_all(exp.Column)):
            text = self._known[node.name]
            plain = " " not in text or isinstance(node.parent, exp.Paren)
            node.replace(exp.Var(this=text if plain else f"({text})"))
        return render(wrapped.this)

    def _visit(self, op: Operator) -> None:
        for child in op.children:
            self._visit(child)
        match op:
            case Scan(relation=relation, stored=stored):
                self._scans[relation] += 1
                alias = relation + ("" if self._scans[relation] == 1 else str(self._scans[relation]))
                self._known.update({internal: f"{alias}.{name}" for internal, name in stored})
            case Project(outputs=outputs):
                self._known.update({internal: self._text(e) for internal, e in outputs})
            case Aggregate(keys=keys, measures=measures):
                self._known.update({internal: self._text(e) for internal, e in keys + measures})
            case Union(inputs=inputs, columns=names):
                for position, internal in enumerate(names):
                    self._known[internal] = " | ".join(self._known[child.columns[position]] for child in inputs)
            case Filter(condition=condition):
                self.conditions.append(self._text(condition))
            case Join(conditions=joined):
                self.conditions += [self._text(c) for c in joined]
