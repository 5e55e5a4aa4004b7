"""The application: routes, their errors as JSON, and around them what protects them."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from penstock.errors import PenstockError
from penstock.serve import epoch_routes, event_routes, looking_routes, model_routes, sql_routes, view_routes
from penstock.serve.access import PUBLIC
from penstock.serve.context import PROBLEM_SCHEMA, PROBLEMS, Context, Reader, answer
from penstock.serve.hosted import Warehouses
from penstock.serve.metrics import HttpMetrics, RefreshMetrics, StateCollector, Warehouse
from penstock.serve.once import Once
from penstock.serve.options import Options
from penstock.serve.problems import document, of_status, status_of
from penstock.serve.protection import Protection
from penstock.serve.state import State
from penstock.serve.work import Gate, Jobs

_log = logging.getLogger("penstock.serve")
PAGE = Path(__file__).with_name("page")


_METRICS: dict[int | str, dict[str, Any]] = {
    **PROBLEMS,
    200: {
        "description": "The metrics.",
        "content": {"text/plain": {"example": 'penstock_view_lag_seconds{database="shop",view="totals"} 4.2\n'}},
    },
}


class Files(StaticFiles):
    """The page. A browser keeps its files, and asks each time whether they are still these."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        found = super().file_response(*args, **kwargs)
        found.headers["Cache-Control"] = "no-cache"
        return found


class Application:
    """Everything of a server but the sockets. ``asgi`` is what a server runs."""

    def __init__(self, options: Options):
        from penstock import __version__

        self.options, self.state = options, State(options.state)
        registry = CollectorRegistry()
        refreshes = RefreshMetrics(registry)
        self.warehouses = Warehouses(options.places, refreshes.count)
        self.gate = Gate(options.limits.running, options.limits.waiting)
        self.context = Context(
            options=options, state=self.state, warehouses=self.warehouses, gate=self.gate, jobs=Jobs(self.gate)
        )
        registry.register(StateCollector(self._scraped, self._work))
        self.api = FastAPI(
            title="Penstock", version=__version__, docs_url=None, redoc_url=None,
            openapi_url="/api/v1/openapi.json",
            description="SQL over HTTP, views and their freshness, events and metrics. See docs/server.md.",
        )  # fmt: skip
        self.api.state.context = self.context
        _told(self.api)
        for room in (sql_routes, view_routes, model_routes, event_routes, epoch_routes, looking_routes):
            self.api.include_router(room.routes)
        self._add_metrics(registry)
        self.api.mount("/", Files(directory=PAGE, html=True), name="page")
        _described(self.api)
        inner: ASGIApp = Once(self.api, self.state, secrets.token_hex(4), options.limits.kept_answer)
        self.protection = Protection(inner, options, self.state, self.gate, HttpMetrics(registry))
        self.asgi: ASGIApp = self.protection
        if options.origins:
            self.asgi = CORSMiddleware(
                self.protection, allow_origins=options.origins, allow_methods=["*"],
                allow_headers=["Authorization", "Content-Type", "X-Request-Id", "Last-Event-ID", "If-None-Match"],
                expose_headers=["X-Request-Id", "X-Penstock-Epoch", "X-Penstock-Next", "ETag"],
            )  # fmt: skip

    def close(self) -> None:
        self.warehouses.close()
        self.state.close()

    def _scraped(self) -> list[Warehouse]:
        return [Warehouse(h.name, h.db.status, lambda h=h: h.epoch, h.leases) for h in self.warehouses]  # type: ignore[misc]

    def _work(self) -> dict[str, int]:
        return {
            "running": self.gate.running, "waiting": self.gate.waiting, "jobs": self.context.jobs.running,
            "streams": self.context.streams,
        }  # fmt: skip

    def _add_metrics(self, registry: CollectorRegistry) -> None:
        @self.api.get(
            "/metrics",
            responses=_METRICS,
            response_class=Response,
            tags=["Warehouse"],
            summary="Metrics for Prometheus",
        )
        def metrics(caller: Reader) -> Response:
            """Of all databases, for a token that may see all."""
            if caller.databases:
                told = of_status(403, "metrics are of all databases.", "Use a token without --database.", "Refused")
                return answer(told, 403)
            return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _told(api: FastAPI) -> None:
    """Errors as JSON, whoever raises them."""

    async def problem(request: Request, raised: Exception) -> Response:
        if status_of(raised) >= 500:
            _log.error("%s failed", request.url.path, exc_info=raised)
        return answer(document(raised), status_of(raised), getattr(raised, "headers", None))

    async def http(request: Request, raised: Exception) -> Response:
        assert isinstance(raised, HTTPException)
        help = "GET /api/v1/openapi.json lists what there is."
        detail = {
            404: f"there is nothing at {request.url.path[:200]}.", 405: f"{request.method} is not possible here."
        }.get(raised.status_code, str(raised.detail))  # fmt: skip
        told = of_status(raised.status_code, detail, help, type(raised).__name__)
        return answer(told, raised.status_code, dict(raised.headers or {}))

    async def invalid(request: Request, raised: Exception) -> Response:
        assert isinstance(raised, RequestValidationError)
        kind = type(raised).__name__
        if any(error["loc"] == ("body",) for error in raised.errors()) and not _is_json(request):
            help = "Send it with Content-Type: application/json."
            return answer(of_status(415, "the body is not said to be JSON.", help, kind), 415)
        told = "; ".join(_place(error) for error in raised.errors()[:5])
        return answer(of_status(422, told, "GET /api/v1/openapi.json says what it takes.", kind), 422)

    for kind in (PenstockError, RecursionError, Exception):
        api.add_exception_handler(kind, problem)
    api.add_exception_handler(HTTPException, http)
    api.add_exception_handler(RequestValidationError, invalid)


def _is_json(request: Request) -> bool:
    """Whether a body, if there is one, is said to be JSON."""
    kind = request.headers.get("content-type")
    return (kind is None and request.headers.get("content-length", "0") == "0") or "json" in (kind or "")


def _place(error: Any) -> str:
    """What is wrong where, without the value, which may be long or secret."""
    if error.get("type") == "json_invalid":
        return f"the body is no JSON: {error['ctx']['error']} at character {error['loc'][-1]}"
    return f"{'.'.join(str(part) for part in error.get('loc', ())[1:]) or 'body'}: {error.get('msg', 'invalid')}"


def _described(api: FastAPI) -> None:
    """What FastAPI does not say by itself in the OpenAPI document: tokens, and what errors are like."""
    made = api.openapi

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            document = made()
            components = document.setdefault("components", {})
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    operation["security"] = [] if path in PUBLIC else [{"token": []}]
        assert api.openapi_schema is not None
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]
