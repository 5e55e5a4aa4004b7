"""PATCH: rows marked in deletion vectors that we write; we and Delta read the same, whatever came before."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from oracle import assert_all_fresh, assert_fresh, multiset
from penstock.catalog import Catalog
from penstock.frames import limits
from penstock.frames.names import WEIGHT
from penstock.frames.sizes import UNKNOWN
from penstock.frames.spark.frame import SparkFrame
from penstock.frames.spark.session import Running
from penstock.storage import apply, log_writer, lookup, patch, reader
from penstock.storage.apply import Applied, TableChange, apply_change, replace_all
from penstock.storage.changes import read_change
from penstock.storage.delta_log import Snapshot
from penstock.storage.reader import read_snapshot
from penstock.storage.runs import Run
from penstock.storage.view_table import create_table, restore

Rows = Sequence[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def patching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table counts as large, and patching it as cheap."""
    monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 0)
    monkeypatch.setattr(apply, "cheaper", lambda **_: "PATCH")


class Table:
    """A node's table of three files, and the rows that it should hold."""

    def __init__(self, spark: SparkSession, path: Path, ddl: str, rows: Rows, keys: Sequence[str] | None):
        self.spark, self.path, self.ddl, self.keys = spark, str(path), ddl, keys
        self.runs = 0
        self.expected = Counter(map(self._shown, rows))
        frame = self._frame(rows, ddl)
        create_table(self.path, frame.schema.json(), "t")
        self.version = replace_all(self.now, self._spread(frame), node="t", run=Run(self._next())).version

    def _spread(self, frame: DataFrame) -> SparkFrame:
        return SparkFrame.of_frame(Running(self.spark), frame.repartition(3), UNKNOWN)

    def change(self, removed: Rows = (), added: Rows = (), *, local: bool = True) -> Applied:
        known = {self._shown(row): row for row in [*removed, *added]}
        weights = Counter(map(self._shown, added))
        weights.subtract(map(self._shown, removed))
        frame = self._frame([(*known[row], weight) for row, weight in weights.items()], f"{self.ddl}, {WEIGHT} LONG")
        table = frame.toArrow() if local else None
        rows = SparkFrame.of_frame(Running(self.spark), frame, UNKNOWN)
        change = TableChange(rows=rows, inserted=len(added), deleted=len(removed), keys=self.keys, local=table)
        applied = apply_change(Running(self.spark), self.now, change, node="t", run=Run(self._next()))
        self.version = applied.version
        self.expected.subtract(map(self._shown, removed))
        self.expected.update(map(self._shown, added))
        return applied

    def check(self, by_delta: bool = True) -> None:
        """We and Delta's own reader read the expected rows, and the log counts them right."""
        expected = +self.expected
        assert self._counted(read_snapshot(self.spark, self.now)) == expected
        if by_delta:
            assert self._counted(self.spark.read.format("delta").load(self.path)) == expected
        assert self.now.rows == expected.total()
        assert self.now.deleted == self.now._deleted_by_delta_rs()

    @property
    def now(self) -> Snapshot:
        return Snapshot(self.path)

    def log(self, version: int | None = None) -> list[dict[str, Any]]:
        number = self.version if version is None else version
        return [json.loads(line) for line in Path(self.path, "_delta_log", f"{number:020d}.json").open()]

    def files(self) -> set[Path]:
        return {path.relative_to(self.path) for path in Path(self.path).rglob("*")}

    def _frame(self, rows: Iterable[Any], ddl: str) -> DataFrame:
        return self.spark.createDataFrame(list(rows), ddl).coalesce(1)

    def _counted(self, frame: DataFrame) -> Counter[Any]:
        return Counter(self._shown(tuple(row)) for row in frame.collect())

    def _next(self) -> str:
        self.runs += 1
        return str(self.runs)

    @staticmethod
    def _shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
        """NaN equals NaN, and 0.0 is not -0.0."""
        return tuple(repr(value) if isinstance(value, float) else value for value in row)


@pytest.fixture
def numbers(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "t", "id INT, v STRING", [(i, "old") for i in range(300)], ["id"])


def old(*ids: int) -> Rows:
    return [(i, "old") for i in ids]


def new(*ids: int) -> Rows:
    return [(i, "new") for i in ids]


def adds(actions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [a["add"] for a in actions if "add" in a]


def test_a_patch_marks_rows_and_leaves_files(numbers: Table) -> None:
    before = {file.path for file in numbers.now.files}
    assert not numbers.now.allows_vectors
    assert numbers.change(old(3, 100, 200, 7), new(3, 100, 200, 1000)).strategy == "PATCH"
    numbers.check()
    assert before < {file.path for file in numbers.now.files}
    actions = numbers.log()
    assert {"commitInfo", "protocol", "metaData"} <= {name for action in actions for name in action}
    assert actions[0]["commitInfo"]["penstock.run"] == "2"
    for add in adds(actions):
        stats = json.loads(add["stats"])
        assert stats["numRecords"] > 0
        if add["path"] in before:
            assert add["deletionVector"]["storageType"] == "i"
            assert stats["tightBounds"] is False


def test_later_patches_add_to_the_vectors(numbers: Table) -> None:
    for start in range(5):
        ids = range(start, 300, 30)
        numbers.change(old(*ids), new(*ids), local=start % 2 == 0)
    numbers.check(by_delta=False)
    numbers.change(new(0, 30, 1), [])
    numbers.check()
    assert not any("protocol" in action for action in numbers.log())
    assert len(numbers.now.files) <= 5, "the small files that patches leave grow together"


def test_a_table_with_many_hidden_rows_is_read_by_delta(numbers: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers.change(old(3, 100, 200, 7), new(3, 100))
    numbers.change(old(4, 5), [])
    monkeypatch.setattr(limits, "MANY_PLACES", 5)
    first = numbers.now.files[0]
    rows = reader.read_files(numbers.spark, numbers.now, [first.path])
    assert rows.count() == first.rows, "some of its files are not all"
    monkeypatch.setattr(reader, "_read_plain", None)  # from here on only Delta reads
    assert read_snapshot(numbers.spark, numbers.now, ["V", "id"]).columns == ["v", "id"]
    numbers.check()


def test_files_that_a_version_has_no_more_are_not_taken_for_all_of_it(
    numbers: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late reader of appended files, which were compacted meanwhile into just as many."""
    before = [file.path for file in numbers.now.files]
    rows = numbers.spark.range(6).selectExpr("CAST(id AS INT) AS id", "'new' AS v").repartition(len(before))
    frame = SparkFrame.of_frame(Running(numbers.spark), rows, UNKNOWN)
    replace_all(numbers.now, frame, node="t", run=Run("9"))
    assert len(numbers.now.files) == len(before)
    monkeypatch.setattr(limits, "MANY_PLACES", -1)
    assert reader.read_files(numbers.spark, numbers.now, before, ["v"]).distinct().collect() == [("old",)]


def test_rows_without_keys_are_told_by_a_column_that_tells_them_all(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def look_up(table: Snapshot, columns: Sequence[str], *given: Any, **named: Any) -> Any:
        asked.append(list(columns))
        return lookup.look_up(table, columns, *given, **named)

    monkeypatch.setattr(patch, "look_up", look_up)
    monkeypatch.setattr(patch, "MOST_TRUSTED", 0)
    # An id is unique but for 14, of which there are three rows, two of them the same.
    rows = [(i % 5, 2 * i, "old") for i in range(300)] + [(2, 14, "other"), (2, 14, "other")]
    table = Table(spark, tmp_path / "t", "k INT, id BIGINT, v STRING", rows, None)
    table.change([rows[10], rows[20]], [(0, 1000, "new")])
    assert asked == [["id"]]
    table.check(by_delta=False)
    table.change([rows[7], rows[30]])  # by id there are too many, so the whole rows are compared
    assert asked[1:] == [["id"], ["k", "id", "v"]]
    table.check(by_delta=False)
    table.change([(2, 14, "other")])
    table.check(by_delta=False)
    table.change([(2, 14, "other"), rows[40]])
    table.check()


def test_files_without_rows_go_and_files_with_few_are_rewritten(numbers: Table) -> None:
    places = {}
    for row in patch.read_located(numbers.spark, numbers.now, ["id"]).collect():
        places.setdefault(row["__file"], []).append(row["id"])
    first, second, third = places.values()
    numbers.change(old(*first, *second[:50], third[0]), new(5000))
    numbers.check()
    kept = {file.name for file in numbers.now.files}
    assert [name in kept for name in places] == [False, False, True]
    assert len(numbers.now.deleted) == 1
    numbers.change([*old(*second[50:], *third[1:]), *new(5000)], [])
    numbers.check()
    assert numbers.now.files == ()


@pytest.mark.parametrize("local", [True, False])
def test_rows_without_keys_go_by_copies(spark: SparkSession, tmp_path: Path, local: bool) -> None:
    nan = float("nan")
    rows = [(x, s) for x in (None, nan, 0.0, -0.0, 1.5) for s in (None, "a") for _ in range(40)]
    table = Table(spark, tmp_path / "t", "x DOUBLE, s STRING", rows, None)
    gone: Rows = [(None, None)] * 3 + [(nan, "a")] * 2 + [(0.0, "a"), (0.0, "a"), (-0.0, None), (None, "a")]
    assert table.change(gone, [(0.0, None), (2.5, "b"), (2.5, "b")], local=local).strategy == "PATCH"
    table.check(by_delta=False)
    assert table.now.deleted
    table.change([(nan, "a"), (1.5, None), (2.5, "b")], [(-0.0, "a")], local=local)
    table.check()


def test_many_hidden_rows_are_kept_in_a_file_and_looked_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(spark, tmp_path / "t", "id INT, v STRING", old(*range(30_000)), ["id"])
    chosen = Random(1).sample(range(30_000), 4_000)
    table.change(old(*chosen), new(*chosen[:3_000]))
    assert {add["deletionVector"]["storageType"] for add in adds(table.log()) if "deletionVector" in add} == {"u"}
    assert len(list(Path(table.path).glob("deletion_vector_*.bin"))) == 1
    table.check()
    monkeypatch.setattr(limits, "LOCAL_TABLE_ROWS", -1)
    table.change([*old(7), *new(chosen[0], chosen[1])], new(7))
    table.check()


def test_delta_spark_goes_on_from_a_patch(numbers: Table, tmp_path: Path) -> None:
    numbers.change(old(3, 100, 200, 7), new(3, 100, 200))
    copy = f"delta.`{shutil.copytree(numbers.path, tmp_path / 'copy')}`"
    spark = numbers.spark
    spark.sql(f"UPDATE {copy} SET v = 'set' WHERE id IN (3, 4, 7)")
    spark.sql(f"DELETE FROM {copy} WHERE id IN (5, 100)")
    spark.sql(
        f"MERGE INTO {copy} t USING (SELECT EXPLODE(ARRAY(6, 7, 200)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'merged' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'merged')"
    )
    expected = dict.fromkeys(range(300), "old") | {3: "set", 4: "set", 6: "merged", 7: "merged", 200: "merged"}
    expected = {i: v for i, v in expected.items() if i not in (5, 100)}
    for _ in range(2):
        assert dict(spark.table(copy).collect()) == expected
        ours = Snapshot(str(tmp_path / "copy"))
        assert dict(read_snapshot(spark, ours).collect()) == expected
        assert ours.rows == len(expected)
        spark.sql(f"OPTIMIZE {copy}")


def test_a_conflict_leaves_nothing_behind(numbers: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.deletion_vectors.LARGEST_INLINE", 0)
    numbers.change(old(1), new(1))
    log = Path(numbers.path, "_delta_log")
    taken = log / f"{numbers.version + 1:020d}.json"
    base = numbers.now
    shutil.copy(log / f"{0:020d}.json", taken)
    here = numbers.files()
    monkeypatch.setattr(Table, "now", base)
    for removed in (old(2, 50), []):
        with pytest.raises(penstock.PenstockError, match="another writer"):
            numbers.change(removed, new(2000))
        assert numbers.files() == here


def test_restoring_and_all_other_strategies_on_vectors(numbers: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def restored(version: int, expected: Counter[Any]) -> None:
        numbers.version = restore(numbers.path, version, Run.begun())
        numbers.expected = expected.copy()
        numbers.check()

    plain, start = numbers.version, numbers.expected.copy()
    numbers.change(old(1, 2, 150), new(1, 2))
    restored(plain, start)
    numbers.change(old(9, 150), new(9))
    once, then = numbers.version, numbers.expected.copy()
    numbers.change(old(10, 11), new(10))
    restored(once, then)
    assert numbers.change([], new(7000)).strategy == "APPEND"
    numbers.check(by_delta=False)
    monkeypatch.setattr(apply, "cheaper", lambda **_: "REWRITE")
    assert numbers.change(old(12), new(12)).strategy == "REWRITE"
    numbers.check(by_delta=False)
    monkeypatch.setattr(limits, "LOCATED_ROWS", 0)
    assert numbers.change(old(13), new(13), local=False).strategy == "REWRITE"
    numbers.check(by_delta=False)
    monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 10_000)
    assert numbers.change(old(14), new(14)).strategy == "OVERWRITE"
    numbers.check()
    assert not numbers.now.deleted


def test_the_log_is_read_from_checkpoints_too(numbers: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "CHECKPOINT_EVERY", 1)
    numbers.change(old(1, 2, 3), new(1, 2))
    numbers.change(old(4, 5), new(4, 5))
    log = Path(numbers.path, "_delta_log")
    assert (log / f"{numbers.version:020d}.checkpoint.parquet").exists()
    (log / f"{0:020d}.json").unlink()
    numbers.change(old(6), [])
    numbers.check()


@pytest.mark.parametrize("few", [0, 2_000])
def test_a_late_reader_reads_only_what_was_marked(numbers: Table, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(limits, "FEW_PLACES", few)
    spark, since = numbers.spark, numbers.now
    numbers.change(old(1, 2, 150), new(1, 2))
    middle = numbers.now
    numbers.change([*old(3, 299), *new(1)], [(1, "newer"), (3, "new")])

    def change(before: Snapshot, after: Snapshot) -> dict[Any, int]:
        found = read_change(Running(spark), before, after, ["v", "id"])
        assert found.how == "FILES"
        assert found.rows is not None
        return {(r["id"], r["v"]): r[WEIGHT] for r in found.rows.consolidated().arrow().to_pylist()}

    gone = {(i, "old"): -1 for i in (1, 2, 3, 150, 299)}
    assert change(since, numbers.now) == gone | {(1, "newer"): 1, (2, "new"): 1, (3, "new"): 1}
    last = numbers.now
    numbers.version = restore(numbers.path, middle.version, Run.begun())
    assert change(last, numbers.now) == {
        (1, "newer"): -1, (1, "new"): 1, (3, "new"): -1, (3, "old"): 1, (299, "old"): 1
    }  # fmt: skip
    found = read_change(Running(spark), since, numbers.now, ["id"]).rows
    assert found is not None
    assert found.arrow().num_rows <= 7, "files that stayed are not read as a whole"


def test_views_are_fresh_after_any_changes(db: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(11)
    db.sql("CREATE TABLE t (id INT, k INT, x DOUBLE)")
    db.sql("INSERT INTO t SELECT id, id % 60, IF(id % 7 = 0, CAST('NaN' AS DOUBLE), id / 4) FROM range(400)")
    db.create_view("sums", "SELECT k, COUNT(*) AS n, MAX(x) AS top FROM t GROUP BY k")
    db.create_view("bag", "SELECT k, IF(x > 50, -0.0D, x) AS x FROM t")
    db.create_view("late", "SELECT n, COUNT(*) AS groups FROM sums GROUP BY n")
    for step in range(2):
        ids = ", ".join(map(str, random.sample(range(400), 8)))
        db.sql(f"DELETE FROM t WHERE id IN ({ids})")
        value = random.choice(["NULL", "-0.0D", "3.5", "x + 1"])
        db.sql(
            f"MERGE INTO t USING (SELECT id FROM range({step}, {1000 + step}, 41)) s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET x = {value} "
            "WHEN NOT MATCHED THEN INSERT (id, k, x) VALUES (s.id, s.id % 9, NULL)"
        )
        if step == 0:
            _fail_to_publish(db, monkeypatch)
        report = db.refresh("sums", "bag") if step == 0 else db.refresh()
        assert {report["sums"].strategy, report["bag"].strategy} == {"PATCH"}
        for view in ("sums", "bag"):
            assert_fresh(db, view, "INCREMENTAL")
    assert_all_fresh(db, "INCREMENTAL")
    node = db._catalog.world().nodes["bag"]
    assert multiset(db.spark.read.format("delta").load(node.path)) == multiset(db.table("bag"))
    assert Snapshot(node.path).deleted


def _fail_to_publish(db: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are committed, but the epoch is not published."""

    def crash(*_: Any, **__: Any) -> None:
        raise RuntimeError("the process ended here")

    with monkeypatch.context() as broken:
        broken.setattr(Catalog, "publish", crash)
        with pytest.raises(RuntimeError, match="ended here"):
            db.refresh("sums", "bag")
