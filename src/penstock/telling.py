"""Where alerts go beside the catalog: callbacks of the user, a line in the log, and the webhook."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

from penstock.catalog import World
from penstock.catalog.alerts import Alert
from penstock.engine.callbacks import Callbacks
from penstock.engine.settings import value_of
from penstock.observe.webhook import Delivery, Webhook

_log = logging.getLogger("penstock.alerts")

URL, SECRET = "PENSTOCK_ALERT_WEBHOOK", "PENSTOCK_ALERT_SECRET"
"""In the environment: they are not kept in the catalog. The URL there goes before the setting."""


class Telling:
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
