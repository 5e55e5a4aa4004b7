"""A node's own Delta table: creating it, writing files into it, committing them, and going back to a version.

Spark writes the data files, delta-rs commits them; a commit succeeds only on top of the version it was made for. Once a
table has deletion vectors, its commits are written here: delta-rs does not see the vectors of files that it removes.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction
from pyroaring import BitMap64
from pyspark.sql import DataFrame

from penstock import points
from penstock.errors import PenstockError, WarehouseError
from penstock.frames.clock import moved
from penstock.frames.spark.problems import SPARK_PROBLEMS
from penstock.sql.statements import ANYWHERE, Placement
from penstock.storage.data_files import partition_of
from penstock.storage.deletion_vectors import describe, file_name, unique_id
from penstock.storage.delta_log import DataFile, Snapshot, delta_rs, latest_version, table_uri
from penstock.storage.files import files_of
from penstock.storage.locations import is_store
from penstock.storage.log_listing import LOG, commit_name
from penstock.storage.log_replay import Action
from penstock.storage.log_writer import VersionTaken, enabling, marked, now, put, removed, reshaping, said
from penstock.storage.placement import properties
from penstock.storage.runs import Run

_GROUP_BYTES, _GROUP_ROWS = 16 * 1024 * 1024, 250_000
"""The size of row groups: where neighbours lie together, looking some rows up reads few of them."""

_SHORT_BYTES, _SHORT_ROWS = 256 * 1024, 1_000
"""The same where single rows are read by their key, and all of a group has to be unpacked for one of them."""

_LONGEST_TEXT = 32
_SILENT = {"appendOnly", "invariants", "timestampNtz"}
"""Features that ask nothing of a writer who adds and removes files of a table of ours."""


@dataclass(frozen=True)
class Shape:
    """The columns, partitions and properties that a table is to have; what a version has is told by its snapshot."""

    schema_json: str
    partition_columns: list[str]
    configuration: dict[str, str]

    @classmethod
    def of(cls, schema_json: str, placement: Placement) -> Shape:
        told = {name: value for name, value in properties(placement).items() if value is not None}
        return cls(Schema.from_json(schema_json).to_json(), list(placement.partition), told)

    def is_of(self, table: Snapshot) -> bool:
        """Whether a version has it already."""
        ours = {name for name in {*self.configuration, *table.configuration} if name.startswith("penstock.")}
        names = ours | self.configuration.keys()
        return (
            json.loads(self.schema_json) == json.loads(table.schema_json)
            and self.partition_columns == table.partition_columns
            and all(self.configuration.get(name) == table.configuration.get(name) for name in names)
        )

    def described(self) -> tuple[Action, Action]:
        """The protocol and the metadata of a table of this shape, as delta-rs would make it."""
        with tempfile.TemporaryDirectory() as folder:
            DeltaTable.create(
                folder, Schema.from_json(self.schema_json), partition_by=self.partition_columns,
                configuration=dict(self.configuration), raise_if_key_not_exists=False,
            )  # fmt: skip
            state = Snapshot(folder).state
            return state.protocol, state.metadata


def create_table(path: str, schema_json: str, name: str, placement: Placement = ANYWHERE) -> int:
    """An empty Delta table; gives its version."""
    if is_store(path):  # where delta-rs would look around first
        protocol, metadata = _described(name, Shape.of(schema_json, placement))
        files_of(path).begin(LOG)
        put(path, 0, [said("CREATE TABLE"), {"protocol": protocol}, {"metaData": {**metadata, "name": name}}])
        return 0
    points.reached(points.COMMIT)
    try:
        table = DeltaTable.create(
            table_uri(path), Schema.from_json(schema_json), name=name, partition_by=list(placement.partition),
            configuration=properties(placement), raise_if_key_not_exists=False,
        )  # fmt: skip
    except (DeltaError, OSError) as problem:
        raise WarehouseError(f"the table of {name!r} cannot be created at {path!r}: {problem}") from None
    points.reached(points.COMMITTED)
    return int(table.version())


def write_files(
    frame: DataFrame, path: str, run: str, partition: Sequence[str] = (), *, short_groups: bool = False
) -> list[AddAction]:
    """Write rows as Parquet files into the table's directory; nothing is visible until they are committed.

    Files of partitions are moved from the run's folder to those of the partitions, where Spark finds their values.
    """
    folder = _folder(run)
    writer = frame.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").partitionBy(*partition)
    writer = writer.option("parquet.block.size", _SHORT_BYTES if short_groups else _GROUP_BYTES)
    try:
        writer.parquet(f"{path}/{folder}")
    except SPARK_PROBLEMS:
        _delete_folder(path, folder)
        raise
    adds = _added(path, folder)
    return _moved(path, folder, adds) if partition else adds


def write_table(table: pa.Table, path: str, run: str, *, short_groups: bool = False) -> list[AddAction]:
    """The same for rows that are on the driver: one file, and no Spark."""
    if not table.num_rows:
        return []
    folder = _folder(run)
    place = f"{folder}/part-{uuid.uuid4()}.snappy.parquet"
    footers: list[pq.FileMetaData] = []
    size = files_of(path).write(
        place,
        lambda out: pq.write_table(
            table,
            out,
            row_group_size=_SHORT_ROWS if short_groups else _GROUP_ROWS,
            write_statistics=_with_bounds(table.schema),
            metadata_collector=footers,
        ),
    )
    return _as_adds([(place, size, footers[0])])


def _with_bounds(schema: pa.Schema) -> list[str]:
    """The columns whose bounds a file may tell. Arrow's leave NaN out, which is above all numbers for Spark: it would
    skip rows that it looks for."""
    return [
        field.name for field in schema if not pa.types.is_floating(field.type) and not pa.types.is_nested(field.type)
    ]


def _folder(run: str) -> str:
    return f"run-{run}-{uuid.uuid4().hex[:8]}"


def _added(path: str, folder: str) -> list[AddAction]:
    """The files of a folder as actions, with statistics from their footers."""
    files = files_of(path)
    found = [info for info in files.listing(folder) if _is_whole(info.name)]
    footers = files.each(lambda info: pq.read_metadata(files.open(info.name)), found)
    return _as_adds([(info.name, info.size, footer) for info, footer in zip(found, footers, strict=True)])


def _is_whole(name: str) -> bool:
    """Whether a file is a task's work, and not a draft: of an executor that was given up and has not noticed it yet,
    or of a task that another one was faster than."""
    return name.endswith(".parquet") and "_temporary" not in name.split("/")


def _as_adds(written: Iterable[tuple[str, int, pq.FileMetaData]]) -> list[AddAction]:
    """Files with their sizes and footers as actions; those without rows are left out."""
    adds = [
        AddAction(name, size, partition_of(name), now(), True, _statistics(footer))
        for name, size, footer in written
        if footer.num_rows
    ]
    moved(written=sum(add.size for add in adds))
    points.reached(points.FILES)
    return adds


def rows_in(adds: Sequence[AddAction]) -> int:
    """How many rows were written."""
    return sum(json.loads(add.stats)["numRecords"] for add in adds)


def _moved(path: str, folder: str, adds: Sequence[AddAction]) -> list[AddAction]:
    """The files where their partitions are; what a failure leaves there belongs to no version."""
    files = files_of(path)
    found = []
    for add in adds:
        partition = add.path.removeprefix(f"{folder}/").rsplit("/", 1)[0]
        place = f"{partition}/part-{uuid.uuid4()}.snappy.parquet"  # Spark gives the files of a task the same name
        files.move(add.path, place)
        found.append(AddAction(place, add.size, add.partition_values, add.modification_time, True, add.stats))
    _delete_folder(path, folder)
    return found


def discard(path: str, adds: Sequence[AddAction]) -> None:
    """Delete files that were written and will not be committed."""
    points.reached(points.DELETION)
    files = files_of(path)
    for add in adds:
        with suppress(OSError):
            files.delete([add.path])
        points.reached(points.DELETED)
    for folder in {add.path.split("/")[0] for add in adds if not add.partition_values}:
        _delete_folder(path, folder)


def _delete_folder(path: str, folder: str) -> None:
    with suppress(OSError):
        files_of(path).delete_folder(folder)


def commit(
    before: Snapshot,
    adds: Sequence[AddAction],
    removes: Sequence[DataFile],
    hidden: Mapping[str, BitMap64],
    *,
    node: str,
    run: Run,
    data_change: bool = True,
    shape: Shape | None = None,
) -> int:
    """Commit files on top of a version; gives the new version, or fails if another writer was first.

    ``hidden``: files that stay, with all the rows of them that are gone from now on. Without ``data_change`` the same
    rows lie in other files. ``shape`` is what the table is to be like from now on, if that is not what it was.
    """
    paths = {unquote(f.path): f for f in removes}  # delta-rs quotes what it writes
    gone = [RemoveAction(path, data_change, now(), f.size, partition_of(path)) for path, f in paths.items()]
    new = [AddAction(a.path, a.size, a.partition_values, a.modification_time, data_change, a.stats) for a in adds]
    described = None if shape is None else _described(node, shape)
    try:
        if hidden or before.allows_vectors or described is not None:
            _commit_by_hand(before, new, gone, hidden, run, described)
        elif _is_plain(before):
            _commit_files(before, new, gone, run)
        else:
            points.reached(points.COMMIT)
            _commit_by_delta_rs(before, new, gone, run)
            points.reached(points.COMMITTED)
    except DeltaError as problem:
        if not _is_ours(before, run.name):  # a checkpoint that fails is told as if the commit did
            raise _taken(node, problem) from None
    except VersionTaken as problem:
        raise _taken(node, problem) from None
    return before.version + 1


def _is_ours(before: Snapshot, run: str) -> bool:
    """Whether the version after this one was made by this run."""
    try:
        return f'"{run}"'.encode() in files_of(before.path).read(commit_name(before.version + 1))
    except OSError:
        return False


def _taken(node: str, problem: Exception) -> PenstockError:
    return PenstockError(
        f"the table of {node!r} was changed by another writer while it was refreshed ({problem}). "
        "Only Penstock may write it; refresh again."
    )


def _described(node: str, shape: Shape) -> tuple[Action, Action]:
    try:
        return shape.described()
    except (DeltaError, OSError) as problem:
        raise WarehouseError(f"the table of {node!r} cannot have these columns: {problem}") from None


def _is_plain(table: Snapshot) -> bool:
    """Whether a commit is nothing but its files, so that it is written without opening the table once more."""
    silent = table.writer_version <= 2 or (table.writer_version == 7 and table.writer_features <= _SILENT)
    return silent and not table.partition_columns


def _commit_files(before: Snapshot, adds: Sequence[AddAction], removes: Sequence[RemoveAction], run: Run) -> None:
    about = {"deletionTimestamp": now(), "extendedFileMetadata": True, "partitionValues": {}}
    gone = [
        {"remove": {"path": quote(r.path, safe="/="), "dataChange": r.data_change, "size": r.size, **about}}
        for r in removes
    ]
    actions = [said("WRITE", **run.metadata()), *gone, *map(as_action, adds)]
    put(before.path, before.version + 1, actions, checkpoint_every=_interval(before))


def _commit_by_delta_rs(before: Snapshot, adds: Sequence[AddAction], removes: Sequence[RemoveAction], run: Run) -> None:
    table = delta_rs(before.path, before.version)
    properties = CommitProperties(
        custom_metadata=run.metadata(),
        max_commit_retries=0,
    )
    table.create_write_transaction(
        [*adds, *removes], "append", table.schema(), before.partition_columns, commit_properties=properties
    )


def _commit_by_hand(
    before: Snapshot,
    adds: Sequence[AddAction],
    removes: Sequence[RemoveAction],
    hidden: Mapping[str, BitMap64],
    run: Run,
    described: tuple[Action, Action] | None,
) -> None:
    known = {unquote(path): add for path, add in before.state.adds.items()}
    file_id = uuid.uuid4()
    descriptors, content = describe(hidden, file_id)
    actions = [
        said("WRITE", **run.metadata()),
        *(enabling(before.state.protocol, before.state.metadata) if hidden else []),
        *(reshaping(before.state.protocol, before.state.metadata, described) if described else []),
        *[removed(known[gone.path], data_change=gone.data_change) for gone in removes],
        *[removed(known[unquote(path)]) for path in hidden],
        *[marked(known[unquote(path)], vector) for path, vector in descriptors.items()],
        *[as_action(add) for add in adds],
    ]
    files, vectors = files_of(before.path), file_name(file_id)
    try:
        if content:
            files.write(vectors, lambda out: out.write(content))
        put(before.path, before.version + 1, actions, checkpoint_every=_interval(before))
    except (VersionTaken, OSError):
        files.delete([vectors])
        raise


def _interval(table: Snapshot) -> int | None:
    """Commits between checkpoints, if the table's properties say so."""
    said = table.configuration.get("delta.checkpointInterval")
    return None if said is None else int(said)


def as_action(add: AddAction) -> Action:
    return {
        "add": {
            "path": quote(add.path, safe="/="),
            "partitionValues": dict(add.partition_values),
            "size": add.size,
            "modificationTime": add.modification_time,
            "dataChange": add.data_change,
            "stats": add.stats,
        }
    }


def restore(path: str, version: int, run: Run) -> int:
    """Bring a table back to a version that was published; gives the version that it has afterwards."""
    latest = Snapshot(path)
    if latest.version == version:
        return version
    _restore(latest, Snapshot(path, version), run)
    return latest_version(path)


def _restore(latest: Snapshot, wanted: Snapshot, run: Run) -> None:
    """A file with another vector is another file. The protocol stays: a feature cannot be taken back."""

    def logical(adds: Mapping[str, Action]) -> dict[tuple[str, str], Action]:
        return {(path, unique_id(add.get("deletionVector"))): add for path, add in adds.items()}

    now_there, then_there = logical(latest.state.adds), logical(wanted.state.adds)
    actions = [
        said("RESTORE", operationParameters={"version": str(wanted.version)}, **run.metadata()),
        *([{"metaData": wanted.state.metadata}] if wanted.state.metadata != latest.state.metadata else []),
        *[removed(add) for file, add in now_there.items() if file not in then_there],
        *[{"add": {**add, "dataChange": True}} for file, add in then_there.items() if file not in now_there],
    ]
    try:
        put(latest.path, latest.version + 1, actions, checkpoint_every=_interval(latest))
    except VersionTaken as problem:
        raise PenstockError(
            f"the table at {latest.path!r} was changed by another writer while it was restored ({problem}). "
            "Only Penstock may write it; refresh again."
        ) from None


def delete_table(path: str) -> None:
    """Remove a table's directory. Readers that are still open on other files of it will fail, as after any DROP."""
    points.reached(points.DELETION)
    with suppress(OSError):
        files_of(path).delete_folder()


def _statistics(footer: pq.FileMetaData) -> str:
    """Delta statistics from a Parquet footer: row count, and bounds and null counts of columns of simple types."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(footer.num_columns):
        chunks = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        name = chunks[0].path_in_schema
        if "." in name or any(not c.is_stats_set or not c.statistics.has_null_count for c in chunks):
            continue
        nulls[name] = sum(c.statistics.null_count for c in chunks)
        bounds = _bounds(chunks)
        if bounds is not None:
            lows[name], highs[name] = bounds
    return json.dumps({"numRecords": footer.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls})


def _bounds(chunks: Sequence[pq.ColumnChunkMetaData]) -> tuple[Any, Any] | None:
    """The smallest and largest value of a column; None when they are not known or of a type that is left out."""
    if any(not c.statistics.has_min_max for c in chunks if c.statistics.null_count < c.num_values):
        return None
    try:
        pairs = [(c.statistics.min, c.statistics.max) for c in chunks if c.statistics.has_min_max]
    except (ValueError, OverflowError):  # a year that Python does not know
        return None
    if not pairs or not all(_is_simple(value) for pair in pairs for value in pair):
        return None
    try:
        return _plain(min(low for low, _ in pairs)), _plain(max(high for _, high in pairs), up=True)
    except OverflowError:  # the last moment that Python knows cannot be rounded up
        return None


def _is_simple(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT
    return type(value) in (int, date, datetime)


def _plain(value: Any, *, up: bool = False) -> Any:
    """As Delta writes it; times have milliseconds there, so the last one is rounded ``up``."""
    if isinstance(value, datetime):
        cut = value.microsecond % 1000
        value += timedelta(microseconds=(1000 - cut if up and cut else -cut))
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value
