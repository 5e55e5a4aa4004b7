"""Names in a statement's text as they are meant: in the schema that was current where the statement was made.

This happens once, at the door. Behind it a name without a schema is in ``default``, wherever the text is read again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.as_of import clauses_of_past
from penstock.sql.dialect import SparkSql, quoted
from penstock.sql.lexer import tokenize
from penstock.sql.names import DEFAULT, QualifiedName, is_outside, path_of
from penstock.sql.query import behind_sample, name_of, parse_written, tables, whole

_LONG = re.compile(r"[\w`]\s*\.\s*(\w+|`(?:[^`]|``)*`)\s*\.\s*[\w`*]")
"""What may be a column with its table's schema before it."""
_KEYWORDS = frozenset(SparkSql.tokenizer_class.KEYWORDS)
_SCOPES = (exp.Select, exp.Update, exp.Delete, exp.Merge)

_Edit = tuple[int, int, str]


def qualified(text: str, current: str) -> str:
    """The text with the ``current`` schema before names without one, and columns told by what their tables are called.

    Behind the door Spark sees other names of the tables, so ``gold.orders.id`` would mean nothing to it.

    >>> qualified("WITH t AS (SELECT 1 AS x) SELECT x FROM t JOIN orders JOIN silver.b", "gold")
    'WITH t AS (SELECT 1 AS x) SELECT x FROM t JOIN `gold`.orders JOIN silver.b'
    >>> qualified("SELECT gold.a.x, s.f.g FROM gold.a JOIN s", "default")
    'SELECT `a`.x, s.f.g FROM gold.a JOIN s'
    >>> qualified("SELECT gold.a.x FROM gold.a JOIN silver.a ON gold.a.k = silver.a.k", "default")
    'SELECT `gold.a`.x FROM gold.a AS `gold.a` JOIN silver.a AS `silver.a` ON `gold.a`.k = `silver.a`.k'
    """
    if current == DEFAULT and not _has_long(text):
        return text
    return _rewritten(text, QualifiedName(current, ""))


def in_catalog(text: str, catalog: str, schema: str, functions: Collection[str] = ()) -> str:
    """A query of Spark's, in which names without a catalog and a schema are in these, as it is meant anywhere.

    ``functions``: those of that schema that it calls, in small letters.

    >>> in_catalog("SELECT gold.a.x FROM a JOIN silver.b JOIN lake.c.d JOIN parquet.`/e`", "spark_catalog", "gold")
    'SELECT `a`.x FROM `spark_catalog`.`gold`.a JOIN `spark_catalog`.silver.b JOIN lake.c.d JOIN parquet.`/e`'
    >>> in_catalog("SELECT x FROM delta.`/e`", "spark_catalog", "gold")
    'SELECT x FROM delta.`/e`'
    >>> in_catalog("SELECT Tax(sum(x)), b.tax(x), tax FROM lake.c.d", "spark_catalog", "gold", {"tax"})
    'SELECT `spark_catalog`.`gold`.Tax(sum(x)), b.tax(x), tax FROM lake.c.d'
    """
    return _rewritten(text, QualifiedName(schema, "", catalog), functions)


def functions_called(text: str) -> set[str]:
    """What may be functions that are called by their names alone, in small letters.

    >>> sorted(functions_called("SELECT a(`B c`(x)), d.e(x), f FROM (SELECT 'g(h)', x IN (1)) AS i"))
    ['a', 'b c']
    """
    return {name for _, name in _calls(text)}


def _calls(text: str) -> Iterator[tuple[int, str]]:
    tokens = tokenize(text)
    for i, token in enumerate(tokens[:-1]):
        if tokens[i + 1].text != "(" or (i and tokens[i - 1].text == "."):
            continue
        if token.kind == "quoted":
            yield token.start, token.text[1:-1].replace("``", "`").lower()
        elif token.kind == "word" and token.upper not in _KEYWORDS:
            yield token.start, token.text.lower()


def _rewritten(text: str, home: QualifiedName, functions: Collection[str] = ()) -> str:
    text = whole(text)
    past = list(clauses_of_past(text))
    shown = text
    for start, end in past:
        shown = shown[:start] + " " * (end - start) + shown[end:]
    try:
        tree = parse_written(shown)
        edits = [*_homes(tree, home), *_columns(tree, shown, home, dict(past))]
        before = "".join(f"{quoted(each)}." for each in home.parts[:-1])
        edits += [(start, start, before) for start, name in _calls(shown) if name in functions] if functions else []
    except SqlError:  # whoever reads it next says so, or knows better
        return text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _has_long(text: str) -> bool:
    """Whether a name of three parts stands anywhere but in a text; most statements have none, and may be long."""
    if not _LONG.search(text):
        return False
    tokens = tokenize(text)
    named = [token.kind in ("word", "quoted") for token in tokens]
    dots = [i for i, token in enumerate(tokens[:-3]) if token.text == "." and i]
    return any(named[i - 1] and named[i + 1] and tokens[i + 2].text == "." for i in dots)


def _homes(tree: exp.Expr, home: QualifiedName) -> Iterator[_Edit]:
    """The schema before names without one, and the catalog, if there is one, before names without that."""
    for table in tables(tree):
        said, name = len(table.parts), name_of(table)
        missing = list(home.parts[: len(home.parts) - said])
        if missing and not (said == 1 and missing == [DEFAULT]) and not is_outside(name) and path_of(name) is None:
            start = table.parts[0].meta["start"]
            yield start, start, "".join(f"{quoted(each)}." for each in missing)


def _columns(tree: exp.Expr, text: str, home: QualifiedName, past: dict[int, int]) -> Iterator[_Edit]:
    scopes: dict[int, list[exp.Table]] = {}
    for table in tables(tree):
        if not table.alias:
            scopes.setdefault(id(table.find_ancestor(*_SCOPES)), []).append(table)
    columns = [column for column in tree.find_all(exp.Column) if len(column.parts) > 1]
    told = [(c, *one) for c in columns if len(c.parts) > 2 and (one := _told(c, scopes, home)) is not None]
    seen = Counter(one.name.lower() for those in scopes.values() for one in those)
    seen.update(one.parent.alias_or_name.lower() for one in tree.find_all(exp.TableAlias) if one.parent is not None)
    aliases: dict[int, str] = {}
    for table in _to_name([table for _, table, _ in told], scopes):
        alone = seen[table.name.lower()] == 1
        aliases[id(table)] = table.name if alone else _alias(_name(table, home), seen)
        if not alone:
            end = behind_sample(text, table.this.meta["end"] + 1)
            after = next((past[start] for start in past if not text[end:start].strip() and start >= end), end)
            yield after, after, f" AS {quoted(aliases[id(table)])}"
    for column, table, said in told:
        yield column.parts[0].meta["start"], column.parts[said - 1].meta["end"] + 1, quoted(aliases[id(table)])
    done, others = {id(column) for column, _, _ in told}, _other_names(tree, scopes)
    for column in columns:
        mine = None if id(column) in done else _called(column, scopes, others, home)
        if mine is not None and aliases.get(id(mine), mine.name) != mine.name:
            first = column.parts[0].meta
            yield first["start"], first["end"] + 1, quoted(aliases[id(mine)])


def _to_name(told: Iterable[exp.Table], scopes: dict[int, list[exp.Table]]) -> list[exp.Table]:
    """These tables, each once, and those beside them that are called the same: what calls one is to mean no other."""
    called = {(id(table.find_ancestor(*_SCOPES)), table.name.lower()) for table in told}
    return [table for scope, there in scopes.items() for table in there if (scope, table.name.lower()) in called]


def _alias(name: QualifiedName, taken: Counter[str]) -> str:
    """What nothing else in the statement is called; the schema is in it for whoever reads it in an error."""
    alias = f"{name.schema}.{name.name}"
    while alias.lower() in taken:
        alias += "_"
    taken[alias.lower()] += 1
    return alias


def _name(table: exp.Table, home: QualifiedName) -> QualifiedName:
    name = QualifiedName.of([part.name for part in table.parts], table.sql(dialect=SparkSql), home.schema)
    return name if name.catalog else QualifiedName(name.schema, name.name, home.catalog)


def _told(column: exp.Column, scopes: dict[int, list[exp.Table]], home: QualifiedName) -> tuple[exp.Table, int] | None:
    """The table that the first parts of a column's name mean, if they mean one, and how many these are."""
    parts = tuple(part.name.lower() for part in column.parts)
    for scope in _around(column):
        named = [(table, _whole(_name(table, home))) for table in scopes.get(id(scope), ())]
        for said in (3, 2):
            found = [table for table, name in named if len(parts) > said and name[-said:] == parts[:said]]
            if found:
                return (found[0], said) if len(found) == 1 else None
    return None


def _called(
    column: exp.Column, scopes: dict[int, list[exp.Table]], others: dict[int, set[str]], home: QualifiedName
) -> exp.Table | None:
    """The table without an alias that the first part of a column's name calls, if there is one and nothing else.

    Of several it is the one of the current schema, as for any name without one.
    """
    name = column.parts[0].name.lower()
    for scope in _around(column):
        found = [table for table in scopes.get(id(scope), ()) if table.name.lower() == name]
        if found or name in others.get(id(scope), ()):
            if len(found) > 1:
                found = [table for table in found if _whole(_name(table, home))[:2] == _whole(home)[:2]]
            return found[0] if len(found) == 1 and name not in others.get(id(scope), ()) else None
    return None


def _whole(name: QualifiedName) -> tuple[str, str, str]:
    return name.catalog.lower(), name.schema.lower(), name.name.lower()


def _other_names(tree: exp.Expr, scopes: dict[int, list[exp.Table]]) -> dict[int, set[str]]:
    """What else is called by a name in each query: what has an alias, and CTEs."""
    plain = {id(table) for those in scopes.values() for table in those}
    tables_there = (table for table in tree.find_all(exp.Table) if not table.find_ancestor(exp.Hint))
    named: list[exp.Expr] = [table for table in tables_there if id(table) not in plain]
    above = [alias.parent for alias in tree.find_all(exp.TableAlias)]
    found: dict[int, set[str]] = {}
    for one in [*named, *(one for one in above if one is not None and not isinstance(one, exp.CTE))]:
        found.setdefault(id(one.find_ancestor(*_SCOPES)), set()).add(one.alias_or_name.lower())
    return found


def _around(node: exp.Expr) -> Iterator[exp.Expr]:
    above = node.find_ancestor(*_SCOPES)
    while above is not None:
        yield above
        above = above.find_ancestor(*_SCOPES)
