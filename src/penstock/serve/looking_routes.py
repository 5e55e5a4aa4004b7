"""The warehouse as a whole: graph, epochs, history, alerts, checkpoints, settings; and whether the server is well."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from penstock.engine.settings import SETTINGS
from penstock.serve.context import PROBLEMS, Admin, CheckpointName, Meant, Reader, Served, answer, listed, shows
from penstock.serve.problems import of_status
from penstock.serve.roles import Role
from penstock.serve.view_routes import told
from penstock.sql.names import key_of
from penstock.vocabulary import Action, Status

routes = APIRouter(prefix="/api/v1", tags=["Warehouse"])

Limit = Annotated[int, Query(ge=1, le=10_000, description="Records at most, newest first.")]
_GRAPH = {
    "nodes": [
        {"name": "orders", "kind": "table", "reads": [], "readers": ["totals"]},
        {"name": "totals", "kind": "view", "reads": ["orders"], "readers": [], "state": "ACTIVE", "lag_seconds": 4.2,
         "target_lag_seconds": 60.0, "policy": "AUTO", "refresh": "ON COMMIT", "last_action": Action.INCREMENTAL},
    ],
    "edges": [["orders", "totals"]], "groups": [["by_region", "by_customer", "both"]],
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
        gone = of_status(503, "the server is going down.", "Ask another one.", "Refused")
        return answer({"status": "draining", **gone}, 503, {"Retry-After": "5"})
    return answer({"status": "ready"})


_WHO = {"user": "reporting", "role": "read", "databases": ["shop"]}


@routes.get("/whoami", responses=shows(_WHO), summary="Who asks, and what they may")
def whoami(caller: Reader) -> Response:
    """The role of the token, and the databases it may see; none are named if it may see all."""
    return answer({"user": caller.name, "role": caller.role.word, "databases": list(caller.databases)})


_OF_VIEWS = (
    "policy", "refresh", "incremental", "reason", "populated", "building", "errors", "behind", "last_action",
    "last_status", "last_reason", "last_refresh", "last_seconds", "last_error", "data_time", "target_lag_seconds",
    "too_old", "state_in_words",
)  # fmt: skip
"""What a view's node tells beside what every node does."""


@routes.get("/graph", responses=shows(_GRAPH), summary="Tables and views, and who reads whom")
def graph(hosted: Meant) -> Response:
    """``groups``: views that are published together, because paths from one source meet in one of them."""
    found = hosted.db.graph()
    nodes = []
    for node in found.nodes:
        view = {} if node.status is None else told(node.status)
        document: dict[str, Any] = asdict(replace(node, status=None, lag=None))
        del document["lag"], document["status"]
        known = {name: view[name] for name in _OF_VIEWS if name in view}
        nodes.append({**document, "lag_seconds": view.get("lag_seconds"), **known})
    return answer({"nodes": nodes, "edges": found.edges, "groups": found.groups})


@routes.get("/history", responses=shows({"result": [_HISTORY]}), summary="What refreshes did")
def history(
    hosted: Meant,
    limit: Limit = 100,
    view: Annotated[str | None, Query(max_length=255, description="Of one view.", examples=["totals"])] = None,
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
    made = await served.gate.run(lambda: hosted.db.checkpoint(body.name), changes=True)
    return answer({"name": body.name, "epoch": made}, 201)


@routes.post("/checkpoints/{name}/restore", responses=shows({"name": "before_import", "epoch": 13}),
             summary="Bring all views back to a checkpoint")  # fmt: skip
async def restore(name: CheckpointName, hosted: Meant, served: Served, caller: Admin) -> Response:
    made = await served.gate.run(lambda: hosted.db.restore(name), changes=True)
    return answer({"name": name, "epoch": made})


@routes.delete("/checkpoints/{name}", responses=shows({"dropped": "before_import"}), summary="Forget a checkpoint")
async def drop_checkpoint(name: CheckpointName, hosted: Meant, served: Served, caller: Admin) -> Response:
    await served.gate.run(lambda: hosted.db.drop_checkpoint(name), changes=True)
    return answer({"dropped": name})


_SETTING = {"name": "retention", "value": "2 days", "default": "7 days", "about": "how long ..", "choices": []}


@routes.get(
    "/settings", summary="What is set for the warehouse",
    responses={**PROBLEMS, 200: {"description": "The values; or what they are about.", "content": {"application/json": {
        "examples": {"values": {"value": {"retention": "7 days"}}, "described": {"value": {"result": [_SETTING]}}},
    }}}},
)  # fmt: skip
def settings(
    hosted: Meant,
    caller: Reader,
    described: Annotated[bool, Query(description="With what each is, and usually says, as a list.")] = False,
) -> Response:
    """Values that may be secret are shown to admins only."""
    found = hosted.db.settings()
    if caller.role < Role.ADMIN:
        found |= {name: "(set)" for name in _SECRET if found.get(name)}
    if not described:
        return answer(found)
    kinds = [(name, value, SETTINGS[name]) for name, value in found.items()]
    told = [
        {"name": name, "value": value, "default": kind.default, "about": kind.about, "choices": kind.choices}
        for name, value, kind in kinds
    ]
    return answer({"result": told})


SettingName = Annotated[str, Path(max_length=255, description="The name of a setting.", examples=["retention"])]


@routes.put("/settings/{name}", responses=shows({"retention": "2 days"}), summary="Change a setting")
async def put_setting(name: SettingName, body: Setting, hosted: Meant, served: Served, caller: Admin) -> Response:
    await served.gate.run(lambda: hosted.db.set(name, body.value), changes=True)
    return answer({name.lower(): hosted.db.settings()[name.lower()]})
