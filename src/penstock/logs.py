"""Log records of Penstock's as JSON lines. They tell of views, tables and what was done, never of rows or secrets.

Every record has a sentence; most have a document beside it, as ``record.penstock``. Nothing is written unless somebody
asks: a program by Python's own ``logging``, the command by ``PENSTOCK_LOG``.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

LEVEL = "PENSTOCK_LOG"
"""In the environment: ``debug``, ``info``, ``warning`` or ``error``."""


_LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR,
}  # fmt: skip


class JsonFormatter(logging.Formatter):
    """One document a line: the moment, the level, the logger, the sentence, and what the record tells beside it."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {
            "at": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage(),
            **getattr(record, "penstock", {}),
        }  # fmt: skip
        if record.exc_info and record.exc_info[0] is not None:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


@contextmanager
def written(level: str, *, as_json: bool) -> Iterator[None]:
    """Write what is logged meanwhile to standard error, from a level on; a level that is none is a warning."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    logger = logging.getLogger("penstock")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(_LEVELS.get(level.lower(), logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
