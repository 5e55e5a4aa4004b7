"""A client of the server, with the methods of ``Database`` that make sense from afar. It needs nothing but Python.

What changes something is sent with an id of its own, so that it is done once though the connection breaks and it is
sent again.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from penstock import errors

_TRIES = 3


class Client:
    """``penstock.Client("http://127.0.0.1:8080")``; ``database`` may be left out if the server has but one."""

    def __init__(self, url: str, token: str | None = None, database: str | None = None, timeout: float = 600.0):
        self._url, self._token, self._database, self._timeout = url.rstrip("/"), token, database, timeout

    def sql(
        self,
        text: str,
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        limit: int | None = None,
        schema: str | None = None,
    ) -> list[dict[str, Any]]:
        """Run a statement; gives its rows. Values in ``params`` are bound to ``:name`` or ``?``.

        ``schema`` is that of names which say none.
        """
        body = {"language": "sql", "command": text, "params": params, "limit": limit, "schema": schema}
        return self._ask("POST", f"command/{quote(self._name(), '')}", body)["result"]

    def refresh(self, *names: str, full: bool = False, wait: bool = False) -> dict[str, Any]:
        """Bring views up to date, upstream first; without names all. Gives the report of each view by name."""
        body = {"views": list(names) or None, "full": full, "wait": wait}
        return {view["name"]: view for view in self._ask("POST", "refresh", body)["views"]}

    def status(self) -> list[dict[str, Any]]:
        return self._ask("GET", "views")["result"]

    def history(self, name: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        return self._ask("GET", "history", limit=limit, view=name)["result"]

    def alerts(self) -> list[dict[str, Any]]:
        return self._ask("GET", "alerts")["result"]

    def epochs(self, limit: int = 100) -> list[dict[str, Any]]:
        return self._ask("GET", "epochs", limit=limit)["result"]

    def timeline(self, epoch: int) -> dict[str, Any]:
        """One epoch in full: when each node was worked on, and on which of them the end hung."""
        return self._ask("GET", f"epochs/{epoch}")

    def graph(self) -> dict[str, Any]:
        return self._ask("GET", "graph")

    def schema(self) -> dict[str, Any]:
        return self._ask("GET", f"schema/{quote(self._name(), '')}")

    def databases(self) -> list[str]:
        """Those that the token may see."""
        return self._ask("GET", "databases")["result"]

    def view(self, name: str) -> dict[str, Any]:
        """One view: how it stands, its query and its columns."""
        return self._ask("GET", f"views/{quote(name, '')}")

    def lineage(self, name: str) -> dict[str, Any]:
        """What a view reads and what reads it (``result``), and where its ``columns`` come from."""
        return self._ask("GET", f"views/{quote(name, '')}/lineage")

    def explain(self, name: str) -> dict[str, Any]:
        return self._ask("GET", f"views/{quote(name, '')}/explain")

    def rows(self, name: str, epoch: int | None = None, page: int = 10_000) -> Iterator[dict[str, Any]]:
        """All rows of a view at one epoch, read page by page."""
        after = None
        while True:
            found = self._ask("GET", f"views/{quote(name, '')}/rows", limit=page, epoch=epoch, after=after)
            yield from found["result"]
            after = found.get("next")
            if after is None:
                if found["truncated"]:  # what only Spark can read, such as VARIANT, has no order to go on in
                    raise errors.NotSupportedError(
                        f"view {name!r} has more than {page:,} rows, of types that cannot be read page by page. "
                        "Ask for larger pages (page=..), or cast them in a query."
                    )
                return

    def changes(self, name: str, since: int) -> list[dict[str, Any]]:
        """The rows that came and went since an epoch, with ``__weight``."""
        return self._ask("GET", f"views/{quote(name, '')}/changes", since=since, limit=10_000_000)["result"]

    def follow(self, name: str, since: int | None = None) -> Iterator[dict[str, Any]]:
        """The changes of a view, epoch by epoch, for as long as they are asked for; goes on where it was cut off."""
        for event in self._stream(f"views/{quote(name, '')}/changes", since, follow="true", since=since):
            yield {"event": event["event"], **event["data"]}

    def events(self, since: str | None = None) -> Iterator[dict[str, Any]]:
        """What happens in the warehouse: ``event``, ``id`` and ``data``."""
        yield from self._stream(f"events/{quote(self._name(), '')}", since)

    def get(self, model: str, /, **key: Any) -> dict[str, Any] | None:
        """The document of a read model with this key, such as ``pk_post=7`` or ``id="p-7"``; None if there is none."""
        if not key:
            raise errors.NotSupportedError(
                f"get takes a key, such as client.get({model!r}, id=..). Use find for several."
            )
        found = self.find(model, limit=2, **key)
        if len(found) > 1:
            raise errors.DefinitionError(f"{model!r} has several rows with {key}. Use find, which gives all of them.")
        return found[0] if found else None

    def find(self, model: str, /, *, limit: int | None = None, **columns: Any) -> list[dict[str, Any]]:
        """The documents of a read model whose columns have these values, in the order of its key."""
        if None in columns.values():
            raise errors.NotSupportedError("NULL cannot be asked for by find. Use client.sql('SELECT .. IS NULL').")
        found: list[dict[str, Any]] = []
        after, most = None, 10_000
        while limit is None or len(found) < limit:
            page = most if limit is None else min(most, limit - len(found))
            told = self._ask("GET", f"read/{quote(model, '')}", limit=page, after=after, **columns)
            found += told["result"]
            after = told.get("next")
            if after is None:
                break
        return found

    def create_view(self, name: str, query: str, **options: Any) -> dict[str, Any]:
        """``options`` as of ``Database.create_view``."""
        return self._ask("POST", "views", {"name": name, "query": query, **options})

    def alter_view(self, name: str, **changes: Any) -> dict[str, Any]:
        return self._ask("PATCH", f"views/{quote(name, '')}", changes)

    def drop_view(self, name: str, cascade: bool = False) -> None:
        self._ask("DELETE", f"views/{quote(name, '')}", cascade=str(cascade).lower())

    def suspend(self, name: str) -> dict[str, Any]:
        return self._ask("POST", f"views/{quote(name, '')}/suspend")

    def resume(self, name: str) -> dict[str, Any]:
        return self._ask("POST", f"views/{quote(name, '')}/resume")

    def checkpoint(self, name: str) -> int:
        """Name the newest epoch, so that it is kept and can be gone back to; gives its number."""
        return self._ask("POST", "checkpoints", {"name": name})["epoch"]

    def checkpoints(self) -> list[dict[str, Any]]:
        return self._ask("GET", "checkpoints")["result"]

    def restore(self, name: str) -> int:
        """Bring all views back to a checkpoint, in one step; gives the epoch that this is."""
        return self._ask("POST", f"checkpoints/{quote(name, '')}/restore")["epoch"]

    def drop_checkpoint(self, name: str) -> None:
        self._ask("DELETE", f"checkpoints/{quote(name, '')}")

    def settings(self) -> dict[str, str]:
        return self._ask("GET", "settings")

    def set(self, name: str, value: str) -> None:
        """Change a setting of the warehouse."""
        self._ask("PUT", f"settings/{quote(name, '')}", {"value": value})

    # -- the wire -----------------------------------------------------------------------------------------------------

    def _name(self) -> str:
        if self._database is None:
            names = self._ask("GET", "databases")["result"]
            if len(names) != 1:
                raise errors.NotFoundError(f"the server has {', '.join(names)}: name one, Client(url, database=..).")
            self._database = names[0]
        return str(self._database)

    def _ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        request = self._request(method, path, body, query)
        tries = 0
        while True:
            try:
                with urlopen(request, timeout=self._timeout) as answer:
                    return json.load(answer)
            except HTTPError as refused:
                raise _raised(refused) from None
            except (URLError, ConnectionError, HTTPException) as problem:
                tries += 1
                if tries == _TRIES:
                    raise errors.PenstockError(f"the server {self._url} cannot be reached: {problem}") from None

    def _request(self, method: str, path: str, body: Any, query: Mapping[str, Any]) -> Request:
        named = {"database": self._database, **query} if path.split("/")[0] not in _IN_PATH else query
        given = urlencode({name: value for name, value in named.items() if value is not None})
        request = Request(f"{self._url}/api/v1/{path}" + (f"?{given}" if given else ""), method=method)
        request.add_header("X-Request-Id", uuid.uuid4().hex)
        if self._token is not None:
            request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.data = json.dumps(body, default=_no_value).encode()
            request.add_header("Content-Type", "application/json")
        return request

    def _stream(self, path: str, last: Any, **query: Any) -> Iterator[dict[str, Any]]:
        while True:
            request = self._request("GET", path, None, query)
            if last is not None:
                request.add_header("Last-Event-ID", str(last))
            try:
                with urlopen(request, timeout=self._timeout) as lines:
                    for event in _events(lines):
                        last = event["id"] or last
                        yield event
            except HTTPError as refused:
                raise _raised(refused) from None
            except URLError as problem:
                raise errors.PenstockError(f"the server {self._url} cannot be reached: {problem.reason}") from None
            except (TimeoutError, ConnectionError, HTTPException):
                pass
            time.sleep(1)  # cut off: it goes on behind the last event


def _no_value(value: Any) -> Any:
    raise errors.NotSupportedError(
        f"{value!r} cannot be sent as it is: give a text, and write CAST(? AS ..) around its place in the statement."
    )


_IN_PATH = ("query", "command", "schema", "events", "databases")
"""Routes that take the database in their path, or none."""


def _events(lines: Any) -> Iterator[dict[str, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            yield {"id": fields.get("id"), "event": fields.get("event"), "data": json.loads(fields["data"])}
            fields = {}


def _raised(refused: HTTPError) -> errors.PenstockError:
    """The error that the server tells of, as the class that it had there."""
    try:
        told = json.load(refused)
    except ValueError:
        return errors.PenstockError(f"the server answered {refused.code} {refused.reason}")
    kind = getattr(errors, told.get("exception", ""), errors.PenstockError)
    if kind is errors.RefreshError:
        return errors.RefreshError(told["detail"], report={view["view"]: view for view in told.get("views", ())})
    if kind is errors.NotIncrementalError:
        kind = errors.DefinitionError
    return kind(told["detail"] if kind is not errors.PenstockError else f"{told['detail']} {told['help']}")
