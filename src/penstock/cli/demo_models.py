"""``demo read-models``: a company is renamed, and every document with it is right; before and after side by side."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rich.table import Table
from rich.text import Text

from penstock.bench import blog
from penstock.cli.output import cell, numbered, out, plain_table, print_table
from penstock.errors import InternalError
from penstock.vocabulary import Outcome

if TYPE_CHECKING:
    from penstock.cli.progress import Progress
    from penstock.database import Database

Result = TypeVar("Result")

POSTS = 5_000
"""As many, unless fewer are asked for."""
COMPANY = 12
SHOWN = {"tv_company": {"pk_company": COMPANY}, "tv_user": {"pk_user": COMPANY}, "tv_post": {"pk_post": COMPANY}}
RENAME = f"UPDATE tb_company SET name = '{{}}' WHERE pk_company = {COMPANY}"


@dataclass
class ModelsDemo:
    """One run over a warehouse of its own."""

    database: Database
    progress: Progress

    def run(self, posts: int) -> None:
        self._prepare(posts)
        self._change(RENAME.format("Acme"))  # the first one warms up
        before = self._documents()
        renamed = RENAME.format("ACME Corp")
        _say(f"\n{renamed}", "bold")
        steps = self._change(renamed)
        after = self._documents()
        for model in SHOWN:
            _say(f"\n{model}, before and after", "bold")
            out().print(side_by_side(before[model], after[model]))
        self._say_steps(steps)
        self._check()

    def _prepare(self, posts: int) -> None:
        self._timed("starting Spark", lambda: self.database.spark)
        for name, columns in blog.TABLES.items():
            self.database.sql(f"CREATE TABLE {name} ({columns})")
        for name, rows in blog.rows_of(posts).items():
            seconds, _ = self._timed(f"filling {name}", partial(self.database.sql, f"INSERT INTO {name} {rows}"))
        for name, query in blog.MODELS.items():
            statement = f"CREATE TABLE {name} AS {query}"
            seconds, done = self._timed(f"creating {name}", partial(self.database.sql, statement))
            _say(statement, "dim")
            _say(f"{done} in {seconds:.1f} s")

    def _change(self, statement: str) -> dict[str, float]:
        """Run a statement, and bring up to date what does not follow by itself; gives the seconds of each step."""
        seconds, _ = self._timed("renaming", partial(self.database.sql, statement))
        steps = {statement.split(" ")[0]: seconds}
        if any(view.stale for view in self.database.status()):
            steps["refresh"], _ = self._timed("refreshing", self.database.refresh)
        for model in blog.MODELS:
            last = self.database.history(model, 1)[0]
            steps[f"  {model}: {last.action}, {numbered(last.rows_inserted, 'document')}"] = last.seconds
        key = {"pk_post": COMPANY}
        steps["get tv_post by its key"], _ = self._timed("reading", lambda: self.database.get("tv_post", **key))
        return steps

    def _documents(self) -> dict[str, Any]:
        return {model: (self.database.get(model, **key) or {}).get("data") for model, key in SHOWN.items()}

    def _say_steps(self, steps: dict[str, float]) -> None:
        table = plain_table("step", "milliseconds", right=("milliseconds",))
        for step, seconds in steps.items():
            table.add_row(cell(step), cell(f"{seconds * 1000:,.1f}"))
        _say("")
        print_table(table)

    def _check(self) -> None:
        """Every model equals its query, run from scratch."""
        _, found = self._timed("checking", lambda: self.database.verify(*blog.MODELS))
        wrong = [one.view for one in found if one.outcome != Outcome.EQUAL]
        if wrong:
            raise InternalError(f"{', '.join(wrong)}: documents differ from their query. Please report this.")
        _say("\nChecked: each model equals its query, document by document.", "green")

    def _timed(self, text: str, work: Callable[[], Result]) -> tuple[float, Result]:
        with self.progress.during(text):
            started = time.perf_counter()
            result = work()
            return time.perf_counter() - started, result


def side_by_side(before: Any, after: Any) -> Table:
    """Two documents, line by line; what differs stands out."""
    left, right = (json.dumps(one, indent=1, ensure_ascii=False, default=str).splitlines() for one in (before, after))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 3, 0, 0))
    for _ in range(2):
        table.add_column(overflow="fold")
    for how, i, j, m, n in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        old, new = left[i:j], right[m:n]
        for place in range(max(len(old), len(new))):
            shown = [side[place] if place < len(side) else "" for side in (old, new)]
            styles = ("", "") if how == "equal" else ("red", "green")
            table.add_row(*(Text(text, style=style) for text, style in zip(shown, styles, strict=True)))
    return table


def _say(text: str, style: str = "") -> None:
    out().print(Text(text, style=style))
