"""How views stand that are refreshed by themselves: suspended, waiting after an error, or neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from penstock.catalog import tables as t
from penstock.vocabulary import Fault


@dataclass(frozen=True, kw_only=True)
class ViewState:
    suspended: bool = False
    errors: int = 0
    """How often in a row the view has failed."""
    kind: Fault | None = None
    """Whose fault the last error was."""
    not_before: datetime | None = None
    """When to try again."""
    failed_on: Mapping[str, int | None] | None = None
    """The versions of the sources that it failed on, if trying them again is no use."""


ACTIVE, SUSPENDED = ViewState(), ViewState(suspended=True)


def read_states(connection: Connection) -> dict[str, ViewState]:
    return {
        row["view"]: ViewState(
            suspended=row["suspended"], errors=row["errors"], kind=Fault(row["kind"]) if row["kind"] else None,
            not_before=row["not_before"], failed_on=row["failed_on"],
        )
        for row in connection.execute(select(t.states)).mappings()
    }  # fmt: skip


def write_state(connection: Connection, key: str, state: ViewState) -> None:
    """What is as usual needs no row. A view that is gone has no state."""
    connection.execute(delete(t.states).where(t.states.c.view == key))
    there = connection.execute(select(t.views.c.key).where(t.views.c.key == key)).scalar() is not None
    if there and state != ACTIVE:
        connection.execute(insert(t.states).values(view=key, **asdict(state)))
