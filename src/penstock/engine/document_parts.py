"""What a read model is made of: its key, its columns for filters and lineage, and the parts of its document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from penstock.catalog import Part, PlainView, ReadModel, ViewRecord, World
from penstock.engine.naming import DATA, LINEAGE, entity_of, key_column, query_of
from penstock.engine.writing_out import documents_of, maintained
from penstock.errors import DefinitionError, nearest
from penstock.sql.dialect import SparkSql
from penstock.sql.json_lineage import JSON, mark_documents
from penstock.sql.names import key_of
from penstock.sql.query import name_of, parse_written, tables
from penstock.vocabulary import PartKind

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_KEYS = (*_WHOLE, "string")


def model_of(world: World, view: ViewRecord, settings: Mapping[str, str]) -> tuple[ReadModel, PlainView]:
    """The read model that a view is, and the plain view of its query."""
    types = {name.lower(): (name, kind) for name, kind, _ in view.columns}
    check_columns(view.name, types, documents_of(view))
    model = ReadModel(
        key=view.key, entity=entity_of(view.name), plain_view=key_of(query_of(view.name)),
        primary=types[key_column(view.name).lower()][0],
        lineage=tuple(name for low, (name, _) in types.items() if low.startswith(LINEAGE)),
        filters=tuple(name for low, (name, _) in types.items() if low == "id" or low.endswith("_id")),
        parts=tuple(_parts(world, view)),
    )  # fmt: skip
    shown = PlainView(
        key=model.plain_view, name=query_of(view.name), query=view.written or view.query,
        columns=tuple((name, kind) for name, kind, _ in view.columns), created_at=view.created_at, settings=settings,
    )  # fmt: skip
    return model, shown


def check_columns(name: str, types: Mapping[str, tuple[str, str]], documents: set[str]) -> None:
    """A read model has a key, a document, and whole numbers for lineage. ``types``: by names in lower case."""
    primary = key_column(name)
    if primary.lower() not in types:
        raise DefinitionError(
            f"read model {name!r} has no key: its SELECT gives no column {primary!r}. "
            f"{nearest(primary, [shown for shown, _ in types.values()])} Write .. AS {primary}."
        )
    if types[primary.lower()][1] not in _KEYS:
        raise DefinitionError(
            f"read model {name!r}: its key {primary!r} is {types[primary.lower()][1]}. "
            "A key is a whole number or a text."
        )
    if DATA not in types:
        raise DefinitionError(
            f"read model {name!r} has no document: its SELECT gives no column 'data'. "
            "Write jsonb_build_object('key', value, ..) AS data."
        )
    if DATA not in documents:
        raise DefinitionError(
            f"read model {name!r}: its column 'data' ({types[DATA][1]}) is not JSON. Build it with "
            "jsonb_build_object('key', value, ..), jsonb_agg(..) or to_json(named_struct(..))."
        )
    for low, (shown, kind) in types.items():
        if low.startswith(LINEAGE) and kind not in _WHOLE:
            raise DefinitionError(
                f"read model {name!r}: the column {shown!r} is {kind}, and a column fk_* is the whole number of a row "
                f"that the document is made of. Give it another name, or the key of that row."
            )


def _parts(world: World, view: ViewRecord) -> Iterator[Part]:
    tree = parse_written(view.query)
    mark_documents(tree)
    select = tree.find(exp.Select)
    found = [e for e in select.expressions if e.alias_or_name.lower() == DATA] if select is not None else []
    relations = _relations(view.written or view.query)
    for e in found:
        yield from _of(world, relations, e.this if isinstance(e, exp.Alias) else e, "$")


def _of(world: World, relations: Mapping[str, str], node: exp.Expr, path: str) -> Iterator[Part]:
    while isinstance(node, exp.Paren | exp.Filter):
        node = node.this
    name = str(node.this).upper() if isinstance(node, exp.Anonymous) else ""
    if name == "JSONB_BUILD_OBJECT":
        for key, value in zip(node.expressions[::2], node.expressions[1::2], strict=True):
            yield from _of(world, relations, value, f"{path}.{key.name}")
    elif name == "JSONB_BUILD_ARRAY":
        for place, value in enumerate(node.expressions):
            yield from _of(world, relations, value, f"{path}[{place}]")
    elif isinstance(node, exp.JSONFormat):
        yield from _of(world, relations, node.this, path)
    elif isinstance(node, exp.Struct):
        for field in node.expressions:
            if isinstance(field, exp.PropertyEQ):
                yield from _of(world, relations, field.expression, f"{path}.{field.name}")
    elif name == "JSONB_AGG" or isinstance(node, exp.ArrayAgg):
        yield _array(world, relations, node, path)
    elif node.meta.get(JSON):
        yield Part(path=path, kind=PartKind.NESTED_OBJECT, source=_source(relations, node))
    else:
        yield Part(path=path, kind=PartKind.SCALAR)


def _array(world: World, relations: Mapping[str, str], node: exp.Expr, path: str) -> Part:
    """An array of a group; its elements are matched by the key of what they come from, or else by their order."""
    value: exp.Expr = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    keys: list[exp.Expr] = []
    if isinstance(value, exp.Order):
        value, keys = value.this, [key.this for key in value.expressions]
    source = _source(relations, value)
    model = None if source is None else world.models.get(key_of(source)) or _model(world, key_of(source))
    told = ", ".join(key.sql(dialect=SparkSql) for key in keys)
    matched = model.primary if model is not None else told or None
    return Part(path=f"{path}[]", kind=PartKind.ARRAY, source=source, match_key=matched)


def _model(world: World, key: str) -> ReadModel | None:
    view = maintained(world, key)
    return None if view is None else world.models.get(view.key)


def _source(relations: Mapping[str, str], node: exp.Expr) -> str | None:
    """Where a document comes from, in the words of the user."""
    columns = {column.table.lower() for column in node.find_all(exp.Column)}
    if columns == {""} and len(relations) == 1:
        return next(iter(relations.values()))
    return relations.get(next(iter(columns))) if len(columns) == 1 else None


def _relations(text: str) -> dict[str, str]:
    """The names that relations have in a query, with what they are."""
    return {table.alias_or_name.lower(): name_of(table) for table in tables(parse_written(text))}
