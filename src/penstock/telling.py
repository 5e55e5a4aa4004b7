"""Who hears of what happens, beside the catalog: the log, callbacks of the user, and the webhook of the alerts."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

from penstock.catalog import World
from penstock.catalog.alerts import Alert
from penstock.engine.callbacks import Callbacks
from penstock.engine.events import Began, Ended
from penstock.engine.settings import value_of
from penstock.observe.webhook import Delivery, Webhook
from penstock.vocabulary import Status

_log = logging.getLogger("penstock.alerts")
_refreshes = logging.getLogger("penstock.refresh")

URL, SECRET = "PENSTOCK_ALERT_WEBHOOK", "PENSTOCK_ALERT_SECRET"
"""In the environment: they are not kept in the catalog. The URL there goes before the setting."""


class Telling:
    """Of alerts."""

    def __init__(self, warehouse: str, world: Callable[[], World]):
        self._warehouse, self._world = warehouse, world
        self.callbacks: Callbacks[Alert] = Callbacks()

    def __call__(self, alert: Alert) -> None:
        world = self._world()
        document = as_document(alert, world.display_name(alert.view), self._warehouse)
        _log.log(
            logging.WARNING if alert.cleared_at is None else logging.INFO,
            "%s %s: view %r: %s", alert.kind, document["event"], document["view"], alert.message,
            extra={"penstock": document},
        )  # fmt: skip
        self.callbacks(alert)
        url = os.environ.get(URL) or value_of(world.settings, "alert_webhook")
        if url:
            self._webhook.send(Delivery(url, os.environ.get(SECRET), document))

    @cached_property
    def _webhook(self) -> Webhook:
        return Webhook()

    @property
    def idle(self) -> bool:
        """Whether nothing is left to be sent."""
        return "_webhook" not in self.__dict__ or self._webhook.idle

    def close(self) -> None:
        if "_webhook" in self.__dict__:
            self._webhook.close()


def as_document(alert: Alert, view: str, warehouse: str) -> dict[str, Any]:
    """An alert for other programs."""
    return {
        "event": "raised" if alert.cleared_at is None else "cleared",
        "kind": str(alert.kind),
        "view": view,
        "message": alert.message,
        "suggestion": alert.suggestion,
        "epoch": alert.epoch,
        "raised_at": alert.raised_at.isoformat(),
        "cleared_at": None if alert.cleared_at is None else alert.cleared_at.isoformat(),
        "warehouse": warehouse,
    }


def log_refresh(event: Began | Ended) -> None:
    """A line for each refresh that did something, or failed."""
    if not isinstance(event, Ended) or event.report is None:
        return
    report = event.report
    document: dict[str, Any] = {
        "event": "refreshed", "view": report.name, "status": str(report.status), "action": str(report.action),
        "strategy": report.strategy and str(report.strategy), "reason": str(report.reason), "epoch": event.epoch,
        "run": event.run, "rows_inserted": report.rows_inserted, "rows_deleted": report.rows_deleted,
        "seconds": round(report.seconds, 3), "jobs": report.jobs,
        **({} if report.told is None else {"error": report.told}),
    }  # fmt: skip
    failed = report.status == Status.FAILED
    tail = f": {report.told}" if report.told else ""
    _refreshes.log(
        logging.WARNING if failed else logging.INFO,
        "view %r: %s (%s), +%s -%s rows, %.2f s%s", report.name, report.status if failed else report.action,
        report.reason, report.rows_inserted, report.rows_deleted, report.seconds, tail, extra={"penstock": document},
    )  # fmt: skip
