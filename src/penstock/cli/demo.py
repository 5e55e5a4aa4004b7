"""``demo``: bars of 1 second, 1 minute and 1 hour over trades, kept fresh while trades arrive and are corrected.

Each batch is timed against the same three queries run from scratch, and what comes out is compared at the end.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.text import Text

from penstock.bench import bars
from penstock.cli import trades
from penstock.cli.candles import Bar, draw
from penstock.cli.demo_models import POSTS, ModelsDemo
from penstock.cli.demo_studio import PORT, serve_studio
from penstock.cli.output import out, print_table, say_hint
from penstock.cli.refresh import report_table
from penstock.cli.warehouse import Place, opened
from penstock.errors import InternalError, WarehouseError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.cli.progress import Progress
    from penstock.database import Database

Result = TypeVar("Result")

BATCH = 1_000
CANDLES = 40
COMPARED = """
After each batch two things are timed; both ran once before, to warm up.
  epoch          one db.refresh(): three views brought up to date and published
  recomputation  the same queries run by plain Spark, each overwriting a table"""


def demo(
    what: Annotated[str, typer.Argument(metavar="[bars|read-models|studio]", help="What to show.")] = "bars",
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=1_000, help="Trades to begin with.")] = 300_000,
    batches: Annotated[int, typer.Option("--batches", metavar="N", min=1, help="Batches of new trades.")] = 5,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="PATH", help="Make the warehouse here and keep it.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where the Studio is; 0 takes any that is free.")] = PORT,
) -> None:
    """Watch views over views being kept fresh.

    Bars of trades; documents made of documents (read-models); or a shop that is open, in the Studio, until Ctrl-C.
    """
    if what not in ("bars", "read-models", "studio"):
        raise WarehouseError(f"there is no demo {what!r}. Choose bars, read-models or studio.")
    if keep is not None and Place(keep).exists:
        raise WarehouseError(f"there is a warehouse at {keep!r} already. Choose another place for --keep.")
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-demo-", ignore_cleanup_errors=True))
        place = Place(keep or os.path.join(scratch, "warehouse"))
        if what == "studio":
            serve_studio(place.directory, port)
            return
        database, progress = stack.enter_context(opened(place, create=True, announce=keep is not None))
        if what == "read-models":
            ModelsDemo(database, progress).run(min(rows, POSTS))
        else:
            Demo(database, progress, os.path.join(scratch, "recomputed")).run(rows, batches)
    if keep is not None:
        shown = "tv_feed" if what == "read-models" else "bars_1m"
        out().print(f"\nLook around: penstock -w {keep} status, graph, history, explain {shown}, or sql.")
    say_hint("\nTo look at a live shop in the browser: make studio (penstock demo studio).")


@dataclass
class Demo:
    """One run: the warehouse, and a scratch directory for what is recomputed."""

    database: Database
    progress: Progress
    scratch: str

    def run(self, rows: int, batches: int) -> None:
        self._prepare(rows)
        self._warm_up(rows)
        _say(COMPARED, "dim")
        epochs, recomputations = [], []
        for number in range(1, batches + 1):
            epoch, recomputation = self._batch(number, batches, rows + number * BATCH)
            epochs.append(epoch)
            recomputations.append(recomputation)
        self._summary(epochs, recomputations)

    def _prepare(self, rows: int) -> None:
        seconds, _ = self._timed("starting Spark", lambda: self.database.spark)
        _say(f"Spark started in {seconds:.1f} s.")
        self.database.sql(trades.CREATE)
        seconds, _ = self._timed("generating trades", lambda: self.database.sql(trades.insert(0, rows)))
        minutes = rows / trades.PER_MINUTE
        _say(f"{rows:,} trades of {len(trades.SYMBOLS)} symbols in {minutes:,.0f} minutes, written in {seconds:.1f} s.")
        for name in bars.VIEWS:
            seconds, done = self._timed(f"creating {name}", partial(self.database.sql, bars.statement(name)))
            _say(f"{done} in {seconds:.1f} s")

    def _warm_up(self, first: int) -> None:
        self.database.sql(trades.insert(first, BATCH))
        self._timed("warming up: an epoch", self.database.refresh)
        self._timed("warming up: a recomputation", self._recompute)

    def _batch(self, number: int, batches: int, first: int) -> tuple[float, float]:
        """New trades, an epoch, a recomputation; gives the seconds of both."""
        self._timed("new trades arrive", lambda: self.database.sql(trades.insert(first, BATCH)))
        news = f"{BATCH:,} new trades"
        if number == (batches + 1) // 2:
            news += self._correct(first)
        _say(f"\nBatch {number} of {batches}: {news}", "bold")
        epoch, report = self._timed("refreshing", self.database.refresh)
        print_table(report_table(report.values()))
        recomputation, _ = self._timed("recomputing", self._recompute)
        _say(f"epoch {epoch:.2f} s, recomputation {recomputation:.2f} s: {_ratio(epoch, recomputation)}", "bold")
        _say(f"{trades.SYMBOLS[0]}, one-minute bars", "dim")
        out().print(self._timed("drawing", self._picture)[1])
        return epoch, recomputation

    def _correct(self, last: int) -> str:
        """Correct and cancel a few trades of minutes ago; says how many."""
        corrected, cancelled = (
            getattr(self._timed("old trades are corrected", partial(self.database.sql, s))[1], "rows", None)
            for s in trades.correction(last)
        )
        return f", {corrected} old ones corrected and {cancelled} cancelled, 15 minutes late"

    def _picture(self) -> Text:
        newest = self.database.sql(
            "SELECT date_format(bar_time, 'HH:mm') AS label, DOUBLE(open) AS open, DOUBLE(high) AS high, "
            f"DOUBLE(low) AS low, DOUBLE(close) AS close FROM bars_1m WHERE symbol = '{trades.SYMBOLS[0]}' "
            f"ORDER BY bar_time DESC LIMIT {CANDLES}"
        )
        return draw([Bar(**row.asDict()) for row in reversed(_frame(newest).collect())])

    def _recompute(self) -> None:
        """The cascade from scratch, each level read from the table of the level below."""
        spark = self.database.spark
        spark.read.format("delta").load(self._trades_path).createOrReplaceTempView("trades")
        for name in bars.VIEWS:
            spark.sql(bars.in_spark(name)).write.format("delta").mode("overwrite").save(self._recomputed(name))
            spark.read.format("delta").load(self._recomputed(name)).createOrReplaceTempView(name)

    @cached_property
    def _trades_path(self) -> str:
        tables = _frame(self.database.sql("SHOW TABLES")).collect()
        return next(str(row["location"]) for row in tables if row["name"] == "trades")

    def _recomputed(self, name: str) -> str:
        return os.path.join(self.scratch, name)

    def _summary(self, epochs: list[float], recomputations: list[float]) -> None:
        epoch, recomputation = statistics.median(epochs), statistics.median(recomputations)
        ratio = _times(recomputation / epoch)
        _say(f"\nMedians of {len(epochs)}: epoch {epoch:.2f} s, recomputation {recomputation:.2f} s: {ratio}.", "bold")
        counts = []
        for name in bars.VIEWS:
            _, rows = self._timed(f"checking {name}", partial(self._check, name))
            counts.append(f"{name} ({rows:,} rows)")
        _say(f"Checked: each view equals its recomputed query, row by row: {', '.join(counts)}.", "green")

    def _check(self, name: str) -> int:
        """Compare a view with the last recomputation; gives its number of rows."""
        view = self.database.table(name)
        fresh = self.database.spark.read.format("delta").load(self._recomputed(name))
        differing = view.exceptAll(fresh).count() + fresh.exceptAll(view).count()
        if differing:
            raise InternalError(f"view {name!r} differs from its query in {differing:,} rows. Please report this.")
        return view.count()

    def _timed(self, text: str, work: Callable[[], Result]) -> tuple[float, Result]:
        with self.progress.during(text):
            started = time.perf_counter()
            result = work()
            return time.perf_counter() - started, result


def _frame(result: object) -> DataFrame:
    from pyspark.sql import DataFrame

    assert isinstance(result, DataFrame)
    return result


def _ratio(epoch: float, recomputation: float) -> str:
    return _times(recomputation / epoch)


def _times(ratio: float) -> str:
    if 0.95 < ratio < 1.05:
        return "about as fast as recomputing"
    return f"{ratio:.1f} times faster" if ratio >= 1 else f"{1 / ratio:.1f} times SLOWER than recomputing"


def _say(text: str, style: str = "") -> None:
    out().print(Text(text, style=style))
