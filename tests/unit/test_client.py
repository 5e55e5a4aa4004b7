"""What the client says before it asks a server."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

import penstock


@pytest.mark.parametrize("value", [Decimal("1.50"), date(2026, 1, 2), b"x"])
def test_a_value_that_cannot_be_sent_is_told(value: object) -> None:
    client = penstock.Client("http://127.0.0.1:1", database="shop")
    with pytest.raises(penstock.NotSupportedError, match="CAST"):
        client.sql("SELECT ?", [value])
