"""Where warehouses and tables may lie, and paths where names are needed."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from oracle import assert_fresh

REMOTE = ["viewfs://cluster/t", "webhdfs:/t", "dbfs:/mnt/t", "https://host/t", "file://elsewhere/t"]  # fmt: skip


def test_remote_places_are_refused(db: penstock.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for place in REMOTE:
        assert_refused(db, place)
    assert sorted(tmp_path.iterdir()) == before
    assert db._catalog.world().tables == {}


def assert_refused(db: penstock.Database, place: str) -> None:
    with pytest.raises(
        penstock.NotSupportedError, match=r"a warehouse cannot lie at .*: places of .* are not supported"
    ):
        penstock.connect(place)
    with pytest.raises(penstock.NotSupportedError, match=r"table 't' cannot lie at .* are not supported"):
        db.register_table("t", place)
    with pytest.raises(penstock.NotSupportedError, match=r"table 't' cannot lie at .* are not supported"):
        db.sql(f"CREATE TABLE t (k INT) LOCATION '{place}'")


@pytest.mark.parametrize("folder", ["with space", "umläut#?"])
def test_a_file_url_works_everywhere(db: penstock.Database, tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "t"
    db.sql(f"CREATE TABLE made (k INT) LOCATION '{path.as_uri()}'")
    db.sql("INSERT INTO made VALUES (1), (2)")
    db.register_table("again", path.as_uri().replace("file:///", "file:/"))
    db.create_view("v", "SELECT k FROM again")
    db.sql("INSERT INTO made VALUES (3)")
    db.sql("DELETE FROM again WHERE k = 1")
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")
    assert {table.path for table in db._catalog.world().tables.values()} == {str(path)}
    with penstock.connect((tmp_path / folder / "w").as_uri()) as other:
        assert other.path == str(tmp_path / folder / "w")
        other.sql("CREATE TABLE t (k INT)")
        other.create_view("v", "SELECT k FROM t")
        other.sql("INSERT INTO t VALUES (1)")
        other.refresh()
        assert_fresh(other, "v", "INCREMENTAL")
    assert (tmp_path / folder / "w" / "catalog.sqlite").exists()


def test_a_home_directory(db: penstock.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    db.sql("CREATE TABLE t (k INT) LOCATION '~/mine/t'")
    assert (tmp_path / "mine" / "t" / "_delta_log").is_dir()


def test_a_path_is_not_a_name(db: penstock.Database, tmp_path: Path) -> None:
    path = tmp_path / "t"
    db.spark.range(3).write.format("delta").save(str(path))
    register = r"Register it first: CREATE TABLE some_name LOCATION"
    query = f"SELECT * FROM delta.`{path}`"
    for read in (lambda: db.sql(query), lambda: db.create_view("v", query),
                 lambda: db.sql(f"SELECT * FROM `{path}`"), lambda: db.table(str(path)),
                 lambda: db.refresh(str(path)), lambda: db.drop_view(str(path))):  # fmt: skip
        with pytest.raises(penstock.NotFoundError, match=register):
            read()
    for statement in (f"DROP TABLE delta.`{path}`", f"REFRESH MATERIALIZED VIEW delta.`{path}`"):
        with pytest.raises(penstock.SqlError, match="a path is no name: register it first"):
            db.sql(statement)
    db.register_table("t", path)
    with pytest.raises(penstock.NotFoundError, match=r"is the path of 't': use that name"):
        db.table(str(path))
