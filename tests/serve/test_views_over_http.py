"""Views as resources, events as they happen, metrics, the client, and how a server goes down."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from http_server import Answer, Server, Servers, tokens_of
from pyspark.sql import SparkSession

import penstock
from penstock.catalog.leases import Leases


def events(stream: HTTPResponse) -> Iterator[dict[str, Any]]:
    """What a stream sends. The first line comes when nothing is missed any more."""
    fields: dict[str, str] = {}
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            yield {**fields, "data": json.loads(fields["data"])}
            fields = {}


def listening(server: Server, path: str, last: str | None = None) -> Iterator[dict[str, Any]]:
    stream = server.open("GET", path, headers={"Last-Event-ID": last} if last else None)
    assert (stream.status, stream.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
    assert stream.readline() == b"retry: 2000\n"
    return events(stream)


def test_views_are_looked_at_and_kept_fresh(copied: Callable[[], Path], serving: Servers) -> None:
    server = serving("-w", f"shop={copied()}")
    ask = server.ask
    assert [view["name"] for view in ask("GET", "/api/v1/views").json["result"]] == ["totals", "copies", "large"]
    told = ask("GET", "/api/v1/views/TOTALS").json
    assert (told["name"], told["state"], told["reads"]) == ("totals", "ACTIVE", ["orders"])
    assert [column["name"] for column in told["columns"]] == ["region", "total"]
    assert ask("GET", "/api/v1/views/none").status == 404
    assert "maintained incrementally" in ask("GET", "/api/v1/views/totals/explain").json["text"]
    lineage = ask("GET", "/api/v1/views/large/lineage").json
    assert {(each["other"], each["direct"]) for each in lineage["result"]} == {("totals", True), ("orders", False)}
    assert [each["column"] for each in lineage["columns"]] == ["region", "total"]
    assert lineage["columns"][1]["from"] == [
        {"name": "totals", "column": "total", "kind": "view", "change": "IDENTITY", "direct": True},
        {"name": "orders", "column": "amount", "kind": "table", "change": "AGGREGATION", "direct": False},
    ]
    graph = ask("GET", "/api/v1/graph").json
    assert ["orders", "totals"] in graph["edges"]
    told = {node["name"]: (node["kind"], node.get("refresh"), node.get("last_action")) for node in graph["nodes"]}
    assert (told["orders"], told["large"]) == (("table", None, None), ("view", "MANUAL", "FULL"))
    assert graph["groups"] == []
    assert ask("GET", "/api/v1/whoami").json == {"user": "local", "role": "admin", "databases": []}
    server.sql("INSERT INTO orders VALUES (4, 'us', 25)")
    assert ask("GET", "/api/v1/views/totals").json["behind"] == {"orders": 1}
    done = ask("POST", "/api/v1/views/large/refresh").json["views"]
    assert {view["name"]: view["action"] for view in done} == {"totals": "INCREMENTAL", "large": "INCREMENTAL"}
    assert ask("GET", "/api/v1/views/totals").json["behind"] == {}
    assert ask("POST", "/api/v1/views/totals/suspend").json["state"] == "SUSPENDED"
    assert ask("POST", "/api/v1/views/totals/resume").json["state"] == "ACTIVE"
    assert ask("PATCH", "/api/v1/views/large", {"target_lag": "5 minutes"}).json["target_lag_seconds"] == 300
    assert ask("PATCH", "/api/v1/views/large", {}).status == 400
    assert ask("PATCH", "/api/v1/views/large", {"colour": "red"}).status == 422
    assert ask("DELETE", "/api/v1/views/totals").status == 409
    assert ask("DELETE", "/api/v1/views/totals?cascade=true").json == {"dropped": "totals"}
    assert ask("GET", "/api/v1/views/large").status == 404
    newest = ask("GET", "/api/v1/epochs?limit=1").json
    assert newest["result"][0]["epoch"] == newest["epoch"]
    assert ask("GET", "/api/v1/history?view=copies&limit=1").json["result"][0]["view"] == "copies"
    assert ask("GET", "/api/v1/alerts").json == {"result": []}
    made = ask("POST", "/api/v1/checkpoints", {"name": "before"})
    assert (made.status, made.json["epoch"]) == (201, newest["epoch"])
    assert ask("GET", "/api/v1/checkpoints").json["result"][0]["name"] == "before"
    assert ask("DELETE", "/api/v1/checkpoints/before").status == 200
    assert ask("PUT", "/api/v1/settings/retention", {"value": "2 days"}).json == {"retention": "2 days"}
    assert ask("PUT", "/api/v1/settings/retention", {"value": "blue"}).status == 400


def test_rows_come_page_by_page_as_of_one_epoch(copied: Callable[[], Path], serving: Servers) -> None:
    server = serving("-w", f"shop={copied()}")
    first = server.ask("GET", "/api/v1/views/copies/rows?limit=2").json
    assert (first["returned"], first["truncated"], first["next"]) == (2, True, f"{first['epoch']}.2")
    server.sql("DELETE FROM orders WHERE id = 1")
    server.sql("INSERT INTO orders VALUES (5, 'us', 5), (6, 'us', 6)")
    server.ask("POST", "/api/v1/refresh", {})
    rest = server.ask("GET", f"/api/v1/views/copies/rows?limit=2&after={first['next']}").json
    assert sorted(row["id"] for row in first["result"] + rest["result"]) == [1, 2, 3], "as it was at the first page"
    assert (rest["truncated"], "next" in rest, rest["epoch"]) == (False, False, first["epoch"])
    then = server.ask("GET", f"/api/v1/views/copies/rows?epoch={first['epoch']}").json["result"]
    assert sorted(row["id"] for row in then) == [1, 2, 3]
    now = server.ask("GET", "/api/v1/views/copies/rows").json
    assert sorted(row["id"] for row in now["result"]) == [2, 3, 5, 6]
    changed = server.ask("GET", f"/api/v1/views/copies/changes?since={first['epoch']}").json
    assert changed["epoch"] == now["epoch"]
    assert sorted((row["id"], row["__weight"]) for row in changed["result"]) == [(1, -1), (5, 1), (6, 1)]
    between = f"changes?since={first['epoch']}&until={first['epoch']}"
    assert server.ask("GET", f"/api/v1/views/copies/{between}").json["result"] == []
    assert server.ask("GET", f"/api/v1/views/copies/{between}&follow=true").status == 400
    assert server.ask("GET", "/api/v1/views/copies/rows?epoch=999").status == 404
    assert server.ask("GET", "/api/v1/views/copies/rows?after=x").status == 422
    assert server.ask("GET", "/api/v1/views/copies/changes").status == 400
    lines = server.ask("GET", "/api/v1/views/copies/rows?limit=3", Accept="text/csv")
    assert len(lines.body.splitlines()) == 4
    assert lines.headers["x-penstock-next"] == f"{now['epoch']}.3"


def test_events_are_told_and_told_again(copied: Callable[[], Path], serving: Servers) -> None:
    place = copied()
    server = serving("-w", f"shop={place}")
    heard = listening(server, "/api/v1/events/shop")
    server.sql("INSERT INTO orders VALUES (4, 'us', 25)")
    epoch = server.ask("POST", "/api/v1/refresh", {}).json["epoch"]
    told = []
    while not told or told[-1]["event"] != "epoch":
        told.append(next(heard))
    begun = {each["data"]["view"] for each in told if each["event"] == "refresh"}
    assert begun == {"totals", "large", "copies"}
    nodes = {name for each in told if each["event"] == "node" for name in each["data"]["views"]}
    assert nodes == {"totals", "large", "copies"}
    assert told[-1]["data"]["epoch"] == epoch
    counts = {view["view"]: (view["rows_inserted"], view["rows_deleted"]) for view in told[-1]["data"]["views"]}
    assert counts == {"totals": (1, 1), "large": (1, 0), "copies": (1, 0)}
    again = listening(server, "/api/v1/events/shop", told[0]["id"])
    assert [next(again) for _ in told[1:]] == told[1:]
    with penstock.connect(place) as db:  # another process, as far as the server knows
        db.sql("INSERT INTO orders VALUES (5, 'us', 1)")
        db.refresh("copies")
    assert next(heard)["data"]["epoch"] == epoch + 1
    long_ago = listening(server, "/api/v1/events/shop", f"{epoch - 1}-gone-1")
    missed = [next(long_ago) for _ in range(3)]
    assert [each["event"] for each in missed] == ["gap", "epoch", "epoch"]
    assert [each["data"]["epoch"] for each in missed[1:]] == [epoch, epoch + 1]


def test_a_view_is_followed(copied: Callable[[], Path], serving: Servers) -> None:
    server = serving("-w", f"shop={copied()}")
    rows = {row["region"]: row["total"] for row in server.ask("GET", "/api/v1/views/totals/rows").json["result"]}
    changes = listening(server, "/api/v1/views/totals/changes?follow=true")
    last = ""
    for statement in (
        "INSERT INTO orders VALUES (4, 'us', 25), (5, 'asia', 1)",
        "DELETE FROM orders WHERE region = 'asia'",
    ):
        server.sql(statement)
        epoch = server.ask("POST", "/api/v1/views/totals/refresh").json["epoch"]
        change = next(changes)
        assert (change["event"], change["id"], change["data"]["epoch"]) == ("change", str(epoch), epoch)
        for row in sorted(change["data"]["result"], key=lambda row: row["__weight"]):
            if row["__weight"] < 0:
                assert rows.pop(row["region"]) == row["total"]
            else:
                rows[row["region"]] = row["total"]
        last = last or change["id"]
    assert rows == {"eu": "40.00", "us": "45.00"}
    again = next(listening(server, "/api/v1/views/totals/changes?follow=true", last))
    assert [(row["region"], row["__weight"]) for row in again["data"]["result"]] == [("asia", -1)]


def test_metrics_are_those_of_prometheus(server: Server) -> None:
    server.sql("INSERT INTO orders VALUES (11, 'us', 1)")
    server.ask("POST", "/api/v1/refresh", {})
    counter = 'penstock_refreshes_total{action="INCREMENTAL",database="shop",reason="CHANGED"'
    wanted = f'{counter},status="SUCCEEDED",view="totals"}}'
    while wanted not in (found := server.ask("GET", "/metrics").body.decode()):
        pass  # the catalog is looked at twice a second
    names = "view_lag_seconds view_data_time_seconds view_state rows_total refresh_seconds_total spark_jobs_total epoch"
    for name in (*names.split(), "leases", "work", "http_requests_total", "http_seconds_bucket"):
        assert f"\npenstock_{name}{{" in found, name


def test_the_dashboard_asks_for_what_there_is(server: Server) -> None:
    dashboard = json.loads(Path("docs/grafana-dashboard.json").read_text())
    found = server.ask("GET", "/metrics").body.decode()
    known = {line.split()[2] for line in found.splitlines() if line.startswith("# TYPE")}
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(asked) >= 8
    for expression in asked:
        names = {word for word in _words(expression) if word.startswith("penstock_")}
        assert names, expression
        assert all(n in known or n.removesuffix("_bucket") in known for n in names), expression


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def test_the_client_does_what_a_database_does(copied: Callable[[], Path], serving: Servers) -> None:
    place = copied()
    token = tokens_of(place)["admin"]
    server = serving("-w", f"shop={place}")
    client = penstock.Client(server.url, token)
    assert client.sql("INSERT INTO orders VALUES (?, ?, ?)", [4, "us", 25])[0]["rows"] == 1
    assert client.refresh("totals")["totals"]["action"] == "INCREMENTAL"
    assert client.sql("SELECT region FROM totals WHERE total = :t", {"t": 45}) == [{"region": "us"}]
    assert sorted(row["id"] for row in client.rows("copies", page=2)) == [1, 2, 3]
    assert {view["name"] for view in client.status()} == {"totals", "large", "copies"}
    epoch = client.epochs()[0]["epoch"]
    following = client.follow("copies", since=epoch - 1)
    client.refresh()
    assert [row["id"] for row in next(following)["result"]] == [4]
    with pytest.raises(penstock.NotFoundError, match="Did you mean 'totals'"):
        client.sql("SELECT * FROM total")
    with pytest.raises(penstock.PenstockError, match="the token is not known"):
        penstock.Client(server.url, "wrong").status()
    assert client.databases() == ["shop"]
    assert client.view("Totals")["query"].startswith("SELECT region")
    assert client.lineage("large")["columns"][0]["from"][0]["name"] == "totals"
    assert ["orders", "totals"] in client.graph()["edges"]
    assert client.schema()["database"] == "shop"
    assert client.history("large", limit=1)[0]["view"] == "large"
    client.set("retention", "3 days")
    assert client.settings()["retention"] == "3 days"
    marked = client.checkpoint("before")
    assert [each["name"] for each in client.checkpoints()] == ["before"]
    client.sql("INSERT INTO orders VALUES (9, 'us', 1)")
    client.refresh()
    assert sum(row["__weight"] for row in client.changes("copies", marked)) == 1
    assert client.restore("before") == client.epochs(1)[0]["epoch"] > marked
    assert sorted(row["id"] for row in client.rows("copies")) == [1, 2, 3, 4]
    assert sorted(row["id"] for row in client.rows("copies", epoch=marked + 1)) == [1, 2, 3, 4, 9]
    client.drop_checkpoint("before")
    assert client.alerts() == client.checkpoints() == []
    created = client.create_view("counts", "SELECT COUNT(*) AS n FROM orders", initialize=False)
    assert created["view"] == "counts"
    assert client.alter_view("counts", policy="FULL", target_lag="1 hour")["policy"] == "FULL"
    assert client.suspend("large")["state"] == "SUSPENDED"
    assert client.explain("large")["view"] == "large"
    assert client.resume("large")["state"] == "ACTIVE"
    client.drop_view("totals", cascade=True)
    with pytest.raises(penstock.NotFoundError):
        client.view("large")
    assert server.stop() == 0
    with pytest.raises(penstock.PenstockError, match="cannot be reached"):
        client.status()


def test_a_server_that_goes_down_finishes_what_it_began(copied: Callable[[], Path], serving: Servers) -> None:
    place = copied()
    server = serving("-w", f"shop={place}")
    stream = listening(server, "/api/v1/events/shop")
    answers: list[Answer] = []
    with penstock.connect(place) as db:
        db.sql("INSERT INTO orders VALUES (4, 'us', 25)")
        with Leases(db._catalog, ["totals"]):
            refresh = threading.Thread(
                target=lambda: answers.append(server.ask("POST", "/api/v1/views/totals/refresh", {"wait": True}))
            )
            refresh.start()
            while 'penstock_work{state="running"} 1.0' not in server.ask("GET", "/metrics").body.decode():
                pass
            server.terminate()
            while server.ask("GET", "/api/v1/ready").status == 200:
                pass
            refused = server.sql("SELECT 1", "query")
            assert (refused.status, refused.headers["retry-after"]) == (503, "5")
            assert server.ask("GET", "/api/v1/health").status == 200
        refresh.join()
    assert [(answer.status, answer.json["views"][0]["action"]) for answer in answers] == [(200, "INCREMENTAL")]
    assert {event["event"] for event in stream} <= {"refresh", "node", "epoch"}, "the stream has ended"
    assert server.ended() == 0
    assert server.lines[-1] == "stopped"


def test_several_warehouses_behind_a_proxy(copied: Callable[[], Path], serving: Servers) -> None:
    server = serving("-w", f"one={copied()}", "-w", f"two={copied()}", "--root-path", "/penstock", "--schedule")
    server.url = server.url.removesuffix("/penstock")
    assert server.ask("GET", "/api/v1/databases").json["result"] == ["one", "two"]
    assert server.ask("GET", "/penstock/api/v1/databases").json["result"] == ["one", "two"], "the prefix may come along"
    assert server.ask("GET", "/penstock/api/v1/openapi.json").json["servers"] == [{"url": "/penstock"}]
    assert not any("Warning" in line for line in server.lines)
    assert server.ask("GET", "/api/v1/views").status == 400
    command = {"command": "ALTER MATERIALIZED VIEW copies REFRESH ON COMMIT"}
    assert server.ask("POST", "/api/v1/command/two", command).status == 200
    changes = listening(server, "/api/v1/views/copies/changes?database=two&follow=true")
    insert = {"command": "INSERT INTO orders VALUES (9, 'x', 9)", "awaitResponse": False}
    begun = server.ask("POST", "/api/v1/command/two", insert)
    assert begun.json["href"].startswith("/penstock/api/v1/jobs/")
    assert [row["id"] for row in next(changes)["data"]["result"]] == [9], "the scheduler has refreshed it"
    ids = [row["id"] for row in server.ask("GET", "/api/v1/views/copies/rows?database=one").json["result"]]
    assert sorted(ids) == [1, 2, 3]


def test_a_file_of_many_row_groups_and_vectors_is_read_from_any_row(tmp_path: Path) -> None:
    with penstock.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE t (id INT, name STRING)")
        for start in (0, 40, 80):
            db.sql(f"INSERT INTO t VALUES {', '.join(f'({n}, {n})' for n in range(start, start + 40))}")
        db.sql("DELETE FROM t WHERE id IN (0, 39, 50, 119)")
        for file in (tmp_path / "w/tables/t").glob("*.parquet"):  # as a writer of small row groups would have it
            rows = pq.read_table(file)
            pq.write_table(rows, file, row_group_size=7)
        stored = db.stored("t")
        assert stored is not None
        whole = [row for batch in stored.batches() for row in batch.to_pylist()]
        assert stored.rows == len(whole) == 116
        assert {row["id"] for row in whole} == set(range(120)) - {0, 39, 50, 119}
        for start in (1, 6, 7, 39, 40, 77, 115, 116, 500):
            assert [row for batch in stored.batches(start) for row in batch.to_pylist()] == whole[start:]


def test_an_epoch_tells_what_was_done_when(copied: Callable[[], Path], serving: Servers) -> None:
    server = serving("-w", f"shop={copied()}")
    server.sql("INSERT INTO orders VALUES (4, 'us', 25)")
    epoch = server.ask("POST", "/api/v1/refresh", {}).json["epoch"]
    told = server.ask("GET", f"/api/v1/epochs/{epoch}").json
    nodes = {node["name"]: node for node in told["nodes"]}
    assert nodes.keys() == {"totals", "large", "copies"}
    assert all(0 <= node["begun"] < node["ended"] <= told["seconds"] for node in nodes.values())
    assert nodes["totals"]["ended"] <= nodes["large"]["begun"], "large reads totals"
    assert nodes["large"]["reads"] == ["totals"]
    last = max(nodes.values(), key=lambda node: node["ended"])
    expected = {"large", "totals"} if last["name"] == "large" else {last["name"]}
    assert {name for name, node in nodes.items() if node["critical"]} == expected
    assert {(n["action"], n["rows_inserted"], n["rows_deleted"]) for n in (nodes["totals"], nodes["copies"])} == {
        ("INCREMENTAL", 1, 1), ("INCREMENTAL", 1, 0)
    }  # fmt: skip
    assert [view["view"] for view in told["views"]] == ["totals", "copies", "large"]
    listed = server.ask("GET", f"/api/v1/epochs?limit=1&before={epoch + 1}").json["result"]
    assert [(one["epoch"], one["begun_at"]) for one in listed] == [(epoch, told["begun_at"])]
    assert server.ask("GET", f"/api/v1/epochs?before={epoch}").json["result"][0]["epoch"] < epoch
    assert server.ask("GET", "/api/v1/epochs/999").status == 404
    marks = server.ask("GET", "/api/v1/watermarks").json["result"]
    assert {(mark["name"], mark["watermark"]) for mark in marks} == {(name, None) for name in nodes}


def test_an_epoch_of_an_older_penstock_is_told_without_times(copied: Callable[[], Path]) -> None:
    place = copied()
    with penstock.connect(place) as db:
        db.sql("INSERT INTO orders VALUES (4, 'us', 25)")
        epoch = db.refresh().epoch
    with sqlite3.connect(place / "catalog.sqlite") as catalog:
        catalog.execute("UPDATE history SET details = json_remove(details, '$.work')")
    catalog.close()
    with penstock.connect(place) as db:
        told = db.timeline(epoch)
    assert {(node.name, node.begun, node.action) for node in told.nodes} == {
        (name, None, "INCREMENTAL") for name in ("totals", "large", "copies")
    }
    assert all(node.seconds > 0 and not node.critical for node in told.nodes)


def test_views_of_schemas(copied: Callable[[], Path], serving: Servers, spark: SparkSession) -> None:
    path = copied()
    with penstock.connect(path, spark=spark) as db:
        db.sql("CREATE SCHEMA `gold 2`")
        db.sql("CREATE MATERIALIZED VIEW `gold 2`.`totals.all` AS SELECT SUM(amount) AS total FROM orders")
    ask, name = serving("-w", f"shop={path}").ask, quote("`gold 2`.`totals.all`")
    told = ask("GET", f"/api/v1/views/{name}").json
    assert (told["name"], told["reads"]) == ("`gold 2`.`totals.all`", ["orders"])
    assert ask("GET", f"/api/v1/views/{name}/rows").json["result"] == [{"total": "60.00"}]
    lineage = ask("GET", f"/api/v1/views/{name.upper()}/lineage").json["result"]
    assert [each["other"] for each in lineage] == ["orders"]
    assert ask("POST", f"/api/v1/views/{name}/refresh").json["views"][0]["action"] == "NO_DATA"
    assert ask("GET", "/api/v1/views/gold.totals").json["detail"].startswith("there is no materialized view")
    assert ask("GET", "/api/v1/views/a..b").status == 400
    schema = {view["name"]: view["columns"] for view in ask("GET", "/api/v1/schema/shop").json["materializedViews"]}
    assert [column["name"] for column in schema["`gold 2`.`totals.all`"]] == ["total"]
    assert b'view="`gold 2`.`totals.all`"' in ask("GET", "/metrics").body
