"""Read models: what a statement takes until every document that its rows are in is right, and reading documents.

From the statement on, that is compared with the same models under ``REFRESH MANUAL`` and a refresh behind the
statement, and with computing all documents anew behind it. The models are those of a blog: companies in users in posts
in a feed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from penstock.bench import blog
from penstock.bench.contenders import Recomputation
from penstock.bench.measure import FULL, MANUAL, PENSTOCK, Cell, Goal, at_least, at_most, rotated
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

_FEED, _FEW, _MANY = 100_000, 1_000, 1_000_000
_POST = "UPDATE tb_post SET title = 'Renamed {n}' WHERE pk_post = {n}"
_COMPANY = "UPDATE tb_company SET name = 'Renamed {n}' WHERE pk_company = {k}"
_WARM_UP, _READS = 2, 50

_ARRAY = "a post in a feed of 100,000"
_HELD = "a company in 4,000 posts"
_BOTH = "a company in 4,000 posts of a feed of 100,000"
_LEVELS = "four levels, a post"
_ALL_LEVELS = "four levels, a company"
_BY_KEY, _BY_ID, _BY_USER = "read by key", "read by id", "found by user"


def _run(bench: Bench) -> list[Cell]:
    return [*_large_feed(bench), *_small_feed(bench), *_reading(bench)]


def _large_feed(bench: Bench) -> list[Cell]:
    rows = bench.rows(_FEED)
    with bench.stage() as stage:
        models = _Models(stage, rows, blog.MODELS)
        cells = [models.measured(_ARRAY, _POST), models.measured(_BOTH, _COMPANY)]
        models.leave_out("tv_feed")
        return [*cells, models.measured(_HELD, _COMPANY)]


def _small_feed(bench: Bench) -> list[Cell]:
    with bench.stage() as stage:
        models = _Models(stage, bench.rows(_FEW), blog.MODELS)
        return [models.measured(_LEVELS, _POST), models.measured(_ALL_LEVELS, _COMPANY)]


def _reading(bench: Bench) -> list[Cell]:
    """Documents of which no two that are read lie beside each other."""
    rows, number = bench.rows(_MANY), count(1)
    with bench.stage() as stage:
        _Models(stage, rows, {name: query for name, query in blog.MODELS.items() if name != "tv_feed"})
        db, post = stage.database, lambda: next(number) * 7_919 % rows
        ways: dict[str, Callable[[], object]] = {
            _BY_KEY: lambda: db.get("tv_post", pk_post=post()),
            _BY_ID: lambda: db.get("tv_post", id=blog.id_of(post())),
            _BY_USER: lambda: db.find("tv_post", user_id=f"u{post() % blog.users(rows)}", limit=20),
        }
        return [_read(bench, case, rows, way) for case, way in ways.items()]


def _read(bench: Bench, case: str, rows: int, way: Callable[[], object]) -> Cell:
    bench.say(case)
    seconds = [_timed(way) for _ in range(_WARM_UP + _READS)][_WARM_UP:]
    return Cell(case=case, rows=rows, changed=0, views=1, seconds={PENSTOCK: seconds})


class _Models:
    """The tables and models of a blog, and the three ways to have documents right behind a statement."""

    def __init__(self, stage: Stage, posts: int, models: Mapping[str, str]):
        self.stage, self.posts = stage, posts
        stage.create({name: (columns, blog.rows_of(posts)[name]) for name, columns in blog.TABLES.items()}, {})
        for name, query in models.items():
            stage.bench.say(f"creating {name}")
            stage.database.sql(f"CREATE TABLE {name} AS {query}")
        told = stage.database.sql("SELECT name, query FROM penstock.views").collect()  # type: ignore[union-attr]
        queries = dict(told)
        stage.views |= {name: queries[name] for name in models}
        self._recomputation = Recomputation(stage)

    def leave_out(self, model: str) -> None:
        """From now on it does not follow."""
        self.stage.sql(f"ALTER MATERIALIZED VIEW {model} REFRESH MANUAL")
        del self.stage.views[model]

    def measured(self, case: str, statement: str) -> Cell:
        ways = {PENSTOCK: self._at_once, MANUAL: self._behind, FULL: self._anew}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(_WARM_UP + self.stage.bench.repeat):
            for name in rotated(list(ways), turn):
                self.stage.bench.say(f"{case}: {name}, run {turn + 1} of {_WARM_UP + self.stage.bench.repeat}")
                self.stage.round += 1
                number = self.stage.round
                change = statement.format(n=number, k=number % blog.COMPANIES)
                taken = ways[name](partial(self.stage.sql, change))
                if turn >= _WARM_UP:
                    seconds[name].append(taken)
        self.stage.check(list(self.stage.views))
        return Cell(case=case, rows=self.posts, changed=1, views=len(self.stage.views), seconds=seconds)

    def _at_once(self, change: Callable[[], object]) -> float:
        return _timed(change)

    def _behind(self, change: Callable[[], object]) -> float:
        return self._apart(change, self._refresh)

    def _anew(self, change: Callable[[], object]) -> float:
        return self._apart(change, lambda: self._recomputation.refresh(list(self.stage.views)))

    def _apart(self, change: Callable[[], object], follow: Callable[[], object]) -> float:
        """A statement that no model follows, and then what makes the documents right."""
        for model in reversed(self.stage.views):  # what an IMMEDIATE view reads is IMMEDIATE itself
            self._alter(model, "MANUAL")
        taken = _timed(change) + _timed(follow)
        self._refresh()
        for model in self.stage.views:
            self._alter(model, "IMMEDIATE")
        return taken

    def _refresh(self) -> None:
        self.stage.database.refresh(list(self.stage.views))

    def _alter(self, model: str, refresh: str) -> None:
        self.stage.sql(f"ALTER MATERIALIZED VIEW {model} REFRESH {refresh}")


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    found = {cell.case: cell for cell in cells}
    goals = [at_least("x the speed of recomputation", found[_ARRAY].ratio(FULL), 3, _ARRAY)]
    most = {_HELD: 250, _LEVELS: 100, _ALL_LEVELS: 100, _BY_KEY: 10, _BY_ID: 10, _BY_USER: 10}
    for case, bound in most.items():
        median = found[case].median(PENSTOCK)
        goals.append(at_most("milliseconds, median", None if median is None else 1000 * median, bound, case))
    return goals


MODELS = Workload(
    name="models",
    title="from a statement until all documents of documents are right, and reading them",
    run=_run,
    goals=_goals,
)
