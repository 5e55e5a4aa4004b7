"""Read models over HTTP: one document by its key, or those that a filter tells, and whether they have changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response

from penstock.errors import NotFoundError
from penstock.serve.context import Meant, Served, answer, listed, shows
from penstock.serve.hosted import Hosted
from penstock.serve.problems import Refused, dumped

if TYPE_CHECKING:
    from penstock.engine.model_rows import Model

routes = APIRouter(prefix="/api/v1", tags=["Read models"])

_DOCUMENT = {
    "pk_post": 7, "id": "p-7", "user_id": "u-1",
    "data": {"id": "p-7", "title": "Hello", "author": {"id": "u-1", "name": "Ann"}},
    "updated_at": "2026-11-18T20:00:00+00:00",
}  # fmt: skip
_MODEL = {
    "name": "tv_post", "entity": "post", "key": "pk_post", "filters": ["id", "user_id"], "sources": ["tb_post"],
    "parts": ["$.id scalar", "$.author nested_object"], "refresh": "IMMEDIATE",
    "columns": [{"name": "pk_post", "type": "int"}],
}  # fmt: skip
_LIST = {"model": "tv_post", "next": "7", "result": [_DOCUMENT], "limit": 1, "returned": 1, "truncated": True}
_OWN = ("database", "limit", "after")
"""Parameters of a list that are no columns."""
_FILTERS = {
    "name": "columns", "in": "query", "style": "form", "explode": True, "required": False,
    "description": "A column and the value that it has, such as user_id=u-1; of several, all must be so.",
    "schema": {"type": "object", "additionalProperties": {"type": "string"}}, "example": {"user_id": "u-1"},
}  # fmt: skip
_AS_BEFORE: dict[int | str, dict[str, Any]] = {304: {"description": "As it was when the tag was given."}}

ModelName = Annotated[str, Path(max_length=255, description="The name of a read model.", examples=["tv_post"])]
KnownTag = Annotated[
    str | None, Header(alias="If-None-Match", max_length=1_000, description="An ETag.", examples=['"3fa94c01d2b7-12"'])
]


@routes.get("/read", responses=shows({"result": [_MODEL]}), summary="The read models")
def models(hosted: Meant) -> Response:
    return answer({"result": models_of(hosted)})


def models_of(hosted: Hosted) -> list[dict[str, Any]]:
    columns: dict[str, list[dict[str, Any]]] = {}
    for row in listed(hosted.db, "SELECT * FROM penstock.columns"):
        columns.setdefault(row["name"], []).append({"name": row["column"], "type": row["type"]})
    return [
        {
            "name": row["table"], "entity": row["entity"], "key": row["key"], "filters": row["uuid_columns"],
            "sources": row["sources"], "parts": row["parts"], "refresh": row["refresh"],
            "columns": columns.get(row["table"], []),
        }
        for row in listed(hosted.db, "SHOW READ MODELS")
    ]  # fmt: skip


@routes.get(
    "/read/{model}", responses={**shows(_LIST, "The documents."), **_AS_BEFORE}, summary="Documents of a read model",
    openapi_extra={"parameters": [_FILTERS]},
)  # fmt: skip
async def documents(
    model: ModelName,
    request: Request,
    hosted: Meant,
    served: Served,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Documents of a page.")] = 100,
    after: Annotated[
        str | None, Query(max_length=10_000, description="next of the page before: its last key.", examples=["7"])
    ] = None,
    known: KnownTag = None,
) -> Response:
    """In the order of the key. A page is of the moment at which it is asked for."""

    def read() -> Response:
        found = hosted.db.model(model)
        if _is_known(found, known):
            return _unchanged(found)
        wanted = {name: _value(found, name, text) for name, text in _asked(request).items()}
        behind = None if after is None else _value(found, found.primary, after)
        rows = found.found(wanted, limit + 1, behind)
        more, rows = len(rows) > limit, rows[:limit]
        around = {"model": found.view.name, **({"next": str(rows[-1][found.primary])} if more else {})}
        counts = {"limit": limit, "returned": len(rows), "truncated": more}
        told = dumped(around)[:-1] + b',"result":[' + b",".join(map(_told, rows)) + b"]," + dumped(counts)[1:]
        return _answer(found, told)

    return await served.gate.run(read)


@routes.get(
    "/read/{model}/{key}", responses={**shows(_DOCUMENT, "The document."), **_AS_BEFORE}, summary="One document"
)
async def document(
    model: ModelName,
    key: Annotated[str, Path(max_length=10_000, description="The value of its key.", examples=["7"])],
    hosted: Meant,
    served: Served,
    by: Annotated[
        str | None, Query(max_length=255, description="Another column that tells documents apart.", examples=["id"])
    ] = None,
    known: KnownTag = None,
) -> Response:
    """By ``pk_<entity>``, or by another column. A text with a slash is asked for as a filter of the list."""

    def read() -> Response:
        found = hosted.db.model(model)
        if _is_known(found, known):
            return _unchanged(found)
        column = by or found.primary
        rows = found.found({column: _value(found, column, key)}, 2)
        if not rows:
            raise NotFoundError(f"{found.view.name!r} has no document whose {column} is {key!r}.")
        if len(rows) > 1:
            raise Refused(
                409, f"{found.view.name!r} has several documents whose {column} is {key!r}.",
                help=f"Ask for all of them: GET /api/v1/read/{found.view.name}?{column}=..",
            )  # fmt: skip
        return _answer(found, _told(rows[0]))

    return await served.gate.run(read)


def _asked(request: Request) -> Mapping[str, str]:
    """The columns among the parameters."""
    asked: dict[str, str] = {}
    seen: set[str] = set()
    for name, text in request.query_params.multi_items():
        if name.lower() in seen:
            raise Refused(400, f"{name} is given twice.", help="Give each column once.")
        seen.add(name.lower())
        if name not in _OWN:
            asked[name] = text
    return asked


_WHOLE = ("tinyint", "smallint", "int", "bigint")


def _value(model: Model, name: str, text: str) -> Any:
    """A text as a value of a column. Of what is none, the model says so; it reads times and decimals itself."""
    kind = next((kind for shown, kind, _ in model.view.columns if shown.lower() == name.lower()), "")
    if kind in _WHOLE and re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
        return int(text)
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in ("double", "float"):
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _told(row: Mapping[str, Any]) -> bytes:
    """A row, its document as it is stored."""
    return b"{" + b",".join(dumped(name) + b":" + _member(name, value) for name, value in row.items()) + b"}"


def _member(name: str, value: Any) -> bytes:
    is_document = name.lower() == "data" and isinstance(value, str)
    return value.encode("utf-8", "replace") if is_document else dumped(value)


# -- whether it has changed -------------------------------------------------------------------------------------------


def _is_known(model: Model, given: str | None) -> bool:
    """Whether a tag that a client has is that of the model as it is."""
    tags = {tag.strip().removeprefix("W/") for tag in (given or "").split(",")}
    return f'"{model.tag}"' in tags


def _headers(model: Model) -> dict[str, str]:
    """The tag is a strong one: from one version of the table, the same answer is made to the byte."""
    return {
        "ETag": f'"{model.tag}"', "Cache-Control": "private, no-cache", "Vary": "Authorization",
        "X-Penstock-Epoch": str(model.epoch),
    }  # fmt: skip


def _answer(model: Model, told: bytes) -> Response:
    return Response(told, 200, _headers(model), "application/json")


def _unchanged(model: Model) -> Response:
    return Response(None, 304, _headers(model))
