"""Who may do what: every route with every role, tokens, other sites, and statements that reach outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from http_server import MAIN, Server, Servers, tokens_of

from penstock.errors import PenstockError
from penstock.serve import epoch_routes, event_routes, looking_routes, model_routes, sql_routes, view_routes
from penstock.serve.access import PUBLIC, Needs
from penstock.serve.app import Application
from penstock.serve.guard import check
from penstock.serve.options import Options
from penstock.serve.roles import Role
from penstock.serve.state import FILE, State
from penstock.sql.parser import parse


def needed(route: APIRoute) -> Role | None:
    """The role that a route asks for."""

    def found(dependant: Any) -> Iterator[Role]:
        for below in dependant.dependencies:
            if isinstance(below.call, Needs):
                yield below.call.role
            yield from found(below)

    return max(found(route.dependant), default=None)


@pytest.fixture(scope="module")
def routes() -> list[APIRoute]:
    application = Application(Options(places=()))
    try:
        found = [*application.api.routes]
        for room in (sql_routes, view_routes, model_routes, event_routes, epoch_routes, looking_routes):
            found += room.routes.routes
        known = [route for route in found if isinstance(route, APIRoute)]
        assert {route.path for route in known} == set(application.api.openapi()["paths"])
        return known
    finally:
        application.close()


class Guarded:
    def __init__(self, server: Server, shop: Path, tokens: dict[str, str]):
        self.server, self.shop, self.tokens = server, shop, tokens


@pytest.fixture(scope="module")
def guarded(copied: Callable[[], Path], serving: Servers) -> Guarded:
    """A server with a token of each role."""
    place = copied()
    tokens = tokens_of(place)
    return Guarded(serving("-w", f"shop={place}", "--rate", 100_000), place, tokens)


BODIES = {
    "/api/v1/query/{database}": {"command": "SHOW TABLES"}, "/api/v1/command/{database}": {"command": "SHOW TABLES"},
    "/api/v1/explain/{database}": {"command": "SELECT 1"},
    "/api/v1/views": {"name": "v", "query": "SELECT FROM"}, "/api/v1/views/{view}": {"priority": 1},
    "/api/v1/refresh": {"views": ["none"]}, "/api/v1/checkpoints": {"name": ""},
    "/api/v1/settings/{name}": {"value": "1 day"},
}  # fmt: skip
PUT_IN = {"database": "shop", "view": "none", "name": "none", "job": "none", "model": "none", "key": "7",
          "epoch": "7"}  # fmt: skip


def test_every_route_asks_every_role(guarded: Guarded, routes: list[APIRoute]) -> None:
    asked = 0
    assert len(routes) >= 30
    for route in routes:
        role = needed(route)
        assert (role is None) == (route.path in PUBLIC), route.path
        path = route.path.format(**PUT_IN)
        for method in route.methods:
            for token, held in [(None, None), ("wrong", None), *((t, Role.of(r)) for r, t in guarded.tokens.items())]:
                with guarded.server.open(method, path, BODIES.get(route.path), token) as answer:
                    asked += 1
                    status = answer.status
                expected = 401 if held is None else 403
                refused = role is not None and (held is None or held < role)
                assert (status == expected) == refused, (method, path, held, status)
                assert status in (200, 401, 403, 404, 400, 422), (method, path, held, status)
    assert asked >= 150


def test_a_statement_takes_a_role(guarded: Guarded) -> None:
    for text, least in {
        "SELECT id FROM orders": Role.READ, "SHOW TABLES": Role.READ, "DESCRIBE MATERIALIZED VIEW totals": Role.READ,
        "REFRESH MATERIALIZED VIEW totals": Role.REFRESH, "ALTER MATERIALIZED VIEW totals SUSPEND": Role.REFRESH,
        "ALTER MATERIALIZED VIEW totals RESUME": Role.REFRESH, "INSERT INTO orders VALUES (8, 'x', 1)": Role.ADMIN,
        "DELETE FROM orders WHERE id = 8": Role.ADMIN, "SET retention = '8 days'": Role.ADMIN,
        "SHOW SETTINGS": Role.ADMIN, "CREATE TABLE t (a INT)": Role.ADMIN, "DROP TABLE t": Role.ADMIN,
    }.items():  # fmt: skip
        for word, token in guarded.tokens.items():
            answer = guarded.server.sql(text, token=token)
            wanted = 200 if Role.of(word) >= least else 403
            assert answer.status == wanted, (text, word, answer.body)


def test_tokens_are_for_databases_expire_and_are_revoked(guarded: Guarded) -> None:
    state = State(str(guarded.shop / FILE))
    elsewhere = state.create("elsewhere", Role.ADMIN, ("other",))[1]
    here = state.create("here", Role.READ, ("shop",))[1]
    over = state.create("over", Role.ADMIN, expires=timedelta(seconds=-1))[1]
    ask = guarded.server.ask
    assert ask("GET", "/api/v1/schema/shop", token=elsewhere).status == 404
    assert ask("GET", "/api/v1/databases", token=elsewhere).json["result"] == []
    assert ask("GET", "/metrics", token=here).status == 403
    assert ask("GET", "/api/v1/views", token=here).status == 200
    assert ask("GET", "/api/v1/views", token=over).status == 401
    state.revoke("here")
    assert ask("GET", "/api/v1/views", token=here).status == 401
    kept = (guarded.shop / FILE).read_bytes()
    assert not any(token.encode() in kept for token in (elsewhere, here, over, *guarded.tokens.values()))
    state.close()


def test_a_stream_ends_with_its_token(guarded: Guarded) -> None:
    state = State(str(guarded.shop / FILE))
    token = state.create("listening", Role.READ)[1]
    with guarded.server.open("GET", "/api/v1/events/shop", token=token) as stream:
        assert stream.readline() == b"retry: 2000\n"
        state.revoke("listening")
        guarded.server.sql("INSERT INTO orders VALUES (50, 'us', 1)", token=guarded.tokens["admin"])
        guarded.server.ask("POST", "/api/v1/refresh", {}, guarded.tokens["refresh"])
        assert stream.read() == b"\n", "nothing of what happened then was told"
    state.close()


def test_jobs_are_their_owners(guarded: Guarded) -> None:
    tokens = guarded.tokens
    job = guarded.server.sql("SELECT id FROM orders", token=tokens["read"], awaitResponse=False).json["href"]
    seen = {word: guarded.server.ask("GET", job, token=token).status for word, token in tokens.items()}
    assert seen == {"read": 200, "refresh": 404, "admin": 200}


def test_a_secret_setting_is_an_admins(guarded: Guarded) -> None:
    assert (
        guarded.server.sql("SET alert_webhook = 'https://hooks.example/s3cret'", token=guarded.tokens["admin"]).status
        == 200
    )
    read, admin = (guarded.server.ask("GET", "/api/v1/settings", token=guarded.tokens[r]) for r in ("read", "admin"))
    described = guarded.server.ask("GET", "/api/v1/settings?described=true", token=guarded.tokens["read"])
    told = {setting["name"]: setting for setting in described.json["result"]}
    assert (told["alert_webhook"]["value"], told["retention"]["default"]) == ("(set)", "7 days")
    assert b"s3cret" not in read.body + described.body
    assert b"s3cret" in admin.body
    assert guarded.server.sql("SET alert_webhook = ''", token=guarded.tokens["admin"]).status == 200


def test_without_tokens_only_this_machine_is_served(server: Server, tmp_path: Path) -> None:
    assert server.ask("GET", "/api/v1/views", Host="localhost:1").status == 200
    rebound = server.ask("GET", "/api/v1/views", Host="evil.example")
    assert (rebound.status, rebound.json["exception"]) == (403, "Refused")
    for address in ("0.0.0.0", "::"):
        arguments = ["serve", "-w", str(tmp_path / "w"), "--host", address, "--port", "0"]
        done = subprocess.run([sys.executable, "-c", MAIN, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "without a token" in done.stderr


def test_other_sites_cannot_change_anything(server: Server) -> None:
    body = {"command": "SHOW TABLES"}
    path = "/api/v1/command/shop"
    own = server.url.removeprefix("http://")
    assert server.ask("POST", path, body, Origin="https://evil.example").status == 403
    assert server.ask("POST", path, body, Origin="null").status == 403
    assert server.ask("POST", path, body, Origin=f"http://{own}").status == 200
    assert server.ask("POST", "/api/v1/views/totals/suspend", Origin="https://evil.example").status == 403
    answer = server.ask("GET", "/api/v1/views", Origin="https://evil.example")
    assert "access-control-allow-origin" not in answer.headers
    assert server.ask("OPTIONS", path, Origin="https://evil.example").status in (403, 404, 405)


def test_every_answer_has_the_headers(server: Server) -> None:
    for path in ("/", "/page.css", "/api/v1/health", "/api/v1/nothing", "/api/v1/openapi.json", "/metrics"):
        headers = server.ask("GET", path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
        assert "server" not in headers
    style = server.ask("GET", "/page.css").headers
    assert style["cache-control"] == "no-cache"
    assert server.ask("GET", "/page.css", If_None_Match=style["etag"]).status == 304
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/%2e%2e%2fstate.py"):
        assert server.ask("GET", path).status == 404


def test_a_site_that_is_allowed_is_told_so(copied: Callable[[], Path], serving: Servers) -> None:
    server = serving("-w", f"shop={copied()}", "--allow-origin", "https://app.example", "--rate", 1)
    answer = server.ask("POST", "/api/v1/query/shop", {"command": "SHOW TABLES"}, Origin="https://app.example")
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "https://app.example")
    statuses = [server.ask("GET", "/api/v1/views").status for _ in range(30)]
    assert 429 in statuses, "one request a second, and ten at once"
    assert set(statuses) == {200, 429}


def test_who_did_what_is_written_down_without_values(guarded: Guarded) -> None:
    guarded.server.sql("SELECT id FROM orders WHERE region = ?", "query", guarded.tokens["read"], params=["s3cret"])
    guarded.server.ask("GET", "/api/v1/health")
    line = next(line for line in reversed(guarded.server.lines) if "region = ?" in line)
    assert '"user": "read", "role": "read"' in line
    assert '"status": 200' in line
    assert not any("s3cret" in line or "Bearer" in line for line in guarded.server.lines)


REACHES_OUTSIDE = r"""
SELECT java_method('java.lang.System', 'getProperty', 'user.home')
SELECT reflect('java.lang.System', 'exit', 1)
SELECT try_reflect('a', 'b')
SELECT `java_method`('a', 'b')
SELECT system.builtin.java_method('a', 'b')
SELECT JAVA_METHOD /* x */ ('a', 'b')
SELECT * FROM delta.`/etc`
SELECT * FROM parquet.`/etc/passwd`
SELECT * FROM text.`file:///etc/passwd`
SELECT * FROM csv.`s3://bucket/x`
SELECT * FROM `/etc/passwd`
SELECT * FROM read_files('/etc')
SELECT * FROM table_changes_by_path('/x', 0)
SELECT * FROM IDENTIFIER('delta.`/x`')
SELECT IDENTIFIER('java_method')('a', 'b')
SELECT TRANSFORM(a) USING 'cat /etc/passwd' AS (b) FROM t
FROM t MAP a USING 'cat'
FROM t REDUCE a USING 'cat' AS b
SELECT from_protobuf(a, 'M', '/etc/x.desc') FROM t
SELECT input_file_name() FROM t
SELECT xpath('<a/>', 'a')
WITH x AS (SELECT * FROM delta.`/x`) SELECT * FROM x
SELECT (SELECT MAX(a) FROM parquet.`/x`) FROM t
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM orc.`/x`)
EXPLAIN SELECT * FROM delta.`/x`
EXPLAIN EXTENDED SELECT java_method('a', 'b')
EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT java_method('a', 'b') AS x FROM t
EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT a FROM gold.t
SELECT my_udf(a) FROM t
SELECT * FROM my_udtf(1)
SELECT * FROM t LATERAL VIEW my_udtf(a) x AS b
SELECT * FROM global_temp.x
SELECT * FROM spark_catalog.default.t
TABLE delta.`/x`
VALUES (java_method('a', 'b'))
SELECT * FROM t, LATERAL java_method('a', 'b')
SELECT 1 UNION SELECT * FROM delta.`/x`
SELECT transform(a, x -> java_method('x', 'y')) FROM t
SELECT $$ ' $$, java_method('a', $$ ' $$)
INSERT OVERWRITE DIRECTORY '/x' SELECT 1
INSERT INTO t SELECT * FROM delta.`/x`
CREATE TABLE x LOCATION '/etc'
CREATE TABLE x (a INT) LOCATION '/etc'
CREATE MATERIALIZED VIEW v AS SELECT java_method('a', 'b') AS x FROM t
DESCRIBE delta.`/x`
COPY INTO t FROM '/x'
LOAD DATA INPATH '/x' INTO TABLE t
""".strip().splitlines()

STAYS_INSIDE = r"""
SELECT region, SUM(amount) FROM orders GROUP BY region HAVING COUNT(*) > 1 ORDER BY 2 LIMIT 3
SELECT upper(region), date_trunc('day', at), from_json(a, 'x INT'), to_json(struct(a)) FROM t
WITH x(a, b) AS (SELECT 1, 2) SELECT * FROM x
SELECT * FROM range(10) r(id)
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(id, name)
SELECT id, RANK() OVER (PARTITION BY a ORDER BY b) FROM t LATERAL VIEW explode(a) x AS b
SELECT * FROM t AS OF EPOCH 3
SELECT t.location FROM t WHERE location = 'eu' AND note = 'java_method('
SELECT * FROM a JOIN b USING (id)
SELECT * FROM penstock.views
SELECT filter(a, x -> x > 1), CAST(a AS DECIMAL(10,2)), a::int, COUNT(DISTINCT a), now() FROM t
SELECT TUMBLE_START(at, INTERVAL '1 minute') FROM t GROUP BY TUMBLE(at, INTERVAL '1 minute')
EXPLAIN SELECT * FROM t
EXPLAIN MATERIALIZED VIEW v
DESCRIBE t
""".strip().splitlines()


@pytest.mark.parametrize("role", [Role.READ, Role.REFRESH])
def test_what_reaches_outside_the_warehouse_is_refused(role: Role) -> None:
    for text in [*REACHES_OUTSIDE, "SELECT 1 --\r, java_method('a', 'b')"]:
        with pytest.raises(PenstockError):
            check(parse(text), role, lambda name: False)
        if text.split()[0] in ("SELECT", "WITH", "TABLE", "VALUES", "CREATE", "INSERT"):
            check(parse(text), Role.ADMIN, lambda name: False)
    for text in STAYS_INSIDE:
        check(parse(text), role, lambda name: False)
    for text in ("SELECT * FROM lake.gold.t", "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT a FROM lake.gold.t"):
        check(parse(text), role, lambda name: name == "lake.gold.t")


def test_it_is_refused_over_http_too(guarded: Guarded) -> None:
    for text in REACHES_OUTSIDE:
        for how in ("query", "command"):
            answer = guarded.server.sql(text, how, guarded.tokens["refresh"])
            assert answer.status in (400, 403), (text, answer.body)
