"""Queries as sqlglot trees: parsing with errors that point at the place, and finding and replacing table names."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from penstock.errors import SqlError
from penstock.sql.determined import determine, determine_limits, has_open_limits, is_open
from penstock.sql.dialect import SparkSql, quoted
from penstock.sql.event_time import (
    lengths_of_windows,
    rewrite_event_time,
    rewrite_windows,
    uses_event_time,
    uses_windows,
    windows_put_back,
)
from penstock.sql.json_functions import rewrite_json, uses_json
from penstock.sql.lexer import error_at, tokenize
from penstock.sql.names import DEFAULT, OWN, QualifiedName, key_of
from penstock.sql.rewriting import Rewriting

# sqlglot warns on standard error about statements it hands through; what matters to the user is raised here instead.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def parse_query(text: str) -> exp.Query:
    """The tree of a query, in Spark's dialect, with event-time functions spelled in Spark's own."""
    tree = _parse(whole(text))
    if isinstance(tree, exp.Values):
        return exp.select("*").from_(tree.copy())
    if not isinstance(tree, exp.Query):
        raise error_at(text, 0, "expected a query")
    tree = _in_spark_terms(tree).tree
    return rewrite_windows(tree) if uses_windows(tree) else tree


def parse_written(text: str) -> exp.Expr:
    """The tree of a text as it was written."""
    return _parse(whole(text)).copy()


def _in_spark_terms(tree: exp.Query, *, limits: bool = True) -> Rewriting:
    rewriting = Rewriting(tree)
    if uses_json(tree):
        rewrite_json(rewriting)
    if limits and has_open_limits(tree):
        determine_limits(rewriting)
    if uses_event_time(tree):
        rewrite_event_time(rewriting)
    if is_open(tree):
        determine(rewriting)
    return rewriting


def spark_text(text: str, *, limits: bool = True) -> str:
    """A view's query as Spark reads it: the user's own text, but for what Spark does not have or leaves open.

    ``limits``: whether a LIMIT without ORDER BY takes the first rows of all, or any.
    """
    text = whole(text)
    tree = _parse(text)
    settled = limits and has_open_limits(tree)
    if isinstance(tree, exp.Query) and (settled or uses_json(tree) or uses_event_time(tree) or is_open(tree)):
        return _in_spark_terms(tree, limits=limits).text(text)
    return text


def round_trip(text: str) -> str:
    """The query as our parser read it, in Spark's terms, to be compared with ``spark_text``."""
    tree = _parse(whole(text))
    if isinstance(tree, exp.Query):
        tree = _in_spark_terms(tree).tree
    return tree.sql(dialect=SparkSql, comments=False)


def windows_round_trip(text: str) -> str:
    """The query as it is planned, with Spark's own windows put back, to be compared with ``spark_text`` too."""
    return windows_put_back(parse_query(text)).sql(dialect=SparkSql, comments=False)


def windows_spelled_out(text: str) -> list[str]:
    """The lengths of Spark's windows that are planned in other functions; see ``rewrite_windows``."""
    return lengths_of_windows(parse_query(text))


def whole(text: str) -> str:
    """TABLE t is short for SELECT * FROM t."""
    return re.sub(r"^\s*TABLE\s", "SELECT * FROM ", text, flags=re.IGNORECASE)


def check_query(text: str, start: int, stop: int) -> None:
    """Raise a syntax error, in the coordinates of the whole text, if the part of it is no query."""
    try:
        _parse(whole(text[start:stop]))
    except SqlError:
        blank = "".join(c if c == "\n" else " " for c in text[:start])
        _parse(blank + text[start:stop], shown=text)
        raise


@lru_cache(maxsize=200)  # a view's query is looked at from many sides while it is planned, a script's one by one later
def _parse(text: str, shown: str | None = None) -> exp.Expr:
    """The tree of a text, which nobody may change: whoever reads the text again is given the same one."""
    try:
        trees = sqlglot.parse(text, dialect=SparkSql)
    except ParseError as problem:
        detail = problem.errors[0]
        line, column = detail.get("line") or 1, detail.get("col") or 1
        offset = sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - 1
        start = offset - len(detail.get("highlight") or "") + 1
        raise error_at(
            shown or text, max(min(start, len(text)), 0), _plain_words(str(detail.get("description")))
        ) from None
    except TokenError as problem:
        raise SqlError(f"the statement cannot be read: {problem}") from None
    tree = trees[0] if trees else None
    if tree is None:
        raise SqlError("the query is empty")
    return tree


def _plain_words(description: str) -> str:
    if description.startswith("Required keyword"):
        return "something is missing here"
    if "Unexpected token" in description:
        return "this is not expected here"
    return description.split(" but got <Token")[0].rstrip(".").replace("Expecting", "expected", 1)


def lost_names(text: str, names: Collection[str]) -> list[str]:
    """Which of these (lower-case) names the text has more often than its tree: an argument that the parser passed over.

    >>> lost_names("SELECT PERCENTILE(a, 0.5, weight) FROM t", {"a", "weight"})
    ['weight']
    """

    def counted(source: str) -> Counter[str]:
        words = (t.text.strip("`").lower() for t in tokenize(source) if t.kind in ("word", "quoted"))
        return Counter(word for word in words if word in names)

    text = whole(text)
    return sorted(counted(text) - counted(_parse(text).sql(dialect=SparkSql, comments=False)))


def table_names(tree: exp.Expr) -> list[str]:
    """The names of the tables and views that a query reads, each once, in order; names of CTEs are not tables.

    >>> table_names(parse_query("WITH b AS (SELECT * FROM a) SELECT * FROM b JOIN c USING (k)"))
    ['a', 'c']
    """
    found: dict[str, str] = {}
    for table in sorted(tables(tree), key=lambda t: t.this.meta.get("start", 0)):
        found.setdefault(key_of(name_of(table)), name_of(table))
    return list(found.values())


def name_of(table: exp.Table) -> str:
    """
    >>> [name_of(table) for table in tables(parse_query("SELECT * FROM orders JOIN gold.Totals JOIN Penstock.Views"))]
    ['orders', 'gold.Totals', 'penstock.views']
    """
    name = str(QualifiedName.of([part.name for part in table.parts], table.sql(dialect=SparkSql)))
    return key if (key := key_of(name)).startswith(OWN) else name


def tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Every reference to a real table in a tree. What a hint names is no table, but how the query calls one."""
    for table in tree.find_all(exp.Table):
        if table.find_ancestor(exp.Hint):
            continue
        if isinstance(table.this, exp.Dot):  # more parts than a name has
            name_of(table)
        if isinstance(table.this, exp.Identifier) and (table.args.get("db") or not _is_cte(table)):
            yield table


def _is_cte(table: exp.Table) -> bool:
    name = table.name.lower()
    node: exp.Expr = table
    while node.parent is not None:
        parent = node.parent
        with_ = parent.args.get("with_")
        if with_ is not None:
            inside = node is with_
            for cte in with_.expressions:
                if inside and _contains(cte, table):
                    if cte.alias_or_name.lower() == name and with_.args.get("recursive"):
                        return True
                    break
                if cte.alias_or_name.lower() == name:
                    return True
        node = parent
    return False


def _contains(root: exp.Expr, node: exp.Expr) -> bool:
    above: exp.Expr | None = node
    while above is not None and above is not root:
        above = above.parent
    return above is root


_SAMPLE = re.compile(r"\s*TABLESAMPLE\s*\([^()]*\)(\s*REPEATABLE\s*\([^()]*\))?", re.IGNORECASE)


def behind_sample(text: str, end: int) -> int:
    """Where the alias of a table goes whose name ends here."""
    behind = _SAMPLE.match(text, end)
    return behind.end() if behind else end


def substitute_tables(text: str, replace: Callable[[str], str | None]) -> str:
    """The text with each table's name replaced, every other character kept; a name without an alias keeps its name.

    A name for which there is nothing else stays.

    >>> substitute_tables("SELECT t.a FROM t JOIN u AS v JOIN w", {"t": "x_t", "u": "x_u"}.get)
    'SELECT t.a FROM x_t AS `t` JOIN x_u AS v JOIN w'
    """
    edits = []
    text = whole(text)
    for table in tables(_parse(text)):
        new = replace(name_of(table))
        if new is None:
            continue
        end = table.this.meta["end"] + 1
        edits.append((table.parts[0].meta["start"], end, new))
        if not table.alias and not isinstance(table.parent, exp.Insert):
            place = behind_sample(text, end)
            edits.append((place, place, f" AS {quoted(table.name)}"))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def written_out(text: str, body: Callable[[str], str | None]) -> str:
    """The text with the names of some relations replaced by subqueries; ``body`` gives that of a name, if it has one.

    >>> print(written_out("SELECT v.a FROM v", {"v": "SELECT 1 AS a"}.get))
    SELECT v.a FROM (SELECT 1 AS a
    ) AS `v`
    """
    text = whole(text)
    tree = _parse(text)
    edits = []
    for table in tables(tree):
        query = body(name_of(table))
        if query is None:
            continue
        _check_not_hidden(tree, query, name_of(table))
        end = table.this.meta["end"] + 1
        alias = "" if table.alias else f" AS {quoted(table.name)}"
        edits.append((table.parts[0].meta["start"], end, f"({query}\n){alias}"))  # a comment may end it
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _check_not_hidden(tree: exp.Expr, query: str, name: str) -> None:
    """What a query reads must mean the same in the place of its name, where a CTE may have the same name."""
    reads = {key_of(name_of(table)) for table in tables(_parse(whole(query)))}
    for cte in tree.find_all(exp.CTE):
        if QualifiedName(DEFAULT, cte.alias_or_name).key in reads:
            raise SqlError(
                f"the query has a CTE {cte.alias_or_name!r}, and {name!r} reads a table of that name. "
                "Give the CTE another name."
            )
