"""OpenLineage: events about refreshes, for catalogs that show where data comes from.

Whoever has the package told where to send them, by its own environment variables or its own file, gets them; nothing
else in Penstock knows of it. The room hears what the engine tells of refreshes, and gives nothing back.
"""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.observe.sending import Sender

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from penstock.engine.events import Began, Ended

_log = logging.getLogger("penstock.lineage")

_WHERE = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")
_FILES = (Path("openlineage.yml"), Path("~/.openlineage/openlineage.yml"))


def wanted() -> bool:
    """Whether somebody has said where events go, and the package is there to send them."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    told = any(name.startswith(_WHERE) for name in os.environ) or any(f.expanduser().is_file() for f in _FILES)
    if told and find_spec("openlineage") is None:
        _log.warning("OpenLineage events are not sent: pip install 'penstock-spark[lineage]' brings what it takes")
        return False
    return told


class Lineage:
    """Hears of refreshes, and sends an event for each beginning and each end. The client is made by the first."""

    def __init__(self, warehouse: str):
        self._warehouse = warehouse
        self._client: OpenLineageClient | None = None
        self._sender: Sender[Began | Ended] = Sender("lineage", self._deliver)

    def __call__(self, event: Began | Ended) -> None:
        self._sender.send(event)

    @property
    def idle(self) -> bool:
        """Whether every event has been sent."""
        return self._sender.idle

    def close(self) -> None:
        self._sender.close()

    def _deliver(self, event: Began | Ended) -> None:
        from openlineage.client import OpenLineageClient

        from penstock.lineage.events import event_of

        if self._client is None:
            self._client = OpenLineageClient()
        self._client.emit(event_of(event, self._warehouse))
