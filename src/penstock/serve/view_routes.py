"""Views as resources: what they are, their rows and changes, and what can be done with them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from penstock.errors import NotFoundError, nearest
from penstock.observe.status import ViewStatus
from penstock.serve.context import (
    Accept,
    Admin,
    Meant,
    Refresher,
    Served,
    ViewName,
    answer,
    listed,
    shows,
    shows_rows,
)
from penstock.serve.hosted import Hosted
from penstock.serve.parameters import without_values
from penstock.serve.problems import Refused
from penstock.serve.results import Rows, computed, wanted, written
from penstock.sql.names import key_of, sql_of
from penstock.vocabulary import Action, Status

routes = APIRouter(prefix="/api/v1", tags=["Views"])

_VIEW = {
    "name": "totals", "state": "ACTIVE", "state_in_words": "ACTIVE", "policy": "AUTO", "refresh": "ON COMMIT",
    "incremental": True, "reason": None, "reads": ["orders"], "populated": True, "lag_seconds": 4.2,
    "target_lag_seconds": 60.0, "data_time": "2026-11-18T20:00:00+00:00", "behind": {},
    "last_action": Action.INCREMENTAL,
}  # fmt: skip
_REPORT = {
    "epoch": 13,
    "views": [{"name": "totals", "status": Status.SUCCEEDED, "action": Action.INCREMENTAL, "reason": "CHANGED",
               "strategy": "OVERWRITE", "rows_inserted": 2, "rows_deleted": 2, "seconds": 0.21, "error": None}],
}  # fmt: skip
_PAGE = {
    "view": "totals", "epoch": 12, "next": "12.1000", "result": [{"region": "eu", "total": "40.00"}], "limit": 1000,
    "returned": 1000, "truncated": True,
}  # fmt: skip


class NewView(BaseModel):
    """What ``db.create_view`` takes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{
            "name": "totals", "query": "SELECT region, SUM(amount) AS total FROM orders GROUP BY region",
            "refresh": "ON COMMIT",
        }]},
    )  # fmt: skip

    name: str = Field(min_length=1, max_length=255)
    query: str = Field(min_length=1, max_length=1_000_000)
    refresh: str = Field("MANUAL", max_length=200, description="MANUAL, ON COMMIT, EVERY 5 MINUTES, CRON '..', ..")
    policy: str = Field("AUTO", max_length=40)
    target_lag: str | None = Field(None, max_length=100)
    priority: int = Field(0, ge=-(2**31), lt=2**31)
    initialize: bool = True
    comment: str | None = Field(None, max_length=10_000)
    columns: list[str] = Field(default_factory=list, max_length=10_000)
    partitioned_by: list[str] = Field(default_factory=list, max_length=100)
    cluster_by: list[str] = Field(default_factory=list, max_length=100)
    or_replace: bool = False
    if_not_exists: bool = False


class AlteredView(BaseModel):
    """What ``db.alter_view`` takes; what is left out stays."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"target_lag": "5 minutes"}]})

    refresh: str | None = Field(None, max_length=200)
    policy: str | None = Field(None, max_length=40)
    target_lag: str | None = Field(None, max_length=100)
    priority: int | None = Field(None, ge=-(2**31), lt=2**31)
    consistency: str | None = Field(None, max_length=40)
    schedule_policy: str | None = Field(None, max_length=40)


class Wanted(BaseModel):
    """Which views to refresh, and how."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"views": ["totals"], "full": False}]})

    views: list[str] | None = Field(None, max_length=10_000, description="Without them, all.")
    full: bool = False
    wait: bool = Field(False, description="Wait for another process that is refreshing them.")


class How(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"full": False}]})

    full: bool = False
    wait: bool = False


# -- looking ----------------------------------------------------------------------------------------------------------


def told(view: ViewStatus) -> dict[str, Any]:
    """A view's status as it is sent."""
    document = asdict(view)
    for name in ("lag", "target_lag"):
        length = document.pop(name)
        document[f"{name}_seconds"] = None if length is None else round(length.total_seconds(), 3)
    del document["location"]
    return {**document, "state_in_words": view.state_in_words(), "stale": view.stale, "too_old": view.too_old}


def view_of(hosted: Hosted, name: str) -> ViewStatus:
    known = {key_of(view.name): view for view in hosted.db.status()}
    if key_of(name) not in known:
        raise NotFoundError(
            f"there is no materialized view {name!r}. {nearest(name, [v.name for v in known.values()])}"
        )
    return known[key_of(name)]


@routes.get("/views", responses=shows({"result": [_VIEW]}), summary="All views")
def views(hosted: Meant) -> Response:
    """One record a view, inputs before readers."""
    return answer({"result": [told(view) for view in hosted.db.status()]})


@routes.get("/views/{view}", responses=shows(_VIEW), summary="One view")
def one_view(view: ViewName, hosted: Meant) -> Response:
    found = view_of(hosted, view)
    known = listed(hosted.db, "SELECT name, query, comment FROM penstock.views")
    record = next(row for row in known if row["name"] == found.name)
    columns = [
        {"name": row["column"], "type": row["type"], "comment": row["comment"]}
        for row in listed(hosted.db, "SELECT * FROM penstock.columns")
        if row["name"] == found.name
    ]
    return answer({**told(found), "query": record["query"], "comment": record["comment"], "columns": columns})


@routes.get("/views/{view}/explain", responses=shows({"view": "totals", "incremental": True, "text": "totals: .."}),
            summary="How a view is maintained")  # fmt: skip
def explain(view: ViewName, hosted: Meant) -> Response:
    found = hosted.db.explain(view_of(hosted, view).name)
    return answer({**found.to_dict(), "verdict": found.verdict(), "text": str(found)})


_LINEAGE = {
    "result": [{"name": "totals", "direction": "reads", "other": "orders", "kind": "table", "direct": True}],
    "columns": [{"column": "total", "from": [
        {"name": "orders", "column": "amount", "kind": "table", "change": "AGGREGATION", "direct": True},
    ]}],
}  # fmt: skip


@routes.get("/views/{view}/lineage", responses=shows(_LINEAGE), summary="What it reads, what reads it")
def lineage(view: ViewName, hosted: Meant) -> Response:
    """``columns`` says for each column where its values come from: what the view's query reads (``direct``), and the
    tables behind views; ``from`` is null of a query that has no plan."""
    name = view_of(hosted, view).name
    columns = [
        {"column": column, "from": None if origins is None else [asdict(origin) for origin in origins]}
        for column, origins in hosted.db.column_lineage(name).items()
    ]
    return answer({"result": listed(hosted.db, f"SHOW DEPENDENCIES FOR {sql_of(name)}"), "columns": columns})


@routes.get("/views/{view}/rows", responses=shows_rows(_PAGE, "The rows."), summary="The rows of a view, page by page")
async def rows(
    view: ViewName,
    hosted: Meant,
    served: Served,
    limit: Annotated[int, Query(ge=1, le=10_000_000, description="Rows of a page.")] = 1_000,
    epoch: Annotated[int | None, Query(ge=0, lt=2**31, description="As of an epoch.", examples=[12])] = None,
    after: Annotated[
        str | None, Query(pattern=r"^\d{1,10}\.\d{1,15}$", description="next of the page before.", examples=["12.1000"])
    ] = None,
    accept: Accept = None,
) -> Response:
    """All pages that begin with one are of its epoch, and in the order in which the rows are stored."""
    kind, begin = wanted(accept), 0
    if after is not None:
        epoch, begin = (int(part) for part in after.split("."))

    def read() -> tuple[Rows, int, str | None]:
        moment = hosted.newest if epoch is None else epoch
        name = view_of(hosted, view).name
        stored = hosted.db.stored(name, moment)
        if stored is None:
            found = computed(hosted.db.table(name, moment).offset(begin), limit)
            return found.begun(), moment, None
        following = f"{moment}.{begin + limit}" if begin + limit < stored.rows else None
        return Rows(list(stored.schema.names), stored.schema, stored.batches(begin)).begun(), moment, following

    found, moment, following = await served.gate.run(read)
    around = {"view": view, "epoch": moment, **({"next": following} if following else {})}
    headers = {"X-Penstock-Epoch": str(moment), **({"X-Penstock-Next": following} if following else {})}
    return StreamingResponse(written(found, kind, limit, around), headers=headers, media_type=kind)


def changes_between(hosted: Hosted, view: str, since: int, until: int, limit: int) -> Rows:
    """The rows that came and went, with ``__weight``."""
    table = hosted.db.changes_here(view, since, until)
    if table is not None:
        return Rows.of(table.column_names, table)
    return computed(hosted.db.changes(view, since, until), limit)


async def changes(
    hosted: Hosted, served: Served, view: str, since: int, until: int | None, limit: int, accept: str | None
) -> Response:
    """The change from an epoch to another, or to the newest."""
    kind = wanted(accept)

    def read() -> tuple[Rows, int]:
        end = hosted.newest if until is None else until
        return changes_between(hosted, view_of(hosted, view).name, since, end, limit).begun(), end

    found, end = await served.gate.run(read)
    around = {"view": view, "since": since, "epoch": end}
    return StreamingResponse(
        written(found, kind, limit, around), headers={"X-Penstock-Epoch": str(end)}, media_type=kind
    )


# -- changing ---------------------------------------------------------------------------------------------------------


def reported(report: Any) -> dict[str, Any]:
    fields = ("name", "status", "action", "reason", "strategy", "rows_inserted", "rows_deleted", "seconds", "error")
    return {"epoch": report.epoch, "views": [{f: getattr(v, f) for f in fields} for v in report.values()]}


@routes.post(
    "/views", status_code=201, responses=shows({**_REPORT, "view": "totals"}, "Created.", 201), summary="Create a view"
)
async def create(body: NewView, hosted: Meant, served: Served, caller: Admin, request: Request) -> Response:
    request.state.audit["statement"] = without_values(f"CREATE MATERIALIZED VIEW {body.name} AS {body.query}")
    given = body.model_dump()
    name, query = given.pop("name"), given.pop("query")
    report = await served.gate.run(lambda: hosted.db.create_view(name, query, **given), changes=True)
    done = {"view": name, "epoch": hosted.newest, "views": []} if report is None else {"view": name, **reported(report)}
    return answer(done, 201)


@routes.patch("/views/{view}", responses=shows(_VIEW), summary="Change when or how a view is refreshed")
async def alter(view: ViewName, body: AlteredView, hosted: Meant, served: Served, caller: Admin) -> Response:
    given = body.model_dump(exclude_none=True)
    if not given:
        raise Refused(400, "there is nothing to change.", help="Give at least one of its fields.")

    def work() -> ViewStatus:
        hosted.db.alter_view(view_of(hosted, view).name, **given)
        return view_of(hosted, view)

    return answer(told(await served.gate.run(work, changes=True)))


Cascade = Annotated[bool, Query(description="Drop the views that read it, too.")]


@routes.delete("/views/{view}", responses=shows({"dropped": "totals"}), summary="Drop a view")
async def drop(view: ViewName, hosted: Meant, served: Served, caller: Admin, cascade: Cascade = False) -> Response:
    """With ``cascade`` the views that read it go too."""
    await served.gate.run(lambda: hosted.db.drop_view(view_of(hosted, view).name, cascade=cascade), changes=True)
    return answer({"dropped": view})


@routes.post("/refresh", responses=shows(_REPORT), summary="Refresh views, upstream first")
async def refresh(body: Wanted, hosted: Meant, served: Served, caller: Refresher, request: Request) -> Response:
    request.state.audit["views"] = body.views

    def work() -> Any:
        names = None if body.views is None else [view_of(hosted, name).name for name in body.views]
        return hosted.db.refresh(*([names] if names is not None else []), full=body.full, wait=body.wait)

    return answer(reported(await served.gate.run(work, changes=True)))


GivenHow = Annotated[How | None, Body(examples=[{"full": False}])]


@routes.post("/views/{view}/refresh", responses=shows(_REPORT), summary="Refresh a view and what it reads")
async def refresh_one(
    view: ViewName, hosted: Meant, served: Served, caller: Refresher, body: GivenHow = None
) -> Response:
    how = body or How()
    work = served.gate.run(
        lambda: hosted.db.refresh(view_of(hosted, view).name, full=how.full, wait=how.wait), changes=True
    )
    return answer(reported(await work))


@routes.post("/views/{view}/suspend", responses=shows(_VIEW), summary="Leave a view out of what refreshes by itself")
async def suspend(view: ViewName, hosted: Meant, served: Served, caller: Refresher) -> Response:
    return await _suspended(hosted, served, view, hosted.db.suspend)


@routes.post("/views/{view}/resume", responses=shows(_VIEW), summary="Refresh a view by itself again")
async def resume(view: ViewName, hosted: Meant, served: Served, caller: Refresher) -> Response:
    return await _suspended(hosted, served, view, hosted.db.resume)


async def _suspended(hosted: Hosted, served: Served, view: str, change: Any) -> Response:
    def work() -> ViewStatus:
        change(view_of(hosted, view).name)
        return view_of(hosted, view)

    return answer(told(await served.gate.run(work, changes=True)))
