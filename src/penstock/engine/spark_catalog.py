"""What Spark's catalogs say of a name: a Delta table and where it lies, a view and its query, or something else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock.catalog import PlainView
from penstock.catalog.catalog import now
from penstock.errors import DefinitionError
from penstock.frames.settings import ZONE, Settings, own
from penstock.frames.spark.problems import spark_errors
from penstock.sql.dialect import quoted
from penstock.sql.names import DEFAULT, QualifiedName, key_of, part, parts_of, quoted_parts
from penstock.sql.qualifying import functions_called, in_catalog
from penstock.storage.delta_log import is_table
from penstock.storage.locations import location as location_of


@dataclass(frozen=True)
class Listed:
    """A table of Spark's catalog; ``parts`` are its catalog, its schemas and its name."""

    parts: tuple[str, ...]
    temporary: bool
    view: bool

    @property
    def sql(self) -> str:
        return quoted_parts(self.parts)

    @property
    def shown(self) -> str:
        return ".".join(map(part, self.parts))

    @property
    def name(self) -> QualifiedName:
        """What it is called here: the last two parts."""
        return QualifiedName.of(list(self.parts[-2:]), self.shown)


def find_named(session: SparkSession, name: QualifiedName) -> Listed | None:
    """What a name means to Spark; without a schema, it may be a temporary view."""
    found = find(session, name.parts)
    if found is None and name.schema_key == DEFAULT:
        passing = find(session, (name.name,))
        return passing if passing is not None and passing.temporary else None
    return found


def find(session: SparkSession, parts: Sequence[str]) -> Listed | None:
    """The table of Spark's catalog that has this name."""
    name = quoted_parts(parts)
    with spark_errors(f"Spark's catalog cannot be asked for {name}"):
        try:
            table = session.catalog.getTable(name) if session.catalog.tableExists(name) else None
        except AnalysisException:  # no name that it could have, or no catalog
            return None
    return None if table is None else _listed(table, tuple(parts))


def listed(session: SparkSession, schema: Sequence[str]) -> list[Listed]:
    """The tables of a schema of Spark's catalog; none if there is no such schema."""
    try:
        rows = session.sql(f"SHOW TABLES IN {quoted_parts(schema)}").collect()
    except AnalysisException:
        return []
    found = [find(session, (*schema, row["tableName"])) for row in rows if not row["isTemporary"]]
    return [one for one in found if one is not None]


def _listed(table: object, asked: tuple[str, ...]) -> Listed:
    catalog, namespace = getattr(table, "catalog", None), getattr(table, "namespace", None) or []
    parts = (*([catalog] if catalog else []), *namespace, str(getattr(table, "name", "")))
    kind = str(getattr(table, "tableType", ""))
    return Listed(
        parts if len(parts) > 1 else asked or parts, bool(getattr(table, "isTemporary", False)), kind == "VIEW"
    )


def location(session: SparkSession, found: Listed) -> str | None:
    """Where a Delta table lies; None of a table of another format. Temporary views are refused."""
    if found.temporary:
        raise DefinitionError(
            f"{found.shown!r} is a temporary view of the Spark session: no other session has it, and it is gone with "
            "this one. Write its rows into a table, CREATE TABLE .. AS SELECT .., or make its query a view: "
            "CREATE VIEW name AS .."
        )
    if _format(session, found) != "delta":
        return None
    with spark_errors(f"{found.shown!r} of Spark's catalog cannot be looked at"):
        told = session.sql(f"DESCRIBE DETAIL {found.sql}").collect()[0].asDict()
    path = location_of(str(told["location"]), f"table {found.shown!r}")
    if not is_table(path):
        raise DefinitionError(f"{found.shown!r} of Spark's catalog has no Delta table at {path!r} any more.")
    return path


def _format(session: SparkSession, found: Listed) -> str:
    """What the rows of a table are kept in: delta, parquet, .., or nothing if its catalog does not say."""
    with spark_errors(f"{found.shown!r} of Spark's catalog cannot be looked at"):
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {found.sql}").collect()
    return next((str(row["data_type"]).lower() for row in rows if row["col_name"] == "Provider"), "")


def no_changes_of(session: SparkSession, name: str) -> str:
    """Why nothing that is maintained can read a name that only Spark knows, and what to do."""
    meant = QualifiedName.read(name)
    found = find(session, meant.parts) if meant.catalog else None
    kind = meant.schema if found is None else _format(session, found)
    told = f"a table of the format {kind}" if kind else "no Delta table"
    what = f"{told} in Spark's catalog" if meant.catalog else f"a place of {kind} files"
    return (
        f"{name!r} is {what}, and only of a Delta table can be told what changed. "
        f"{f'Convert it in Spark, CONVERT TO DELTA {meant}, copy' if kind == 'parquet' else 'Copy'} its rows into a "
        "table here, or write REFRESH POLICY FULL: then each refresh reads all of it."
    )


def definition(session: SparkSession, parts: Sequence[str]) -> ViewText | None:
    """What a view of Spark's is defined by, as it is now; None if there is no such view."""
    try:
        told = session.sql(f"DESCRIBE TABLE EXTENDED {quoted_parts(parts)} AS JSON").collect()[0][0]
    except AnalysisException:
        return None
    kept = json.loads(told)
    if not kept.get("view_text"):
        return None
    home = parts_of(kept["view_catalog_and_namespace"])
    return ViewText(
        functions=_functions_of(session, home[0], home[-1], kept["view_text"]),
        name=".".join(map(part, parts)), text=kept["view_text"], catalog=home[0], schema=home[-1],
        columns=tuple(column["name"] for column in kept["columns"]),
        outputs=tuple(kept.get("view_query_output_columns") or ()), comment=kept.get("comment"),
        settings=tuple(sorted((kept.get("view_creation_spark_configuration") or {}).items())),
    )  # fmt: skip


def _functions_of(session: SparkSession, catalog: str, schema: str, text: str) -> tuple[str, ...]:
    """The functions of a view's own schema that it calls by their names alone. One of Spark's own goes before them."""
    called = functions_called(text)
    if called and not _built_in:
        _built_in.update(row[0] for row in session.sql("SHOW SYSTEM FUNCTIONS").collect())
    found = []
    for name in sorted(called - _built_in):
        with suppress(AnalysisException):  # a catalog that has no functions
            if session.catalog.functionExists(quoted_parts([catalog, schema, name])):
                found.append(name)
    return tuple(found)


_built_in: set[str] = set()
"""Spark's own functions: all processes have the same, and they are asked for once."""


@dataclass(frozen=True, kw_only=True)
class ViewText:
    """What Spark's catalog keeps of a view."""

    name: str
    text: str
    catalog: str
    schema: str
    """What names without a catalog and a schema in the text are in."""
    columns: tuple[str, ...]
    outputs: tuple[str, ...]
    """The columns of the query when the view was made; which may have others by now."""
    settings: tuple[tuple[str, str], ...]
    comment: str | None = None
    functions: tuple[str, ...] = ()
    """Those of that schema that the text calls by their names alone."""

    @property
    def query(self) -> str:
        """The view as a query that means the same anywhere, with the columns that Spark shows of it."""
        text = in_catalog(self.text, self.catalog, self.schema, self.functions)
        outputs = self.outputs or self.columns
        if len({name.lower() for name in outputs}) < len(outputs):
            return f"SELECT * FROM ({text}\n) AS t({', '.join(map(quoted, self.columns))})"
        chosen = ", ".join(
            quoted(found) if found == shown else f"{quoted(found)} AS {quoted(shown)}"
            for found, shown in zip(outputs, self.columns, strict=True)
        )
        return f"SELECT {chosen} FROM ({text}\n)"

    def settings_here(self, session: SparkSession) -> dict[str, str]:
        """Those that the view was made under, as far as its meaning depends on them. A zone may be the session's."""
        kept = dict(self.settings)
        return dict(Settings.of({ZONE: own(session).settings[ZONE], **kept}).changed)

    def as_plain(self, session: SparkSession, name: str, query: str) -> PlainView:
        """The view as it is known here; in ``query`` its tables have their names here."""
        with spark_errors(f"view {self.name!r} of Spark's catalog does not hold"):
            fields = session.table(quoted_parts(parts_of(self.name))).schema.fields
        return PlainView(
            key=key_of(name), name=name, query=query, catalog_name=self.name, comment=self.comment, created_at=now(),
            columns=tuple((field.name, field.dataType.simpleString()) for field in fields),
            settings=self.settings_here(session),
        )  # fmt: skip
