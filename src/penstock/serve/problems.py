"""What went wrong, as every route tells it: a status, and ``error``, ``detail``, ``exception`` and ``help``."""

from __future__ import annotations

import json
from typing import Any

from starlette.types import Send

from penstock import errors as e
from penstock.observe.values import jsonable


class Refused(e.PenstockError):
    """A request that the server does not do, whatever is below it."""

    def __init__(self, status: int, message: str, *, help: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.help, self.headers = status, help, headers or {}


_STATUSES: dict[type[Exception], tuple[int, str]] = {
    e.SqlError: (400, "Write the statement as docs/sql.md has it. Nothing was changed."),
    e.NotSupportedError: (400, "docs/sql.md lists what is supported. Nothing was changed."),
    e.NotIncrementalError: (400, "docs/operators.md lists what is incremental. Nothing was changed."),
    e.DefinitionError: (400, "Change what the message names, and send it again. Nothing was changed."),
    e.QueryError: (400, "Mend the query or the data that the message names."),
    e.NotFoundError: (404, "GET /api/v1/schema/{database} lists tables and views, GET /api/v1/epochs the epochs."),
    e.RetentionError: (404, "Ask for a later epoch; GET /api/v1/epochs lists them."),
    e.AlreadyExistsError: (409, "Choose another name, or say OR REPLACE or IF NOT EXISTS."),
    e.DependencyError: (409, "Look at GET /api/v1/graph for what reads what."),
    e.ConflictError: (409, "Nothing was changed. Send it again."),
    e.BusyError: (409, "Another is changing the same. Send it again in a moment."),
    e.LeaseLostError: (409, "Nothing was published. Send it again."),
    e.SourceError: (409, "Bring the source table back, or drop what reads it."),
    e.RefreshError: (409, "GET /api/v1/history says what failed and why. The other views are fresh."),
    e.WarehouseError: (503, "Look at the warehouse's directory and its catalog, and at the server's log."),
    e.SparkError: (503, "Look at the server's log: Java 17 or 21 must be there."),
    e.InternalError: (500, "Please report this together with the message."),
    e.PenstockError: (400, "The message says what to do next."),
}
"""From the special to the general."""

_TITLES = {
    400: "bad request", 401: "not authenticated", 403: "not allowed", 404: "not found", 405: "method not allowed",
    406: "not acceptable", 409: "conflict", 413: "too large", 415: "unsupported media type", 422: "invalid parameters",
    429: "too many requests", 500: "internal error", 503: "not available",
}  # fmt: skip


def status_of(problem: Exception) -> int:
    """
    >>> status_of(e.NotFoundError("there is no view 'x'.")), status_of(RecursionError()), status_of(KeyError("x"))
    (404, 400, 500)
    """
    return _known(problem)[0]


def _known(problem: Exception) -> tuple[int, str]:
    if isinstance(problem, Refused):
        return problem.status, problem.help
    if isinstance(problem, RecursionError):
        return 400, "Nest it less deeply."
    for kind, known in _STATUSES.items():
        if isinstance(problem, kind):
            return known
    return 500, "Please report this together with the server's log."


def document(problem: Exception) -> dict[str, Any]:
    """What is told of a problem. Of one that nobody foresaw only the log tells more."""
    status, help = _known(problem)
    if isinstance(problem, RecursionError):
        detail = "it is nested too deeply."
    else:
        detail = str(problem) if isinstance(problem, e.PenstockError) else "something went wrong that should not."
    told = of_status(status, detail, help, type(problem).__name__)
    if isinstance(problem, e.RefreshError):
        told["views"] = [
            {"view": r.name, "status": r.status, "action": r.action, "reason": r.reason, "error": r.error}
            for r in problem.report.values()
        ]
    return told


def of_status(status: int, detail: str, help: str, exception: str) -> dict[str, Any]:
    title = _TITLES.get(status, "bad request" if status < 500 else "not available")
    return {"error": title, "detail": detail, "exception": exception, "help": help}


def dumped(document: Any) -> bytes:
    """A document as JSON."""
    text = json.dumps(jsonable(document), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


async def respond(send: Send, problem: Exception) -> None:
    """An answer that says what went wrong."""
    body = dumped(document(problem))
    headers = {"content-type": "application/json", "content-length": str(len(body)), **getattr(problem, "headers", {})}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status_of(problem), "headers": raw})
    await send({"type": "http.response.body", "body": body})
