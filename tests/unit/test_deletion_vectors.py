"""Deletion vectors: the format, and what becomes of a table's files in a patch. Nothing here needs Spark."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from random import Random
from uuid import UUID

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from penstock.storage.deletion_vectors import (
    LARGEST_INLINE,
    as_bits,
    as_words,
    decode,
    describe,
    encode,
    from_arrow,
    hidden_by,
    stored_at,
    unique_id,
)
from penstock.storage.delta_log import DataFile
from penstock.storage.log_writer import VersionTaken, enabling, put
from penstock.storage.patch import plan_patch
from penstock.storage.strategy import cheaper

FILE_ID = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
ROWS = {
    "none": [],
    "one": [1],
    "few": [3, 4, 7, 11, 18, 29],
    "a run": list(range(100_000)),
    "scattered": Random(1).sample(range(3_000_000), 20_000),
    "beyond 32 bits": [5, 2**32 + 5, 2**40],
}

# Written by Delta 4.4 in Spark 4.2: three vectors in one file, from a DELETE on three data files.
BY_DELTA = base64.b64decode(
    "AQAAAHDR0zlkAQAAAAAAAAAAAAAAOjAAAAEAAAAAACcAEAAAACQHQQjKCicNzhH4Ed4SERYlGDwZ9RmZHOYn2y6JOOQ8kkR/SOVJRkqwUrtSMlOj"
    "V+pXm1oFXGtdNGKgZdNnMmr2akNsUXKFcp503Hi7fxqBZfw9tQAAAGTR0zlkAQAAAAAAAAAAAAAAOjAAAAEAAAAAACEAEAAAAAAGLwahC0gRfhxf"
    "HRIhEyc9K1YrDCxfLY0v2zDDONY6UDt0OxI8uUCzQjBDakeHT8dRQ1NEV5hbBWyPdPB7jn02fjOB6o1RuQAAAFTR0zlkAQAAAAAAAAAAAAAAOjAA"
    "AAEAAAAAABkAEAAAAFsEzQg3D5YUqhbBFvwYsxvNJOsn/yq5PPY8AEFqTv1Ur1izYrljlmXSZ2xs3W10b7F6RH2vT6HL"
)
DESCRIBED_BY_DELTA = {
    "storageType": "u", "pathOrInlineDv": "?7eAuWa^#$GYdZ/:#j/4", "offset": 229, "sizeInBytes": 84, "cardinality": 26
}  # fmt: skip
HIDDEN_BY_DELTA = [
    1115, 2253, 3895, 5270, 5802, 5825, 6396, 7091, 9421, 10219, 11007, 15545, 15606, 16640, 20074, 21757, 22703, 25267,
    25529, 26006, 26578, 27756, 28125, 28532, 31409, 32068
]  # fmt: skip


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_a_vector_is_read_as_it_was_written(rows: list[int]) -> None:
    hidden = BitMap64(rows)
    assert decode(encode(hidden)) == hidden
    descriptors, content = describe({"file": hidden}, FILE_ID)
    descriptor = json.loads(json.dumps(descriptors["file"]))
    assert hidden_by(descriptor, content) == hidden
    assert descriptor["cardinality"] == len(rows)
    assert descriptor["sizeInBytes"] == len(encode(hidden))
    assert (descriptor["storageType"] == "i") == (len(encode(hidden)) <= LARGEST_INLINE)


def test_the_layout_has_one_bitmap_for_each_four_billion_rows() -> None:
    data = encode(BitMap64([5, 2**32 + 5]))
    assert data[:4] == (1681511377).to_bytes(4, "little")
    assert data[4:12] == (2).to_bytes(8, "little")
    assert data[12:16] == (0).to_bytes(4, "little")


def test_large_vectors_share_a_file() -> None:
    vectors = {name: BitMap64(Random(name).sample(range(1_000_000), 3_000)) for name in ("a", "b", "c")}
    vectors["small"] = BitMap64([9])
    descriptors, content = describe(vectors, FILE_ID)
    assert content[:1] == b"\x01"
    assert [descriptors[name]["offset"] for name in ("a", "b")] == [1, 1 + 8 + descriptors["a"]["sizeInBytes"]]
    assert "offset" not in descriptors["small"]
    assert {name: hidden_by(d, content) for name, d in descriptors.items()} == vectors
    assert stored_at(descriptors["a"]) == f"deletion_vector_{FILE_ID}.bin"
    assert stored_at(descriptors["small"]) is None
    assert len({unique_id(d) for d in [*descriptors.values(), None]}) == 5


def test_what_delta_wrote() -> None:
    hidden = hidden_by(DESCRIBED_BY_DELTA, BY_DELTA)
    assert list(hidden) == HIDDEN_BY_DELTA
    assert stored_at(DESCRIBED_BY_DELTA) == "deletion_vector_dd2bfcc2-b4db-447e-84e1-8801ca36812c.bin"
    assert encode(hidden) == BY_DELTA[229 + 4 : 229 + 4 + 84]


def test_damage_is_noticed() -> None:
    broken = bytearray(BY_DELTA)
    broken[250] ^= 1
    for content in (bytes(broken), BY_DELTA[:300], b""):
        with pytest.raises(ValueError, match="damaged"):
            hidden_by(DESCRIBED_BY_DELTA, content)
    with pytest.raises(ValueError, match="begin"):
        decode(b"something else")


def test_places_as_numbers_and_as_bits() -> None:
    rows = ROWS["scattered"]
    hidden = from_arrow(pa.array(rows))
    assert list(hidden) == sorted(rows)
    bits = as_bits(hidden, 3_000_000)
    assert [int(i) for i in bits.nonzero()[0]] == sorted(rows)
    words = as_words(hidden)
    assert all((int(words[row // 64]) >> (row % 64)) & 1 for row in rows)
    assert as_words(BitMap64()).tolist() == []
    assert as_words(BitMap64([63])).tolist() == [-(2**63)]


def files(**rows: int) -> list[DataFile]:
    return [DataFile(path, 1, count) for path, count in rows.items()]


def test_a_patch_marks_rewrites_and_drops_files() -> None:
    table = files(large=1000, worn=100, dead=3, small=4, other=900)
    found = {"large": BitMap64([5]), "worn": BitMap64(range(40)), "dead": BitMap64([0, 1, 2])}
    plan = plan_patch(table, {"large": BitMap64([1])}, found, added=1)
    assert plan.marked == {"large": BitMap64([1, 5])}
    assert {f.path for f in plan.rewritten} == {"worn", "small"}
    assert [f.path for f in plan.emptied] == ["dead"]


def test_small_files_do_not_become_many() -> None:
    table, most = files(large=1_000_000), 0
    for step in range(200):
        plan = plan_patch(table, {}, {"large": BitMap64([step])}, added=10)
        gone = {f.path for f in plan.rewritten}
        merged = 10 + sum(f.rows or 0 for f in plan.rewritten)
        table = [f for f in table if f.path not in gone] + files(**{f"new{step}": merged})
        most = max(most, len(table))
    assert most <= 10


def test_which_is_cheaper() -> None:
    def few(touched_rows: int, removed: int = 5_000, touched_files: int = 4) -> str:
        return cheaper(touched_rows=touched_rows, touched_files=touched_files, removed=removed, added=removed)

    assert [few(rows) for rows in (10_000, 100_000, 1_000_000)] == ["REWRITE", "REWRITE", "PATCH"]
    assert [few(1_000_000, removed) for removed in (1, 100_000, 400_000)] == ["PATCH", "PATCH", "REWRITE"]
    assert few(1_000_000, touched_files=1_000) == "REWRITE"


def test_the_protocol_names_what_its_numbers_meant() -> None:
    protocol, metadata = enabling({"minReaderVersion": 1, "minWriterVersion": 2}, {"id": "x", "configuration": {}})
    assert protocol["protocol"] == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["appendOnly", "deletionVectors", "invariants"],
    }
    assert metadata["metaData"] == {"id": "x", "configuration": {"delta.enableDeletionVectors": "true"}}
    assert enabling(protocol["protocol"], metadata["metaData"]) == []


def test_a_version_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    put(str(tmp_path), 1, [{"commitInfo": {"by": "the first"}}])
    with pytest.raises(VersionTaken):
        put(str(tmp_path), 1, [{"commitInfo": {"by": "the second"}}])
    assert [path.name for path in (tmp_path / "_delta_log").iterdir()] == [f"{1:020d}.json"]
    assert "the first" in (tmp_path / "_delta_log" / f"{1:020d}.json").read_text()
