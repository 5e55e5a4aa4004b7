"""The catalog on SQLite and PostgreSQL: names are unique, all of it survives, an epoch is published whole or not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, event, insert, text, update

from penstock.catalog import (
    Catalog,
    Definition,
    Fence,
    Frontier,
    HistoryRecord,
    Mark,
    NodeDetails,
    NodeRecord,
    Publication,
    Schema,
    Seen,
    TableRecord,
    ViewRecord,
)
from penstock.catalog.checkpoints import Checkpoints
from penstock.catalog.leases import Leases
from penstock.catalog.models import PlainView, ReadModel
from penstock.catalog.publishing import drop_views, put_plain
from penstock.catalog.schema_records import Dropped, SchemaRecords
from penstock.catalog.states import SUSPENDED, write_state
from penstock.catalog.tables import SCHEMA_VERSION, epochs, plain_views, settings
from penstock.errors import (
    AlreadyExistsError,
    BusyError,
    DependencyError,
    LeaseLostError,
    NotFoundError,
    WarehouseError,
)
from penstock.vocabulary import Policy
from postgres import new_database

WHEN = datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc)


@pytest.fixture
def catalog(url: str) -> Catalog:
    return Catalog(url)


def table(name: str) -> TableRecord:
    return TableRecord(key=name.lower(), name=name, path=f"/data/{name}", external=False, created_at=WHEN)


def node(name: str, *inputs: str, hidden: bool = False) -> NodeRecord:
    return NodeRecord(
        name=name,
        hidden=hidden,
        path=f"/nodes/{name}",
        fingerprint=f"print of {name}",
        schema_json="{}",
        inputs=inputs,
        details=NodeDetails.of_json({"incremental": True, "n": [1, None]}),
    )


def view(name: str, *reads: str, nodes: tuple[str, ...] = ()) -> ViewRecord:
    return ViewRecord(
        key=name.lower(), name=name, query=f"SELECT 1 FROM {', '.join(reads)}",
        columns=(("a", "int", "the a"), ("b", "string", None)), comment="why", properties={"x": "y"},
        refresh="MANUAL", policy=Policy.AUTO, reads=reads, nodes=(*nodes, name.lower()), reason_code=None, reason=None,
        created_at=WHEN,
    )  # fmt: skip


def put(catalog: Catalog, view: ViewRecord, nodes: list[NodeRecord], *, replacing: bool = False) -> int:
    return catalog.publish(Publication(definitions=[Definition(view, tuple(nodes), replaces=replacing)]))


def done(view: str, epoch: int = 0, action: str = "INCREMENTAL") -> HistoryRecord:
    return HistoryRecord(
        epoch=epoch,
        view=view,
        status="SUCCEEDED",
        action=action,
        strategy="APPEND",
        reason="CHANGED",
        rows_inserted=3,
        rows_deleted=1,
        seconds=0.25,
        started_at=WHEN,
    )


def publication(version: int) -> Publication:
    return Publication(
        versions={"v": version},
        frontiers={"v": {"t": Frontier(version, "id", True)}},
        sources={"t": version},
        history=[done("v")],
    )


def test_a_new_catalog_is_empty(catalog: Catalog) -> None:
    world = catalog.world()
    assert (world.tables, world.views, world.nodes, world.frontiers, world.epoch) == ({}, {}, {}, {}, 0)
    assert catalog.history() == []


def test_everything_survives_reopening(catalog: Catalog, url: str) -> None:
    catalog.add_table(table("T"))
    put(catalog, view("V", "t", nodes=("__node_h",)), [node("__node_h", "t", hidden=True), node("v", "__node_h")])
    epoch = catalog.publish(publication(4))
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
        put(catalog, view(second, "t"), [node(second.lower(), "t")])
    assert catalog.world().views == {}
    put(catalog, view("v", "t"), [node("v", "t")])
    with pytest.raises(AlreadyExistsError, match="taken by a materialized view"):
        catalog.add_table(table("V"))


def test_a_table_that_is_read_is_not_dropped(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    put(catalog, view("V", "t"), [node("v", "t")])
    with pytest.raises(DependencyError, match="'V' reads it"):
        catalog.drop_table("t")
    catalog.drop_views(["v"])
    catalog.drop_table("t")
    assert catalog.world().tables == {}


def test_a_shared_node_stays_while_one_view_needs_it(catalog: Catalog) -> None:
    hidden = node("__node_h", "t", hidden=True)
    catalog.add_table(table("t"))
    for name in ("v", "w"):
        put(catalog, view(name, "t", nodes=("__node_h",)), [hidden, node(name, "__node_h")])
    assert set(catalog.world().nodes) == {"__node_h", "v", "w"}
    catalog.drop_views(["v"])
    assert set(catalog.world().nodes) == {"__node_h", "w"}
    catalog.drop_views(["w"])
    assert catalog.world().nodes == {}


def test_replacing_a_view_forgets_what_the_old_one_consumed(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    put(catalog, view("v", "t"), [node("v", "t")])
    epoch = catalog.publish(publication(4))
    other = replace(view("v", "t"), query="SELECT 2 FROM t")
    emptied = put(catalog, other, [node("v", "t")], replacing=True)
    world = catalog.world()
    assert world.views["v"].query == "SELECT 2 FROM t"
    assert (world.nodes["v"].path, world.nodes["v"].version, world.frontiers) == ("/nodes/v", None, {})
    assert [record.epoch for record in catalog.history("v")] == [epoch]
    then, now = catalog.moment(epoch), catalog.moment(emptied)
    assert then is not None
    assert now is not None
    assert (then.world.nodes["v"].version, now.world.nodes["v"].version) == (4, None), "an epoch never changes"


def test_an_epoch_is_published_whole_or_not_at_all(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    put(catalog, view("v", "t"), [node("v", "t")])
    catalog.publish(publication(1))
    before, history = catalog.world(), catalog.history()
    broken = publication(2)
    broken.history.append(replace(done("v"), action=None))  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)not.null"):
        catalog.publish(broken)
    assert catalog.world() == before
    assert catalog.history() == history


def test_a_view_is_put_whole_or_not_at_all(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    put(catalog, view("v", "t"), [node("v", "t")])
    before = catalog.world()
    other = Definition(replace(view("v", "t"), query="other"), (node("v", "t"),), replaces=True)
    broken = Publication(definitions=[other], history=[replace(done("v"), view=None)])  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)not.null"):
        catalog.publish(broken)
    assert catalog.world() == before


def test_epochs_are_numbered_in_the_order_in_which_they_can_be_seen(catalog: Catalog, url: str) -> None:
    assert [catalog.publish(Publication()), catalog.publish(Publication())] == [1, 2]
    assert Catalog(url).publish(Publication()) == 3
    assert catalog.world().epoch == 3


def test_an_epoch_is_not_seen_before_the_last_one_whatever_clocks_say(catalog: Catalog) -> None:
    catalog.publish(Publication())
    ahead = datetime.now(timezone.utc) + timedelta(days=1)
    with catalog.transaction(writes=True) as connection:
        connection.execute(update(epochs).values(published_at=ahead))
    catalog.publish(Publication())
    assert catalog.epoch_at(ahead - timedelta(seconds=1)) is None
    assert catalog.epoch_at(ahead) == 2


def test_who_lost_a_lease_cannot_publish(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    put(catalog, view("v", "t"), [node("v", "t")])
    before, history = catalog.world(), catalog.history()
    with Leases(catalog, ["v"]) as held:
        assert held == set()
        leases = Leases(catalog, ["w"])
        with leases:
            other = replace(leases.fence, nodes=frozenset({"v", "w"}))
            with pytest.raises(LeaseLostError, match="'v' was taken over"):
                catalog.publish(publication(4), other)
            assert (catalog.world(), catalog.history()) == (before, history)
            assert catalog.publish(Publication(), leases.fence) == before.epoch + 1


def test_of_two_epochs_over_one_table_the_watermark_and_the_version_are_those_that_came_further(
    catalog: Catalog,
) -> None:
    """The epoch that read less is published last."""
    catalog.add_table(table("t"))
    further = Publication(
        sources={"t": 3}, watermarks={"t": Mark(300, Seen(column="at", latest=300, version=3, table_id="id"))}
    )
    less = Publication(
        sources={"t": 2}, watermarks={"t": Mark(200, Seen(column="at", latest=200, version=2, table_id="id"))}
    )
    catalog.publish(further)
    catalog.publish(less)
    assert catalog.world().watermarks["t"] == Mark(300, Seen(column="at", latest=300, version=3, table_id="id"))
    moment = catalog.moment()
    assert moment is not None
    assert moment.sources == {"t": 3}


def test_what_a_view_reads_may_be_dropped_until_it_is_published(catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match="view 'v' reads 't', which was dropped"):
        put(catalog, view("v", "t"), [node("v", "t")])
    assert catalog.world().views == {}


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
        connection.execute(text("ALTER TABLE epochs DROP COLUMN run"))
        connection.execute(text("ALTER TABLE epochs DROP COLUMN restored"))
        connection.execute(text("DROP TABLE alerts"))
        connection.execute(text("DROP TABLE states"))
        connection.execute(text("DROP TABLE intents"))
        connection.execute(text("ALTER TABLE tables DROP COLUMN published"))
        connection.execute(text("DROP TABLE read_models"))
        connection.execute(text("DROP TABLE plain_views"))
        connection.execute(text("DROP TABLE catalog_names"))
        connection.execute(text("DROP TABLE schemas"))
        connection.execute(text("ALTER TABLE tables DROP COLUMN catalog_name"))
        connection.execute(text("ALTER TABLE views DROP COLUMN written"))
        connection.execute(text("ALTER TABLE views DROP COLUMN scheduled_at"))
        connection.execute(text("ALTER TABLE leases DROP COLUMN began"))
        for column in ("times", "since", "longest"):
            connection.execute(text(f"ALTER TABLE history DROP COLUMN {column}"))
        connection.execute(text("ALTER TABLE frontiers DROP COLUMN fingerprint"))
        connection.execute(text("ALTER TABLE source_versions DROP COLUMN table_id"))
        connection.execute(text("ALTER TABLE source_versions DROP COLUMN fingerprint"))
        connection.execute(update(settings).where(settings.c.name == "schema_version").values(value="1"))
    newer = Catalog(url)
    newer.record([replace(done("v", 2), details={"jobs": 3})])
    assert [record.details for record in newer.history("v")] == [{"jobs": 3}, None]
    assert [record.epoch for record in Catalog(url).history("v")] == [2, 1]
    newer.record([replace(done("v", 3), details={"alerts": {"state_mismatch": "why"}})])
    assert [alert.message for alert in newer.alerts()] == ["why"]


def test_names_with_dots_from_before_there_were_schemas(catalog: Catalog, url: str) -> None:
    """They stay in the schema default, under keys that are not those of names of two parts."""
    SchemaRecords(catalog).add(Schema(key="a", name="a", created_at=WHEN))  # so that they can be written as they were
    catalog.add_table(table("A.T"))
    put(catalog, view("A.V", "a.t"), [node("a.v", "a.t")])
    put(catalog, view("W", "a.v"), [node("w", "a.v")])
    read = {"a.v": {"a.t": Frontier(1, "id", True)}, "w": {"a.v": Frontier(1, "id", True)}}
    catalog.publish(Publication(versions={"a.v": 1}, frontiers=read, sources={"a.t": 1}, history=[done("a.v")]))
    Checkpoints(catalog).add("before")
    with catalog.transaction(writes=True) as connection:
        connection.execute(text("DROP TABLE catalog_names"))
        connection.execute(text("DROP TABLE schemas"))
        for told in ("tables", "plain_views"):
            connection.execute(text(f"ALTER TABLE {told} DROP COLUMN catalog_name"))
        connection.execute(update(settings).where(settings.c.name == "schema_version").values(value="6"))
    newer = Catalog(url)
    world = newer.world()
    assert {key: one.name for key, one in world.tables.items()} == {"`a.t`": "`A.T`"}
    found = {key: (one.name, one.reads, one.nodes) for key, one in world.views.items()}
    assert found == {"`a.v`": ("`A.V`", ("`a.t`",), ("`a.v`",)), "w": ("W", ("`a.v`",), ("w",))}
    assert {name: one.inputs for name, one in world.nodes.items()} == {"`a.v`": ("`a.t`",), "w": ("`a.v`",)}
    assert {name: set(consumed) for name, consumed in world.frontiers.items()} == {"`a.v`": {"`a.t`"}, "w": {"`a.v`"}}
    assert [record.view for record in newer.history("`a.v`")] == ["`a.v`"]
    moment = newer.moment()
    assert moment is not None
    assert (moment.sources, moment.world.nodes["`a.v`"].version) == ({"`a.t`": 1}, 1)
    assert (world.resolve("`A.T`"), list(world.schemas)) == ("`a.t`", ["default"])
    (kept,) = Checkpoints(newer).all()
    assert (kept.nodes, kept.tables[0]["name"]) == ({"`a.v`": ("/nodes/a.v", 1), "w": ("/nodes/w", None)}, "`A.T`")
    assert kept.sources_of("`a.v`") == {"`A.T`": 1}


def test_a_checkpoint_brings_plain_views_and_read_models_back(catalog: Catalog) -> None:
    def plain(name: str, query: str = "SELECT 1 AS a") -> PlainView:
        return PlainView(key=name, name=name, query=query, columns=(("a", "int"),), created_at=WHEN)

    def model(entity: str) -> None:
        name = f"tv_{entity}"
        told = ReadModel(key=name, entity=entity, plain_view=f"v_{entity}", primary="pk")
        made = Definition(view(name, "t"), (node(name, "t"),), model=(told, plain(f"v_{entity}")))
        catalog.publish(Publication(definitions=[made]))

    def changed(write: Callable[[Connection], object]) -> None:
        with catalog.transaction(writes=True) as connection:
            write(connection)

    catalog.add_table(table("t"))
    model("kept")
    model("dropped")
    for one in (plain("same"), plain("gone")):
        changed(lambda connection, one=one: put_plain(connection, one, or_replace=False))
    before = catalog.world()
    Checkpoints(catalog).add("before")
    changed(lambda connection: drop_views(connection, ["tv_dropped"]))
    changed(lambda connection: connection.execute(delete(plain_views).where(plain_views.c.key == "gone")))
    changed(lambda connection: put_plain(connection, plain("same", "SELECT 2 AS a"), or_replace=True))
    changed(lambda connection: put_plain(connection, plain("since"), or_replace=False))
    model("since")
    changed(lambda connection: write_state(connection, "tv_kept", SUSPENDED))
    Checkpoints(catalog).restore(Checkpoints(catalog).get("before"), {}, [])
    after = catalog.world()
    assert after.models == before.models
    assert {key: one for key, one in after.plain.items() if key != "since"} == before.plain
    assert set(after.plain) == {*before.plain, "since"}
    assert after.states == {"tv_kept": SUSPENDED}


def test_a_schema_is_needed_and_dropped_with_all_that_is_known_to_be_in_it(catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match=r"no schema 'gold'\. CREATE SCHEMA gold makes it"):
        catalog.add_table(table("gold.t"))
    schema = Schema(key="gold", name="Gold", created_at=WHEN)
    SchemaRecords(catalog).add(schema)
    with pytest.raises(AlreadyExistsError, match="schema 'Gold' exists"):
        SchemaRecords(catalog).add(schema)
    catalog.add_table(table("gold.t"))
    put(catalog, view("gold.V", "gold.t"), [node("gold.v", "gold.t")])
    put(catalog, view("W", "gold.v"), [node("w", "gold.v")])
    assert catalog.world().schemas["gold"] == schema
    all_of_it = Dropped(tables=["gold.t"], views=["w", "gold.v"], plain=[], order=["w", "gold.v", "gold.t"])
    with pytest.raises(BusyError, match="something was created in it"):
        SchemaRecords(catalog).drop(schema, replace(all_of_it, views=["gold.v"]), Fence("nobody", frozenset()))
    assert set(catalog.world().views) == {"w", "gold.v"}
    SchemaRecords(catalog).drop(schema, all_of_it, Fence("nobody", frozenset()))
    world = catalog.world()
    assert (world.tables, world.views, world.nodes, list(world.schemas)) == ({}, {}, {}, ["default"])


def test_an_alert_is_raised_once_and_cleared_when_it_is_over(catalog: Catalog) -> None:
    def refreshed(epoch: int, raised: bool = False, **other: str) -> list[bool]:
        alerts = {"alerts": {"state_mismatch": f"in epoch {epoch}"}} if raised else {}
        catalog.record([replace(done("v", epoch), details=alerts, **other)])
        return [alert.cleared_at is None for alert in catalog.alerts("v")]

    assert refreshed(1) == []
    assert refreshed(2, raised=True) == [True]
    assert refreshed(3, raised=True) == [True], "it goes on"
    assert refreshed(4, status="FAILED") == [True]
    assert refreshed(5, action="SKIP") == [True]
    assert refreshed(6) == [False]
    assert refreshed(7, raised=True, status="FAILED") == [True, False]
    first, last = catalog.alerts("v")
    assert (first.epoch, last.epoch, last.message) == (7, 2, "in epoch 2")
    assert last.cleared_at is not None
    assert last.raised_at < last.cleared_at <= first.raised_at
    assert catalog.alerts("other") == []
    catalog.drop_views(["v"])
    assert catalog.alerts() == []


def test_what_is_mended_was_not_consumed(catalog: Catalog) -> None:
    """A reader that had no part in the epoch must not go on from a version that was wrong."""
    catalog.add_table(table("T"))
    put(catalog, view("V", "t"), [node("v", "t")])
    put(catalog, view("W", "v"), [node("w", "v")])
    read = {"w": {"v": Frontier(1, "id", True), "t": Frontier(1, "id", False)}}
    catalog.publish(replace(publication(1), frontiers=read))
    catalog.publish(replace(publication(2), mended={"v", "held_back"}))
    frontiers = catalog.world().frontiers
    assert (set(frontiers["w"]), frontiers["v"]["t"].version) == ({"t"}, 2)


def test_two_writers_never_publish_the_same_epoch(catalog: Catalog, url: str) -> None:
    catalogs = [catalog, Catalog(url), Catalog(url)]
    with ThreadPoolExecutor(3) as pool:
        found = pool.map(lambda c: [c.publish(Publication()) for _ in range(10)], catalogs)
        numbers = [number for numbers in found for number in numbers]
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
        Catalog("postgresql://user:s3cr@et@127.0.0.1:1/none?password=s3cret")
    assert "cret" not in str(caught.value)
    assert "@et" not in str(caught.value)


def test_a_server_that_was_started_again_is_not_noticed(postgres: str) -> None:
    url = new_database(postgres)
    catalog, other = Catalog(url), Catalog(url)
    assert catalog.world().epoch == other.world().epoch
    with other.transaction(writes=False) as connection:  # what all connections see of it is that they end
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        assert connection.execute(text(ended + "pg_backend_pid()")).all() == [(True,)]
    assert catalog.world().settings == {}


def test_a_look_that_is_cheap_notices_what_is_committed_after_it_began(catalog: Catalog, url: str) -> None:
    other = Catalog(url)
    catalog.beat()
    before = catalog.beat()
    assert catalog.beat() == before, "nobody has written"
    with other.transaction(writes=True) as connection:
        connection.execute(insert(settings).values(name="a", value="b"))
        meanwhile = catalog.beat()
    assert catalog.beat() != meanwhile, "what was not to be seen yet is to be looked at again"
    assert catalog.world().settings == {"a": "b"}


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


def test_an_epoch_of_many_nodes_takes_as_many_statements_as_one_of_few(catalog: Catalog) -> None:
    catalog.add_table(table("t"))
    names = [f"v{i}" for i in range(12)]
    for name in names:
        put(catalog, view(name, "t"), [node(name, "t")])
    counted: list[int] = []

    def publish(nodes: list[str], version: int) -> None:
        statements: list[object] = []
        event.listen(catalog._engine, "before_cursor_execute", lambda *about: statements.append(about))
        frontiers = {name: {"t": Frontier(version, "id", True), "u": Frontier(1, "id", False)} for name in nodes}
        history = [done(name) for name in nodes]
        catalog.publish(
            Publication(
                versions=dict.fromkeys(nodes, version), frontiers=frontiers, sources={"t": version}, history=history
            )
        )
        counted.append(len(statements))

    publish(names[:2], 4)
    publish(names, 5)
    assert counted[0] == counted[1]
    world = catalog.world()
    assert {world.nodes[name].version for name in names} == {5}
    assert all(world.frontiers[name]["t"].version == 5 and len(world.frontiers[name]) == 2 for name in names)
