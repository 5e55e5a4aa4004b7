"""The stage of a workload: a warehouse of its own, its tables, and measuring the contenders on them in turns."""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.contenders import Contender, GaveUp, Penstock, Recomputation
from penstock.bench.measure import TITLES, Cell, Driven, Recorded, rotated
from penstock.bench.memory import Peaks
from penstock.bench.session import Sparks
from penstock.bench.tables import table_paths
from penstock.errors import InternalError
from penstock.vocabulary import Action, Reason, Strategy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.bench.store_server import FarStore
    from penstock.database import Database
    from penstock.engine.report import ViewReport


@dataclass(kw_only=True)
class Bench:
    """One run of the command: how large, how often, against whom."""

    sparks: Sparks
    scale: float = 1.0
    repeat: int = 3
    against: frozenset[str] = frozenset(TITLES)
    say: Callable[[str], None] = lambda text: None
    left_out: dict[str, str] = field(default_factory=dict)
    """Contenders that did not run, and why."""
    setup: float = 0.0

    def rows(self, at_scale_one: int) -> int:
        """So many rows, scaled; never so few that nothing is left to change."""
        return max(int(at_scale_one * self.scale), 1_000)

    @contextmanager
    def stage(self, store: FarStore | None = None) -> Iterator[Stage]:
        """A fresh warehouse, removed afterwards; in a store, if there is one."""
        from penstock.database import connect

        scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
        place, catalog, options = str(scratch), None, None
        if store is not None:
            place, catalog, options = (
                f"s3://bucket/{scratch.name}",
                f"sqlite:///{scratch}/catalog.sqlite",
                store.options,
            )
        try:
            with connect(f"{place}/warehouse", self.sparks.session, catalog, storage_options=options) as database:
                stage = Stage(bench=self, database=database, scratch=scratch, place=place, store=store)
                try:
                    yield stage
                finally:
                    for contender in stage.prepared:
                        contender.close()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@dataclass(kw_only=True)
class Stage:
    bench: Bench
    database: Database
    scratch: Path
    place: str
    """Where contenders have tables of their own: the same directory, or a store."""
    store: FarStore | None = None
    views: dict[str, str] = field(default_factory=dict)
    """The queries by view, inputs before readers."""
    spelled: dict[str, str] = field(default_factory=dict)
    """The queries of views that use words of ours, in Spark's own: what the other contenders run."""
    round: int = 0
    """Counts the changes, so that no two of them hit the same rows."""
    prepared: list[Contender] = field(default_factory=list)
    """Contenders to be closed with the stage."""
    _paths: dict[str, str] = field(default_factory=dict)
    _recomputation: Recomputation | None = None

    def create(
        self,
        tables: Mapping[str, tuple[str, str]],
        views: Mapping[str, str],
        spelled: Mapping[str, str] | None = None,
    ) -> None:
        """Make tables, each by its columns and the query that fills it, and the views over them."""
        self.spelled.update(spelled or {})
        started = time.perf_counter()
        for name, (columns, rows) in tables.items():
            self.bench.say(f"loading {name}")
            self.database.sql(f"CREATE TABLE {name} ({columns})")
            if rows:
                self.database.sql(f"INSERT INTO {name} {rows}")
        self.create_views(views)
        self.bench.setup = time.perf_counter() - started

    def create_views(self, views: Mapping[str, str]) -> None:
        for name, query in views.items():
            self.bench.say(f"creating {name}")
            self.database.create_view(name, query)
            self.views[name] = query

    def query(self, view: str) -> str:
        """A view's query as plain Spark understands it."""
        from penstock.sql.query import spark_text

        return spark_text(self.spelled.get(view, self.views[view]))

    def paths(self) -> dict[str, str]:
        """Where the tables are; asked once, because it takes time that a contender's must not contain."""
        if not self._paths:
            self._paths = table_paths(self.database)
        return self._paths

    def count(self, table: str) -> int:
        return self.database.table(table).count()

    def sql(self, statement: str) -> int:
        """Change a table; how many rows that touched, as far as Delta says: not for INSERT."""
        return getattr(self.database.sql(statement), "rows", None) or 0

    def measure(
        self,
        cases: Mapping[str, Sequence[str]],
        change: Callable[[int], int],
        contenders: Sequence[Contender],
        *,
        rows: int,
        warm_up: int = 1,
        kinds: Mapping[str, str] | None = None,
        check: bool = True,
        repeat: int | None = None,
        own: Penstock | None = None,
    ) -> list[Cell]:
        """Change the tables, then let every contender bring the views of every case up to date; several times.

        ``change`` is given the number of the round and says how many rows it touched. It is never timed, nor is what a
        contender needs to follow the change. Afterwards every view must equal its recomputation, unless a later
        ``measure`` of the same views will ``check`` it. ``repeat``: other than the command said. ``own``: what Penstock
        does, if it is no refresh.
        """
        runners = [own or Penstock(self), *self._chosen(contenders)]
        repeat = repeat or self.bench.repeat
        sheets = {case: _Sheet() for case in cases}
        peaks = Peaks()
        for turn in range(warm_up + repeat):
            self.round += 1
            self.bench.say("changing the tables")
            changed = change(self.round)
            for runner in runners:
                runner.follow()
            for case, views in cases.items():
                for runner in rotated(runners, turn):
                    if runner.refuses(views) is None:
                        self.bench.say(f"{case}: {TITLES[runner.name]}, run {turn + 1} of {warm_up + repeat}")
                        try:
                            sheets[case].time(runner, views, peaks, keep=turn >= warm_up)
                        except GaveUp as problem:
                            sheets[case].seconds.pop(runner.name, None)
                            runner.remark = f"failed at {case!r} and left out from then on: {problem}"
                sheets[case].changed = changed
                for runner in runners:
                    runner.noted(case, views, sheets[case].seconds)
        for views in cases.values() if check else ():
            self._check(views, runners)
        return [
            Cell(
                case=case, rows=rows, changed=sheet.changed, views=len(cases[case]), seconds=sheet.seconds,
                actions=sheet.recorded(), jobs=sheet.jobs, peaks=sheet.peaks, kind=(kinds or {}).get(case, ""),
                notes=[f"{TITLES[r.name]}: {r.remark}" for r in runners if r.remark], driven=sheet.driven(),
                requests=sheet.requests,
            )
            for case, sheet in sheets.items()
        ]  # fmt: skip

    def _chosen(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Those that were asked for and can run, made ready."""
        chosen = []
        for contender in contenders:
            if contender.name not in self.bench.against:
                continue
            problem = contender.missing()
            if problem is None and not contender.ready:
                self.bench.say(f"preparing {TITLES[contender.name]}")
                contender.prepare()
                contender.ready = True
                self.prepared.append(contender)
            if problem is None:
                chosen.append(contender)
            else:
                self.bench.left_out[contender.name] = problem
        return chosen

    def check(self, views: Sequence[str]) -> None:
        """Compare views with their recomputation."""
        self._check(views, [])

    def _check(self, views: Sequence[str], runners: Sequence[Contender]) -> None:
        """Compare the views with their recomputation, row by row."""
        recomputed = next((r for r in runners if isinstance(r, Recomputation)), None) or self._fallback()
        if recomputed.name not in {runner.name for runner in runners}:
            recomputed.refresh(views)
        for view in views:
            self.bench.say(f"checking {view}")
            expected = recomputed.rows(view)
            kept = self.database.table(view).select(*expected.columns)  # a read model says when its rows changed, too
            if differing := differing_rows(kept, expected):
                raise InternalError(
                    f"view {view!r} differs from its query in {differing:,} rows after round {self.round}. "
                    "Its times mean nothing. Please report this."
                )
            for runner in runners:
                if runner is not recomputed and runner.refuses(views) is None:
                    runner.check(view, expected)

    def _fallback(self) -> Recomputation:
        """A recomputation that only checks, when it is no contender."""
        if self._recomputation is None:
            self._recomputation = Recomputation(self)
        return self._recomputation


@dataclass(kw_only=True)
class _Sheet:
    """What is noted down of one case."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    actions: Counter[tuple[str, Action, Strategy | None, Reason]] = field(default_factory=Counter)
    peaks: dict[str, dict[str, int]] = field(default_factory=dict)
    jobs: int | None = None
    changed: int = 0
    maintained: list[ViewReport] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)

    def time(self, runner: Contender, views: Sequence[str], peaks: Peaks, *, keep: bool) -> None:
        gc.collect()
        peaks.reset()
        store = runner.stage.store
        asked = 0 if store is None else store.requests()
        started = time.perf_counter()
        runner.refresh(views)
        seconds = time.perf_counter() - started
        held = peaks.read()
        if not keep:
            return
        if store is not None:
            self.requests[runner.name] = store.requests() - asked
        self.seconds.setdefault(runner.name, []).append(seconds)
        most = self.peaks.setdefault(runner.name, {})
        for process, mark in held.items():
            most[process] = max(most.get(process, 0), mark)
        if isinstance(runner, Penstock):
            self.jobs = runner.jobs()
            self.actions.update((v.name, v.action, v.strategy, v.reason) for v in runner.report.values())
            self.maintained += [v for v in runner.report.values() if v.action == Action.INCREMENTAL]

    def recorded(self) -> list[Recorded]:
        return [
            Recorded(view=view, action=action, strategy=strategy, reason=reason, times=times)
            for (view, action, strategy, reason), times in sorted(self.actions.items(), key=repr)
        ]

    def driven(self) -> list[Driven]:
        views: dict[str, list[ViewReport]] = {}
        for report in self.maintained:
            views.setdefault(report.name, []).append(report)
        return [
            Driven(
                view, len(own), sum(not report.jobs for report in own),
                sorted({note for report in own for note in report.by_spark}),
            )
            for view, own in sorted(views.items())
        ]  # fmt: skip


def differing_rows(one: DataFrame, other: DataFrame) -> int:
    """How many rows one has and the other has not, as multisets, both ways."""
    other = other.select(*[other[column].cast(kind) for column, kind in one.dtypes])
    return one.exceptAll(other).count() + other.exceptAll(one).count()


def same_rows(one: DataFrame, other: DataFrame) -> bool:
    """Whether both have the same rows as multisets, told by how many there are and by sums of two hashes of each.

    For a hundred million rows, which cannot be compared with each other in the time that reading them takes.
    """
    other = other.select(*[other[column].cast(kind) for column, kind in one.dtypes])
    return _digest(one) == _digest(other)


def _digest(frame: DataFrame) -> tuple[object, ...]:
    columns = ", ".join(f"`{column}`" for column in frame.columns)
    hashes = (f"SUM(CAST({name}({columns}) AS DECIMAL(38, 0)))" for name in ("xxhash64", "hash"))
    return tuple(frame.selectExpr("COUNT(*)", *hashes).first() or ())
