"""Requests of every kind, made from the OpenAPI document: each is answered, none with 5xx, and the server goes on."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from http_server import Server
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

EXAMPLES = int(os.environ.get("PENSTOCK_API_EXAMPLES", "3"))
"""Requests of each route, right ones and wrong ones each. ``make test-api`` makes at least 2,000 in all."""
MANY = 40


@pytest.fixture(scope="module")
def operations(server: Server) -> list[Any]:
    """What the document describes, but for the streams of events, which have no end."""
    document = schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json")
    found = [each.ok() for each in document.get_all_operations()]
    return [operation for operation in found if "/events/" not in operation.path]


def made(operation: Any) -> Iterator[Any]:
    """Ways of making requests: from the examples, as described, and otherwise."""
    yield from operation.get_strategies_from_examples()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        yield operation.as_strategy(mode)


def many(ask: Callable[[Any], None], strategy: Any) -> None:
    quiet = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}
    with suppress(Unsatisfiable):  # there may be nothing that could be wrong about a request
        settings(max_examples=EXAMPLES, derandomize=EXAMPLES < MANY, **quiet)(given(strategy)(ask))()  # type: ignore[arg-type]


def test_no_request_is_too_much(server: Server, operations: list[Any]) -> None:
    answered: Counter[int] = Counter()

    def ask(case: Any) -> None:
        if isinstance(case.query, dict):
            case.query.pop("follow", None)
        answer = case.call(timeout=600)
        answered[answer.status_code] += 1
        assert answer.status_code < 500, (case.method, case.path, case.body, answer.text)
        if answer.status_code >= 400:
            assert set(answer.json()) >= {"error", "detail", "exception", "help"}

    for operation in operations:
        for strategy in made(operation):
            many(ask, strategy)
    print(f"{sum(answered.values())} requests to {len(operations)} routes: {dict(sorted(answered.items()))}")
    assert sum(answered.values()) >= (2_000 if EXAMPLES >= MANY else 150)
    assert server.ask("GET", "/api/v1/health").status == 200
    assert server.sql("SHOW TABLES", "query").status == 200, "the server still works"
