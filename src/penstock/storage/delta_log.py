"""A Delta table's log, read through delta-rs without Spark: versions, files, and the actions of commits."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs
from pyroaring import BitMap64

from penstock.errors import SourceError
from penstock.frames import limits
from penstock.storage.deletion_vectors import Descriptor, from_arrow, hidden_by, stored_at, unique_id, words_for
from penstock.storage.file_cache import FILES, identity
from penstock.storage.log_listing import newest_version
from penstock.storage.log_replay import TableState, UnknownLog, read_partitions, read_state, read_vectors

_UNKNOWN_ROWS = 10_000_000
_LEAST_WEIGHT = 64 * 1024
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
CHANGE_TYPE, ADDED = "_change_type", ("insert", "update_postimage")
"""The column of the change feed that says what became of a row, and its words for rows that are there from now on."""
PARTITIONED = "penstock.partitioned"
"""The property of a table whose files lie in folders that name their partitions."""
_PLAIN_FEATURES = {"timestampNtz", "deletionVectors", "vacuumProtocolCheck", "v2Checkpoint"}


def partition_of(path: str) -> dict[str, str | None]:
    """The partition that the folders of a file name.

    >>> partition_of("day=2024-05-01/region=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
    {'day': '2024-05-01', 'region': None}
    """
    pairs = [folder.split("=", 1) for folder in path.split("/")[:-1] if "=" in folder]
    return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, value in pairs}


class HistoryGone(Exception):
    """The log or the files that a change would be read from are no longer there."""


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
        self.version: int = version if there and version is not None else self._table.version()
        self._fingerprints: dict[int, str | None] = {}

    @cached_property
    def _table(self) -> DeltaTable:
        path, version = self.path, self._asked
        try:
            return DeltaTable(table_uri(path), version=version)
        except TableNotFoundError:
            raise SourceError(
                f"there is no Delta table at {path!r}: its directory is gone or was never one. "
                "Restore it, or drop what reads it."
            ) from None
        except (DeltaError, OSError) as problem:
            if version is not None:
                raise HistoryGone(f"version {version} of {path!r} cannot be read: {problem}") from None
            raise SourceError(f"the Delta table at {path!r} cannot be read: {problem}") from None

    @cached_property
    def table_id(self) -> str:
        return str(self._table.metadata().id)

    @cached_property
    def first_id(self) -> str:
        """The id that the table was made with: its id still, if nobody but Penstock writes to it.

        It stands in the first commit, so that it costs the reading of one small file, and not of the log.
        """
        filesystem, root = filesystem_of(self.path)
        with suppress(OSError), filesystem.open_input_stream(f"{root}/_delta_log/{0:020d}.json") as stream:
            told = (json.loads(line) for line in stream.read().splitlines() if line.startswith(b'{"metaData"'))
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

    @cached_property
    def schema_json(self) -> str:
        return self._table.schema().to_json()

    @cached_property
    def configuration(self) -> dict[str, str]:
        return dict(self._table.metadata().configuration)

    @cached_property
    def description(self) -> str | None:
        found = self._table.metadata().description
        return None if found is None else str(found)

    @cached_property
    def writer_version(self) -> int:
        return int(self._table.protocol().min_writer_version)

    @cached_property
    def writer_features(self) -> frozenset[str]:
        return frozenset(self._table.protocol().writer_features or ())

    @cached_property
    def partition_columns(self) -> list[str]:
        return list(self._table.metadata().partition_columns)

    @cached_property
    def bounds(self) -> pa.Table:
        """The files as the log has them, with the least and greatest values of their columns: ``min.x``, ``max.x``."""
        return pa.table(self._table.get_add_actions(flatten=True))

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
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
        return sum(self.bounds.column("size_bytes").to_pylist())

    @cached_property
    def plain(self) -> bool:
        """Whether Spark's Parquet reader gives the rows that a Delta reader would, with ``deleted`` left out."""
        protocol = self._table.protocol()
        features = set(protocol.reader_features or ())
        if not features <= _PLAIN_FEATURES or protocol.min_reader_version == 2:
            return False
        if self.partition_columns and PARTITIONED not in self.configuration:
            return False  # only of our own tables we know that the folders say what the log says
        if any(is_elsewhere(file.path) for file in self.files):
            return False
        if sum(map(words_for, self.deleted.values())) > limits.VECTOR_WORDS:
            return False
        return not self.deleted or self.told_by_name

    @cached_property
    def is_known(self) -> bool:
        """Whether what its files hold and its log says is all that a Delta reader goes by; see ``columns``."""
        features = set(self._table.protocol().reader_features or ())
        return features <= _PLAIN_FEATURES | {"columnMapping"} and not any(is_elsewhere(f.path) for f in self.files)

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
        return read_partitions(*filesystem_of(self.path), self.version)

    @cached_property
    def told_by_name(self) -> bool:
        """Whether no two files have the same name in different folders."""
        return len({file.name for file in self.files}) == len(self.files)

    @cached_property
    def allows_vectors(self) -> bool:
        """Whether files of the table may have deletion vectors."""
        return "deletionVectors" in (self._table.protocol().reader_features or ())

    @cached_property
    def deleted(self) -> dict[str, BitMap64]:
        """File to the places of the rows that its deletion vector hides."""
        if not self.allows_vectors:
            return {}
        filesystem, root = filesystem_of(self.path)
        try:
            return _read_vectors(filesystem, root, read_vectors(filesystem, root, self.version))
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
        """The actions of the log that make up the version."""
        try:
            return read_state(*filesystem_of(self.path), self.version)
        except UnknownLog as problem:
            raise HistoryGone(f"version {self.version} of {self.path!r} cannot be read: {problem}") from None

    def uri(self, file: str) -> str:
        """Where a file of the table lies, in a form that Spark takes, which reads it as a pattern."""
        return re.sub(r"([\[\]{}*?\\])", r"\\\1", f"{self.path.rstrip('/')}/{unquote(file)}")


def name_of(file: str) -> str:
    """A file's name, as Spark tells it in ``_metadata.file_name``."""
    return unquote(file).rsplit("/", 1)[-1]


def _read_vectors(filesystem: fs.FileSystem, root: str, descriptors: dict[str, Descriptor]) -> dict[str, BitMap64]:
    contents: dict[str, bytes] = {}

    def content(place: str) -> bytes:
        if place not in contents:
            with filesystem.open_input_file(place) as stream:
                contents[place] = stream.read()
        return contents[place]

    def hidden(descriptor: Descriptor) -> BitMap64:
        file = stored_at(descriptor)
        if file is None:
            return hidden_by(descriptor)
        if descriptor["storageType"] == "p":
            raise UnknownLog(f"a deletion vector lies outside of {root!r}")
        place = f"{root}/{file}"
        key = (*identity(filesystem, place), unique_id(descriptor))
        size = int(descriptor["sizeInBytes"])
        return FILES.kept(key, lambda: hidden_by(descriptor, content(place)), lambda _: size)

    return {path: hidden(descriptor) for path, descriptor in descriptors.items()}


def vectors_of(filesystem: fs.FileSystem, root: str, actions: Mapping[str, Mapping[str, Any]]) -> dict[str, BitMap64]:
    """The rows that the vectors of some actions hide, by file."""
    descriptors = {path: dict(a["deletionVector"]) for path, a in actions.items() if a.get("deletionVector")}
    return _read_vectors(filesystem, root, descriptors)


def table_uri(path: str) -> str:
    """A path in a form that delta-rs takes, which would otherwise decode percent signs."""
    return f"file://{quote(path)}" if "://" not in path and set(path) & set("%#?") else path


def snapshot_of(path: str, version: int | None = None) -> Snapshot:
    """A version of a table, or the newest: the one that was read before, if the file of its commit is still the same.

    So a table that nobody wrote to costs a look at its log's names, and none of its log is read again. Only of a local
    log: elsewhere a look takes as long as reading it.
    """
    found = newest_version(path) if version is None else version
    try:
        commit = identity(fs.LocalFileSystem(), f"{path}/_delta_log/{found or 0:020d}.json")
    except OSError:
        return Snapshot(path, version)
    key = (*commit, path, "snapshot")
    known: Snapshot | None = FILES.get(key)
    if known is None:
        known = Snapshot(path, version, there=version is not None)
        if known.version == found:  # another commit may have come meanwhile
            FILES.put(key, known, _weight(path))
    return known


def _weight(path: str) -> int:
    """About what a version takes in memory: as much as its log, and what it takes to hold it."""
    with os.scandir(f"{path}/_delta_log") as files:
        return _LEAST_WEIGHT + sum(file.stat().st_size for file in files if file.is_file())


def is_table(path: str) -> bool:
    """Whether there is a Delta table."""
    try:
        Snapshot(path)
    except SourceError:
        return False
    return True


def is_latest(snapshot: Snapshot) -> bool:
    """Whether no commit has followed, without reading the log again."""
    filesystem, root = filesystem_of(snapshot.path)
    following = filesystem.get_file_info(f"{root}/_delta_log/{snapshot.version + 1:020d}.json")
    return bool(following.type == fs.FileType.NotFound)


def latest_version(path: str) -> int:
    return Snapshot(path).version


def version_at(path: str, moment: datetime) -> int:
    """The version that a table had at a time; ``HistoryGone`` when it had none, or the log does not say."""
    table = Snapshot(path)._table  # one of its own, which is moved
    try:
        table.load_as_version(moment)
    except (DeltaError, OSError) as problem:
        raise HistoryGone(f"the version of {path!r} at {moment} is not known: {problem}") from None
    version = int(table.version())
    # For a time before the first version delta-rs gives the first.
    if version == 0 and any(commit.made_at > moment.timestamp() * 1000 for commit in read_commits(path, -1, 0)):
        raise HistoryGone(f"{path!r} had no version at {moment}")
    return version


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The actions of one commit that matter to a reader of changes."""

    version: int
    adds: tuple[dict[str, Any], ...]
    removes: tuple[dict[str, Any], ...]
    changes: tuple[dict[str, Any], ...]
    """Files of the change data feed."""
    metadata: dict[str, Any] | None
    made_at: int = 0
    """In milliseconds, as far as the commit says so."""

    @property
    def changed(self) -> bool:
        return any(a.get("dataChange", True) for a in self.adds + self.removes)


def read_commits(path: str, since: int, until: int) -> list[Commit]:
    """The commits after ``since`` up to ``until``; ``HistoryGone`` when the log no longer holds them all."""
    filesystem, root = filesystem_of(path)
    commits = []
    for version in range(since + 1, until + 1):
        try:
            with filesystem.open_input_stream(f"{root}/_delta_log/{version:020d}.json") as stream:
                lines = stream.read().split(b"\n")  # a text in it may have line ends of its own, as Unicode has them
        except FileNotFoundError:
            raise HistoryGone(f"the log of {path!r} no longer holds version {version}") from None
        actions = [json.loads(line) for line in lines if line.strip()]
        commits.append(
            Commit(
                version=version,
                adds=tuple(a["add"] for a in actions if "add" in a),
                removes=tuple(a["remove"] for a in actions if "remove" in a),
                changes=tuple(a["cdc"] for a in actions if "cdc" in a),
                metadata=next((a["metaData"] for a in actions if "metaData" in a), None),
                made_at=next((int(a["commitInfo"].get("timestamp") or 0) for a in actions if "commitInfo" in a), 0),
            )
        )
    return commits


_TELLING = 64 * 1024
"""Bytes of a commit that tell it from others: they hold its time, and names that no other commit gives to files."""


def _fingerprint(path: str, version: int) -> str | None:
    """What tells a commit from another of the same number; None when the log no longer holds it.

    A table that is put back from a backup has the id of before, and comes to the same versions when it is written.
    """
    filesystem, root = filesystem_of(path)
    try:
        with filesystem.open_input_file(f"{root}/_delta_log/{version:020d}.json") as file:
            return sha256(str(file.size()).encode() + file.read(_TELLING)).hexdigest()[:32]
    except FileNotFoundError:
        return None


def files_exist(path: str, actions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the files that some actions name are there, with their deletion vectors."""
    filesystem, root = filesystem_of(path)
    vectors = [stored_at(dict(a["deletionVector"])) for a in actions if a.get("deletionVector")]
    files = {str(a["path"]) for a in actions} | {quote(vector) for vector in vectors if vector is not None}
    infos = filesystem.get_file_info([_place(root, file) for file in files])
    return all(info.type == fs.FileType.File for info in infos)


def check_files(snapshot: Snapshot) -> None:
    """``HistoryGone`` unless all files of a version are there."""
    there = files_exist(snapshot.path, [{"path": file.path} for file in snapshot.files])
    if not there:
        raise HistoryGone(f"files of version {snapshot.version} of {snapshot.path!r} are gone (VACUUM)")


def is_elsewhere(file: str) -> bool:
    """Whether a file of the log lies outside of its table, as those of a shallow clone do."""
    return file.startswith("/") or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", file) is not None


def _place(root: str, file: str) -> str:
    place = unquote(file)
    return f"{root}/{place}" if not is_elsewhere(file) else re.sub("^file:/+", "/", place)


def filesystem_of(path: str) -> tuple[fs.FileSystem, str]:
    """The file system that a table lies in, and the table's path in it."""
    if "://" in path:
        filesystem, root = fs.FileSystem.from_uri(path)
        return filesystem, root.rstrip("/")
    return fs.LocalFileSystem(), path.rstrip("/")
