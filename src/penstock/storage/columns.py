"""Where the columns of a table are: in its files, under their own names or others (column mapping), or in the log.

A partition column is in no file: the log gives its value for each file, as a text. Of these texts those are read here
that mean one value, whoever reads them; a moment that does not name its zone is Spark's to read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.frames.arrow.tables import loosened, settled
from penstock.frames.frame import NotHere
from penstock.frames.spark.types import to_arrow_schema
from penstock.storage.delta_log import Snapshot
from penstock.storage.log_replay import UnknownLog
from penstock.storage.reader import schema_of

_PLACE = "__row"
_PHYSICAL, _ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(Z)?")

Values = Mapping[str, str | None]
"""What the log says of a file's partition, by the columns' stored names."""


Constants = Mapping[str, pa.Scalar]
"""The values that all rows of a file have, by the names of the columns."""

_READ = (StringType, IntegralType, DecimalType, BooleanType, DateType, TimestampType, TimestampNTZType)


class Columns:
    """Some columns of a table, and how to read them from its files. ``schema`` has their names for Spark."""

    def __init__(self, table: Snapshot, schema: StructType):
        self.schema = schema
        self.arrow: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        known = {field.name: field for field in schema_of(table).fields}
        self._stored = {name: str(known[name].metadata.get(_PHYSICAL, name)) for name in schema.names}
        by_id = table.configuration.get("delta.columnMapping.mode", "none") == "id"
        self._ids = {self._stored[name]: known[name].metadata[_ID] for name in schema.names} if by_id else {}
        whole = {column: str(known[column].metadata.get(_PHYSICAL, column)) for column in table.partition_columns}
        self._partition = set(whole.values())
        self._constants = [name for name in schema.names if name in whole]
        self._types = {field.name: field.dataType for field in schema.fields if field.name in whole}
        for data_type in self._types.values():
            if not isinstance(data_type, _READ):
                raise NotHere(f"a partition of type {data_type.simpleString()}")

    @property
    def in_files(self) -> list[str]:
        """The columns that the files hold, as they call them."""
        return [self._stored[name] for name in self.schema.names if name not in self._constants]

    @property
    def texts(self) -> list[str]:
        """Those of them that are text."""
        kinds = {field.name: field.dataType for field in self.schema.fields}
        names = [name for name in self.schema.names if isinstance(kinds[name], StringType)]
        return [stored for stored in map(self.stored_as, names) if stored is not None]

    def stored_as(self, name: str) -> str | None:
        """What a column is called in the files; None for one that is not there."""
        return None if name in self._constants else self._stored[name]

    def check(self, stored: pa.Schema) -> None:
        """Whether a file has the columns, told by their names and, where the table says so, by their numbers."""
        found = {field.name: field for field in stored}
        if not set(self.in_files) <= found.keys():
            raise NotHere("a file lacks a column")
        for name in self.in_files:
            if name in self._ids and (found[name].metadata or {}).get(b"PARQUET:field_id") != b"%d" % self._ids[name]:
                raise NotHere("a file that tells its columns by other numbers")

    def read(self, file: pq.ParquetFile, groups: Sequence[int], more: Sequence[str] = ()) -> pa.Table:
        """Row groups of a file as they are; ``more`` columns are not the table's. Goes to ``complete`` in the end."""
        names = [*self.in_files, *more]
        if names:
            return settled(file.read_row_groups(list(groups), columns=names, use_threads=True).select(names))
        return nothing(sum(file.metadata.row_group(number).num_rows for number in groups))

    def constants(self, values: Values, *, missing: bool = False) -> Constants:
        """The partition columns of a file of which the log says this; with ``missing``, it may leave NULLs out."""
        if not set(values) <= self._partition or (not missing and len(values) < len(self._partition)):
            raise NotHere("a file of other partitions")
        kinds = {name: self.arrow.field(name).type for name in self._constants}
        return {n: _scalar(values.get(self._stored[n]), self._types[n], kinds[n]) for n in self._constants}

    def constants_of(self, table: Snapshot, file: str) -> Constants:
        """The same for a file of a version."""
        if any(isinstance(data_type, TimestampType) for data_type in self._types.values()):
            try:  # delta-rs does not tell moments without a zone apart
                return self.constants(table.partition_texts[file])
            except UnknownLog as problem:
                raise NotHere(str(problem)) from None
        if table.short is not None:
            with suppress(NotHere):  # delta-rs, which would open the table once more, knows more kinds of values
                return self.constants(table.partition_texts[file])
        return {name: _or_null(table.partition_value(file, name)) for name in self._constants}

    def complete(self, rows: pa.Table, constants: Constants) -> pa.Table:
        """Rows of a file under the columns' names and with their types, in order."""
        columns = []
        for field in self.arrow:
            if field.name in constants:
                columns.append(pa.repeat(constants[field.name], rows.num_rows))
            else:
                columns.append(rows.column(self._stored[field.name]))
        return loosened(pa.table(columns, names=self.arrow.names)).cast(self.arrow)

    def named(self, batch: pa.RecordBatch | None, constants: Constants, count: int) -> pa.RecordBatch:
        """Rows of a file under the columns' names, with the types that they are stored with."""
        columns = []
        for name in self.schema.names:
            if name in constants:
                columns.append(pa.repeat(constants[name], count))
            else:
                assert batch is not None
                columns.append(batch.column(self._stored[name]))
        return pa.RecordBatch.from_arrays(columns, names=self.schema.names)


def _or_null(value: pa.Scalar) -> pa.Scalar:
    """The empty text means NULL."""
    return pa.scalar(None, value.type) if pa.types.is_string(value.type) and value.as_py() == "" else value


def nothing(count: int) -> pa.Table:
    """Rows of which nothing was read from a file."""
    return pa.table({_PLACE: pa.nulls(count, pa.int8())})


def _scalar(text: str | None, data_type: DataType, kind: pa.DataType) -> pa.Scalar:
    """The value that a text of the log means. The empty text means NULL.

    >>> _scalar("2024-05-01T10:00:00.5Z", TimestampType(), pa.timestamp("us", "UTC")).value
    1714557600500000
    >>> _scalar("", StringType(), pa.string()).as_py() is None
    True
    """
    if text is None or text == "":
        return pa.scalar(None, kind)
    try:
        return pa.scalar(_value(text, data_type), kind)
    except (ValueError, OverflowError, InvalidOperation, pa.ArrowInvalid, pa.ArrowTypeError):
        raise NotHere(f"a partition {text!r}") from None


def _value(text: str, data_type: DataType) -> Any:
    match data_type:
        case StringType():
            return text
        case IntegralType():
            return int(text)
        case DecimalType():
            return Decimal(text)
        case BooleanType() if text in ("true", "false"):
            return text == "true"
        case DateType():
            return date.fromisoformat(text)
        case TimestampType() | TimestampNTZType():
            return _moment(text, isinstance(data_type, TimestampType))
    raise ValueError(text)


def _moment(text: str, zoned: bool) -> datetime:
    found = _MOMENT.fullmatch(text)
    if found is None or zoned != (found[4] is not None):
        raise NotHere(f"a partition {text!r}, which is a moment of the session's zone")
    time = datetime.fromisoformat(f"{found[1]} {found[2]}").replace(microsecond=int((found[3] or "").ljust(6, "0")))
    return time.replace(tzinfo=timezone.utc) if zoned else time
