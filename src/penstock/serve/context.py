"""What the routes share: the warehouses, the bounds, and finding out which warehouse a request means."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from fastapi.responses import Response

from penstock.database import Database
from penstock.serve.access import Caller, Needs
from penstock.serve.hosted import Hosted, Warehouses
from penstock.serve.options import Options
from penstock.serve.problems import Refused, dumped, of_status
from penstock.serve.roles import Role
from penstock.serve.state import State
from penstock.serve.work import Gate, Jobs


@dataclass(kw_only=True)
class Context:
    options: Options
    state: State
    warehouses: Warehouses
    gate: Gate
    jobs: Jobs
    streams: int = 0
    """Streams of events that are open."""

    def named(self, name: str, caller: Caller) -> Hosted:
        """A warehouse that the caller may see; one that they may not see is not told from one that is not there."""
        found = self.warehouses.get(name)
        if found is None or not caller.may_see(name):
            raise Refused(404, f"there is no database {name!r}.", help="GET /api/v1/databases lists them.")
        return found

    def meant(self, name: str | None, caller: Caller) -> Hosted:
        """The same where the name may be left out if there is but one."""
        if name is not None:
            return self.named(name, caller)
        seen = [hosted.name for hosted in self.warehouses if caller.may_see(hosted.name)]
        if len(seen) != 1:
            raise Refused(
                400,
                "which database is meant is not said.",
                help=f"Add ?database= with one of {', '.join(seen) or '-'}.",
            )
        return self.named(seen[0], caller)


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


Served = Annotated[Context, Depends(context_of)]
Reader = Annotated[Caller, Depends(Needs(Role.READ))]
Refresher = Annotated[Caller, Depends(Needs(Role.REFRESH))]
Admin = Annotated[Caller, Depends(Needs(Role.ADMIN))]

_Database = Annotated[
    str | None,
    Query(max_length=100, description="The database; may be left out if the server has but one.", examples=["shop"]),
]
DatabaseName = Annotated[str, Path(max_length=100, description="The name of a database.", examples=["shop"])]
ViewName = Annotated[str, Path(max_length=255, description="The name of a view.", examples=["totals"])]


def by_query(served: Served, caller: Reader, request: Request, database: _Database = None) -> Hosted:
    found = served.meant(database, caller)
    request.state.audit["database"] = found.name
    return found


def by_path(served: Served, caller: Reader, request: Request, database: DatabaseName) -> Hosted:
    found = served.named(database, caller)
    request.state.audit["database"] = found.name
    return found


Meant = Annotated[Hosted, Depends(by_query)]
Named = Annotated[Hosted, Depends(by_path)]


def answer(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(dumped(document), status, headers, "application/json")


def listed(db: Database, statement: str) -> list[dict[str, Any]]:
    """The rows of a statement that tells of Penstock itself, which needs no Spark."""
    found = db.read_here(statement)
    table = None if found is None else found.rows.rows()
    assert found is not None
    assert table is not None
    return [
        dict(zip(found.names, row, strict=True)) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
    ]


def _example(status: int, detail: str, exception: str, help: str) -> dict[str, Any]:
    example = of_status(status, detail, help, exception)
    return {
        "description": example["error"].capitalize() + ".",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}},
    }


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _example(400, "line 1, column 8: this is not expected here", "SqlError", "Write it as docs/sql.md has it."),
    401: _example(401, "this takes a token.", "Refused", "Send Authorization: Bearer TOKEN."),
    403: _example(403, "this takes the role admin.", "Refused", "Use a token with the role admin."),
    404: _example(404, "there is no table or view 'ordesr'. Did you mean 'orders'?", "NotFoundError", "GET /schema."),
    409: _example(409, "view 'totals' exists already.", "AlreadyExistsError", "Choose another name."),
    413: _example(413, "the request has more than 1,048,576 bytes.", "Refused", "Send less at once."),
    422: _example(422, "limit: it should be at least 1.", "RequestValidationError", "GET /api/v1/openapi.json."),
    429: _example(429, "more than 100 requests a second.", "Refused", "Send fewer."),
    503: _example(503, "the server is going down.", "Refused", "Send it again in a moment."),
}
"""What any route may answer beside what it is for."""

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object", "title": "Problem", "required": ["error", "detail", "exception", "help"],
    "properties": {
        "error": {"type": "string", "description": "What kind of problem it is."},
        "detail": {"type": "string", "description": "What went wrong, in words."},
        "exception": {"type": "string", "description": "The class of Penstock's error."},
        "help": {"type": "string", "description": "What to do next."},
    },
}  # fmt: skip


Accept = Annotated[
    str | None,
    Header(
        description="The format of the rows: application/json, application/x-ndjson, text/csv or "
        "application/vnd.apache.arrow.stream.",
        examples=["application/json"],
    ),
]
CheckpointName = Annotated[
    str, Path(max_length=255, description="The name of a checkpoint.", examples=["before_import"])
]


def shows_rows(example: Any, description: str) -> dict[int | str, dict[str, Any]]:
    """The same of a route whose rows come in several formats."""
    shown = shows(example, description)
    rows = example["result"]
    lines, names = "".join(f"{json.dumps(row)}\n" for row in rows), ",".join(rows[0])
    values = "".join(",".join(str(value) for value in row.values()) + "\n" for row in rows)
    shown[200]["content"] |= {
        "application/x-ndjson": {"schema": {"type": "string"}, "example": lines},
        "text/csv": {"schema": {"type": "string"}, "example": f"{names}\n{values}"},
        "application/vnd.apache.arrow.stream": {
            "schema": {"type": "string", "format": "binary"}, "example": "a stream of Arrow's IPC format"
        },
    }  # fmt: skip
    return shown


def shows(example: Any, description: str = "Done.", status: int = 200) -> dict[int | str, dict[str, Any]]:
    """What a route answers, with an example."""
    content = {
        "application/json": {"schema": {"type": "array" if isinstance(example, list) else "object"}, "example": example}
    }
    return {**PROBLEMS, status: {"description": description, "content": content}}
