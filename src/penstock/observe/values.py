"""Values in JSON's own types, as the command and the server write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def jsonable(value: Any) -> Any:
    """The value in JSON's own types: numbers stay numbers; decimals, dates, times and what JSON lacks become strings.

    >>> jsonable({"at": date(2026, 1, 2), "price": Decimal("1.50"), "ratio": math.inf, "raw": b"\\x01"})
    {'at': '2026-01-02', 'price': '1.50', 'ratio': 'Infinity', 'raw': '01'}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _float_name(value)
        case Decimal():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case bytes() | bytearray():
            return value.hex()
        case dict():
            return {str(key): jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [jsonable(item) for item in value]
    return str(value)


def _float_name(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def distinct(names: Sequence[str]) -> list[str]:
    """The names, each once.

    >>> distinct(["id", "id", "id_2"])
    ['id', 'id_3', 'id_2']
    """
    taken, found = set(names), list[str]()
    for name in names:
        unique, number = name, 2
        while unique in found or (unique != name and unique in taken):
            unique, number = f"{name}_{number}", number + 1
        found.append(unique)
    return found
