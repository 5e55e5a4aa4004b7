"""The catalog on SQLite and PostgreSQL: names are unique, all of it survives, an epoch is published whole or not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from sqlalchemy import text, update

from penstock.catalog import Catalog, Frontier, HistoryRecord, NodeRecord, Publication, TableRecord, ViewRecord
from penstock.catalog.tables import SCHEMA_VERSION, settings
from penstock.errors import AlreadyExistsError, DependencyError, NotFoundError, WarehouseError

WHEN = datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc)


@pytest.fixture
def catalog(url: str) -> Catalog:
    return Catalog(url)


def table(name: str) -> TableRecord:
    return TableRecord(name.lower(), name, f"/data/{name}", False, WHEN)


def node(name: str, *inputs: str, hidden: bool = False) -> NodeRecord:
    return NodeRecord(
        name, hidden, f"/nodes/{name}", f"print of {name}", "{}", inputs, {"input_types": {}, "n": [1, None]}
    )


def view(name: str, *reads: str, nodes: tuple[str, ...] = ()) -> ViewRecord:
    return ViewRecord(
        name.lower(), name, f"SELECT 1 FROM {', '.join(reads)}", (("a", "int", "the a"), ("b", "string", None)), "why", {"x": "y"},  # noqa: E501
        "MANUAL", "AUTO", reads, (*nodes, name.lower()), None, None, WHEN,
    )  # fmt: skip


def done(view: str, epoch: int, action: str = "INCREMENTAL") -> HistoryRecord:
    return HistoryRecord(epoch, view, "SUCCEEDED", action, "APPEND", "CHANGED", 3, 1, 0.25, WHEN)


def publication(epoch: int, version: int) -> Publication:
    return Publication({"v": version}, {"v": {"t": Frontier(version, "id", True)}}, {"t": version}, [done("v", epoch)])


def test_a_new_catalog_is_empty(catalog: Catalog) -> None:
    world = catalog.world()
    assert (world.tables, world.views, world.nodes, world.frontiers, world.epoch) == ({}, {}, {}, {}, 0)
    assert catalog.history() == []


def test_everything_survives_reopening(catalog: Catalog, url: str) -> None:
    catalog.add_table(table("T"))
    catalog.put_view(
        view("V", "t", nodes=("__node_h",)),
        [node("__node_h", "t", hidden=True), node("v", "__node_h")],
        replacing=False,
    )
    epoch = catalog.begin_epoch()
    catalog.publish(epoch, publication(epoch, 4))
    before, history = catalog.world(), catalog.history()
    catalog.close()
    again = Catalog(url)
    assert again.world() == before
    assert again.history() == history
    assert before.nodes["v"].version == 4
    assert before.views["v"].columns == (("a", "int", "the a"), ("b", "string", None))
    assert before.frontiers == {"v": {"t": Frontier(4, "id", True)}}
    assert (before.epoch, history[0].started_at) == (epoch, WHEN)


@pytest.mark.parametrize("second", ["t", "T"])
def test_names_are_unique_across_tables_and_views(catalog: Catalog, second: str) -> None:
    catalog.add_table(table("t"))
    with pytest.raises(AlreadyExistsError, match="taken by a table"):
        catalog.add_table(table(second))
    with pytest.raises(AlreadyExistsError, match="taken by a table"):
        catalog.put_view(view(second, "t"), [node(second.lower(), "t")], replacing=False)
    assert catalog.world().views == {}
    catalog.put_view(view("v", "t"), [node("v", "t")], replacing=False)
    with pytest.raises(AlreadyExistsError, match="taken by a materialized view"):
        catalog.add_table(table("V"))


def test_a_table_that_is_read_is_not_dropped(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    catalog.put_view(view("V", "t"), [node("v", "t")], replacing=False)
    with pytest.raises(DependencyError, match="'V' reads it"):
        catalog.drop_table("t")
    catalog.drop_views(["v"])
    catalog.drop_table("t")
    assert catalog.world().tables == {}


def test_a_shared_node_stays_while_one_view_needs_it(catalog: Catalog) -> None:
    hidden = node("__node_h", "t", hidden=True)
    catalog.add_table(table("t"))
    for name in ("v", "w"):
        catalog.put_view(view(name, "t", nodes=("__node_h",)), [hidden, node(name, "__node_h")], replacing=False)
    assert set(catalog.world().nodes) == {"__node_h", "v", "w"}
    catalog.drop_views(["v"])
    assert set(catalog.world().nodes) == {"__node_h", "w"}
    catalog.drop_views(["w"])
    assert catalog.world().nodes == {}


def test_replacing_a_view_forgets_what_the_old_one_consumed(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    catalog.put_view(view("v", "t"), [node("v", "t")], replacing=False)
    epoch = catalog.begin_epoch()
    catalog.publish(epoch, publication(epoch, 4))
    other = replace(view("v", "t"), query="SELECT 2 FROM t")
    catalog.put_view(other, [replace(node("v", "t"), path="/nodes/v-2")], replacing=True)
    world = catalog.world()
    assert world.views["v"].query == "SELECT 2 FROM t"
    assert (world.nodes["v"].path, world.nodes["v"].version, world.frontiers) == ("/nodes/v-2", None, {})
    assert [record.epoch for record in catalog.history("v")] == [epoch]


def test_an_epoch_is_published_whole_or_not_at_all(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    catalog.put_view(view("v", "t"), [node("v", "t")], replacing=False)
    first = catalog.begin_epoch()
    catalog.publish(first, publication(first, 1))
    before, history = catalog.world(), catalog.history()
    second = catalog.begin_epoch()
    broken = publication(second, 2)
    broken.history.append(replace(done("v", second), action=None))  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)not.null"):
        catalog.publish(second, broken)
    assert catalog.world() == before
    assert catalog.history() == history


def test_a_view_is_put_whole_or_not_at_all(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    catalog.put_view(view("v", "t"), [node("v", "t")], replacing=False)
    before = catalog.world()
    broken = Publication(history=[replace(done("v", 1), view=None)])  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)not.null"):
        catalog.put_view(
            replace(view("v", "t"), query="other"),
            [node("v", "t")],
            replacing=True,
            epoch=catalog.begin_epoch(),
            publication=broken,
        )
    assert catalog.world() == before


def test_epochs_are_numbered_without_gaps_or_repeats(catalog: Catalog, url: str) -> None:
    assert [catalog.begin_epoch(), catalog.begin_epoch()] == [1, 2]
    assert Catalog(url).begin_epoch() == 3
    assert catalog.world().epoch == 0, "an epoch that was only begun is not published"


def test_history_newest_first(catalog: Catalog) -> None:
    catalog.record([done("v", 1), done("w", 1), done("v", 2, "NO_DATA")])
    assert [(r.view, r.epoch) for r in catalog.history()] == [("v", 2), ("w", 1), ("v", 1)]
    assert [r.action for r in catalog.history("v", 1)] == ["NO_DATA"]
    assert {name: r.epoch for name, r in catalog.last_refreshes().items()} == {"v": 2, "w": 1}


def test_a_catalog_newer_than_the_code_is_refused_and_kept(catalog: Catalog, url: str) -> None:
    catalog.add_table(table("t"))
    version = update(settings).where(settings.c.name == "schema_version")
    with catalog.transaction(writes=True) as connection:
        connection.execute(version.values(value=str(SCHEMA_VERSION + 1)))
    with pytest.raises(WarehouseError, match=f"schema version {SCHEMA_VERSION + 1}.*newer Penstock"):
        Catalog(url)
    with catalog.transaction(writes=True) as connection:
        connection.execute(version.values(value=str(SCHEMA_VERSION)))
    assert set(Catalog(url).world().tables) == {"t"}


def test_a_catalog_of_an_older_version_is_brought_up_to_date(catalog: Catalog, url: str) -> None:
    catalog.record([done("v", 1)])
    with catalog.transaction(writes=True) as connection:
        connection.execute(text("ALTER TABLE history DROP COLUMN details"))
        connection.execute(text("ALTER TABLE views DROP COLUMN options"))
        connection.execute(text("ALTER TABLE tables DROP COLUMN watermark"))
        connection.execute(text("DROP TABLE watermarks"))
        connection.execute(text("DROP TABLE checkpoints"))
        connection.execute(text("ALTER TABLE frontiers DROP COLUMN fingerprint"))
        connection.execute(text("ALTER TABLE source_versions DROP COLUMN table_id"))
        connection.execute(text("ALTER TABLE source_versions DROP COLUMN fingerprint"))
        connection.execute(update(settings).where(settings.c.name == "schema_version").values(value="1"))
    newer = Catalog(url)
    newer.record([replace(done("v", 2), details={"jobs": 3})])
    assert [record.details for record in newer.history("v")] == [{"jobs": 3}, None]
    assert [record.epoch for record in Catalog(url).history("v")] == [2, 1]


def test_two_writers_never_begin_the_same_epoch(catalog: Catalog, url: str) -> None:
    catalogs = [catalog, Catalog(url), Catalog(url)]
    with ThreadPoolExecutor(3) as pool:
        numbers = [n for found in pool.map(lambda c: [c.begin_epoch() for _ in range(10)], catalogs) for n in found]
    assert sorted(numbers) == list(range(1, 31))


@pytest.mark.parametrize("content", [b"this is no database, but some other file of somebody", b"\x00" * 4096])
def test_a_file_that_is_no_catalog(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "catalog.sqlite"
    file.write_bytes(content)
    with pytest.raises(WarehouseError, match="cannot be opened"):
        Catalog(f"sqlite:///{file}")
    assert file.read_bytes() == content


def test_a_place_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="cannot be opened"):
        Catalog(f"sqlite:///{tmp_path / 'nowhere' / 'catalog.sqlite'}")


@pytest.mark.parametrize("bad", ["nonsense", "nosuchdialect://host/db"])
def test_a_url_that_is_none(bad: str) -> None:
    with pytest.raises(WarehouseError):
        Catalog(bad)


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError) as caught:
        Catalog("postgresql://user:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value)


def test_names_that_are_unknown(catalog: Catalog) -> None:
    catalog.add_table(table("Orders"))
    world = catalog.world()
    assert world.resolve("ORDERS") == "orders"
    with pytest.raises(NotFoundError, match=r"'x'.*Orders"):
        world.resolve("x")
    with pytest.raises(NotFoundError, match="is a table"):
        world.view_key("orders")
    with pytest.raises(NotFoundError, match="no materialized view 'x'"):
        world.view_key("x")
