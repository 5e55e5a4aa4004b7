"""What Prometheus scrapes. Names of databases, views, actions and reasons are labels; ids and texts of errors are not.

What has a state is asked of the warehouse at each scrape; what is counted is counted as the history grows, since the
server began, whichever process made the refresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.sql.names import key_of
from penstock.vocabulary import Status

if TYPE_CHECKING:
    from penstock.catalog import HistoryRecord
    from penstock.observe.status import ViewStatus

disable_created_metrics()  # as many series again, which say when counting began
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class HttpMetrics:
    def __init__(self, registry: CollectorRegistry):

        self._requests = Counter(
            "penstock_http_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "penstock_http_seconds",
            "Seconds until the end of an answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._open = Gauge("penstock_http_open", "Requests that are being answered.", registry=registry)

    def begun(self) -> None:
        self._open.inc()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in ("GET", "POST", "PATCH", "DELETE", "OPTIONS", "HEAD", "PUT") else "other"
        self._open.dec()
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)


class RefreshMetrics:
    """Of refreshes that came to an end."""

    def __init__(self, registry: CollectorRegistry):
        view = ["database", "view"]
        self._refreshes = Counter(
            "penstock_refreshes", "Refreshes of a view.", [*view, "action", "reason", "status"], registry=registry
        )
        self._rows = Counter("penstock_rows", "Rows that refreshes moved.", [*view, "direction"], registry=registry)
        self._phases = Counter("penstock_refresh_seconds", "Seconds of refreshes.", [*view, "phase"], registry=registry)
        self._errors = Counter("penstock_refresh_errors", "Refreshes that failed.", view, registry=registry)
        self._jobs = Counter("penstock_spark_jobs", "Spark jobs of refreshes.", view, registry=registry)
        self._bytes = Counter(
            "penstock_bytes", "Bytes of files that refreshes moved.", [*view, "direction"], registry=registry
        )

    def count(self, database: str, record: HistoryRecord) -> None:
        view = (database, record.view)
        self._refreshes.labels(*view, str(record.action), str(record.reason), str(record.status)).inc()
        self._rows.labels(*view, "inserted").inc(record.rows_inserted)
        self._rows.labels(*view, "deleted").inc(record.rows_deleted)
        if record.status == Status.FAILED:
            self._errors.labels(*view).inc()
        known = record.details or {}
        for phase, seconds in known.get("phases", {}).items():
            self._phases.labels(*view, phase).inc(max(seconds, 0.0))
        self._jobs.labels(*view).inc(known.get("jobs") or 0)
        self._bytes.labels(*view, "read").inc(known.get("bytes_read") or 0)
        self._bytes.labels(*view, "written").inc(known.get("bytes_written") or 0)


class Warehouse:
    """What is asked of a warehouse at a scrape."""

    def __init__(
        self, name: str, status: Callable[[], list[ViewStatus]], epoch: Callable[[], int], leases: Callable[[], int]
    ):
        self.name, self.status, self.epoch, self.leases = name, status, epoch, leases


class StateCollector(Collector):
    def __init__(self, warehouses: Callable[[], Iterable[Warehouse]], work: Callable[[], dict[str, int]]):
        self._warehouses, self._work = warehouses, work

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        work = GaugeMetricFamily("penstock_work", "Statements and jobs of the server.", labels=["state"])
        for state, count in self._work().items():
            work.add_metric([state], count)
        yield work
        epoch = GaugeMetricFamily("penstock_epoch", "The newest published epoch.", labels=["database"])
        leases = GaugeMetricFamily("penstock_leases", "Nodes that somebody works on.", labels=["database"])
        of_views = {
            name: GaugeMetricFamily(f"penstock_view_{name}", about, labels=["database", "view"])
            for name, (about, _) in _OF_VIEWS.items()
        }
        states = GaugeMetricFamily(
            "penstock_view_state", "1 for the state of a view.", labels=["database", "view", "state"]
        )
        for warehouse in self._warehouses():
            epoch.add_metric([warehouse.name], warehouse.epoch())
            leases.add_metric([warehouse.name], warehouse.leases())
            for view in warehouse.status():
                place = [warehouse.name, key_of(view.name)]
                states.add_metric([*place, str(view.state)], 1)
                for name, (_, value) in _OF_VIEWS.items():
                    found = value(view)
                    if found is not None:
                        of_views[name].add_metric(place, found)
        yield from (epoch, leases, states, *of_views.values())


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _moment(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


_OF_VIEWS: dict[str, tuple[str, Callable[[ViewStatus], float | None]]] = {
    "lag_seconds": ("How old a view is.", lambda view: _seconds(view.lag)),
    "target_lag_seconds": ("How old it may get.", lambda view: _seconds(view.target_lag)),
    "data_time_seconds": ("The moment up to which it has seen its sources.", lambda view: _moment(view.data_time)),
    "commits_behind": ("Commits to what it reads that it has not seen.", lambda view: _behind(view)),
    "errors_in_a_row": ("Refreshes that failed in a row.", lambda view: view.errors),
    "being_refreshed": ("1 while somebody refreshes it.", lambda view: int(view.building)),
}


def _behind(view: ViewStatus) -> float:
    return float(sum(count or 1 for count in view.behind.values()))
