"""What SHOW and DESCRIBE tell of plain views and read models."""

from __future__ import annotations

from penstock.catalog import PlainView, ReadModel, World
from penstock.engine.writing_out import maintained
from penstock.observe import listings
from penstock.observe.listings import Listing, Wanted
from penstock.sql.names import key_of


def plain_views(world: World, wanted: Wanted = lambda name: True) -> Listing:
    rows = []
    for view in (one for one in world.plain.values() if wanted(one.name)):
        model = maintained(world, view.key)
        columns = [name for name, _ in view.columns]
        of_model = None if model is None else model.name
        rows.append((view.name, view.query, columns, of_model, view.created_at, view.catalog_name))
    return Listing(
        "name STRING, query STRING, columns ARRAY<STRING>, read_model STRING, created_at TIMESTAMP, "
        "catalog_name STRING",
        rows,
    )


def read_models(world: World, wanted: Wanted = lambda name: True) -> Listing:
    rows = []
    for model in (one for one in world.models.values() if wanted(one.key)):
        view = world.views[model.key]
        sources = [world.display_name(key) for key in view.reads]
        parts = [" ".join(filter(None, (part.path, part.kind, part.match_key))) for part in model.parts]
        rows.append(
            (model.entity, world.display_name(model.plain_view), view.name, model.primary, list(model.filters),
             list(model.lineage), sources, parts, view.refresh, view.written or view.query)
        )  # fmt: skip
    return Listing(
        "entity STRING, view STRING, table STRING, key STRING, uuid_columns ARRAY<STRING>, fk_columns ARRAY<STRING>, "
        "sources ARRAY<STRING>, parts ARRAY<STRING>, refresh STRING, definition STRING",
        rows,
    )


def document_parts(world: World) -> Listing:
    rows = [
        (world.views[model.key].name, part.path, part.kind, part.source, part.match_key)
        for model in world.models.values()
        for part in model.parts
    ]
    return Listing("table STRING, path STRING, kind STRING, source STRING, match_key STRING", rows)


def describes(world: World, name: str) -> bool:
    """Whether a name is that of a plain view or a read model."""
    return key_of(name) in world.plain or key_of(name) in world.models


def description(world: World, name: str) -> Listing:
    key = key_of(name)
    view = world.plain.get(key)
    return _of_plain(world, view) if view is not None else _of_model(world, world.models[key])


def _of_plain(world: World, view: PlainView) -> Listing:
    rows: list[tuple[str, str | None, str | None]] = [(name, kind, None) for name, kind in view.columns]
    rows.append(("", None, None))
    model = maintained(world, view.key)
    facts = {
        "# Name": view.name,
        "# Query": view.query,
        "# Comment": view.comment or "",
        **({"# Of Spark's catalog": view.catalog_name} if view.catalog_name is not None else {}),
        **({"# Read model": model.name} if model is not None else {}),
        **{f"# Setting {name}": value for name, value in view.settings.items()},
        "# Created": view.created_at.isoformat(timespec="seconds"),
    }
    rows.extend((label, value, None) for label, value in facts.items())
    return Listing("col_name STRING, data_type STRING, comment STRING", rows)


def _of_model(world: World, model: ReadModel) -> Listing:
    """As of any view, and before that what makes it a read model."""
    told = listings.description(world, world.views[model.key].name)
    facts = {
        "# Entity": model.entity,
        "# View": world.display_name(model.plain_view),
        "# Table": world.views[model.key].name,
        "# Key": model.primary,
        "# Uuid columns": ", ".join(model.filters),
        "# Fk columns": ", ".join(model.lineage),
    }
    rows: list[tuple[str, str | None, str | None]] = [(label, value, None) for label, value in facts.items()]
    for part in model.parts:
        source = f"from {part.source}" if part.source else None
        matched = f"matched by {part.match_key}" if part.match_key else None
        rows.append((f"# Part {part.path}", part.kind, ", ".join(filter(None, (source, matched))) or None))
    place = next(i for i, row in enumerate(told.rows) if row[0] == "")
    stamp = ("updated_at", "timestamp", "when the row was last written")
    return Listing(told.ddl, [*told.rows[:place], stamp, ("", None, None), *rows, *told.rows[place + 1 :]])
