"""Price bars over trades, each level over the finer one: the example of the README, of the demo and of the benchmark.

The text of the views stands here once. Contenders that know no ``TUMBLE`` get the same in Spark's own words, so that
they are not slowed down by what ours would be translated to.
"""

from __future__ import annotations

TRADES = "symbol STRING, event_time TIMESTAMP, price DECIMAL(10,2), quantity INT"
"""The columns of the table."""

VIEWS = {
    "bars_1s": """\
SELECT symbol, TUMBLE_START(event_time, INTERVAL '1 second') AS bar_time,
       FIRST_VALUE(price) AS open, MAX(price) AS high, MIN(price) AS low, LAST_VALUE(price) AS close,
       SUM(quantity) AS volume
FROM trades
GROUP BY symbol, TUMBLE(event_time, INTERVAL '1 second')""",
    "bars_1m": """\
SELECT symbol, TUMBLE_START(bar_time, INTERVAL '1 minute') AS bar_time,
       FIRST_VALUE(open) AS open, MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close,
       SUM(volume) AS volume
FROM bars_1s
GROUP BY symbol, TUMBLE(bar_time, INTERVAL '1 minute')""",
    "bars_1h": """\
SELECT symbol, TUMBLE_START(bar_time, INTERVAL '1 hour') AS bar_time,
       FIRST_VALUE(open) AS open, MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close,
       SUM(volume) AS volume
FROM bars_1m
GROUP BY symbol, TUMBLE(bar_time, INTERVAL '1 hour')""",
}

UNITS = {"bars_1s": "SECOND", "bars_1m": "MINUTE", "bars_1h": "HOUR"}
BELOW = {"bars_1s": "trades", "bars_1m": "bars_1s", "bars_1h": "bars_1m"}


def statement(view: str) -> str:
    """What creates a view, as the README shows it."""
    return f"CREATE MATERIALIZED VIEW {view} AS\n{VIEWS[view]}"


def in_spark(view: str, more: str = "") -> str:
    """A view in Spark's own words; ``more`` are further columns.

    >>> in_spark("bars_1h").split(" AS bar_time, ")[1].split(", MAX")[0]
    'MIN_BY(open, bar_time) AS open'
    """
    at, open_, high, low, close, volume = (
        ("event_time", *("price",) * 4, "quantity")
        if view == "bars_1s"
        else ("bar_time", "open", "high", "low", "close", "volume")
    )
    bar = f"date_trunc('{UNITS[view]}', {at})"
    return (
        f"SELECT symbol, {bar} AS bar_time, MIN_BY({open_}, {at}) AS open, MAX({high}) AS high, MIN({low}) AS low, "
        f"MAX_BY({close}, {at}) AS close, SUM({volume}) AS volume{more} FROM {BELOW[view]} GROUP BY symbol, {bar}"
    )
