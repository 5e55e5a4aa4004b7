"""Requests of every kind, made from the OpenAPI document: each is answered, none with 5xx, and the server goes on."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from http_server import Server
from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("PENSTOCK_API_EXAMPLES", "4"))
"""Requests of each route at most, of each way of making them. ``make test-api`` makes at least 2,000 in all."""

answered: Counter[int] = Counter()


@pytest.fixture(scope="module")
def described(server: Server) -> Iterator[Any]:
    yield schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json")
    told = server.ask("GET", "/api/v1/health")
    assert (told.status, server.sql("SHOW TABLES", "query").status) == (200, 200), "the server still works"
    print(f"{sum(answered.values())} requests: {dict(sorted(answered.items()))}")
    if EXAMPLES >= 60:
        assert sum(answered.values()) >= 2_000


schema = schemathesis.pytest.from_fixture("described").exclude(path_regex="/events/")  # a stream has no end


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES < 60)
def test_no_request_is_too_much(case: Any) -> None:
    if isinstance(case.query, dict):
        case.query.pop("follow", None)
    answer = case.call(timeout=600)
    answered[answer.status_code] += 1
    assert answer.status_code < 500, (case.method, case.path, answer.text)
    if answer.status_code >= 400 and case.method != "HEAD":
        assert set(answer.json()) >= {"error", "detail", "exception", "help"}
