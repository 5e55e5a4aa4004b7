"""What views are to be called in Spark's catalog, and what is to be there: as their properties and the settings say.

No Spark, and nothing is read but the catalog of the warehouse. ``spark_names`` does it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256

from penstock.catalog import ViewRecord, World
from penstock.catalog.catalog_names import CatalogName
from penstock.catalog.published import published_parts
from penstock.engine.naming import STAMP
from penstock.engine.properties import PUBLISH_AS, TABLE, own_property
from penstock.engine.settings import value_of
from penstock.sql.names import part, quoted_parts


@dataclass(frozen=True, kw_only=True)
class WantedName:
    """A name that a view is to have, and what is to be found under it."""

    parts: tuple[str, str, str]
    """Catalog, schema and name."""
    view: ViewRecord
    columns: tuple[tuple[str, str | None], ...]
    """Those of the view, with their comments."""
    path: str
    as_table: bool
    """Whether it is an external table, and no view of Spark's."""
    shows_state: bool = False
    """Whether columns would be found there that are not the view's."""

    @property
    def key(self) -> str:
        """What tells it from other names, which do not depend on case."""
        return quoted_parts(self.parts).lower()

    @property
    def shown(self) -> str:
        return ".".join(map(part, self.parts))

    @property
    def sql(self) -> str:
        return quoted_parts(self.parts)

    @property
    def told(self) -> str:
        """The name, and what is there."""
        return f"{self.shown} ({'an external table' if self.as_table else 'a view'} of Spark's catalog)"

    @cached_property
    def digest(self) -> str:
        """Differs where what is to be there differs."""
        types = [kind for _, kind, _ in self.view.columns]
        told = [self.parts, self.as_table, self.view.name, self.columns, types, self.view.comment, self.path]
        told += ["state"] if self.shows_state else []
        return sha256(json.dumps(told).encode()).hexdigest()[:32]

    def record(self) -> CatalogName:
        return CatalogName(key=self.key, name=self.sql, view=self.view.key)


def wanted_names(world: World) -> dict[str, WantedName]:
    """All of them, by key. Of two views that want one name the older has it."""
    found: dict[str, WantedName] = {}
    for view in world.views.values():
        name = wanted_name(world, view)
        if name is not None:
            found.setdefault(name.key, name)
    return found


def wanted_name(world: World, view: ViewRecord) -> WantedName | None:
    """The name that a view is to have; None if it is to have none."""
    parts = published_parts(view, world.settings)
    if parts is None:
        return None
    form = own_property(view.properties, PUBLISH_AS) or value_of(world.settings, "publish_as").lower()
    columns = [(name, comment) for name, _, comment in view.columns]
    if view.key in world.models:
        columns.append((STAMP, None))
    path = world.nodes[view.key].path if view.key in world.nodes else ""  # of one that is only planned
    shows = form == TABLE and view.key in world.nodes and has_state(world, view)
    return WantedName(
        parts=parts, view=view, columns=tuple(columns), path=path, as_table=form == TABLE, shows_state=shows
    )


def pending(
    wanted: Mapping[str, WantedName], known: Mapping[str, CatalogName], application: str | None
) -> tuple[list[WantedName], list[CatalogName]]:
    """The names that are to be written, and those that are to go. ``application``: of the session, if one runs."""

    def is_done(name: WantedName) -> bool:
        there = known.get(name.key)
        if there is None or there.digest != name.digest or there.view != name.view.key:
            return False
        return application is None or there.application in (None, application)

    return [name for name in wanted.values() if not is_done(name)], [
        name for key, name in known.items() if key not in wanted
    ]


def untried(names: Iterable[WantedName], gone: Collection[CatalogName], known: Mapping[str, CatalogName]) -> bool:
    """Whether any of these was never tried as it is now: for that Spark is started, but not to fail again."""
    return any(name.key not in known or known[name.key].tried != name.digest for name in names) or any(
        name.problem is None for name in gone
    )


def has_state(world: World, view: ViewRecord) -> bool:
    """Whether the table of a view has columns that are not the view's."""
    shown = {name for name, _, _ in view.columns} | {STAMP}
    return not _stored(world.nodes[view.key].schema_json) <= shown


@lru_cache(maxsize=20_000)
def _stored(schema_json: str) -> frozenset[str]:
    """The columns of a table: every refresh asks, and most often they are those of before."""
    return frozenset(field["name"] for field in json.loads(schema_json)["fields"])
