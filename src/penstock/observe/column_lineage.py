"""Where the columns of views come from: what their queries read, and through views the tables behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from penstock.catalog import ViewRecord, World
from penstock.engine.planning import emitted_by
from penstock.observe.listings import Listing
from penstock.plan import Unsupported, build
from penstock.plan.lineage import Change, Lineage, Origins, lineage
from penstock.sql.query import parse_query


@dataclass(frozen=True, kw_only=True)
class ColumnOrigin:
    """A column that values of another one come from, and what becomes of them on the way."""

    name: str
    column: str
    kind: str
    """``table`` or ``view``."""
    change: str
    direct: bool
    """Whether the view's own query reads it; otherwise it is reached through views."""


def lineage_of(world: World, view: ViewRecord) -> Lineage | None:
    """None of a query that has no plan, such as one that is always recomputed."""
    schemas = world.nodes[view.key].details.schemas
    found = _of_query(emitted_by(view), tuple((name, tuple(columns)) for name, columns in sorted(schemas.items())))
    return found if found is not None and len(found.columns) == len(view.columns) else None


@lru_cache(maxsize=1000)
def _of_query(query: str, schemas: tuple[tuple[str, tuple[str, ...]], ...]) -> Lineage | None:
    try:
        return lineage(build(parse_query(query), dict(schemas)))
    except Unsupported:
        return None


def columns_of(world: World, view: ViewRecord) -> dict[str, list[ColumnOrigin]] | None:
    """By column; None of a query that has no plan. Behind a view without a plan nothing is known."""
    found = lineage_of(world, view)
    if found is None:
        return None
    names = [name for name, _, _ in view.columns]  # which may be others than the query's
    return {name: list(_told(world, origins)) for name, (_, origins) in zip(names, found.columns, strict=True)}


def _told(world: World, origins: Origins) -> Iterator[ColumnOrigin]:
    for direct, several in ((True, origins), (False, _behind(world, origins))):
        for (relation, column), change in sorted(several.items()):
            if direct or (relation, column) not in origins:
                kind = "view" if relation in world.views else "table"
                name = world.display_name(relation)
                became = Change(change).name
                yield ColumnOrigin(name=name, column=column, kind=kind, change=became, direct=direct)


def _behind(world: World, origins: Origins) -> Origins:
    """The columns of tables that columns come from, through views."""
    found: dict[tuple[str, str], Change] = {}
    for (relation, column), change in origins.items():
        below = _columns_behind(world, relation, column)
        for origin, before in ({(relation, column): Change.IDENTITY} if below is None else below).items():
            found[origin] = max(found.get(origin, Change.IDENTITY), before, change)
    return found


def _columns_behind(world: World, relation: str, column: str) -> Origins | None:
    """Of a column of a view; None of one of a table, or of a view that has no plan."""
    view = world.views.get(relation)
    known = None if view is None else lineage_of(world, view)
    if view is None or known is None:
        return None
    places = [name.lower() for name, _, _ in view.columns]
    return _behind(world, known.columns[places.index(column.lower())][1])


def listing(world: World) -> Listing:
    rows = [
        (view.name, column, origin.name, origin.column, origin.kind, origin.change, origin.direct)
        for view in world.views.values()
        for column, origins in (columns_of(world, view) or {}).items()
        for origin in origins
    ]
    return Listing(
        "view STRING, column STRING, source STRING, source_column STRING, kind STRING, change STRING, direct BOOLEAN",
        rows,
    )
