"""Plain views written out where they are read, so that whatever comes after sees nothing but one query.

What is maintained reads a read model by its stored rows: ``v_user`` in another definition is what ``tv_user`` holds, so
each level of a document only puts together what the level below has made. A query that somebody runs gets ``v_user`` as
its query gives it now.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache

from penstock.catalog import ViewRecord, World
from penstock.engine.naming import STAMP
from penstock.errors import DefinitionError, DependencyError, NotFoundError, NotSupportedError, SqlError
from penstock.frames.settings import Settings
from penstock.graph import Dag
from penstock.sql.dialect import quoted
from penstock.sql.json_functions import uses_json
from penstock.sql.json_lineage import MARK, document_columns
from penstock.sql.lexer import identifier, tokenize
from penstock.sql.names import QualifiedName, is_path, key_of, sql_of
from penstock.sql.query import parse_query, parse_written, substitute_tables, table_names, written_out
from penstock.sql.statements import TableStatement


def in_query(world: World, text: str) -> str:
    """A query that somebody runs: plain views by their queries, and what has a name here by that."""
    return _of_reader(world, named_here(world, text), now=False)


def in_current_query(world: World, text: str) -> str:
    """The same of a query of now. Views of Spark's are read by Spark: they may have been replaced since one looked."""
    return _of_reader(world, named_here(world, text), now=True)


def _of_reader(world: World, text: str, *, now: bool) -> str:
    if not world.plain and not world.views:
        return text
    return _documents(world, _written_out(world, text, (), stored=False, now=now), stamped=True)


def named_here(world: World, text: str) -> str:
    """The text with the names that tables and views have here, for those that Spark has for them, and for places."""
    names = world.once("last parts of names of Spark", _last_parts)
    if not _PLACE.search(text) and not (names and names & _words(text)):
        return text

    def named(name: str) -> str | None:
        known = world.name_here(name)
        return None if known is None else sql_of(known)

    return substitute_tables(text, named)


_PLACE = re.compile(r"\bdelta`?\s*\.\s*`", re.IGNORECASE)


def _last_parts(world: World) -> frozenset[str]:
    return frozenset(QualifiedName.read(name).name for name in world.from_spark)


def _words(text: str) -> set[str]:
    return {identifier(token).lower() for token in tokenize(text) if token.kind in ("word", "quoted")}


def in_statement(world: World, statement: TableStatement) -> TableStatement:
    """A statement that changes a table by what it reads: as ``in_query``. One that only Spark can read stays."""
    if not world.plain or not statement.writes:
        return statement
    if _words(statement.text).isdisjoint(QualifiedName.read(key).name for key in world.plain):
        return statement
    try:
        return replace(statement, text=_of_reader(world, statement.text, now=True))
    except SqlError:
        return statement


def in_definition(world: World, text: str, settings: Settings, name: str) -> str:
    """The query of a view that is maintained: read models by their stored rows."""
    found = _written_out(world, text, (key_of(name),), stored=True)
    if found != text:
        _check_settings(world, text, settings, name)
    return _documents(world, found, stamped=False)


def _written_out(world: World, text: str, above: tuple[str, ...], *, stored: bool, now: bool = False) -> str:
    if not world.plain:
        return text

    def body(name: str) -> str | None:
        key = world.known_key(name)
        if key is None or key not in world.plain:
            return None
        of_spark = world.plain[key].catalog_name
        if now and of_spark is not None:
            return f"SELECT * FROM {sql_of(of_spark)}"
        if key in above:
            path = [world.display_name(k) for k in (*above[above.index(key) :], key)]
            raise DependencyError(
                f"view {path[0]!r} would read itself, which makes a cycle: {' -> '.join(path)}. "
                "Change the query so that it does not."
            )
        kept = maintained(world, key)
        if stored and kept is not None:
            return f"SELECT {', '.join(quoted(column) for column, _, _ in kept.columns)} FROM {sql_of(kept.name)}"
        return _written_out(world, world.plain[key].query, (*above, key), stored=stored, now=now)

    return written_out(text, body)


def maintained(world: World, key: str) -> ViewRecord | None:
    """The view that holds the rows of a plain view, if it is that of a read model."""
    return next((world.views[model.key] for model in world.models.values() if model.plain_view == key), None)


def _documents(world: World, text: str, *, stamped: bool) -> str:
    """The text with stored documents told as such, where documents are built."""
    if "json" not in text.lower() or not uses_json(parse_written(text)):
        return text

    def body(name: str) -> str | None:
        view = world.views.get(key_of(name))
        documents = set() if view is None else documents_of(view)
        if view is None or not documents:
            return None
        columns = [
            f"{MARK}({quoted(column)}) AS {quoted(column)}" if column.lower() in documents else quoted(column)
            for column, _, _ in view.columns
        ]
        more = [STAMP] if stamped and view.key in world.models else []
        return f"SELECT {', '.join([*columns, *more])} FROM {sql_of(view.name)}"

    return written_out(text, body)


def documents_of(view: ViewRecord) -> set[str]:
    """The columns of a view, in lower case, that are JSON documents."""
    return _documents_of(view.query, tuple(name for name, _, _ in view.columns))


@lru_cache(maxsize=5_000)
def _documents_of(query: str, columns: tuple[str, ...]) -> set[str]:
    if "json" not in query.lower():
        return set()
    return {columns[place].lower() for place in document_columns(parse_written(query), len(columns))}


def plain_views_of(world: World, text: str) -> Iterator[str]:
    """The keys of the plain views that a text names itself."""
    if world.plain:
        keys = (world.known_key(name) for name in table_names(parse_query(text)) if not is_path(name))
        yield from (key for key in keys if key is not None and key in world.plain)


def readers_of(world: World, key: str) -> list[str]:
    """The keys of the views, plain and materialized, that name a plain view."""
    plain = [other.key for other in world.plain.values() if key in plain_views_of(world, other.query)]
    kept = [view.key for view in world.views.values() if view.written and key in plain_views_of(world, view.written)]
    return [other for other in plain if maintained(world, other) is None] + kept


def shown_graph(world: World) -> Dag:
    """Who reads whom in the words of the user: plain views are in it, and a read model stands for its query."""
    outside = {key: tuple(map(key_of, outside_of(world, key))) for key in world.views}
    if not world.plain and not any(outside.values()):
        return world.views_graph()

    def reads(text: str) -> tuple[str, ...]:
        keys = (world.known_key(name) or key_of(name) for name in table_names(parse_query(text)))
        models = ((key, maintained(world, key)) for key in keys)
        return tuple(dict.fromkeys(key if model is None else model.key for key, model in models))

    plain = {key: reads(view.query) for key, view in world.plain.items() if maintained(world, key) is None}
    kept = {
        key: reads(view.written) if view.written else (*view.reads, *outside[key]) for key, view in world.views.items()
    }
    return Dag({**dict.fromkeys(world.tables, ()), **plain, **kept})


def outside_of(world: World, key: str) -> tuple[str, ...]:
    """The names of what a view reads that only Spark knows."""
    own = world.nodes.get(key)
    return () if own is None else own.details.outside


def check_unread(world: World, keys: Collection[str], what: str) -> None:
    """Tables and views that plain views read stay; ``what`` would drop them."""
    for key in keys:
        readers = [view for view in world.plain.values() if _names(world, view.query, key)]
        left = [view for view in readers if _model_key(world, view.key) not in keys]
        if left:
            models = [maintained(world, view.key) for view in left]
            named = [("view", v.name) if m is None else ("table", m.name) for v, m in zip(left, models, strict=True)]
            told = ", ".join(f"the {'view' if kind == 'view' else 'read model'} {name!r}" for kind, name in named)
            first = ", ".join(f"DROP {kind.upper()} {name}" for kind, name in named)
            raise DependencyError(
                f"{world.display_name(key)!r} cannot be dropped: {told} {'reads' if len(left) == 1 else 'read'} it. "
                f"Use {first} first, then {what}."
            )


def _names(world: World, text: str, key: str) -> bool:
    """Whether a text names a relation, or the query of a read model."""
    names = (world.known_key(name) or key_of(name) for name in table_names(parse_query(text)))
    return any(key in (name, _model_key(world, name)) for name in names)


def _model_key(world: World, key: str) -> str | None:
    model = maintained(world, key) if key in world.plain else None
    return None if model is None else model.key


def _check_settings(world: World, text: str, settings: Settings, name: str) -> None:
    """A plain view means what it meant where it was created."""
    for key in plain_views_of(world, text):
        view = world.plain[key]
        if maintained(world, key) is None and dict(view.settings) != dict(settings.changed):
            unlike = sorted(dict(view.settings).items() ^ dict(settings.changed).items())
            raise DefinitionError(
                f"view {name!r} cannot read {view.name!r}: that was created under another {unlike[0][0]}. "
                f"Set it to the same, or run CREATE OR REPLACE VIEW {view.catalog_name or view.name} again in this "
                f"session{' of Spark' if view.catalog_name else ''}."
            )


def check_no_model(world: World, key: str) -> None:
    """Nobody but a refresh writes a read model."""
    if key in world.models:
        raise NotSupportedError(
            f"{world.views[key].name!r} is a read model: only its refresh writes it. Change the tables that its "
            f"documents are made of: {', '.join(map(world.display_name, world.views[key].reads))}."
        )


def check_model(world: World, name: str) -> str:
    """The key of a read model."""
    key = world.resolve(name)
    if key not in world.models:
        kind = "table" if key in world.tables else "materialized view"
        raise NotFoundError(f"{name!r} is a {kind}, not a read model. SHOW READ MODELS lists those.")
    return key
