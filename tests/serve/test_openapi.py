"""The OpenAPI document says all of each route: what it takes and answers, with examples. It needs no server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.serve.app import Application
from penstock.serve.options import Options


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    application = Application(Options(places=()))
    application.close()
    return dict(application.api.openapi())


def _lacking(document: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    if not operation.get("summary"):
        yield "a summary"
    for status, answer in operation["responses"].items():
        contents = answer.get("content", {})
        if not contents and status != "304":
            yield f"what {status} is like"
        yield from (
            f"an example of {kind} for {status}"
            for kind, of in contents.items()
            if not {"example", "examples"} & of.keys()
        )
    for parameter in operation.get("parameters", ()):
        schema = parameter.get("schema", {})
        if not (parameter.get("description") or schema.get("description")):
            yield f"a word on {parameter['name']}"
        if not ({"example", "examples"} & {*parameter, *schema} or "default" in schema):
            yield f"an example of {parameter['name']}"
    for of in operation.get("requestBody", {}).get("content", {}).values():
        named = document["components"]["schemas"].get(of["schema"].get("$ref", "").rpartition("/")[2], {})
        if not {"example", "examples"} & {*of, *of["schema"], *named}:
            yield "an example of the body"
    if operation.get("security") and not {"400", "401", "403", "404", "422", "429", "503"} <= set(
        operation["responses"]
    ):
        yield "its errors"


def test_every_route_is_described_with_examples(document: dict[str, Any]) -> None:
    lacking = {
        f"{method.upper()} {path}": found
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if (found := list(_lacking(document, operation)))
    }
    assert lacking == {}
    assert len(document["paths"]) >= 30
