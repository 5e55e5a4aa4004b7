"""A Delta table's log, read through delta-rs without Spark: versions, files, and the actions of commits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyroaring import BitMap64

from penstock.errors import SourceError
from penstock.frames import limits
from penstock.storage.data_files import files_exist, is_elsewhere, is_out_of_reach, name_of
from penstock.storage.deletion_vectors import Descriptor, from_arrow, hidden_by, stored_at, unique_id, words_for
from penstock.storage.file_cache import FILES, Identity
from penstock.storage.files import Files, files_of
from penstock.storage.locations import is_store, options_of, store_of
from penstock.storage.log_listing import (
    LOG,
    bytes_to_read,
    commit_name,
    identity_of,
    known_files,
    newest_version,
    read_commit,
)
from penstock.storage.log_replay import (
    Action,
    TableState,
    UnknownLog,
    next_state,
    partitions_among,
    read_partitions,
    read_state,
    read_vectors,
    rows_told,
    vectors_among,
)
from penstock.storage.table_head import Head, head_of_actions, head_of_delta_rs

_UNKNOWN_ROWS = 10_000_000
_LEAST_WEIGHT = 64 * 1024
_LONG_LOG = 256 * 1024
"""Bytes of a log from which on delta-rs is faster at reading it."""
CHANGE_TYPE, ADDED = "_change_type", ("insert", "update_postimage")
"""The column of the change feed that says what became of a row, and its words for rows that are there from now on."""
PARTITIONED = "penstock.partitioned"
"""The property of a table whose files lie in folders that name their partitions."""
_PLAIN_FEATURES = {"timestampNtz", "deletionVectors", "vacuumProtocolCheck", "v2Checkpoint"}


class HistoryGone(SourceError):
    """The log or the files that a version or a change would be read from are no longer there, or are broken."""


@dataclass(frozen=True)
class DataFile:
    """A file of a version. ``path`` is relative to the table, as in the log; ``rows`` are those not deleted."""

    path: str
    size: int
    rows: int | None

    @property
    def name(self) -> str:
        return name_of(self.path)

    @property
    def most(self) -> int:
        """How many rows it has; a file that does not say so counts as large."""
        return _UNKNOWN_ROWS if self.rows is None else self.rows


class Shaped(Protocol):
    """What tells the columns, partitions and properties of a table: a version of it, or what it is to be like."""

    @property
    def schema_json(self) -> str: ...
    @property
    def partition_columns(self) -> list[str]: ...
    @property
    def configuration(self) -> dict[str, str]: ...


class Snapshot:
    """One version of a table. One that is ``there`` for certain is not opened before it is asked for something."""

    def __init__(self, path: str, version: int | None = None, *, there: bool = False):
        self.path = path
        self._asked = version
        if version is not None:
            _check_commit(path, version)
        self.version: int = version if there and version is not None else self._opened_version()
        self._fingerprints: dict[int, str | None] = {}

    def _opened_version(self) -> int:
        """The version, of which it is certain that it is there. delta-rs would look for it in several round trips."""
        found = None
        if is_store(self.path):
            found = newest_version(self.path) if self._asked is None else self._asked
            if found is not None and identity_of(files_of(self.path), found) is None:
                found = None
        return self._table.version() if found is None else found

    @cached_property
    def _table(self) -> DeltaTable:
        return opened(self.path, self.__dict__.get("version", self._asked) if is_store(self.path) else self._asked)

    @cached_property
    def short(self) -> TableState | None:
        """The actions of a log that is read here faster than by delta-rs; None for one that is long or far away.

        What delta-rs has opened already, it tells: a table may have been made again in the same place since.
        """
        if "_table" in self.__dict__:
            return None
        long = self._state_before is None and (bytes_to_read(self.path, self.version) or _LONG_LOG) >= _LONG_LOG
        if not long:
            with suppress(HistoryGone, OSError, ValueError, KeyError):  # delta-rs says best what is wrong with a log
                return self.state
        return None

    @property
    def _state_before(self) -> TableState | None:
        """The actions of the version before, if they were read already."""
        key = _key(self.path, self.version - 1)
        before: Snapshot | None = None if key is None else FILES.get(key)
        return None if before is None else before.__dict__.get("state")

    @cached_property
    def head(self) -> Head:
        """What the table is like: its id, its columns and properties, and what it asks of readers and writers."""
        if self.short is not None:
            return head_of_actions(self.short.metadata, self.short.protocol)
        return head_of_delta_rs(self._table)

    @property
    def table_id(self) -> str:
        return self.head.table_id

    @cached_property
    def first_id(self) -> str:
        """The id that the table was made with: its id still, if nobody but Penstock writes to it.

        It stands in the first commit, so that it costs the reading of one small file, and not of the log.
        """
        with suppress(OSError):
            commit = read_commit(files_of(self.path), 0)
            told = (json.loads(line) for line in commit.splitlines() if line.startswith(b'{"metaData"'))
            found = next((action["metaData"]["id"] for action in told), None)
            if found is not None:
                return str(found)
        return self.table_id

    def fingerprint(self, version: int | None = None) -> str | None:
        """What the commit of this version, or of an earlier one, was; None when it is no longer in the log."""
        wanted = self.version if version is None else version
        if wanted not in self._fingerprints:
            self._fingerprints[wanted] = _fingerprint(self.path, wanted)
        return self._fingerprints[wanted]

    @property
    def schema_json(self) -> str:
        return self.head.schema_json

    @property
    def configuration(self) -> dict[str, str]:
        return self.head.configuration

    @property
    def description(self) -> str | None:
        return self.head.description

    @property
    def writer_version(self) -> int:
        return self.head.writer_version

    @property
    def writer_features(self) -> frozenset[str]:
        return self.head.writer_features

    @property
    def partition_columns(self) -> list[str]:
        return self.head.partition_columns

    @cached_property
    def bounds(self) -> pa.Table:
        """The ``files`` with the least and greatest values of their columns, as the log says: ``min.x``, ``max.x``."""
        found = pa.table(self._table.get_add_actions(flatten=True))
        if self.short is None:
            return found
        places = {path: place for place, path in enumerate(found.column("path").to_pylist())}
        return found.take(pa.array([places[file.path] for file in self.files], pa.int64()))

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        if self.short is not None:
            return tuple(_file_of(add) for add in self.short.adds.values())
        columns = [self.bounds.column(name).to_pylist() for name in ("path", "size_bytes", "num_records")]
        return tuple(
            DataFile(path, size, None if rows is None else rows - len(self.deleted.get(path, ())))
            for path, size, rows in zip(*columns, strict=True)
        )

    @cached_property
    def rows(self) -> int:
        """How many rows the version has; a file that does not say so counts as large."""
        return sum(file.most for file in self.files)

    @property
    def size(self) -> int:
        """The bytes of its data files."""
        return sum(file.size for file in self.files)

    @cached_property
    def plain(self) -> bool:
        """Whether Spark's Parquet reader gives the rows that a Delta reader would, with ``deleted`` left out."""
        if not self.head.reader_features <= _PLAIN_FEATURES or self.head.reader_version == 2:
            return False
        if self.partition_columns and PARTITIONED not in self.configuration:
            return False  # only of our own tables we know that the folders say what the log says
        outside = is_elsewhere if self.partition_columns else partial(is_out_of_reach, self.path)
        if any(outside(file.path) for file in self.files):
            return False
        if sum(map(words_for, self.deleted.values())) > limits.VECTOR_WORDS:
            return False
        return not self.deleted or self.told_by_name

    @cached_property
    def is_known(self) -> bool:
        """Whether what its files hold and its log says is all that a Delta reader goes by; see ``columns``."""
        features = self.head.reader_features
        known = features <= _PLAIN_FEATURES | {"columnMapping"}
        return known and not any(is_out_of_reach(self.path, file.path) for file in self.files)

    def partition_value(self, file: str, column: str) -> pa.Scalar:
        """The value of a partition column for a file."""
        return self.bounds.column(f"partition.{column}")[self._numbers[file]]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The place of each file among ``bounds``."""
        return {path: number for number, path in enumerate(self.bounds.column("path").to_pylist())}

    @cached_property
    def partition_texts(self) -> dict[str, dict[str, str | None]]:
        """What the log says of each file's partition, word for word."""
        if self.short is not None:
            return partitions_among(self.short.adds)
        return read_partitions(files_of(self.path), self.version)

    @cached_property
    def told_by_name(self) -> bool:
        """Whether no two files have the same name in different folders."""
        return len({file.name for file in self.files}) == len(self.files)

    @property
    def allows_vectors(self) -> bool:
        """Whether files of the table may have deletion vectors."""
        return "deletionVectors" in self.head.reader_features

    @cached_property
    def deleted(self) -> dict[str, BitMap64]:
        """File to the places of the rows that its deletion vector hides."""
        if not self.allows_vectors:
            return {}
        files = files_of(self.path)
        try:
            short = self.short
            told = read_vectors(files, self.version) if short is None else vectors_among(short.adds)
            return _read_vectors(files, told)
        except UnknownLog:
            try:
                return self._deleted_by_delta_rs()
            except (DeltaError, OSError) as problem:
                raise HistoryGone(f"a deletion vector of {self.path!r} cannot be read: {problem}") from None
        except FileNotFoundError as problem:
            raise HistoryGone(f"a deletion vector of {self.path!r} is gone: {problem}") from None

    def _deleted_by_delta_rs(self) -> dict[str, BitMap64]:
        """The same from delta-rs, which takes a while: it tells of every row of a file whether it is there."""
        paths = {name_of(path): path for path in pa.table(self._table.get_add_actions()).column("path").to_pylist()}
        vectors = pa.RecordBatchReader.from_stream(self._table.deletion_vectors()).read_all()
        found = {}
        for file, kept in zip(vectors["filepath"].to_pylist(), vectors["selection_vector"], strict=True):
            found[paths[name_of(file)]] = from_arrow(pc.indices_nonzero(pc.invert(kept.values)))
        return found

    @cached_property
    def state(self) -> TableState:
        """The actions of the log that make up the version. After the version before, one commit is left to read."""
        before = self._state_before
        try:
            if before is not None:
                return next_state(before, files_of(self.path), self.version)
            return read_state(files_of(self.path), self.version)
        except UnknownLog as problem:
            raise HistoryGone(f"version {self.version} of {self.path!r} cannot be read: {problem}") from None

    def uri(self, file: str) -> str:
        """Where a file of the table lies, in a form that Spark takes, which reads it as a pattern."""
        place = unquote(file) if is_elsewhere(file) else f"{self.path.rstrip('/')}/{unquote(file)}"
        return re.sub(r"([\[\]{}*?\\])", r"\\\1", place)


def _read_vectors(files: Files, descriptors: dict[str, Descriptor]) -> dict[str, BitMap64]:
    contents: dict[str, bytes] = {}

    def content(file: str) -> bytes:
        if file not in contents:
            contents[file] = files.read(file)
        return contents[file]

    def hidden(descriptor: Descriptor) -> BitMap64:
        file = stored_at(descriptor)
        if file is None:
            return hidden_by(descriptor)
        if is_out_of_reach(files.root, file):
            raise UnknownLog(f"a deletion vector lies outside of {files.root!r}")
        key = (*files.identity(file), unique_id(descriptor))
        size = int(descriptor["sizeInBytes"])
        return FILES.kept(key, lambda: hidden_by(descriptor, content(file)), lambda _: size)

    return {path: hidden(descriptor) for path, descriptor in descriptors.items()}


def vectors_of(files: Files, actions: Mapping[str, Mapping[str, Any]]) -> dict[str, BitMap64]:
    """The rows that the vectors of some actions hide, by file."""
    descriptors = {path: dict(a["deletionVector"]) for path, a in actions.items() if a.get("deletionVector")}
    return _read_vectors(files, descriptors)


def table_uri(path: str) -> str:
    """A path in a form that delta-rs takes, which would otherwise decode percent signs."""
    return f"file://{quote(path)}" if "://" not in path and set(path) & set("%#?") else path


def snapshot_of(path: str, version: int | None = None) -> Snapshot:
    """A version of a table, or the newest: the one that was read before, if the file of its commit is still the same.

    So a table that nobody wrote to costs a look at its log's names, and none of its log is read again.
    """
    found = newest_version(path) if version is None else version
    key = _key(path, found or 0)
    if key is None:
        return Snapshot(path, version)
    known: Snapshot | None = FILES.get(key)
    if known is None:
        known = Snapshot(path, version, there=version is not None)
        if known.version == found:  # another commit may have come meanwhile
            FILES.put(key, known, _weight(path))
    return known


def newest(path: str) -> Snapshot:
    """The newest version, as the names in its log tell it. delta-rs would look for it once more."""
    return snapshot_of(path, newest_version(path))


def _key(path: str, version: int) -> Identity | None:
    """What a version is kept by: the file of its commit, as it is now; None if there is no such file here."""
    found = identity_of(files_of(path), version)
    return None if found is None else (*found, path, "snapshot")


def _file_of(add: Action) -> DataFile:
    """A file as its action tells it, without the rows that its deletion vector hides."""
    rows = rows_told(add)
    hidden = int((add.get("deletionVector") or {}).get("cardinality", 0))
    return DataFile(add["path"], int(add["size"]), None if rows is None else rows - hidden)


def _weight(path: str) -> int:
    """About what a version takes in memory: as much as its log, and what it takes to hold it."""
    files = files_of(path)
    found = files.listing(LOG) if files.local else known_files(files).values()
    return _LEAST_WEIGHT + sum(info.size for info in found)


def _check_commit(path: str, version: int) -> None:
    """A power failure may leave a commit without content, and every reader would take it for one that did nothing."""
    with suppress(OSError):
        if _size_of(files_of(path), version) == 0:
            raise HistoryGone(f"version {version} of {path!r} cannot be read: its commit is empty")


def _size_of(files: Files, version: int) -> int | None:
    """The size of a commit; elsewhere than here, as it was when it was last looked at."""
    if files.local:
        return files.info(commit_name(version)).size
    found = known_files(files).get(commit_name(version).removeprefix(f"{LOG}/"))
    return None if found is None else found.size


def first_line(problem: BaseException) -> str:
    """What is wrong, without the stack that delta-rs puts under it."""
    return (str(problem).strip().splitlines() or [""])[0]


def opened(path: str, version: int | None = None) -> DeltaTable:
    """A version of a table as delta-rs knows it, or the newest."""
    try:
        return delta_rs(path, version)
    except TableNotFoundError:
        raise SourceError(
            f"there is no Delta table at {path!r}: its directory is gone or was never one. "
            "Restore it, or drop what reads it."
        ) from None
    except (DeltaError, OSError) as problem:
        if version is not None:
            raise HistoryGone(f"version {version} of {path!r} cannot be read: {first_line(problem)}") from None
        raise SourceError(f"the Delta table at {path!r} cannot be read: {first_line(problem)}") from None


def delta_rs(path: str, version: int | None = None) -> DeltaTable:
    """The same, with its own errors."""
    if is_store(path):
        store = store_of(path)  # what follows is a URL for delta-rs, and for nobody else
        return DeltaTable(store + quote(path[len(store) :]), version=version, storage_options=options_of(path))
    return DeltaTable(table_uri(path), version=version)


def is_table(path: str) -> bool:
    """Whether there is a Delta table."""
    try:
        Snapshot(path)
    except SourceError:
        return False
    return True


def is_latest(snapshot: Snapshot) -> bool:
    """Whether no commit has followed, without reading the log again."""
    return not files_of(snapshot.path).exists(commit_name(snapshot.version + 1))


def latest_version(path: str) -> int:
    return Snapshot(path).version


_TELLING = 64 * 1024
"""Bytes of a commit that tell it from others: they hold its time, and names that no other commit gives to files."""


def _fingerprint(path: str, version: int) -> str | None:
    """What tells a commit from another of the same number; None when the log no longer holds it.

    A table that is put back from a backup has the id of before, and comes to the same versions when it is written.
    """
    try:
        commit = read_commit(files_of(path), version)
    except FileNotFoundError:
        return None
    return sha256(str(len(commit)).encode() + commit[:_TELLING]).hexdigest()[:32]


def check_files(snapshot: Snapshot) -> None:
    """``HistoryGone`` unless all files of a version are there."""
    there = files_exist(snapshot.path, [{"path": file.path} for file in snapshot.files])
    if not there:
        raise HistoryGone(f"files of version {snapshot.version} of {snapshot.path!r} are gone (VACUUM)")
