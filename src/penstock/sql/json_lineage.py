"""Which expressions of a query are JSON documents: by what made them, through subqueries, CTEs and set operations."""

from __future__ import annotations

import json

from sqlglot import exp

BUILDERS = ("JSONB_BUILD_OBJECT", "JSONB_BUILD_ARRAY", "JSONB_AGG")
MARK = "__JSON"
"""A function that only says of its argument that it is JSON; so a stored document is known where it is read."""
JSON = "json"
"""What the nodes of a tree are marked with that are documents."""

_THROUGH = (
    exp.Paren, exp.Alias, exp.Min, exp.Max, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.AnyValue,
    exp.ArgMax, exp.ArgMin, exp.Lag, exp.Lead, exp.NthValue, exp.Window, exp.Filter, exp.IgnoreNulls,
    exp.RespectNulls, exp.Nullif,
)  # fmt: skip
"""Of what these choose among, all is the same kind of thing."""


def mark_documents(tree: exp.Expr) -> None:
    """Mark the nodes of a tree whose values are documents."""
    lineage = _Lineage()
    for node in list(tree.walk()):
        if isinstance(node, exp.Condition) and lineage.is_json(node):
            node.meta[JSON] = True


def document_columns(query: exp.Expr, count: int) -> list[int]:
    """Which of a query's columns are documents, by their places; none if it has others than are known (``SELECT *``).

    >>> import sqlglot
    >>> document_columns(sqlglot.parse_one("SELECT a, d.x FROM (SELECT a, jsonb_agg(b) AS x FROM t) d"), 2)
    [1]
    """
    found = _Lineage().outputs(query)
    return [place for place, (_, is_json) in enumerate(found) if is_json] if len(found) == count else []


class _Lineage:
    def __init__(self) -> None:
        self._outputs: dict[int, list[tuple[str, bool]]] = {}

    def is_json(self, node: exp.Expr) -> bool:
        match node:
            case exp.Anonymous():
                return str(node.this).upper() in (*BUILDERS, MARK)
            case exp.JSONFormat():
                return True
            case exp.Column():
                return self._column(node)
            case exp.Coalesce():
                return self._all([node.this, *node.expressions])
            case exp.If():
                return self._all([node.args["true"], node.args.get("false")])
            case exp.Case():
                return self._all([*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")])
            case exp.Subquery() if isinstance(node.this, exp.Query):
                found = self.outputs(node.this)
                return len(found) == 1 and found[0][1]
        return isinstance(node, _THROUGH) and isinstance(node.this, exp.Expr) and self.is_json(node.this)

    def _all(self, branches: list[exp.Expr | None]) -> bool:
        """Whether each of some values is JSON or NULL, and not each of them NULL or written down."""
        given = [branch for branch in branches if branch is not None and not isinstance(branch, exp.Null)]
        documents = [branch for branch in given if self.is_json(branch)]
        return bool(documents) and all(branch in documents or _is_written_json(branch) for branch in given)

    def _column(self, column: exp.Column) -> bool:
        name, table = column.name.lower(), column.table.lower()
        select = column.find_ancestor(exp.Select)
        while select is not None:
            for source in _sources(select):
                if table in ("", source.alias_or_name.lower()):
                    columns = self._of_source(source)
                    if name in columns:
                        return columns[name]
            select = _around(select)
        return False

    def _of_source(self, source: exp.Expr) -> dict[str, bool]:
        """The columns of a relation in FROM; of one that is stored nothing is known."""
        named: exp.Expr | None = _cte(source) if isinstance(source, exp.Table) else source
        query = named.this if isinstance(named, exp.CTE | exp.Subquery | exp.Lateral) else None
        while isinstance(query, exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Query) or named is None:
            return {}
        found = self.outputs(query)
        names = named.args["alias"].columns if named.args.get("alias") is not None else []
        if len(names) == len(found):
            return {name.name.lower(): is_json for name, (_, is_json) in zip(names, found, strict=True)}
        return dict(found)

    def outputs(self, query: exp.Expr) -> list[tuple[str, bool]]:
        """The columns of a query, and which of them are documents. Of a star, only those that are known."""
        if id(query) not in self._outputs:
            self._outputs[id(query)] = []  # one that reads itself
            self._outputs[id(query)] = self._found(query)
        return self._outputs[id(query)]

    def _found(self, query: exp.Expr) -> list[tuple[str, bool]]:
        if isinstance(query, exp.Subquery):
            return self.outputs(query.this)
        if isinstance(query, exp.SetOperation):
            left, right = self.outputs(query.this), self.outputs(query.expression)
            if len(left) != len(right):
                return [(name, False) for name, _ in left]
            return [(name, one and other) for (name, one), (_, other) in zip(left, right, strict=True)]
        if not isinstance(query, exp.Select):
            return []
        found: list[tuple[str, bool]] = []
        for e in query.expressions:
            if isinstance(e, exp.Star) or (isinstance(e, exp.Column) and isinstance(e.this, exp.Star)):
                table = e.table.lower() if isinstance(e, exp.Column) else ""
                for source in _sources(query):
                    if table in ("", source.alias_or_name.lower()):
                        found += self._of_source(source).items()
            else:
                found.append((e.alias_or_name.lower(), self.is_json(e)))
        return found


def _around(select: exp.Select) -> exp.Select | None:
    """The query whose columns a subquery can use; none for one that stands in FROM."""
    above = select.parent
    while above is not None and not isinstance(above, exp.Select):
        if isinstance(above, exp.From | exp.Join | exp.CTE):
            return None
        above = above.parent
    return above


def _sources(select: exp.Select) -> list[exp.Expr]:
    """What a query reads in FROM, with joins in brackets taken apart."""
    first = select.args.get("from_")
    found = [first.this] if first is not None else []
    found += [join.this for join in select.args.get("joins") or []]
    for source in list(found):
        found += [join.this for join in source.args.get("joins") or []]
    return found


def _cte(table: exp.Table) -> exp.CTE | None:
    """The CTE that a name means, if it is one's."""
    node: exp.Expr | None = table
    while node is not None:
        with_ = node.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            if cte.alias_or_name.lower() == table.name.lower() and not table.args.get("db"):
                return cte if isinstance(cte, exp.CTE) else None
        node = node.parent
    return None


def _is_written_json(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Literal) or not node.is_string:
        return False
    try:
        json.loads(node.this)
    except ValueError:
        return False
    return True
