"""The statement that creates a table or a view again, as SHOW CREATE prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.catalog import TableRecord, ViewRecord, World
from penstock.engine.immediate import why_not_immediate
from penstock.errors import NotSupportedError
from penstock.observe.listings import STATEMENT, Listing
from penstock.sql.names import DEFAULT, QualifiedName
from penstock.sql.statements import ShowCreate
from penstock.storage.delta_log import Snapshot
from penstock.vocabulary import Policy, When

_TYPES = {"integer": "INT", "long": "BIGINT", "short": "SMALLINT", "byte": "TINYINT"}
_BOOKKEEPING = ("delta.columnMapping.maxColumnId", "delta.rowTracking.materialized")
"""Properties that Delta sets by itself and does not let anyone else set."""


def listing(world: World, asked: ShowCreate) -> Listing:
    """What SHOW CREATE gives, named as Spark names it: one statement, of a read model maybe another one after it."""
    plain = world.plain.get(world.known_key(asked.name) or "")
    if plain is not None:
        name = QualifiedName.read(plain.name)
        here = str(QualifiedName(name.schema, name.name))  # where it can be made, if it is one of Spark's
        return Listing(f"{STATEMENT} STRING", [(f"CREATE VIEW {_relation(here)}\nAS {plain.query}",)])
    key = world.view_key(asked.name) if asked.view else world.resolve(asked.name)
    if key in world.models:
        return Listing(f"{STATEMENT} STRING", [(text,) for text in of_model(world, world.views[key])])
    if key in world.views:
        text = of_view(world, world.views[key])
    elif key in world.tables:
        text = of_table(world.tables[key])
    else:
        raise NotSupportedError(f"{asked.name!r} are the late rows of a view: they are created with it.")
    return Listing(f"{STATEMENT} STRING", [(text,)])


def of_model(world: World, view: ViewRecord) -> list[str]:
    """CREATE TABLE, which says when it is refreshed by itself, and an ALTER if that, or how, was changed since."""
    name = _relation(view.name)
    created = [f"CREATE TABLE {name}", _properties(view.properties), f"AS {view.written or view.query}"]
    usual = When.IMMEDIATE if why_not_immediate(world, view) is None else When.ON_COMMIT
    altered = [
        f"REFRESH {view.refresh}" if view.refresh != usual else "",
        f"REFRESH POLICY {view.policy}" if view.policy != Policy.AUTO else "",
        str(view.options),
    ]
    more = " ".join(part for part in altered if part)
    text = "\n".join(part for part in created if part)
    return [text, f"ALTER MATERIALIZED VIEW {name} {more}"] if more else [text]


def of_view(world: World, view: ViewRecord) -> str:
    placement = world.nodes[view.key].details.placement
    columns = [_name(name) + (f" COMMENT {_text(comment)}" if comment else "") for name, _, comment in view.columns]
    parts = [
        f"CREATE MATERIALIZED VIEW {_relation(view.name)} ({', '.join(columns)})",
        f"COMMENT {_text(view.comment)}" if view.comment else "",
        f"PARTITIONED BY ({_names(placement.partition)})" if placement.partition else "",
        f"CLUSTER BY ({_names(placement.cluster)})" if placement.cluster else "",
        _properties(view.properties),
        f"AS {view.written or view.query}",
        f"REFRESH {view.refresh}" if view.refresh != "MANUAL" else "",
        f"REFRESH POLICY {view.policy}" if view.policy != Policy.AUTO else "",
        str(view.options),
        f"BUCKETS {placement.buckets}" if placement.buckets else "",
    ]
    return "\n".join(part for part in parts if part)


def of_table(table: TableRecord) -> str:
    """An external table is where it is; a managed one is made anew, without its rows."""
    watermark = [str(table.watermark)] if table.watermark else []
    if table.external:
        columns = f" ({watermark[0]})" if watermark else ""
        return f"CREATE TABLE {_relation(table.name)}{columns}\nLOCATION {_text(table.path)}"
    found = Snapshot(table.path)
    lost = _untold(found)
    if lost:
        raise NotSupportedError(
            f"table {table.name!r} has {lost}, which SHOW CREATE does not tell. See DESCRIBE DETAIL."
        )
    fields = [_column(field) for field in json.loads(found.schema_json)["fields"]]
    kept = {key: value for key, value in found.configuration.items() if not key.startswith(_BOOKKEEPING)}
    if "allowColumnDefaults" in found.writer_features:
        kept["delta.feature.allowColumnDefaults"] = "supported"
    parts = [
        f"CREATE TABLE {_relation(table.name)} (\n  " + ",\n  ".join([*fields, *watermark]) + "\n)",
        f"PARTITIONED BY ({_names(found.partition_columns)})" if found.partition_columns else "",
        f"COMMENT {_text(found.description)}" if found.description else "",
        _properties(dict(sorted(kept.items()))),  # a Delta log keeps them in no order
    ]
    return "\n".join(part for part in parts if part)


def _untold(table: Snapshot) -> str | None:
    if any(key.startswith("delta.constraints.") for key in table.configuration):
        return "a CHECK constraint"
    return "a CLUSTER BY" if "clustering" in table.writer_features else None


def _column(field: Mapping[str, Any]) -> str:
    said = field.get("metadata", {})
    parts = [_name(field["name"]), str(said.get("__CHAR_VARCHAR_TYPE_STRING", "")).upper() or _type(field["type"])]
    if not field["nullable"]:
        parts.append("NOT NULL")
    if "delta.generationExpression" in said:
        parts.append(f"GENERATED ALWAYS AS ({said['delta.generationExpression']})")
    if "delta.identity.start" in said:
        how = "BY DEFAULT" if said["delta.identity.allowExplicitInsert"] else "ALWAYS"
        start, step = said["delta.identity.start"], said["delta.identity.step"]
        parts.append(f"GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})")
    if "CURRENT_DEFAULT" in said:
        parts.append(f"DEFAULT {said['CURRENT_DEFAULT']}")
    if said.get("comment"):
        parts.append(f"COMMENT {_text(said['comment'])}")
    return " ".join(parts)


def _type(kept: str | Mapping[str, Any]) -> str:
    """A type of Spark's JSON in SQL.

    >>> _type({"type": "array", "elementType": "long", "containsNull": True}), _type("decimal(10,2)")
    ('ARRAY<BIGINT>', 'DECIMAL(10,2)')
    """
    if isinstance(kept, str):
        return _TYPES.get(kept, kept.upper())
    if kept["type"] == "array":
        return f"ARRAY<{_type(kept['elementType'])}>"
    if kept["type"] == "map":
        return f"MAP<{_type(kept['keyType'])}, {_type(kept['valueType'])}>"
    fields = []
    for field in kept["fields"]:
        comment = field.get("metadata", {}).get("comment")
        fields.append(
            f"{_name(field['name'])}: {_type(field['type'])}{'' if field['nullable'] else ' NOT NULL'}"
            + (f" COMMENT {_text(comment)}" if comment else "")
        )
    return f"STRUCT<{', '.join(fields)}>"


def _properties(properties: Mapping[str, str]) -> str:
    listed = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in properties.items())
    return f"TBLPROPERTIES ({listed})" if listed else ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(_name, names))


def _relation(name: str) -> str:
    """
    >>> _relation("odd name"), _relation("gold.totals"), _relation("`odd schema`.`a.b`")
    ('`odd name`', 'gold.totals', '`odd schema`.`a.b`')
    """
    found = QualifiedName.read(name)
    return _name(found.name) if found.schema_key == DEFAULT else ".".join(map(_name, found.parts))


def _name(name: str) -> str:
    """
    >>> _name("total"), _name("total amount")
    ('total', '`total amount`')
    """
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    """
    >>> _text("it's")
    "'it\\\\'s'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
