"""What goes into the columns of a table: values in the columns' types, defaults, and what the table asks of each row.

A value goes into a column here if it surely does so without a word under Spark's ANSI rules of store assignment. What
may be refused, or is turned into something else on the way, raises ``NotHere``, and Spark decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa
from pyspark.sql.types import DataType, StructField
from sqlglot import exp

from penstock.engine.seen import Scope, Seen, is_default, parsed, resolved
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import NotHere
from penstock.frames.names import LOCATED
from penstock.sql.trees import Named, cast, column
from penstock.storage.appending import DEFAULT, can_append, constraints_of
from penstock.storage.delta_log import Snapshot
from penstock.storage.reader import schema_of
from penstock.storage.row_change import can_mark

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "double")
_TAKEN = {
    **dict.fromkeys(_NUMBERS, _NUMBERS), "string": ("string",), "boolean": ("boolean",), "date": ("date", "string"),
    "timestamp": ("timestamp", "string"), "timestamp_ntz": ("timestamp_ntz",),
}  # fmt: skip
"""Types of columns, and which values go into them without a word."""

Values = Mapping[str, exp.Expr]
"""New values by the columns' names in lower case."""


class Target:
    """A table that rows are written into, at a version."""

    def __init__(self, seen: Seen, table: Snapshot, *, marking: bool):
        """``marking``: some of its rows will be marked as deleted."""
        if not can_append(table):
            raise NotHere("the table asks more of its writers than is done on the driver")
        if marking and not can_mark(table):
            raise NotHere("the table allows no deletion vectors, or no deletions")
        self.table = table
        self._seen = seen
        self.fields: dict[str, StructField] = {field.name.lower(): field for field in schema_of(table).fields}
        if self.fields.keys() & set(LOCATED) or len(self.fields) < len(self.names):
            raise NotHere("columns of names that are not told apart here")

    @property
    def names(self) -> list[str]:
        return list(schema_of(self.table).names)

    @cached_property
    def _defaults(self) -> dict[str, exp.Expr]:
        told = {f["name"].lower(): f["metadata"] for f in json.loads(self.table.schema_json)["fields"]}
        return {name: resolved(parsed(metadata[DEFAULT]), []) for name, metadata in told.items() if DEFAULT in metadata}

    def default(self, name: str) -> exp.Expr:
        """What a column gets that is not named."""
        return self._defaults.get(name, exp.Null())

    def assigned(self, pairs: Sequence[tuple[exp.Expr, exp.Expr]], own: str, scopes: Sequence[Scope]) -> Values:
        """What SET says: the columns of the table, which is called ``own``, and their values."""
        found: dict[str, exp.Expr] = {}
        for place, value in pairs:
            name = place.name.lower() if isinstance(place, exp.Column | exp.Identifier) else ""
            if isinstance(place, exp.Column) and (place.args.get("db") or place.table.lower() not in ("", own)):
                name = ""
            if name not in self.fields or name in found:
                raise NotHere("SET says more than plain columns, each once")
            found[name] = self.default(name) if is_default(value) else resolved(value, scopes)
        return found

    def inserted(self, names: Sequence[str], values: Sequence[exp.Expr], scopes: Sequence[Scope]) -> Values:
        """A value for each column, from those that are named."""
        wanted = [name.lower() for name in names]
        if len(set(wanted)) < len(wanted) or not set(wanted) <= set(self.fields) or len(values) != len(wanted):
            raise NotHere("columns and values that do not fit together")
        given = dict(zip(wanted, values, strict=True))
        return {
            name: resolved(given[name], scopes) if name in given and not is_default(given[name]) else self.default(name)
            for name in self.fields
        }

    def written(self, rows: ArrowFrame, values: Values, kept: Mapping[str, str] | None = None) -> pa.Table:
        """The rows of the table that are made of others; columns without a new value are ``kept``, by their names."""
        outputs: list[Named] = []
        for name, field in self.fields.items():
            if name not in values:
                outputs.append((field.name, column((kept or {})[name])))
                continue
            self._check_fits(rows, values[name], field)
            outputs.append((field.name, cast(values[name], field.dataType.simpleString())))
        return self.checked(rows.select(outputs))

    def checked(self, rows: object) -> pa.Table:
        """New rows, if they are what the table asks for."""
        found = rows.rows() if isinstance(rows, ArrowFrame) else None
        if found is None:
            raise NotHere("a value that only Spark computes")
        for field in self.fields.values():
            if not field.nullable and found.column(field.name).null_count:
                raise NotHere(f"column {field.name} may not be NULL")
        for name, text in constraints_of(self.table).items():
            self._check(ArrowFrame.of(self._seen.spark, found), name, text)
        return found

    def _check(self, rows: ArrowFrame, name: str, text: str) -> None:
        """A constraint must be true; for Delta, NULL is not."""
        condition = resolved(parsed(text), [Scope("", {key: field.name for key, field in self.fields.items()})])
        met = rows.value_of(condition)
        if not pa.types.is_boolean(met.type) or met.true_count < len(met):
            raise NotHere(f"rows that do not meet the constraint {name}")

    def _check_fits(self, rows: ArrowFrame, value: exp.Expr, field: StructField) -> None:
        if not isinstance(value.unnest(), exp.Null):
            found = rows.select([("v", value)])
            if not isinstance(found, ArrowFrame):
                raise NotHere("a value that only Spark computes")
            check_goes_into(found.types["v"], field)


def check_goes_into(own: str, field: StructField) -> None:
    """Refuse what does not surely go into a column."""
    if not goes_into(own, field.dataType):
        raise NotHere(f"a value of type {own} for column {field.name}, which is {field.dataType.simpleString()}")


def goes_into(own: str, kind: DataType) -> bool:
    """Whether values of a type go into a column without a word."""
    wanted = kind.simpleString()
    return own == wanted or own.partition("(")[0] in _TAKEN.get(wanted.partition("(")[0], ())
