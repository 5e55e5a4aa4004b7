"""Alerts over HTTP, to a real receiver: signed, tried again, in order, and in nobody's way."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.observe.webhook import SIGNATURE, Delivery, Webhook
from receivers import Receiver

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


def test_a_delivery_is_signed(receiver: Receiver) -> None:
    hook = Webhook()
    hook.send(Delivery(receiver.url, "s3cret", {"kind": "lag_exceeded"}))
    hook.send(Delivery(receiver.url, None, {"kind": "unsigned"}))
    hook.close()
    (headers, body), (unsigned, _) = receiver.heard
    assert json.loads(body) == {"kind": "lag_exceeded"}
    receives: dict[str, Any] = {}
    exec(re.search(r"```python\n(import hashlib, hmac.*?)```", PAGE.read_text(), re.DOTALL)[1], receives)  # type: ignore[index]
    assert receives["is_ours"]("s3cret", headers, body), "as the page tells receivers to check it"
    assert not receives["is_ours"]("s3cret", headers, body + b" ")
    assert not receives["is_ours"]("another", headers, body)
    assert SIGNATURE not in unsigned
    assert b"s3cret" not in body


def test_a_receiver_that_refuses_is_asked_again(receiver: Receiver) -> None:
    receiver.refusals = 3
    waits: list[float] = []
    hook = Webhook(waits.append)
    for number in range(2):
        hook.send(Delivery(receiver.url, None, {"number": number}))
    hook.close()
    assert [json.loads(body)["number"] for _, body in receiver.heard] == [0, 1], "in order"
    assert waits == [1.0, 2.0, 4.0]
    assert len(set(receiver.tried)) == 2, "a delivery keeps its number, so that a receiver can tell it came before"


def test_what_cannot_be_delivered_is_logged_without_the_url(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.refusals = 1000
    hook = Webhook(lambda wait: None)
    hook.send(Delivery(receiver.url + "?token=s3cret", None, {}))
    hook.close()
    assert (len(receiver.tried), receiver.heard) == (6, [])
    assert "the receiver answered 503" in caplog.text
    assert "s3cret" not in caplog.text


def test_nobody_waits_for_a_slow_receiver(receiver: Receiver) -> None:
    receiver.slow = 0.5
    hook = Webhook()
    begun = time.perf_counter()
    for _ in range(2000):
        hook.send(Delivery(receiver.url, None, {}))
    assert time.perf_counter() - begun < 0.5, "the receiver takes that long for one"
    hook.close(patience=0.1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/nobody", "http://nowhere.invalid/", "ftp://x", "http://"])
def test_a_wrong_address_is_only_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    hook = Webhook(lambda wait: None)
    hook.send(Delivery(url, None, {}))
    hook.close()
    assert "an alert could not be sent" in caplog.text
