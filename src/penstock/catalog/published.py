"""What views are called in Spark's catalog, and so by whoever queries them here: as their properties and a setting say.

Nobody is asked: what is there is another matter, which ``engine.spark_names`` sees to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.errors import DefinitionError
from penstock.sql.names import DEFAULT, QualifiedName, key_of, parts_of

if TYPE_CHECKING:
    from penstock.catalog.records import ViewRecord
    from penstock.catalog.world import World

PUBLISH = "penstock.publish"
"""The property of a view that says its name."""
SPARK_CATALOG = "spark_catalog"
"""The catalog of a session that names without one mean."""
NOWHERE = "false"
"""What a view says that is not to be published, though a setting publishes all."""


def published_parts(view: ViewRecord, settings: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Catalog, schema and name; None of a view that has no name there."""
    said = next((value.strip() for name, value in view.properties.items() if name.lower() == PUBLISH), None)
    place = settings.get("publish", "")
    return _parts(view.name, said, place) if said is not None or place else None


@lru_cache(maxsize=20_000)
def _parts(view: str, said: str | None, place: str) -> tuple[str, str, str] | None:
    """``said``: by the view itself, ``place``: where all views go."""
    if said is None:
        own = QualifiedName.read(view)
        catalog, schema = [*parts_of(place), own.schema][:2]
        return catalog, schema, own.name
    if said.lower() == NOWHERE:
        return None
    parts = parts_of(said) if said else []
    if not 0 < len(parts) < 4:
        raise DefinitionError(
            f"view {view!r}: the property {PUBLISH!r} is a name of Spark's catalog, such as "
            f"'{SPARK_CATALOG}.gold.daily', or '{NOWHERE}', not {said!r}."
        )
    catalog, schema, name = [SPARK_CATALOG, DEFAULT][: 3 - len(parts)] + parts
    return catalog, schema, name


def names_of_spark(world: World) -> dict[str, str]:
    """The keys of what has a name in Spark's catalog, by that: what was found there, and views that are known there.

    Those can be told without the catalog too, where it is the one that names without a catalog mean. Of two views that
    want one name the older has it.
    """
    found = {
        key_of(one.catalog_name): one.key
        for kind in (world.tables, world.plain)
        for one in kind.values()
        if one.catalog_name is not None
    }
    published: dict[str, str] = {}
    for view in world.views.values():
        parts = published_parts(view, world.settings)
        if parts is not None:
            catalog, schema, name = parts
            published.setdefault(QualifiedName(schema, name, catalog).key, view.key)
            if catalog.lower() == SPARK_CATALOG:
                published.setdefault(QualifiedName(schema, name).key, view.key)
    return {**found, **published}
