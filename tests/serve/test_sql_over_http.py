"""SQL over HTTP: statements, values, formats, jobs, requests that come twice."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from http_server import Server, Servers

ORDERS = "SELECT id, region FROM orders WHERE id > 0"


def rows(answer: Any) -> list[dict[str, Any]]:
    assert answer.status == 200, answer.body
    return sorted(answer.json["result"], key=str)


def test_a_query_is_answered_as_in_arcadedb(server: Server) -> None:
    told = server.sql("SELECT region, amount FROM orders WHERE id = :id", "query", params={"id": 2}).json
    assert told == {
        "user": "local", "columns": [{"name": "region", "type": "string"}, {"name": "amount", "type": "decimal(10,2)"}],
        "result": [{"region": "us", "amount": "20.00"}], "limit": 20000, "returned": 1,
        "truncated": False,
    }  # fmt: skip
    told = server.sql(ORDERS, "query", limit=2).json
    assert (told["returned"], told["limit"], told["truncated"]) == (2, 2, True)


def test_query_refuses_whatever_writes(server: Server) -> None:
    before = rows(server.sql(ORDERS, "query"))
    for text in ("DELETE FROM orders", "INSERT INTO orders VALUES (9, 'x', 1)", "DROP TABLE orders", "VACUUM",
                 "REFRESH MATERIALIZED VIEW totals", "SET retention = '1 day'", "CHECKPOINT c"):  # fmt: skip
        refused = server.sql(text, "query")
        assert (refused.status, refused.json["exception"]) == (400, "Refused"), text
        assert set(refused.json) == {"error", "detail", "exception", "help"}
    assert rows(server.sql(ORDERS, "query")) == before


HOSTILE = [
    "O'Brien", "x' OR '1' = '1", "\\", "\\'; DROP TABLE orders --", "*/ /*", "${spark.app.name}", "{0}", "$$ ' $$",
    "\n\r\t", "`", '"', ":id ?", "''", "é\U0001f600", "\u2028",
]  # fmt: skip


def test_a_value_is_a_value_whatever_is_in_it(server: Server) -> None:
    assert (
        server.sql("CREATE TABLE IF NOT EXISTS said (n INT, text STRING, price DECIMAL(10,2), yes BOOLEAN)").status
        == 200
    )
    for number, text in enumerate(HOSTILE):
        done = server.sql("INSERT INTO said VALUES (?, ?, ?, ?)", params=[number, text, 1.25, True])
        assert done.status == 200, (text, done.body)
    for number, text in enumerate(HOSTILE):
        found = server.sql("SELECT * FROM said WHERE text = :t", "query", params={"t": text}).json["result"]
        assert found == [{"n": number, "text": text, "price": "1.25", "yes": True}]
    assert server.sql("INSERT INTO said VALUES (?, ?, ?, ?)", params=[-1, None, -0.5, False]).status == 200
    assert server.sql("DELETE FROM said WHERE n = ?", params=[-1]).json["result"][0]["rows"] == 1
    assert server.sql("SELECT ? FROM said", "query", params=[]).status == 400
    assert server.sql("SELECT n FROM said", "query", params={"unknown": 1}).status == 400
    assert server.sql("SELECT n FROM said WHERE n = :n", "query", params={"n": [1]}).status == 422


@pytest.mark.parametrize(
    ("statement", "status", "exception"),
    [
        ("SELEC 1", 400, "SqlError"),
        ("SELECT FROM WHERE", 400, "SqlError"),
        ("SELECT 1; SELECT 2", 400, "SqlError"),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, 400, None),
        ("SELECT * FROM nowhere", 404, "NotFoundError"),
        ("CREATE TABLE orders (id INT)", 409, "AlreadyExistsError"),
        ("DROP TABLE orders", 409, "DependencyError"),
        ("DROP MATERIALIZED VIEW nothing", 404, "NotFoundError"),
        ("SELECT * FROM totals AS OF EPOCH 999999", 404, "NotFoundError"),
    ],
)
def test_errors_have_the_right_status(server: Server, statement: str, status: int, exception: str | None) -> None:
    refused = server.sql(statement)
    assert refused.status == status, refused.body
    assert set(refused.json) >= {"error", "detail", "exception", "help"}
    assert exception in (None, refused.json["exception"])


def test_requests_that_cannot_be_read(server: Server) -> None:
    for body, status in (
        (b"{", 422),
        (b"[" * 100_000, 422),
        (b"\xff\xfe", 422),
        (b"null", 422),
        (b'{"command": 1}', 422),
    ):
        answer = server.ask("POST", "/api/v1/query/shop", body, Content_Type="application/json")
        assert answer.status in (400, status), (body[:10], answer.body)
        assert set(answer.json) == {"error", "detail", "exception", "help"}
    assert server.sql("SELECT 1", language="cypher").status == 422
    assert server.ask("POST", "/api/v1/query/elsewhere", {"command": "SELECT 1"}).status == 404
    assert server.ask("POST", "/api/v1/query/shop", b"x" * 2_000_000).status == 413
    connection = server.connection()
    connection.request("POST", "/api/v1/query/shop", iter([b"x" * 100_000] * 20), {"Content-Type": "application/json"})
    assert connection.getresponse().status == 413, "its length is not told before"
    unsaid = server.ask("POST", "/api/v1/query/shop", b'{"command": "SELECT 1"}')
    assert (unsaid.status, unsaid.json["help"]) == (415, "Send it with Content-Type: application/json.")
    broken = server.ask("POST", "/api/v1/query/shop", b'{"command": ', Content_Type="application/json")
    assert broken.json["detail"].startswith("the body is no JSON: ")
    assert "is not possible here" in server.ask("PUT", "/api/v1/health").json["detail"]
    assert "nothing at /api/v1/nothing" in server.ask("GET", "/api/v1/nothing").json["detail"]
    assert server.ask("GET", "/api/v1/query/shop").status in (404, 405)
    lone = rb'{"command": "SELECT * FROM orders WHERE region = ?", "params": ["\ud800"]}'
    assert server.ask("POST", "/api/v1/query/shop", lone, Content_Type="application/json").status in (400, 422)


def test_rows_come_in_four_formats(server: Server) -> None:
    def got(accept: str) -> Any:
        body = {"command": "SELECT id, region, amount FROM copies"}
        answer = server.ask("POST", "/api/v1/query/shop", body, Accept=accept)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(accept.split(",")[0])
        return answer

    as_json = got("application/json").json["result"]
    lines = got("application/x-ndjson").body.splitlines()
    table = pa.ipc.open_stream(io.BytesIO(got("application/vnd.apache.arrow.stream").body)).read_all()
    assert len(lines) == len(as_json) == table.num_rows == 3
    assert table.schema.names == ["id", "region", "amount"]
    assert pa.types.is_decimal(table.schema.field("amount").type)
    assert got("text/csv").body.decode().split("\r\n")[0] == "id,region,amount"
    assert sorted(got("text/csv").body.decode().split("\r\n"))[1:4] == ["1,eu,10.00", "2,us,20.00", "3,eu,30.00"]
    assert server.ask("POST", "/api/v1/query/shop", {"command": "SHOW TABLES"}, Accept="image/png").status == 406


def test_a_request_that_comes_twice_is_done_once(copied: Callable[[], Path], serving: Servers) -> None:
    place = copied()
    server = serving("-w", f"shop={place}")
    insert = {"command": "INSERT INTO orders VALUES (7, 'x', 1)"}
    path, told = "/api/v1/command/shop", {"X_Request_Id": "order-7"}
    first, again = (server.ask("POST", path, insert, **told) for _ in range(2))
    assert (first.status, again.status) == (200, 200)
    assert first.body == again.body
    assert again.headers["idempotent-replayed"] == "true"
    other = server.ask("POST", path, {"command": "DELETE FROM orders"}, **told)
    assert other.status == 422, "another request with the same id"
    refused = server.ask("POST", path, {"command": "SELEC"}, X_Request_Id="wrong")
    assert (refused.status, server.ask("POST", path, {"command": "SELEC"}, X_Request_Id="wrong").status) == (400, 400)
    assert server.stop() == 0
    later = serving("-w", f"shop={place}")
    assert later.ask("POST", path, insert, **told).body == first.body, "a restart does not forget"
    assert len(rows(later.sql("SELECT id FROM orders WHERE id = 7", "query"))) == 1
    assert later.ask("POST", path, insert, X_Request_Id="a b").status == 422


def test_a_job_is_asked_for(server: Server) -> None:
    begun = server.sql("SELECT id FROM orders", awaitResponse=False)
    assert begun.status == 202
    href = begun.json["href"]
    while (job := server.ask("GET", href).json)["state"] == "running":
        pass
    assert (job["state"], job["status"], job["answer"]["user"]) == ("succeeded", 200, "local")
    assert len(job["answer"]["result"]) >= 3
    href = server.sql("SELECT * FROM nowhere", awaitResponse=False).json["href"]
    while (job := server.ask("GET", href).json)["state"] == "running":
        pass
    assert (job["state"], job["status"], job["answer"]["exception"]) == ("failed", 404, "NotFoundError")
    assert server.ask("GET", "/api/v1/jobs/none").status == 404


def test_what_there_is_to_query(server: Server) -> None:
    assert server.ask("GET", "/api/v1/databases").json["result"] == ["shop"]
    assert server.ask("GET", "/api/v1/exists/shop").json == {"result": True}
    assert server.ask("GET", "/api/v1/exists/other").json == {"result": False}
    schema = server.ask("GET", "/api/v1/schema/shop").json
    totals = next(view for view in schema["materializedViews"] if view["name"] == "totals")
    assert (totals["sources"], totals["refreshMode"], totals["status"]) == (["orders"], "INCREMENTAL", "ACTIVE")
    assert [column["name"] for column in totals["columns"]] == ["region", "total"]
    assert "orders" in [table["name"] for table in schema["tables"]]


def test_a_view_is_explained_before_it_is_created(server: Server) -> None:
    def asked(text: str) -> Any:
        return server.ask("POST", "/api/v1/explain/shop", {"command": text})

    told = asked("CREATE MATERIALIZED VIEW n AS SELECT region, COUNT(*) AS n FROM orders GROUP BY region").json
    assert (told["view"], told["incremental"], told["reason_code"]) == ("n", True, None)
    assert any("COUNT" in construct.upper() for construct, _ in told["constructs"])
    told = asked("CREATE MATERIALIZED VIEW n REFRESH POLICY FULL AS SELECT id FROM orders").json
    assert (told["incremental"], told["reason_code"]) == (False, "POLICY_FULL")
    assert server.ask("GET", "/api/v1/views/n").status == 404
    wrong = asked("CREATE MATERIALIZED VIEW n AS SELECT nothing FROM orders")
    assert (wrong.status, "nothing" in wrong.json["detail"]) == (400, True)
    assert asked("SELECT 1").status == asked("CREATE TABLE t (a INT)").status == 400


def test_a_schema_for_each_command(server: Server) -> None:
    for text in ("CREATE SCHEMA north", "CREATE TABLE north.orders (id INT, region STRING)",
                 "INSERT INTO north.orders VALUES (7, 'no')"):  # fmt: skip
        assert server.sql(text).status == 200
    assert rows(server.sql(ORDERS, "query", schema="north")) == [{"id": 7, "region": "no"}]
    assert len(rows(server.sql(ORDERS, "query"))) > 1
    assert len(rows(server.sql(ORDERS.replace("orders", "default.orders"), "query", schema="NORTH"))) > 1
    assert rows(server.sql("INSERT INTO orders VALUES (8, 'no')", schema="north"))[0]["rows"] == 1
    assert rows(server.sql("SELECT orders.id FROM orders WHERE id = 8", schema="north")) == [{"id": 8}]
    unknown = server.sql(ORDERS, "query", schema="south")
    assert (unknown.status, unknown.json["exception"]) == (404, "NotFoundError")
    refused = server.sql("USE north")
    assert (refused.status, refused.json["help"]) == (400, "Send schema with each command.")
    assert rows(server.sql("DROP SCHEMA north CASCADE"))[0]["message"] == (
        "schema north dropped, and with it north.orders"
    )
