"""Alerts to a URL: signed, tried again, and never in anybody's way.

They are sent by a thread of their own, in the order in which they were raised. What cannot be delivered after some
tries is dropped and logged; it stays in the catalog.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.observe.sending import Sender

_log = logging.getLogger("penstock.alerts")

SIGNATURE, TIMESTAMP, DELIVERY = "X-Penstock-Signature", "X-Penstock-Timestamp", "X-Penstock-Delivery"
_WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds between the tries of one delivery."""
_TIMEOUT = 10.0


@dataclass(frozen=True)
class Delivery:
    url: str
    secret: str | None
    document: Mapping[str, Any]


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What a receiver compares with, by ``hmac.compare_digest``. The time is in it: nobody can send it again later.

    >>> signature("s3cret", "1700000000", b"{}")[:20]
    'sha256=97926816e98fb'
    """
    signed = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"sha256={signed.hexdigest()}"


class Webhook:
    """Sends documents in the background."""

    def __init__(self, sleep: Callable[[float], object] | None = None):
        self._sender = Sender("alerts", self._deliver)
        self._sleep = sleep or self._sender.closing.wait
        self.send, self.close = self._sender.send, self._sender.close

    @property
    def idle(self) -> bool:
        return self._sender.idle

    def _deliver(self, delivery: Delivery) -> None:
        body, number = json.dumps(delivery.document).encode(), uuid.uuid4().hex
        for wait in (*_WAITS, None):
            problem = _post(delivery, body, number)
            if problem is None:
                return
            if wait is None or self._sender.closing.is_set():
                break
            self._sleep(wait)
        _log.warning("an alert could not be sent: %s", problem)


def _post(delivery: Delivery, body: bytes, number: str) -> str | None:
    """What went wrong; None if nothing did. The URL is not told: it may hold a secret."""
    timestamp = str(int(time.time()))
    headers = {"Content-Type": "application/json", TIMESTAMP: timestamp, DELIVERY: number}
    if delivery.secret:
        headers[SIGNATURE] = signature(delivery.secret, timestamp, body)
    try:
        with urllib.request.urlopen(
            urllib.request.Request(delivery.url, body, headers, method="POST"), timeout=_TIMEOUT
        ) as answer:
            answer.read()
        return None
    except urllib.error.HTTPError as problem:
        return f"the receiver answered {problem.code}"
    except (OSError, ValueError) as problem:
        return f"{type(problem).__name__}: {getattr(problem, 'reason', '')}"
