"""Rows that the driver's expressions are tried on: ordinary ones, of which a rule must compute all, and odd ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

SCHEMA = (
    "t TINYINT, s SMALLINT, i INT, j INT, k INT, l BIGINT, d DECIMAL(10,2), e DECIMAL(20,6), w DECIMAL(38,0), "
    "q DECIMAL(38,10), g FLOAT, f DOUBLE, h DOUBLE, x STRING, y STRING, b BOOLEAN, c BOOLEAN, day DATE, due DATE, "
    "at TIMESTAMP, till TIMESTAMP, n TIMESTAMP_NTZ, m TIMESTAMP_NTZ, v BINARY, p STRUCT<at: TIMESTAMP, value: INT>, "
    "a ARRAY<INT>, o ARRAY<STRING>, r MAP<STRING, INT>, whole STRING, fraction STRING, digits STRING, moment STRING, "
    "code STRING, json STRING"
)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOMENTS = (
    1_774_744_200_123_456, 1_774_746_000_000_000, 1_774_749_599_999_999, 1_792_888_200_000_000,
    1_792_890_000_000_000, 1_792_891_800_000_001, 1_773_036_000_000_000, 1_772_953_200_000_000,
    1_793_511_000_000_000, 1_793_514_600_000_000, 946_684_800_000_000, 1_709_164_800_000_000, 1_709_251_199_999_999,
    1_700_000_000_500_000,
)  # fmt: skip
"""Among them those around the hours that Berlin and New York leave out and have twice, in 2026."""
_ODD_MOMENTS = (
    0, -1, -62_135_596_800_000_000, -5_000_000_000_000_000, 253_402_300_799_999_999, -12_219_292_800_000_000,
    -2_208_988_800_000_000, 4_102_444_800_000_000, -86_400_000_001, 2_145_916_800_000_000,
)  # fmt: skip

_TEXTS = (
    "", "a", "A", "b", "ab", "abc", "aBc", "a b", " a b ", "Hello World", "it's", "a.b", "a,b,,c,", "a-b-c", "b1 c2",
    "x%y", "x_y", "xyz", "banana", "2026-03-29", "--", "7", "é", "日本", "  ", "user@example.com", "+49 30 1234",
)  # fmt: skip
_ODD_TEXTS = (
    "ß", "İstanbul", "ΣΑΣ", "ǆ", "ﬁ", "e\u0301", "😀", "a😀b", "👩\u200d👩", "a\nb", "\t a \t", "a\\b", "a\\%b", "\x00",
    "\u00a0a", "a\r\n", "O'Brien-smith", "ñandú", "ÀÉÎ", "x\u2028y", "\uffff", "Ω", "straße", "ŉ", "\n", "1_000",
    "ɤ", "K", "\u017f", "İ", "I", "\u0131",
)  # fmt: skip
_WHOLES = ("7", "-7", "0", "+12", "120", " 42 ")
_ODD_WHOLES = (
    "", "a", "1.5", "1.", ".5", "-", "+", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808",
    "1e3", "12345678901234567890", "0x1F", "1 2", "\t3\n", "\u0663", "--1", "00012", "-0", "128", "40000", "7L", "1_0",
    "-.9",
)  # fmt: skip
_FRACTIONS = ("1.5", "-2.25", "0.1", "100", "1234567.891", "1e3", "-1.5E-3", " 2.5 ", ".5", "5.")
_ODD_FRACTIONS = (
    "NaN", "Infinity", "-inf", "1d", "1.5f", "", "a", "1e400", "4.9e-324", "0x1p3", "-0.0", "1.e2", "e5", "1e",
    "nan", "99999999999999999999.123456789", "0.00000000000000000001", "+1.50", "1.5.2", "+", "inf", "+Infinity",
    "5e-1d", "1E+2", "12345678.995", "123456789012345678901234567890123456789",
)  # fmt: skip
_DIGITS = ("2024-02-29", "2026-03-29", "1999-12-31", " 2026-01-01 ")
_ODD_DIGITS = (
    "2023-02-29", "2024-1-5", "2024-13-01", "2024", "2024-02", "20240105", "2024/01/05", "", "a",
    "2024-01-05T10:00:00", "2024-01-05 10:00", "12024-01-01", "-2024-01-01", "0001-01-01", "9999-12-31",
    "2024-01-05x", "2024-01-32", "24-01-05", "+2024-01-01", "0000-01-01", "2024-01-05 ", "epoch", "today", "2024-",
    "2024-01-", "\u0661\u0669\u0669\u0669-01-01", "2024-00-10",
)  # fmt: skip
_MOMENT_TEXTS = (
    "2026-03-29 00:30:00", "2026-10-25 02:30:00.123456", "2024-02-29 23:59:59.5", "2026-03-29T02:30:00",
    "2024-02-29",
)  # fmt: skip
_ODD_MOMENT_TEXTS = (
    "2026-03-29 02:30:00Z", "2026-03-29 02:30:00+02:00", "2026-03-29 02:30", "2026-03-29 24:00:00",
    "2026-03-29 2:3:4", "", "a", "T10:00", "2026-03-29 10", "2026-03-29 10:00:00.1234567", "2026-03-29 10:00:00 UTC",
    "2026-03-29 10:60:00", "2026-03-29 10:00:00 Europe/Berlin", "2023-02-29 10:00:00", "now", "0001-01-01 00:00:00",
    "1582-10-10 00:00:00", "2026-03-29 10:00:00-0800", "2026-03-29 10:00:00.", "10:00", "2026-03-29  10:00:00",
    "2026-03-29 ", "1900-01-01 12:00:00", "2024-01-01T", "2024-01-01 10:00:00.000001+05:45",
    "2024-01-01 10:00:00 +1",
)  # fmt: skip
_CODES = ("20240229", "20260329", "19991231")
_ODD_CODES = ("20230229", "2024", "abc", "202402290", "", " 20240229", "99991231")
_JSONS = (
    '{"a": 1, "b": {"c": "é"}}', '{"a": "x", "b": null}', "{}", '{"a": true, "d": [1, 2]}', '{"a": -7}',
)  # fmt: skip
_ODD_JSONS = (
    "", "null", "[1]", "{", '{"a": 1.50}', '{"a": 1e3}', '{"a": {"c": 1}, "a": 2}', "{'a': 1}",
    '{"a": "\\u00e9\\n"}', '{"a": [1,  2]}', '{"a": 1} x', '"a"', '{"a": 12345678901234567890}',
    '{"b": {"c": {"d": 1}}}', '{"a": NaN}', '{"a": 01}', '{"a": "\\ud83d\\ude00"}', '{"a" : 0, "b": {"c": -0}}',
    ' {"a":false}', '{"a": -0.0}', '{"A": 1}',
)  # fmt: skip


class Values:
    """Values of columns by chance: ordinary ones, or odd ones among them."""

    def __init__(self, chance: random.Random, *, odd: bool):
        self.chance, self.odd = chance, odd

    def rows(self, count: int) -> list[dict[str, Any]]:
        return [self.row() for _ in range(count)]

    def row(self) -> dict[str, Any]:
        bits = {"t": 8, "s": 16, "i": 32, "j": 32, "l": 64}
        decimals = {"d": (10, 2), "e": (20, 6), "w": (38, 0), "q": (38, 10)}
        texts = {
            "x": (_TEXTS, _ODD_TEXTS), "y": (_TEXTS, _ODD_TEXTS), "whole": (_WHOLES, _ODD_WHOLES),
            "fraction": (_FRACTIONS, _ODD_FRACTIONS), "digits": (_DIGITS, _ODD_DIGITS),
            "moment": (_MOMENT_TEXTS, _ODD_MOMENT_TEXTS), "code": (_CODES, _ODD_CODES), "json": (_JSONS, _ODD_JSONS),
        }  # fmt: skip
        makers: dict[str, Callable[[], Any]] = {
            **{name: lambda b=b: self.whole(b) for name, b in bits.items()},
            "k": lambda: self.chance.randint(1, 12),
            **{name: lambda kind=kind: self.decimal(*kind) for name, kind in decimals.items()},
            "g": self.single, "f": self.number, "h": self.number,
            **{name: lambda pair=pair: self.either(*pair) for name, pair in texts.items()},
            "b": lambda: self.chance.random() < 0.5, "c": lambda: self.chance.random() < 0.5, "day": self.day,
            "due": self.day, "at": self.moment, "till": self.moment, "n": self.local, "m": self.local,
            "v": lambda: self.text().encode(),
            "p": lambda: {"at": self.maybe(self.moment), "value": self.maybe(lambda: self.whole(32))},
            "a": lambda: [self.maybe(lambda: self.chance.randint(-3, 3)) for _ in range(self.chance.randint(0, 4))],
            "o": lambda: [self.maybe(self.text) for _ in range(self.chance.randint(0, 3))],
            "r": lambda: list({key: self.maybe(lambda: self.chance.randint(0, 3)) for key in self.keys()}.items()),
        }  # fmt: skip
        return {name: self.maybe(make) for name, make in makers.items()}

    def maybe(self, value: Callable[[], Any]) -> Any:
        return None if self.chance.random() < 0.12 else value()

    def text(self) -> str:
        return str(self.either(_TEXTS, _ODD_TEXTS))

    def keys(self) -> list[str]:
        return self.chance.sample(["a", "b", "c", ""], self.chance.randint(0, 3))

    def either(self, ordinary: tuple[Any, ...], odd: tuple[Any, ...]) -> Any:
        return self.chance.choice([*ordinary, *odd, *odd] if self.odd else ordinary)

    def whole(self, bits: int) -> int:
        limit = 2 ** (bits - 1)
        ordinary = (
            0, 1, 2, 3, 7, 12, 20, 100, -1, -7, -20, self.chance.randint(-100, 100),
        )  # fmt: skip
        return int(self.either(ordinary, (limit - 1, -limit, limit - 2, self.chance.randint(-limit, limit - 1))))

    def decimal(self, precision: int, scale: int) -> Decimal:
        limit = 10**precision - 1
        small = self.chance.randint(-99_999, 99_999)
        ordinary = (
            0, 1, -1, 5, -5, 50, 15, 25, 35, -25, 12_345, small, int(math.fmod(small * 10**scale, limit)),
        )  # fmt: skip
        number = self.either(ordinary, (limit, -limit, limit // 2, -(limit // 3), self.chance.randint(-limit, limit)))
        return Decimal((0 if number >= 0 else 1, tuple(int(c) for c in str(abs(number))), -scale))

    def number(self) -> float:
        ordinary = (
            0.0, 1.5, -2.25, 3.0, 100.0, 0.1, 2.5, 1234.5678, -7.0, 12.34, 0.05, 1e6,
            self.chance.randint(0, 10**6) / 100,
        )  # fmt: skip
        odd = (
            -0.0, math.nan, math.inf, -math.inf, 1e300, 1e-300, 5e-324, 2.0**53 + 2, -1e19, 1e7, 1e-3, 1 / 3, 2 / 3,
            1e16, 0.1 + 0.2, 2.675, 1.005, 123456789.125, 9.5e-4, self.chance.random(),
            self.chance.uniform(-1e9, 1e9), 9.223372036854775e18, 2.0e-3, 2.0**-44, 1.0e23,
        )  # fmt: skip
        return float(self.either(ordinary, odd))

    def single(self) -> float:
        return float(
            self.either((0.0, 1.5, -2.25, 3.0, 100.0, 2.5), (-0.0, math.nan, math.inf, 16777216.0, 0.10000000149011612))
        )

    def day(self) -> date:
        ordinary = (
            date(2026, 3, 29), date(2024, 2, 29), date(2026, 10, 25), date(2023, 1, 31), date(2023, 12, 31),
            date(2000, 1, 1) + timedelta(days=self.chance.randint(0, 11_000)),
        )  # fmt: skip
        odd = (
            date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10), date(1582, 10, 4), date(1970, 1, 1),
            date(1969, 12, 31), date(1600, 2, 29), date(1900, 3, 1),
            date.fromordinal(self.chance.randint(1, 3_652_059)),
        )  # fmt: skip
        return self.either(ordinary, odd)  # type: ignore[no-any-return]

    def moment(self) -> datetime:
        chosen = self.chance.randint(10**15, 19 * 10**14)
        chance = (chosen, chosen, chosen // 10**6 * 10**6)
        return _EPOCH + timedelta(microseconds=self.either((*_MOMENTS, *chance), (*_ODD_MOMENTS, chosen)))

    def local(self) -> datetime:
        return self.moment().replace(tzinfo=None)
