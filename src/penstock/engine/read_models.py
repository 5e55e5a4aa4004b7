"""Read models: ``CREATE TABLE tv_<entity> AS SELECT`` makes a view with a key and a document, and its plain view."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from penstock.catalog import World
from penstock.engine.adopting import Adopting
from penstock.engine.definition import analyse, relation_schema
from penstock.engine.document_parts import check_columns
from penstock.engine.naming import TABLE, entity_of, key_column, query_of
from penstock.engine.relations import cycle, read_keys
from penstock.engine.report import Report
from penstock.engine.views import Views
from penstock.engine.workplace import Workplace
from penstock.engine.writing_out import in_definition
from penstock.errors import AlreadyExistsError, DefinitionError, of_object
from penstock.frames.settings import own
from penstock.sql.clauses import read_properties
from penstock.sql.cursor import Cursor
from penstock.sql.dialect import SparkSql
from penstock.sql.documents import JsonAgg, JsonText
from penstock.sql.json_lineage import document_columns
from penstock.sql.names import key_of
from penstock.sql.query import check_query, parse_query, parse_written, table_names
from penstock.sql.statements import CreateTable, CreateView, Placement
from penstock.sql.triggers import Trigger
from penstock.vocabulary import When

_WITHOUT_JSON = ("interval", "time(", "geography", "geometry")


class ReadModels:
    def __init__(self, work: Workplace, views: Views):
        self._work = work
        self._views = views

    def create(self, statement: CreateTable) -> Report | None:
        """Create a read model and fill it; None if it exists and may."""
        world = self._work.catalog.world()
        if not _is_wanted(world, statement):
            return None
        query = statement.query or ""
        with of_object(f"read model {statement.name!r}"):
            check_query(query, 0, len(query))
            adopted = Adopting(self._work).adopt(world, query)
            query = adopted.query
            self._check(adopted.world, statement.name, query)
        primary = key_column(statement.name)
        return self._views.create(
            CreateView(
                statement.text, name=statement.name, query=query, key=primary, soonest=True,
                trigger=Trigger(when=When.ON_COMMIT), placement=Placement(cluster=(primary,)),
                properties=_properties(statement) or (),
            )
        )  # fmt: skip

    def _check(self, world: World, name: str, query: str) -> None:
        """What a read model needs, before anything is planned."""
        settings, own_view = own(self._work.spark).settings, query_of(name)
        for read in table_names(parse_query(query)):
            if key_of(read) in (key_of(name), key_of(own_view)):
                raise cycle(name, [name, read, name] if key_of(read) != key_of(name) else [name, name])
        text = in_definition(world, query, settings, own_view)
        reads = read_keys(world, text, name)
        if not reads:
            raise DefinitionError(
                f"read model {name!r} reads no table, so there is nothing to keep it up to date with."
            )
        found = analyse(self._work.session(), text, {key: relation_schema(world, key) for key in reads})
        types = {field.name.lower(): (field.name, field.dataType.simpleString()) for field in found.fields}
        documents = {found.names[place].lower() for place in document_columns(parse_written(text), len(found.fields))}
        check_columns(name, types, documents)
        self._check_values(world, name, text, reads)

    def _check_values(self, world: World, name: str, text: str, reads: Collection[str]) -> None:
        """Whatever goes into the document has a JSON form."""
        values = values_of(parse_query(text))
        if values is None:
            return
        asked, operands = values
        found = analyse(self._work.session(), asked, {key: relation_schema(world, key) for key in reads})
        for field, operand in zip(found.fields, operands, strict=True):
            kind = field.dataType.simpleString()
            if any(word in kind for word in _WITHOUT_JSON):
                raise DefinitionError(
                    f"read model {name!r}: {operand} is {kind}, which has no JSON form. Cast it to a text, or take a "
                    "number out of it."
                )

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Drop a read model with its plain view; gives the names that are gone."""
        return self._views.drop(name, cascade=cascade)


def values_of(tree: exp.Query) -> tuple[str, list[str]] | None:
    """A query of the values that a query puts into its documents, to ask for their types, and their texts."""
    if not isinstance(tree, exp.Select):
        return None
    select = tree.copy()
    found = [node for e in select.expressions for node in e.find_all(JsonText) if _is_own(node, select)]
    if not found:
        return None
    operands = [node.this.sql(dialect=SparkSql) for node in found]
    columns: list[exp.Expr] = []
    for number, node in enumerate(found):
        grouped = node.find_ancestor(JsonAgg) is not None
        value = exp.Anonymous(this="ANY_VALUE", expressions=[node.this.copy()]) if grouped else node.this.copy()
        columns.append(exp.alias_(value, f"v{number}"))
    select.set("expressions", columns)
    for clause in ("order", "limit", "having"):
        select.set(clause, None)
    return select.sql(dialect=SparkSql), operands


def _is_own(node: exp.Expr, select: exp.Select) -> bool:
    return node.find_ancestor(exp.Select) is select


def _properties(statement: CreateTable) -> tuple[tuple[str, str], ...] | None:
    """The TBLPROPERTIES of a statement; None if it has options of another kind."""
    cursor, found = Cursor(statement.options), tuple[tuple[str, str], ...]()
    while cursor.take("TBLPROPERTIES"):
        found += read_properties(cursor)
    return found if cursor.token is None else None


def _is_wanted(world: World, statement: CreateTable) -> bool:
    """Whether there is something to create; False if it exists and may. A name that is taken is an error."""
    name = statement.name
    if not entity_of(name):
        raise DefinitionError(f"a read model is called tv_<entity>, and {name!r} names no entity.")
    if statement.columns or _properties(statement) is None or statement.location or statement.watermark:
        raise DefinitionError(
            f"read model {name!r} takes a query, TBLPROPERTIES, and nothing else: CREATE TABLE {name} AS SELECT "
            f"{key_column(name)}, .., data FROM .. For a table of another kind choose a name that does not begin with "
            f"{TABLE}."
        )
    world.check_can_be(name)
    if key_of(name) in world.models and statement.if_not_exists:
        return False
    if key_of(name) in world.models:
        raise AlreadyExistsError(f"read model {name!r} exists already. Use IF NOT EXISTS, or DROP TABLE {name} first.")
    for taken in (name, query_of(name)):
        for kind, known in (("table", world.tables), ("materialized view", world.views), ("view", world.plain)):
            if key_of(taken) in known:
                raise AlreadyExistsError(
                    f"read model {name!r} needs the names {name!r} and {query_of(name)!r}, and {taken!r} is taken by a "
                    f"{kind}. Drop that, or choose another name."
                )
    return True
