"""What was read of files is read once. No Spark: the tables are written by delta-rs."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyroaring import BitMap64

from penstock.engine.settings import checked, file_cache
from penstock.errors import DefinitionError
from penstock.frames import limits
from penstock.frames.keys import Place, Sought
from penstock.frames.memory import memory
from penstock.storage import row_groups
from penstock.storage.deletion_vectors import describe, file_name
from penstock.storage.delta_log import Snapshot, vectors_of
from penstock.storage.file_cache import FILES, FileCache
from penstock.storage.files import LocalFiles
from penstock.storage.lookup import look_up

SCHEMA = pa.schema([("n", pa.int32()), ("name", pa.string()), ("id", pa.int64()), ("part", pa.string())])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 1)
    monkeypatch.setattr(row_groups, "_BATCH", 7)
    most = FILES.most
    FILES.clear()
    FILES.allow(10**9)
    yield
    FILES.clear()
    FILES.allow(most)


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened, as they are."""
    seen: list[str] = []

    class Counted(pq.ParquetFile):
        def __init__(self, source: Any, **options: Any):
            seen.append(str(source))
            super().__init__(source, **options)

    monkeypatch.setattr(pq, "ParquetFile", Counted)
    return seen


def rows_of(dice: random.Random, count: int) -> list[dict[str, Any]]:
    names = [None, "", "ü", *(f"name {i}" for i in range(20))]
    return [
        {"n": dice.choice([None, *range(-9, 9)]), "name": dice.choice(names), "id": dice.randrange(10**9),
         "part": dice.choice([None, "a", "b"])}
        for _ in range(count)
    ]  # fmt: skip


def sought(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> Sought:
    keys = pa.Table.from_pylist(
        [{c: r[c] for c in columns} for r in rows], pa.schema([SCHEMA.field(c) for c in columns])
    )
    return Sought(keys, {c: Place(c) for c in columns})


def ids(table: Snapshot, keys: Sought, columns: tuple[str, ...] = ("id",)) -> list[Any]:
    found = look_up(table, columns, keys, located=True)
    assert found is not None
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=str)


def test_keys_that_are_sought_again_open_no_file(tmp_path: Path, opens: list[str]) -> None:
    rows = rows_of(random.Random(1), 60)
    for part in (rows[:40], rows[40:]):
        write_deltalake(str(tmp_path), pa.Table.from_pylist(part, SCHEMA), mode="append")
    keys = sought(rows[::7], ("id", "name"))
    first = ids(Snapshot(str(tmp_path)), keys, ("id", "name"))
    assert len(first) == len(rows[::7])
    assert opens
    opens.clear()
    assert ids(Snapshot(str(tmp_path)), keys, ("id", "name")) == first
    assert opens == []
    # Other keys of the same columns, and columns that were compared: there is nothing to read either.
    assert len(ids(Snapshot(str(tmp_path)), sought(rows[1::7], ("name", "id")), ("name",))) == len(rows[1::7])
    assert opens == []
    # Keys that no row has: just what is compared is needed.
    assert ids(Snapshot(str(tmp_path)), sought([{"id": -1}], ("id",)), ("n",)) == []
    assert opens == []


def test_other_columns_are_read_where_rows_are_found(tmp_path: Path, opens: list[str]) -> None:
    rows = rows_of(random.Random(2), 30)
    write_deltalake(str(tmp_path), pa.Table.from_pylist(rows, SCHEMA))
    keys = sought(rows[:2], ("id",))
    first = ids(Snapshot(str(tmp_path)), keys, ("n", "id", "part"))
    opens.clear()
    assert ids(Snapshot(str(tmp_path)), keys, ("n", "id", "part")) == first
    assert len(opens) == 1


@pytest.mark.parametrize("seed", range(12))
def test_what_is_found_does_not_depend_on_what_is_kept(tmp_path: Path, seed: int) -> None:
    """Random tables, partitions, vectors, keys and bounds, some so small that things come and go."""
    dice = random.Random(seed)
    rows = rows_of(dice, 120)
    parts = ["part"] if dice.random() < 0.5 else None
    for begin in (0, 50, 90):
        write_deltalake(
            str(tmp_path), pa.Table.from_pylist(rows[begin : begin + 50], SCHEMA), mode="append", partition_by=parts
        )
    hidden = {file.path: BitMap64(dice.sample(range(3), 2)) for file in Snapshot(str(tmp_path)).files}
    FILES.allow(dice.choice([500, 3_000, 10**9]))
    for _ in range(8):
        columns = tuple(dice.sample(SCHEMA.names, dice.randint(1, 3)))
        wanted = tuple(dice.sample(SCHEMA.names, dice.randint(1, 4)))
        keys = sought(dice.sample(rows, dice.randint(1, 20)), columns)
        table, fresh = Snapshot(str(tmp_path)), Snapshot(str(tmp_path))
        if dice.random() < 0.5:
            table.deleted = fresh.deleted = hidden
        kept, most = ids(table, keys, wanted), FILES.most
        assert FILES.held <= most
        FILES.allow(0)
        assert ids(fresh, keys, wanted) == kept
        FILES.allow(most)


def test_a_file_that_is_written_again_under_its_name_is_read_anew(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.Table.from_pylist(rows_of(random.Random(3), 4), SCHEMA))
    file = next(tmp_path.glob("*.parquet"))
    schema = pa.schema([SCHEMA.field("id")])
    pq.write_table(pa.table({"id": [1, 2, 3, 4]}, schema), file)
    keys = sought([{"id": 3}, {"id": 7}], ("id",))
    assert [row[0] for row in ids(Snapshot(str(tmp_path)), keys)] == [3]
    before = file.stat()
    file.unlink()
    pq.write_table(pa.table({"id": [5, 6, 7, 8]}, schema), file)
    assert file.stat().st_size == before.st_size, "told apart by its time alone"
    assert [row[0] for row in ids(Snapshot(str(tmp_path)), keys)] == [7]
    file.unlink()
    assert look_up(Snapshot(str(tmp_path)), ["id"], keys) is None, "a file that is gone is not found in memory"


def test_nothing_is_kept_where_there_is_no_room(tmp_path: Path, opens: list[str]) -> None:
    rows = rows_of(random.Random(4), 30)
    write_deltalake(str(tmp_path), pa.Table.from_pylist(rows, SCHEMA))
    FILES.allow(0)
    keys = sought(rows[:2], ("id",))
    first = ids(Snapshot(str(tmp_path)), keys)
    count = len(opens)
    assert count
    assert ids(Snapshot(str(tmp_path)), keys) == first
    assert len(opens) == 2 * count
    assert FILES.held == 0


def test_a_vector_is_decoded_once(tmp_path: Path) -> None:
    hidden = BitMap64(random.Random(5).sample(range(10**6), 5_000))
    file = uuid4()
    descriptors, content = describe({"a": hidden}, file)
    (tmp_path / file_name(file)).write_bytes(content)
    actions = {"a": {"deletionVector": descriptors["a"]}}
    first = vectors_of(LocalFiles(str(tmp_path)), actions)
    assert first == {"a": hidden}
    assert vectors_of(LocalFiles(str(tmp_path)), actions)["a"] is first["a"]
    (tmp_path / file_name(file)).unlink()
    with pytest.raises(FileNotFoundError):
        vectors_of(LocalFiles(str(tmp_path)), actions)


def test_what_was_not_asked_for_the_longest_goes_first() -> None:
    cache = FileCache(100)
    for name in "abc":
        cache.put(name, name, 30)
    assert cache.get("a") == "a"
    cache.put("d", "d", 30)
    assert [cache.get(name) for name in "abcd"] == ["a", None, "c", "d"]
    cache.put("a", "A", 50)  # in place of the one before
    assert cache.held == 80
    assert [cache.get(name) for name in "acd"] == ["A", None, "d"]
    cache.put("whole", "w", 101)
    assert cache.get("whole") is None
    assert cache.get("A") is None
    assert cache.held == 80, "what does not fit drives nothing out"
    cache.allow(60)
    assert (cache.held, cache.get("d")) == (30, "d")
    cache.allow(0)
    cache.put("e", "e", 0)
    assert (cache.held, cache.get("e")) == (0, None)


def test_threads_share_a_cache_and_keep_its_bound() -> None:
    cache = FileCache(1_000)

    def work(seed: int) -> bool:
        dice, fine = random.Random(seed), True
        for _ in range(3_000):
            key = dice.randrange(60)
            fine &= cache.kept(key, lambda key=key: -key, lambda value: 10 - value) == -key
            fine &= cache.held <= 1_000
        return fine

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
    assert cache.held == sum(10 + key for key in range(60) if cache.get(key) is not None)


def test_threads_look_up_in_one_table(tmp_path: Path) -> None:
    rows = rows_of(random.Random(6), 200)
    write_deltalake(str(tmp_path), pa.Table.from_pylist(rows, SCHEMA))
    FILES.allow(4_000)  # less than all that is compared
    chosen = [(sought(rows[i : i + 9], (column,)), column) for i in range(0, 180, 20) for column in ("id", "name", "n")]
    FILES.allow(0)
    expected = [ids(Snapshot(str(tmp_path)), keys) for keys, _ in chosen]
    FILES.allow(4_000)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda pair: ids(Snapshot(str(tmp_path)), pair[0]), chosen)) == expected
    assert 0 < FILES.held <= 4_000


def test_a_file_is_told_by_its_time_too(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("a")
    files = LocalFiles(str(tmp_path))
    first = files.identity("x")
    assert files.identity("x") == first
    os.utime(file, ns=(1, 1))
    assert files.identity("x") != first
    with pytest.raises(FileNotFoundError):
        files.identity("y")


def test_how_much_is_kept_is_a_setting() -> None:
    assert file_cache({}) == memory() // 10
    assert file_cache(dict([checked("file_cache", "2 GB")])) == 2 * 1024**3
    assert file_cache(dict([checked("FILE_CACHE", "0")])) == 0
    for wrong in ("much", "-1", "200%", "2 apples"):
        with pytest.raises(DefinitionError, match="amount of memory such as '2 GB'"):
            checked("file_cache", wrong)
