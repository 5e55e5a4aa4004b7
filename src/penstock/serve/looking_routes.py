"""The warehouse as a whole: graph, epochs, history, alerts, checkpoints, settings; and whether the server is well."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from penstock.serve.context import Admin, Meant, Reader, Served, answer, listed, shows
from penstock.serve.problems import of_status
from penstock.serve.roles import Role
from penstock.sql.names import key_of
from penstock.vocabulary import Action, Status

routes = APIRouter(prefix="/api/v1", tags=["Warehouse"])

Limit = Annotated[int, Query(ge=1, le=10_000, description="Records at most, newest first.")]
_GRAPH = {
    "nodes": [{"name": "orders", "kind": "table", "reads": [], "readers": ["totals"]}], "edges": [["orders", "totals"]]
}  # fmt: skip
_EPOCH = {
    "epoch": 12, "published_at": "2026-11-18T20:00:00+00:00", "restored": None, "views": ["totals"],
    "sources": {"orders": 3}, "due": {"totals": "ON COMMIT"}, "seconds": 0.21, "rows_inserted": 2, "rows_deleted": 2,
}  # fmt: skip
_HISTORY = {
    "epoch": 12,
    "view": "totals",
    "status": Status.SUCCEEDED,
    "action": Action.INCREMENTAL,
    "reason": "CHANGED",
}
_ALERT = {"kind": "lag_exceeded", "view": "totals", "message": "it is 10 min old, and its target lag is 1 min"}
_CHECKPOINT = {"name": "before_import", "epoch": 12, "views": 3, "created_at": "2026-11-18T20:00:00+00:00"}
_SECRET = ("alert_webhook",)
"""Settings whose values only admins see."""


class NewCheckpoint(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "before_import"}]})

    name: str = Field(min_length=1, max_length=255)


class Setting(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"value": "2 days"}]})

    value: str = Field(max_length=10_000)


@routes.get("/health", responses=shows({"status": "ok"}), summary="Whether the process answers")
def health() -> Response:
    return answer({"status": "ok"})


@routes.get("/ready", responses=shows({"status": "ready"}), summary="Whether it takes work")
def ready(served: Served) -> Response:
    """503 while the server goes down."""
    if served.gate.draining:
        told = of_status(503, "the server is going down.", "Ask another one.", "Refused")
        return answer({"status": "draining", **told}, 503, {"Retry-After": "5"})
    return answer({"status": "ready"})


@routes.get("/graph", responses=shows(_GRAPH), summary="Tables and views, and who reads whom")
def graph(hosted: Meant) -> Response:
    found = hosted.db.graph()
    nodes = []
    for node in found.nodes:
        document: dict[str, Any] = asdict(node)
        lag = document.pop("lag")
        nodes.append({**document, "lag_seconds": None if lag is None else round(lag.total_seconds(), 3)})
    return answer({"nodes": nodes, "edges": found.edges})


@routes.get("/epochs", responses=shows({"result": [_EPOCH]}), summary="What was published")
def epochs(hosted: Meant, limit: Limit = 100) -> Response:
    found = [asdict(epoch) for epoch in hosted.db.epochs(limit)]
    return answer({"epoch": hosted.newest, "result": [{"epoch": one.pop("id"), **one} for one in found]})


@routes.get("/history", responses=shows({"result": [_HISTORY]}), summary="What refreshes did")
def history(
    hosted: Meant, limit: Limit = 100, view: Annotated[str | None, Query(max_length=255, examples=["totals"])] = None
) -> Response:
    names = {key_of(status.name): status.name for status in hosted.db.status()}
    found = [asdict(record) for record in hosted.db.history(view, limit)]
    return answer({"result": [{**record, "view": names.get(record["view"], record["view"])} for record in found]})


@routes.get("/alerts", responses=shows({"result": [_ALERT]}), summary="What somebody should know of")
def alerts(hosted: Meant, limit: Limit = 100) -> Response:
    """First what goes on, then what is over."""
    return answer({"result": listed(hosted.db, "SHOW ALERTS")[:limit]})


@routes.get("/checkpoints", responses=shows({"result": [_CHECKPOINT]}), summary="Named epochs")
def checkpoints(hosted: Meant) -> Response:
    return answer({"result": listed(hosted.db, "SHOW CHECKPOINTS")})


@routes.post("/checkpoints", status_code=201, responses=shows({"name": "before_import", "epoch": 12}, "Made.", 201),
             summary="Name the newest epoch")  # fmt: skip
async def checkpoint(body: NewCheckpoint, hosted: Meant, served: Served, caller: Admin) -> Response:
    return answer({"name": body.name, "epoch": await served.gate.run(lambda: hosted.db.checkpoint(body.name))}, 201)


@routes.post("/checkpoints/{name}/restore", responses=shows({"name": "before_import", "epoch": 13}),
             summary="Bring all views back to a checkpoint")  # fmt: skip
async def restore(name: str, hosted: Meant, served: Served, caller: Admin) -> Response:
    return answer({"name": name, "epoch": await served.gate.run(lambda: hosted.db.restore(name))})


@routes.delete("/checkpoints/{name}", responses=shows({"dropped": "before_import"}), summary="Forget a checkpoint")
async def drop_checkpoint(name: str, hosted: Meant, served: Served, caller: Admin) -> Response:
    await served.gate.run(lambda: hosted.db.drop_checkpoint(name))
    return answer({"dropped": name})


@routes.get("/settings", responses=shows({"retention": "7 days"}), summary="What is set for the warehouse")
def settings(hosted: Meant, caller: Reader) -> Response:
    """Values that may be secret are shown to admins only."""
    found = hosted.db.settings()
    if caller.role < Role.ADMIN:
        found |= {name: "(set)" for name in _SECRET if found.get(name)}
    return answer(found)


@routes.put("/settings/{name}", responses=shows({"retention": "2 days"}), summary="Change a setting")
async def put_setting(name: str, body: Setting, hosted: Meant, served: Served, caller: Admin) -> Response:
    await served.gate.run(lambda: hosted.db.set(name, body.value))
    return answer({name.lower(): hosted.db.settings()[name.lower()]})
