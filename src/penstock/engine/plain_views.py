"""Plain views: creating, replacing and dropping queries with names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone

from penstock.catalog import PlainView, World
from penstock.catalog.plain_views import PlainRecords
from penstock.engine.adopting import Adopting
from penstock.engine.definition import analyse, relation_schema, statement_of
from penstock.engine.relations import outside_names, outside_schemas, read_keys
from penstock.engine.views import Views
from penstock.engine.workplace import Workplace
from penstock.engine.writing_out import in_query, maintained, readers_of
from penstock.errors import (
    AlreadyExistsError,
    DefinitionError,
    DependencyError,
    NotFoundError,
    PenstockError,
    nearest,
    of_object,
)
from penstock.frames.settings import own
from penstock.sql.dialect import quoted
from penstock.sql.names import key_of, sql_of
from penstock.sql.statements import CreatePlainView


class PlainViews:
    def __init__(self, work: Workplace, views: Views):
        self._work = work
        self._views = views

    def create(self, statement: CreatePlainView) -> list[str] | None:
        """Create or replace a plain view; gives the views that were planned again, None if it exists and may."""
        world = self._work.catalog.world()
        if not _is_wanted(world, statement):
            return None
        with of_object(f"view {statement.name!r}"):
            adopted = Adopting(self._work).adopt(world, statement.query)
        world, statement = adopted.world, replace(statement, query=adopted.query)
        known = world.plain.get(key_of(statement.name))
        made = self._made(world, statement)
        readers = [] if known is None else _maintained_readers(world, made.key)
        amended = replace(world, plain={**world.plain, made.key: made})
        for key in readers:
            self._check_reader(amended, key, made)
        PlainRecords(self._work.catalog).put(made, known)
        for key in readers:
            self._views.create(replace(statement_of(world, world.views[key]), cascade=True))
        return [world.views[key].name for key in readers]

    def _made(self, world: World, statement: CreatePlainView) -> PlainView:
        """The view as Spark judges it: its query must hold, and its columns have names."""
        name, session = statement.name, self._work.session()
        text = in_query(_with_trial(world, statement), statement.query)
        keys = read_keys(world, text, name)
        with of_object(f"view {name!r}"):
            schemas = {key: relation_schema(world, key) for key in keys}
            schemas |= outside_schemas(self._work.session, outside_names(world, text))
            columns = analyse(session, text, schemas).fields
        names = [column for column, _ in statement.columns] or [field.name for field in columns]
        if len(names) != len(columns):
            raise DefinitionError(f"view {name!r} names {len(names)} columns, but its query gives {len(columns)}.")
        twice = [one for place, one in enumerate(names) if one.lower() in {n.lower() for n in names[:place]}]
        if twice:
            raise DefinitionError(f"view {name!r} has two columns called {twice[0]!r}. Rename one with AS.")
        query = statement.query
        if statement.columns:
            query = f"SELECT * FROM ({query}\n) AS t({', '.join(map(quoted, names))})"
        kinds = [field.dataType.simpleString() for field in columns]
        return PlainView(
            key=key_of(name), name=name, query=query, columns=tuple(zip(names, kinds, strict=True)),
            comment=statement.comment, settings=dict(own(self._work.spark).settings.changed),
            created_at=datetime.now(timezone.utc),
        )  # fmt: skip

    def _check_reader(self, world: World, key: str, view: PlainView) -> None:
        """A view that reads a replaced one must still hold, with the same columns."""
        reader = world.views[key]
        try:
            found = self._views.define(world, statement_of(world, reader)).view
        except PenstockError as problem:
            raise DependencyError(
                f"view {view.name!r} cannot be replaced: {reader.name!r} reads it, and its query would no longer hold: "
                f"{problem}"
            ) from None
        if [name for name, *_ in found.columns] != [name for name, *_ in reader.columns]:
            raise DependencyError(
                f"view {view.name!r} cannot be replaced: {reader.name!r} reads it, and would not have the columns "
                f"{', '.join(name for name, *_ in reader.columns)}. Drop or replace {reader.name!r} first."
            )

    def drop(self, name: str, *, if_exists: bool = False) -> bool:
        """Drop a plain view that nothing reads; False if there is none and need not be."""
        world, key = self._work.catalog.world(), key_of(name)
        if key not in world.plain:
            if if_exists:
                return False
            _refuse(world, name)
        model = maintained(world, key)
        if model is not None:
            raise DependencyError(
                f"view {world.plain[key].name!r} is the query of the read model {model.name!r}. "
                f"It goes with that: DROP TABLE {model.name}."
            )
        _check_unread(world, key)
        PlainRecords(self._work.catalog).drop(key)
        return True


def _check_unread(world: World, key: str) -> None:
    """A plain view goes only if nothing reads it."""
    readers = [world.display_name(reader) for reader in readers_of(world, key)]
    if readers:
        raise DependencyError(
            f"view {world.display_name(key)!r} cannot be dropped: {', '.join(map(repr, readers))} "
            f"{'reads' if len(readers) == 1 else 'read'} it. Drop {'that' if len(readers) == 1 else 'those'} first."
        )


def _with_trial(world: World, statement: CreatePlainView) -> World:
    """The world with the view in it as it is to be, so that a cycle is found."""
    key = key_of(statement.name)
    trial = PlainView(
        key=key, name=statement.name, query=statement.query, columns=(), created_at=datetime.now(timezone.utc)
    )
    tried = replace(world, plain={**world.plain, key: trial})
    in_query(tried, f"SELECT 1 FROM {sql_of(statement.name)}")
    return tried


def _is_wanted(world: World, statement: CreatePlainView) -> bool:
    """Whether there is something to create. A name that is taken is an error."""
    key = key_of(statement.name)
    world.check_can_be(statement.name)
    for kind, known in (("table", world.tables), ("materialized view", world.views)):
        if key in known:
            raise AlreadyExistsError(f"the name {statement.name!r} is taken by a {kind}. Choose another name.")
    model = maintained(world, key) if key in world.plain else None
    if model is not None:
        raise AlreadyExistsError(
            f"view {statement.name!r} is the query of the read model {model.name!r}, and changes only with that: drop "
            f"it and create it again."
        )
    if key not in world.plain or statement.or_replace:
        return True
    if statement.if_not_exists:
        return False
    raise AlreadyExistsError(
        f"view {statement.name!r} exists already. Use CREATE OR REPLACE, or CREATE .. IF NOT EXISTS, or DROP it first."
    )


def _refuse(world: World, name: str) -> None:
    """There is no plain view of a name."""
    key = key_of(name)
    if key in world.views or key in world.tables:
        kind, word = ("materialized view", "MATERIALIZED VIEW") if key in world.views else ("table", "TABLE")
        raise NotFoundError(f"{name!r} is a {kind}. Use DROP {word} {name}.")
    raise NotFoundError(f"there is no view {name!r}. {nearest(name, [view.name for view in world.plain.values()])}")


def _maintained_readers(world: World, key: str) -> list[str]:
    """The views that are maintained and read a plain view, directly or through others, inputs before readers."""
    found: set[str] = set()
    wanted: Iterable[str] = [key]
    while wanted:
        readers = {reader for one in wanted for reader in readers_of(world, one)}
        found |= readers & world.views.keys()
        wanted = readers & world.plain.keys()
    return [one for one in world.views_graph().order(found) if one in found]
