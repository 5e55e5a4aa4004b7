"""``serve``: the HTTP server; ``token``: who may ask it."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.loading import without_pandas
from penstock.cli.output import cell, out, plain_table, print_json, print_table, say_hint
from penstock.cli.warehouse import CatalogOption, JsonOption, WarehouseOption, place_of
from penstock.cli.warehouse import Place as Given
from penstock.errors import DefinitionError, NotSupportedError
from penstock.sql.intervals import microseconds
from penstock.storage.locations import is_store

if TYPE_CHECKING:
    from penstock.serve.options import Place
    from penstock.serve.roles import Role
    from penstock.serve.state import State

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)

StateOption = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="FILE", envvar="PENSTOCK_SERVER_STATE",
        help="The server's own file, with tokens in it (default: server.sqlite in the first warehouse).",
    ),
]  # fmt: skip


def serve(
    context: typer.Context,
    warehouses: Annotated[
        list[str] | None,
        typer.Option(
            "--warehouse", "-w", metavar="[NAME=]PATH", help="A warehouse to serve; may be given several times."
        ),
    ] = None,
    catalogs: Annotated[
        list[str] | None, typer.Option("--catalog", metavar="[NAME=]URL", help="Where the catalog of a warehouse is.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on. Beyond this machine, tokens are needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any that is free.")] = 8080,
    schedule: Annotated[bool, typer.Option("--schedule", help="Also keep views fresh, as penstock run does.")] = False,
    state: StateOption = None,
    oidc: Annotated[
        str | None, typer.Option(metavar="URL", help="An OpenID Connect issuer whose tokens are accepted, too.")
    ] = None,
    oidc_audience: Annotated[
        str, typer.Option(metavar="NAME", help="For whom its tokens must be made (aud): often a client id.")
    ] = "penstock",
    oidc_role_claim: Annotated[
        str, typer.Option(metavar="CLAIM", help="The claim with the role, such as realm_access.roles.")
    ] = "roles",
    oidc_role: Annotated[
        list[str] | None,
        typer.Option(metavar="VALUE=ROLE", help="What a value of it is worth (default: read, refresh, admin)."),
    ] = None,
    oidc_database_claim: Annotated[
        str | None, typer.Option(metavar="CLAIM", help="The claim with the databases (default: all databases).")
    ] = None,
    oidc_name_claim: Annotated[
        str, typer.Option(metavar="CLAIM", help="The claim by which the audit log calls somebody.")
    ] = "sub",
    root_path: Annotated[str, typer.Option(metavar="PATH", help="The path under which a proxy shows the server.")] = "",
    proxy: Annotated[str, typer.Option(metavar="ADDRESS", help="A proxy whose X-Forwarded headers are believed.")] = "",
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Another site whose pages may use the server.")
    ] = None,
    tls_certificate: Annotated[str | None, typer.Option(metavar="FILE", help="The certificate, for https.")] = None,
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="Its key.")] = None,
    audit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where to write who did what (default: stderr).")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests a second of one token.")] = 100.0,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Statements that run side by side.")] = 8,
) -> None:
    """Serve warehouses over HTTP: SQL, views, events, metrics.

    On this machine it works without a token. SIGTERM and Ctrl-C finish what was begun; a second one abandons it.
    """
    without_pandas()
    try:
        from penstock.serve.options import Limits, Oidc, Options
        from penstock.serve.process import serve as run
    except ModuleNotFoundError as problem:
        raise NotSupportedError(
            f"the server needs the Python module {problem.name!r}. Run pip install 'penstock-spark[serve]'."
        ) from None
    places = _places(context, warehouses or [], catalogs or [])
    roles = _roles(oidc_role or [])
    if roles and oidc is None:
        raise DefinitionError("--oidc-role says what an issuer's tokens are worth: name the issuer with --oidc.")
    issuer = None if oidc is None else Oidc(
        issuer=oidc, audience=oidc_audience, role_claim=oidc_role_claim, database_claim=oidc_database_claim,
        name_claim=oidc_name_claim, **({"roles": roles} if roles else {}),
    )  # fmt: skip
    options = Options(
        places=places, host=host, port=port, schedule=schedule, state=_state_of(state, places[0].path),
        oidc=issuer, root_path=root_path.rstrip("/"), proxies=proxy, origins=tuple(allow_origin or ()),
        certificate=tls_certificate, key=tls_key, audit=audit, limits=Limits(rate=rate, running=concurrency),
    )  # fmt: skip
    run(options, say_hint)
    say_hint("stopped")


def _places(context: typer.Context, warehouses: list[str], catalogs: list[str]) -> tuple[Place, ...]:
    from penstock.serve.options import Place

    given = place_of(context, None, None)
    urls = dict(_named(each, "") for each in catalogs)
    found: dict[str, Place] = {}
    for text in warehouses or [given.path]:
        name, path = _named(text, None)
        directory = Given(path).directory
        name = name or re.sub(r"[^\w.-]", "_", os.path.basename(directory.rstrip("/"))) or "warehouse"
        if not _NAME.fullmatch(name):
            raise DefinitionError(f"{name!r} cannot be the name of a database: use letters, digits, and _-.")
        if name in found:
            raise DefinitionError(f"two warehouses are called {name!r}. Say --warehouse OTHER_NAME={path}.")
        catalog = urls.pop(name, None) or (urls.pop("", None) if len(warehouses) < 2 else None)
        found[name] = Place(name=name, path=directory, catalog=catalog or (None if warehouses else given.catalog))
    if urls:
        raise DefinitionError(f"--catalog names no warehouse: write --catalog {next(iter(found))}=URL.")
    return tuple(found.values())


def _roles(given: list[str]) -> dict[str, Role]:
    """What values of a claim are worth."""
    from penstock.serve.roles import Role

    found = {}
    for text in given:
        value, _, word = text.rpartition("=")
        if not value or word.lower() not in [one.word for one in Role]:
            raise DefinitionError(f"--oidc-role {text!r} is not VALUE=ROLE with the role read, refresh or admin.")
        found[value] = Role.of(word)
    return found


def _named(text: str, unnamed: str | None) -> tuple[str | None, str]:
    """NAME=REST, or just the rest."""
    name, equals, rest = text.partition("=")
    return (name, rest) if equals and _NAME.fullmatch(name) else (unnamed, text)


def _state_of(given: str | None, warehouse: str) -> str | None:
    """The server's file; none for a warehouse that cannot be written."""
    if given is not None:
        return given
    if is_store(warehouse):
        return None
    os.makedirs(warehouse, exist_ok=True)
    from penstock.serve.state import FILE

    return os.path.join(warehouse, FILE) if os.access(warehouse, os.W_OK) else None


token = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens of the server.")


def _state(context: typer.Context, state: str | None, warehouse: str | None) -> State:
    from penstock.serve.state import State

    directory = place_of(context, warehouse, None).directory
    return State(_state_of(state, directory))


@token.command()
def create(
    context: typer.Context,
    role: Annotated[str, typer.Option(metavar="read|refresh|admin", help="What it may do.")],
    name: Annotated[
        str | None, typer.Option(help="What the audit log calls it (default: the role and a number).")
    ] = None,
    database: Annotated[list[str] | None, typer.Option(help="A database that it is for (default: all).")] = None,
    expires: Annotated[str | None, typer.Option(metavar="LENGTH", help="How long it holds, such as '30 days'.")] = None,
    state: StateOption = None,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Make a token. It is shown once: only a hash of it is kept."""
    from penstock.serve.roles import Role

    if role.lower() not in [one.word for one in Role]:
        raise DefinitionError(f"there is no role {role!r}. Choose read, refresh or admin.")
    length = None if expires is None else microseconds(expires)
    if expires is not None and not length:
        raise DefinitionError(f"{expires!r} is no length of time. Write it as '30 days'.")
    for one in database or ():
        if not _NAME.fullmatch(one):
            raise DefinitionError(f"{one!r} is no name of a database.")
    kept = _state(context, state, warehouse)
    name = name or f"{role.lower()}-{len(kept.tokens()) + 1}"
    made, text = kept.create(
        name, Role.of(role), tuple(database or ()), None if length is None else timedelta(microseconds=length)
    )
    until = "" if made.expires_at is None else f" until {made.expires_at:%Y-%m-%d %H:%M} UTC"
    say_hint(f"token {made.name} for the role {made.role.word}{until}; it is not shown again:")
    out().print(text, soft_wrap=True)
    kept.close()


@token.command("list")
def list_tokens(
    context: typer.Context,
    json: JsonOption = False,
    state: StateOption = None,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Show the tokens, without what they are."""
    kept = _state(context, state, warehouse)
    found = kept.tokens()
    kept.close()
    if json:
        print_json(
            [
                {"name": t.name, "role": t.role.word, "databases": t.databases, "created_at": t.created_at,
                 "expires_at": t.expires_at, "revoked_at": t.revoked_at}
                for t in found
            ]
        )  # fmt: skip
        return
    table = plain_table("token", "role", "databases", "created", "expires", "revoked")
    for t in found:
        times = [
            None if time is None else f"{time:%Y-%m-%d %H:%M}" for time in (t.created_at, t.expires_at, t.revoked_at)
        ]
        table.add_row(
            cell(t.name, "bold"), t.role.word, ", ".join(t.databases) or "all", *(cell(time) for time in times)
        )
    print_table(table)


@token.command()
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The token's name.")],
    state: StateOption = None,
    warehouse: WarehouseOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Take a token back: from now on it is refused, by running servers too."""
    kept = _state(context, state, warehouse)
    kept.revoke(name)
    kept.close()
    say_hint(f"token {name} revoked")
