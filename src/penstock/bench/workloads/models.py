"""Read models: one row through four levels of documents, one company in thousands of them, one of a large array.

Refreshes are measured with ``REFRESH MANUAL``, so that the change of the tables is not in them; then what a user waits
for: from the statement until all documents are right, and reading one of them by its key.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench import blog
from penstock.bench.contenders import Recomputation
from penstock.bench.measure import PENSTOCK, SPARK, Cell, Goal, at_least, at_most
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

POSTS = 100_000
_POST, _COMPANY, _GET = "a post renamed", "a company renamed", "a document by its key"
_SEEN = ", statement to visible"
_STATEMENTS = {
    _POST: "UPDATE tb_post SET title = 'Renamed {n}' WHERE pk_post = {n}",
    _COMPANY: "UPDATE tb_company SET name = 'Renamed {n}' WHERE pk_company = {k}",
}
_READS = 50


def _run(bench: Bench) -> list[Cell]:
    with bench.stage() as stage:
        posts = bench.rows(POSTS)
        stage.create({name: (columns, blog.rows_of(posts)[name]) for name, columns in blog.TABLES.items()}, {})
        usual = _create_models(stage)
        cells = []
        for case, statement in _STATEMENTS.items():
            change = partial(_changed, stage, statement)
            cells += stage.measure({case: list(stage.views)}, change, [Recomputation(stage)], rows=posts, warm_up=2)
        for name, refresh in usual.items():
            stage.sql(f"ALTER MATERIALIZED VIEW {name} REFRESH {refresh}")
        cells += [_seen(stage, posts, case, statement) for case, statement in _STATEMENTS.items()]
        return [*cells, _read(stage, posts)]


def _create_models(stage: Stage) -> dict[str, str]:
    """Make the models, refreshed by hand for now; gives when each is refreshed otherwise."""
    for name, query in blog.MODELS.items():
        stage.bench.say(f"creating {name}")
        stage.database.sql(f"CREATE TABLE {name} AS {query}")
    told = {row[0]: row for row in stage.database.sql("SELECT name, query, refresh FROM penstock.views").collect()}  # type: ignore[union-attr]
    for name in reversed(blog.MODELS):  # what is read by an IMMEDIATE view is IMMEDIATE itself
        stage.sql(f"ALTER MATERIALIZED VIEW {name} REFRESH MANUAL")
    stage.views |= {name: told[name][1] for name in blog.MODELS}
    return {name: told[name][2] for name in blog.MODELS}


def _changed(stage: Stage, statement: str, number: int) -> int:
    return stage.sql(statement.format(n=number, k=number % blog.COMPANIES))


def _seen(stage: Stage, posts: int, case: str, statement: str) -> Cell:
    """From the statement until all levels are right; a refresh is part of it where they do not follow by themselves."""

    def follow() -> None:
        stage.round += 1
        _changed(stage, statement, stage.round)
        if any(view.stale for view in stage.database.status()):
            stage.database.refresh()

    return _timed(stage, case + _SEEN, posts, follow, stage.bench.repeat)


def _read(stage: Stage, posts: int) -> Cell:
    numbers = iter(range(1, 1_000_000, 37))
    return _timed(stage, _GET, posts, lambda: stage.database.get("tv_post", pk_post=next(numbers) % posts), _READS)


def _timed(stage: Stage, case: str, posts: int, work: Callable[[], object], times: int) -> Cell:
    seconds = []
    for turn in range(2 + times):
        stage.bench.say(f"{case}: run {turn + 1} of {2 + times}")
        started = time.perf_counter()
        work()
        if turn > 1:
            seconds.append(time.perf_counter() - started)
    return Cell(case=case, rows=posts, changed=1, views=len(stage.views), seconds={PENSTOCK: seconds})


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    found = {cell.case: cell for cell in cells}
    goals = [at_least("x the speed of recomputing", found[case].ratio(SPARK), 3, case) for case in _STATEMENTS]
    most = {_POST + _SEEN: 100.0, _COMPANY + _SEEN: 250.0, _GET: 10.0}
    for case, bound in most.items():
        milliseconds = 1000 * statistics.median(found[case].seconds[PENSTOCK])
        goals.append(at_most("milliseconds, median", milliseconds, bound, case))
    return goals


MODELS = Workload("models", "read models: documents of documents kept right, and read by key", _run, _goals)
