"""What views are to be called in Spark's catalog, and where their state is kept: no Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from penstock.catalog import Catalog, NodeDetails, NodeRecord, ViewRecord, World
from penstock.catalog.catalog_names import CatalogName, CatalogNames
from penstock.catalog.published import published_parts
from penstock.engine.catalog_names import pending, untried, wanted_names
from penstock.engine.planning import plan_nodes
from penstock.engine.properties import check_own
from penstock.engine.settings import checked
from penstock.engine.writing_out import in_query
from penstock.errors import DefinitionError, NotFoundError
from penstock.sql.names import key_of
from penstock.vocabulary import Policy


def view(name: str, **properties: str) -> ViewRecord:
    said = {f"penstock.{key.replace('_', '.')}": value for key, value in properties.items()}
    return ViewRecord(
        key=key_of(name), name=name, query="SELECT 1 AS a", columns=(("a", "int", "what it is"),), comment=None,
        properties=said, refresh="MANUAL", policy=Policy.AUTO, reads=(), nodes=(key_of(name),), reason_code=None,
        reason=None, created_at=datetime(2026, 1, 1, tzinfo=timezone.utc),
    )  # fmt: skip


def world(*views: ViewRecord, **settings: str) -> World:
    nodes = {
        v.key: NodeRecord(
            name=v.key, hidden=False, path=f"/w/views/{v.key}", fingerprint="", inputs=(), details=NodeDetails(),
            schema_json='{"type":"struct","fields":[]}',
        )
        for v in views
    }  # fmt: skip
    return World(
        tables={}, views={v.key: v for v in views}, nodes=nodes, frontiers={}, epoch=1, settings=settings
    )  # fmt: skip


@pytest.mark.parametrize(
    ("said", "place", "name"),
    [
        ("daily", "", "spark_catalog.default.daily"),
        ("gold.daily", "unity.all", "spark_catalog.gold.daily"),
        ("unity.gold.`odd name`", "", "unity.gold.`odd name`"),
        (None, "", None),
        (None, "unity", "unity.shop.totals"),
        (None, "unity.all", "unity.all.totals"),
        ("FALSE", "unity.all", None),
    ],
)
def test_what_a_view_is_called(said: str | None, place: str, name: str | None) -> None:
    one = view("shop.totals") if said is None else view("shop.totals", publish=said)
    found = wanted_names(world(one, publish=place))
    assert [wanted.shown for wanted in found.values()] == ([] if name is None else [name])


@pytest.mark.parametrize("said", ["", "a.b.c.d", "a..b"])
def test_what_is_no_name(said: str) -> None:
    with pytest.raises(Exception, match=r"is a name of Spark's catalog|is no name"):
        published_parts(view("totals", publish=said), {})


def test_a_query_may_use_the_name_that_spark_has() -> None:
    """Three parts, or two or one where they mean the same and nothing here has the name."""
    names = {"totals": "Gold.Daily", "ids": "ids_there", "far": "u.gold.x"}
    here = world(*(view(name, publish=said) for name, said in names.items()))
    named = {"spark_catalog.gold.DAILY": "totals", "gold.daily": "totals", "ids_there": "ids", "u.gold.x": "far"}
    assert {name: here.resolve(name) for name in named} == named
    text = "SELECT d.a FROM spark_catalog.gold.daily d JOIN ids_there JOIN delta.`file:///w/views/far` JOIN far"
    told = "SELECT d.a FROM `totals` d JOIN `ids` AS `ids_there` JOIN `far` AS `/w/views/far` JOIN far"
    assert in_query(here, text) == told.replace("`/w", "`file:///w")
    assert in_query(here, "SELECT daily FROM t") == "SELECT daily FROM t"
    with pytest.raises(NotFoundError, match=r"'gold\.daily' is what Spark calls 'totals': use that name"):
        here.view_key("gold.daily")
    with pytest.raises(NotFoundError, match="no schema 'gold'"):
        here.resolve("gold.x")
    taken = world(view("totals", publish="ids"), view("ids"))
    assert (taken.resolve("ids"), taken.resolve("spark_catalog.default.ids")) == ("ids", "totals")


def test_of_two_views_the_older_has_the_name() -> None:
    found = wanted_names(world(view("gold.totals"), view("silver.totals"), publish="unity.all"))
    assert [wanted.view.name for wanted in found.values()] == ["gold.totals"]


def test_what_there_is_to_do(tmp_path: Path) -> None:
    """Names are written when they are new, changed or in doubt, and go when nobody wants them any more."""
    records = CatalogNames(Catalog(f"sqlite:///{tmp_path / 'catalog.sqlite'}"))
    wanted = wanted_names(world(view("totals", publish="daily")))
    (name,) = wanted.values()
    assert pending(wanted, records.all(), None) == ([name], [])
    records.begin(name.record())
    assert pending(wanted, records.all(), None) == ([name], []), "a crash leaves it in doubt"
    records.end(name.key, name.digest, "app-1")
    assert pending(wanted, records.all(), None) == ([], [])
    assert pending(wanted, records.all(), "app-1") == ([], [])
    assert pending(wanted, records.all(), "app-2") == ([name], []), "the catalog went with its application"
    changed = wanted_names(world(replace(view("totals", publish="daily"), comment="by day")))
    assert pending(changed, records.all(), None) == (list(changed.values()), [])
    names, gone = pending({}, records.all(), None)
    assert [one.name for one in gone] == ["`spark_catalog`.`default`.`daily`"]
    assert not names
    records.forget(name.key)
    assert records.all() == {}


def test_spark_is_started_once_for_what_fails() -> None:
    (name,) = wanted_names(world(view("totals", publish="daily"))).values()
    failed = replace(name.record(), tried=name.digest, problem="no")
    assert untried([name], [], {})
    assert not untried([name], [], {name.key: failed})
    assert untried([name], [], {name.key: replace(failed, tried="another")})
    assert untried([], [CatalogName(key="k", name="k", view="v")], {})
    assert not untried([], [CatalogName(key="k", name="k", view="v", problem="no")], {})


def test_settings_and_properties_are_checked() -> None:
    assert checked("PUBLISH", " unity.gold ") == ("publish", "unity.gold")
    assert checked("publish_as", "table") == ("publish_as", "TABLE")
    with pytest.raises(DefinitionError, match=r"'publish' is catalog or catalog\.schema"):
        checked("publish", "a.b.c")
    with pytest.raises(DefinitionError, match=r"there is no property 'penstock\.sate'. Did you mean 'penstock.state'"):
        check_own("v", [("penstock.sate", "beside")])
    with pytest.raises(DefinitionError, match=r"'penstock\.publish\.as' is 'view' or 'table', not 'index'"):
        check_own("v", [("penstock.publish.as", "index")])


@pytest.mark.parametrize(
    ("query", "nodes"),
    [
        ("SELECT a, SUM(b) AS s FROM t GROUP BY a", 2),
        ("SELECT DISTINCT a FROM t", 2),
        ("SELECT b, RANK() OVER (PARTITION BY a ORDER BY b) AS s FROM t", 2),
        ("SELECT a, RANK() OVER (PARTITION BY a ORDER BY b) AS s FROM t", 1),
        ("SELECT a, b FROM t WHERE b > 1", 1),
        ("SELECT x.a FROM t x JOIN t y ON x.a = y.b", 1),
    ],
)
def test_state_beside_a_view_is_a_hidden_node(query: str, nodes: int) -> None:
    names = [column.strip().split()[-1].rpartition(".")[2] for column in query[7 : query.index(" FROM")].split(", ")]
    names = [name.removeprefix("DISTINCT ") for name in names]
    planned = plan_nodes(query, "v", names, {"t": ("a", "b")}, beside=True)
    assert len(planned) == nodes
    assert not planned[-1].stateful or nodes == 1
    assert [name for name, _ in planned[-1].outputs] == names
    assert planned[-1].keys == (("a",) if "GROUP BY" in query or "DISTINCT" in query else None)
