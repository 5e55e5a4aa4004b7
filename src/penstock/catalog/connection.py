"""Opening the catalog's database: SQLite in WAL mode, or PostgreSQL by URL; making and checking its schema."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import URL, Engine, create_engine, event, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from penstock.catalog.migrations import migrate
from penstock.catalog.tables import SCHEMA_VERSION, metadata, settings
from penstock.errors import WarehouseError

_WRITE_LOCK = 7_361_120
"""The advisory lock of writers: any number that other programs on the same database do not use."""


PATIENCE = 30_000
"""Milliseconds that a transaction waits for those of others, where the database is a file."""
_BEFORE_HOST, _IN_QUERY = re.compile(r"(//[^:/@]*:)([^/]*)@"), re.compile(r"([?&](?:ssl)?password=)([^&]*)")
"""Where the URL of a server has what is nobody's business."""

_READ_ONLY = {"mode": "ro", "uri": "true"}


def open_engine(url: str | URL) -> Engine:
    """An engine on a catalog whose schema is the one this code knows; a new, empty database gets it."""
    shown = without_password(url)
    try:
        given = re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url) if isinstance(url, str) else url
        server = make_url(given).get_backend_name() != "sqlite"
        engine = create_engine(given, pool_pre_ping=server)  # connections from before the server was started again
        if not server:
            _configure_sqlite(engine)
        else:
            _configure_server(engine)
        _prepare(engine)
    except ModuleNotFoundError as problem:
        raise WarehouseError(
            f"the catalog {shown!r} needs the Python module {problem.name!r}. For PostgreSQL, run "
            "pip install 'penstock-spark[postgres]'."
        ) from None
    except (SQLAlchemyError, ImportError) as problem:
        detail = _without_secrets(str(getattr(problem, "orig", None) or problem), url)
        raise WarehouseError(
            f"the catalog {shown!r} cannot be opened: {detail}. Check that the place exists and can be written."
        ) from None
    return engine


def without_password(url: str | URL) -> str:
    """The URL of a catalog, to be shown.

    >>> without_password("postgresql://me:s3c@ret@host/db?password=s3cret&sslmode=require")
    'postgresql://me:***@host/db?password=***&sslmode=require'
    """
    text = url.render_as_string(hide_password=False) if isinstance(url, URL) else url
    return _IN_QUERY.sub(r"\1***", _BEFORE_HOST.sub(r"\1***@", text))


def _without_secrets(detail: str, url: str | URL) -> str:
    """What a driver says, which may quote what it takes for the host."""
    text = url.render_as_string(hide_password=False) if isinstance(url, URL) else url
    found = [match.group(2) for pattern in (_BEFORE_HOST, _IN_QUERY) for match in pattern.finditer(text)]
    for part in (part for secret in found for part in unquote(secret).split("@") if part):
        detail = detail.replace(part, "***")
    return detail


def open_for_reading(url: str) -> tuple[Engine, TemporaryDirectory[str] | None]:
    """An engine on a catalog that cannot be written; maybe on a copy of it, in a directory to delete afterwards.

    SQLite writes beside a file in WAL mode even to read it, unless another process has just done so.
    """
    file = sqlite_file(url)
    if file is None:
        return open_engine(url), None
    with suppress(WarehouseError):
        return open_engine(URL.create("sqlite", database=f"file:{quote(file)}", query=_READ_ONLY)), None
    return open_copy(file)


def open_copy(file: str) -> tuple[Engine, TemporaryDirectory[str]]:
    """An engine on a copy of a SQLite catalog, and the directory of the copy."""
    copy = TemporaryDirectory(prefix="penstock-catalog-")
    name = os.path.join(copy.name, os.path.basename(file))
    for part in ("", "-wal"):
        if os.path.exists(file + part):
            shutil.copyfile(file + part, name + part)
    return open_engine(URL.create("sqlite", database=name)), copy


def refusal(path: str | None, url: str) -> str | None:
    """What to say to whoever wants to change a warehouse that can only be looked at; None if it can be changed.

    ``path`` is its directory, if it is one of this machine.
    """
    file = sqlite_file(url)
    made = file is None or os.path.exists(file)
    if (path is None or os.access(path, os.W_OK)) and (file is None or not made or os.access(file, os.W_OK)):
        return None
    if not made:
        raise WarehouseError(f"the warehouse {path!r} cannot be created: it is read-only. Choose another directory.")
    return (
        f"the warehouse {path!r} is read-only: it can be looked at, but not changed. "
        "Change it where its directory and its catalog can be written."
    )


def sqlite_file(url: str) -> str | None:
    """The file of a catalog; None for one on a server."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return None  # which is told when it is opened
    return parsed.database if parsed.get_backend_name() == "sqlite" else None


def _configure_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        # SQLAlchemy is to say when a transaction begins, not the driver: a writer takes the write lock at once.
        connection.isolation_level = None
        for pragma in (f"busy_timeout = {PATIENCE}", "journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _configure_server(engine: Engine) -> None:
    """On PostgreSQL as on SQLite: writers take turns, and a reader sees one moment."""

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        if connection.get_execution_options().get("writes", False):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")
        else:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _prepare(engine: Engine) -> None:
    if inspect(engine).has_table(settings.name):
        with engine.begin() as connection:
            found = connection.execute(select(settings.c.value).where(settings.c.name == "schema_version")).scalar()
        if found is not None:
            _check_version(int(found), engine)
            if int(found) < SCHEMA_VERSION:
                _migrate(engine)
            return
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        metadata.create_all(connection)
        known = select(settings.c.value).where(settings.c.name == "schema_version")
        if connection.execute(known).scalar() is None:
            connection.execute(insert(settings).values(name="schema_version", value=str(SCHEMA_VERSION)))


def _migrate(engine: Engine) -> None:
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        # Another process may have been first.
        found = connection.execute(select(settings.c.value).where(settings.c.name == "schema_version")).scalar_one()
        migrate(connection, int(found))


def _check_version(found: int, engine: Engine) -> None:
    if found > SCHEMA_VERSION:
        raise WarehouseError(
            f"the catalog {engine.url.render_as_string()!r} has schema version {found}, made by a newer Penstock; this "
            f"one knows version {SCHEMA_VERSION}. Install a newer Penstock to open it; nothing was changed."
        )
