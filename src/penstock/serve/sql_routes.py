"""SQL over HTTP: ``command`` and ``query``, as ArcadeDB has them, jobs, and what there is to query."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pyarrow as pa
from fastapi import APIRouter, Path, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from penstock.database import Done
from penstock.observe.values import distinct
from penstock.serve import guard
from penstock.serve.access import Caller
from penstock.serve.context import Accept, DatabaseName, Named, Reader, Served, answer, listed, shows, shows_rows
from penstock.serve.hosted import Hosted
from penstock.serve.model_routes import models_of
from penstock.serve.parameters import bound, without_values
from penstock.serve.problems import Refused
from penstock.serve.results import JSON, Rows, computed, found_here, type_name, wanted, written
from penstock.serve.roles import Role, role_for
from penstock.sql.names import DEFAULT, key_of
from penstock.sql.parser import parse
from penstock.sql.statements import ExplainCreate, UseSchema
from penstock.vocabulary import Action

routes = APIRouter(prefix="/api/v1", tags=["SQL"])

_ROWS = {
    "user": "reporting", "columns": [{"name": "region", "type": "string"}, {"name": "total", "type": "decimal(20,2)"}],
    "result": [{"region": "eu", "total": "40.00"}], "limit": 20000, "returned": 1,
    "truncated": False,
}  # fmt: skip
_DONE = {
    "user": "loading", "result": [{"message": "INSERT: 2 rows", "rows": 2, "views": None}], "limit": 20000,
    "returned": 1, "truncated": False,
}  # fmt: skip
_JOB = {
    "job": "4f0c9a", "database": "shop", "state": "running", "begun_at": "2026-11-18T20:00:00+00:00", "ended_at": None,
    "status": None, "answer": None, "href": "/api/v1/jobs/4f0c9a",
}  # fmt: skip


_FIRST_WORD = re.compile(r"\s*(SELECT|WITH|FROM|VALUES|SHOW|DESCRIBE|DESC|EXPLAIN)\b", re.IGNORECASE)
"""What surely only reads, before it is parsed: it waits with those that do."""


class Command(BaseModel):
    """A statement and the values of its markers."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "language": "sql", "command": "SELECT region, total FROM totals WHERE total > :least",
                    "params": {"least": 10}, "limit": 100,
                },
                {"language": "sql", "command": "SELECT * FROM orders WHERE region = ?", "params": ["eu"]},
            ]
        }
    )  # fmt: skip

    language: Literal["sql"] = Field("sql", description="The language of the command. There is but one.")
    command: str = Field(min_length=1, max_length=1_000_000, description="One statement.")
    params: (
        dict[str, str | bool | int | float | None]
        | Annotated[list[str | bool | int | float | None], Field(max_length=10_000)]
        | None
    ) = Field(None, description="Values for :name (an object) or for ? (a list). They are bound as literals.")
    limit: int | None = Field(None, ge=1, description="Rows of the answer at most.")
    schema_: str | None = Field(
        None, alias="schema", min_length=1, max_length=255,
        description="Where names are that say no schema. What USE is for a session.",
    )  # fmt: skip
    awaitResponse: bool = Field(
        True, description="false: answer 202 at once, with a job to ask for. Its answer is kept if it is not large."
    )


@routes.post("/query/{database}", responses=shows_rows(_ROWS, "The rows."), summary="Run a statement that only reads")
async def query(body: Command, request: Request, hosted: Named, caller: Reader, served: Served,
                accept: Accept = None) -> Response:  # fmt: skip
    """A query, SHOW, DESCRIBE or EXPLAIN. What writes is refused. Accept chooses JSON, NDJSON, CSV or Arrow."""
    return await _run(body, request, hosted, caller, served, accept, reads=True)


@routes.post(
    "/command/{database}", summary="Run any statement",
    responses={**shows(_DONE, "What was done, or the rows."),
               202: {"description": "A job.", "content": {"application/json": {"example": _JOB}}}},
)  # fmt: skip
async def command(body: Command, request: Request, hosted: Named, caller: Reader, served: Served,
                  accept: Accept = None) -> Response:  # fmt: skip
    """One statement. Which role it takes depends on what it does. With an X-Request-Id, sending it again does nothing
    twice."""
    return await _run(body, request, hosted, caller, served, accept, reads=False)


async def _run(
    body: Command, request: Request, hosted: Hosted, caller: Caller, served: Served, accept: str | None, *, reads: bool
) -> Response:
    kind, limits = wanted(accept), served.options.limits
    limit = min(body.limit or limits.rows, limits.most_rows)
    statement = bound(body.command, body.params)
    request.state.audit["statement"] = without_values(body.command)

    def begin() -> Rows:
        return execute(hosted, caller, statement, limit, reads=reads, schema=body.schema_)

    changes = not reads and _FIRST_WORD.match(body.command) is None
    if not body.awaitResponse:
        job = served.jobs.begin(
            caller.name, hosted.name, lambda: _kept(begin(), caller, limit, limits.job_answer), changes=changes
        )  # fmt: skip
        return answer({**job.told(), "href": f"{request.scope.get('root_path', '')}/api/v1/jobs/{job.id}"}, 202)
    rows = await served.gate.run(begin, changes=changes)
    return StreamingResponse(written(rows, kind, limit, _around(rows, caller)), media_type=kind)


def _around(rows: Rows, caller: Caller) -> dict[str, Any]:
    """What stands before the rows: whoever asked, and the columns, which no rows would not tell."""
    columns = [
        {"name": name, "type": type_name(field.type)}
        for name, field in zip(distinct(rows.names), rows.schema, strict=True)
    ]
    return {"user": caller.name, "columns": columns}


def execute(hosted: Hosted, caller: Caller, text: str, limit: int, *, reads: bool, schema: str | None = None) -> Rows:
    """Check and run a statement; its first rows are at hand."""
    statement = parse(text, schema or DEFAULT)
    if isinstance(statement, UseSchema):
        raise Refused(400, "USE is for a session, and a request is none.", help="Send schema with each command.")
    role = role_for(statement)
    if role is None:
        raise Refused(400, "this statement is not run over HTTP.", help="Run it with penstock sql, or from Python.")
    if reads and not statement.only_reads:
        raise Refused(400, "this statement changes something, and /query only reads.", help="POST it to /command.")
    if caller.role < role:
        raise Refused(
            403, f"this statement takes the role {role.word}, and {caller.name!r} has the role {caller.role.word}.",
            help=f"Use a token with the role {role.word}.",
        )  # fmt: skip
    guard.check(statement, caller.role, hosted.db.knows)
    found = hosted.db.read_here(text, schema=schema)
    rows = None if found is None else found_here(found)
    if rows is None:
        result = hosted.db.sql(text, schema=schema)
        rows = done(result) if isinstance(result, Done) else computed(result, limit)
    return rows.begun()


class Planned(BaseModel):
    """A view that is not created yet."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "command": "CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region",
    }]})  # fmt: skip

    command: str = Field(min_length=1, max_length=1_000_000, description="CREATE MATERIALIZED VIEW ..")


_EXPLAINED = {
    "view": "totals", "incremental": True, "reason_code": None, "reason": None,
    "verdict": "maintained incrementally (policy AUTO)",
    "constructs": [["SUM", "partials merged with the stored groups"]], "advice": [], "text": "totals: ..",
}  # fmt: skip


@routes.post("/explain/{database}", responses=shows(_EXPLAINED), summary="How a view would be maintained")
async def explain(body: Planned, request: Request, hosted: Named, caller: Reader, served: Served) -> Response:
    """Whether and how a view would be incremental. Nothing is created."""
    request.state.audit["statement"] = without_values(body.command)

    def planned() -> Response:
        statement = parse(f"EXPLAIN {body.command}")
        if not isinstance(statement, ExplainCreate):
            raise Refused(400, "this is not CREATE MATERIALIZED VIEW.", help="POST other statements to /query.")
        guard.check(statement, caller.role, hosted.db.knows)
        found = hosted.db.explain(body.command)
        return answer({**found.to_dict(), "verdict": found.verdict(), "text": str(found)})

    return await served.gate.run(planned)


_DONE_SCHEMA = pa.schema(
    [
        ("message", pa.string()), ("rows", pa.int64()),
        ("views", pa.list_(pa.struct([
            ("name", pa.string()), ("status", pa.string()), ("action", pa.string()), ("reason", pa.string()),
            ("strategy", pa.string()), ("rows_inserted", pa.int64()), ("rows_deleted", pa.int64()),
            ("seconds", pa.float64()), ("error", pa.string()),
        ]))),
    ]
)  # fmt: skip


def done(result: Done) -> Rows:
    """What a statement without rows says, as a row."""
    views = None
    if result.report is not None:
        fields = _DONE_SCHEMA.field("views").type.value_type
        views = [{f.name: _plain(getattr(view, f.name)) for f in fields} for view in result.report.values()]
    row = {"message": result.message, "rows": result.rows, "views": views}
    return Rows.of(_DONE_SCHEMA.names, pa.Table.from_pylist([row], schema=_DONE_SCHEMA))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _kept(rows: Rows, caller: Caller, limit: int, most: int) -> dict[str, Any]:
    """The answer of a job, which is kept."""
    pieces, size = [], 0
    for piece in written(rows, JSON, limit, _around(rows, caller)):
        size += len(piece)
        if size > most:
            rows.close()
            raise Refused(
                413, f"the answer has more than {most:,} bytes, and a job's answer is kept.",
                help="Ask for fewer rows, or for all of them without a job.",
            )  # fmt: skip
        pieces.append(piece)
    told: dict[str, Any] = json.loads(b"".join(pieces))
    return told


JobId = Annotated[str, Path(max_length=100, description="The id of a job.", examples=["4f0c9a"])]


@routes.get("/jobs/{job}", responses=shows(_JOB, "The job."), summary="What became of a job")
def job(job: JobId, request: Request, caller: Reader,
        served: Served) -> Response:  # fmt: skip
    """A job is known to whoever began it and to admins, as long as the server runs and it is among the last."""
    found = served.jobs.get(job)
    may = found is not None and (caller.name == found.user or caller.role == Role.ADMIN)
    if found is None or not may or not caller.may_see(found.database):
        raise Refused(404, f"there is no job {job!r}.", help="Jobs are forgotten when the server ends.")
    return answer({**found.told(), "href": f"{request.scope.get('root_path', '')}/api/v1/jobs/{found.id}"})


@routes.get("/databases", responses=shows({"user": "reporting", "result": ["shop"]}), summary="The databases")
def databases(caller: Reader, served: Served) -> Response:
    names = [hosted.name for hosted in served.warehouses if caller.may_see(hosted.name)]
    return answer({"user": caller.name, "version": _version(), "result": names})


@routes.get("/exists/{database}", responses=shows({"result": True}), summary="Whether there is a database")
def exists(database: DatabaseName, caller: Reader, served: Served) -> Response:
    return answer({"result": served.warehouses.get(database) is not None and caller.may_see(database)})


_SCHEMA = {
    "database": "shop", "epoch": 12,
    "tables": [{"name": "orders", "kind": "managed", "columns": [{"name": "id", "type": "int", "comment": None}]}],
    "materializedViews": [{
        "name": "totals", "query": "SELECT region, SUM(amount) AS total FROM orders GROUP BY region",
        "sources": ["orders"], "refreshMode": Action.INCREMENTAL, "policy": "AUTO", "refresh": "ON COMMIT",
        "lastRefresh": "2026-11-18T20:00:00+00:00", "status": "ACTIVE", "lagSeconds": 4.2, "targetLagSeconds": 60.0,
        "dataTime": "2026-11-18T20:00:00+00:00", "stale": False, "reason": None,
        "columns": [{"name": "region", "type": "string", "comment": None}],
    }],
    "readModels": [{"name": "tv_post", "entity": "post", "key": "pk_post", "filters": ["id", "user_id"]}],
}  # fmt: skip


@routes.get("/schema/{database}", responses=shows(_SCHEMA), summary="Tables and materialized views")
def schema(hosted: Named) -> Response:
    columns: dict[str, list[dict[str, Any]]] = {}
    for row in listed(hosted.db, "SELECT * FROM penstock.columns"):
        told = {"name": row["column"], "type": row["type"], "comment": row["comment"]}
        columns.setdefault(key_of(row["name"]), []).append(told)
    tables = [
        {"name": t["name"], "kind": t["kind"], "columns": columns.get(key_of(t["name"]), [])}
        for t in listed(hosted.db, "SHOW TABLES")
    ]
    return answer(
        {
            "database": hosted.name,
            "epoch": hosted.newest,
            "tables": tables,
            "materializedViews": list(_views(hosted, columns)),
            "readModels": models_of(hosted),
        }
    )


def _views(hosted: Hosted, columns: dict[str, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    reads = {
        view: [row["reads"] for row in rows]
        for view, rows in itertools.groupby(
            listed(hosted.db, "SELECT * FROM penstock.dependencies"), lambda row: str(row["view"])
        )
    }
    for view in listed(hosted.db, "SELECT * FROM penstock.views"):
        yield {
            "name": view["name"], "query": view["query"], "sources": reads.get(view["name"], []),
            "refreshMode": Action.INCREMENTAL if view["incremental"] else Action.FULL, "policy": view["policy"],
            "refresh": view["refresh"], "lastRefresh": view["last_refresh"], "status": view["state"],
            "lagSeconds": view["lag_seconds"], "targetLagSeconds": view["target_lag_seconds"],
            "dataTime": view["data_time"], "stale": view["stale"], "reason": view["reason"],
            "columns": columns.get(key_of(view["name"]), []),
        }  # fmt: skip


def _version() -> str:
    from penstock import __version__

    return __version__
