"""What the displays of ``run`` and ``top`` have in common: how views stand, in the width that the terminal has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.cli.output import cell, fits, plain_table
from penstock.cli.show import last_refresh, time_cells
from penstock.sql.names import key_of

if TYPE_CHECKING:
    from penstock.observe.status import ViewStatus

_LESS_IMPORTANT = ("refreshes", "seconds")
"""What is left out where the terminal is too narrow for all."""


def standing(
    views: Sequence[ViewStatus], console: Console, *, refreshing: Collection[str] = (), past: bool = False
) -> Table:
    """A line for each view. ``refreshing``: those that are being refreshed here; ``past``: the last refreshes, too."""
    rows = [_cells(view, refreshing, past) for view in views]
    table = _table(rows, past, but=())
    return table if fits(table, console) else _table(rows, past, but=_LESS_IMPORTANT)


def _table(rows: Iterable[dict[str, Text]], past: bool, but: Collection[str]) -> Table:
    names = ["view", "refreshes", "state", "lag", "target", "behind", *(("last", "seconds") if past else ())]
    shown = [name for name in names if name not in but]
    table = plain_table(*shown, right=("seconds",), whole=("view", "lag", "last"))
    for row in rows:
        table.add_row(*[row[name] for name in shown])
    return table


def _cells(view: ViewStatus, refreshing: Collection[str], past: bool) -> dict[str, Text]:
    refreshes, state, lag, target = time_cells(view)
    if key_of(view.name) in refreshing:
        state = Text("refreshing", style="cyan")
    found = {
        "view": cell(view.name, "bold"), "refreshes": refreshes, "state": state, "lag": lag, "target": target,
        "behind": cell(view.behind_in_words(), "yellow"),
    }  # fmt: skip
    if past:
        found |= {"last": last_refresh(view), "seconds": cell(view.last_seconds and f"{view.last_seconds:.2f}")}
    return found


def that_fit(above: Sequence[RenderableType], lines: Iterable[Text], console: Console) -> list[RenderableType]:
    """What stands above, and as many of the lines as the terminal has place for."""
    shown = list(above)
    room = console.height - 1 - sum(_height(part, console) for part in above)
    for line in lines:
        room -= _height(line, console)
        if room < 0:
            break
        shown.append(line)
    return shown


def _height(part: RenderableType, console: Console) -> int:
    return len(console.render_lines(part, pad=False))
