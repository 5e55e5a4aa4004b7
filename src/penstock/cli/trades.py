"""The trades of the demo, generated: the same ones at every run. The views over them are in ``bench/bars.py``."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from penstock.bench import bars

CREATE = f"CREATE TABLE trades ({bars.TRADES})"
SYMBOLS = ("ACME", "GLOBEX", "INITECH", "UMBRELLA")
PER_MINUTE = 1_000
START = datetime(2026, 1, 5, 9, 30, tzinfo=timezone.utc)

_STEP_US = 60_000_000 // PER_MINUTE


def insert(first: int, rows: int) -> str:
    """INSERT the trades with these numbers. Prices wander: slow waves, quick waves and a little noise."""
    names = ", ".join(f"'{name}'" for name in SYMBOLS)
    start = int(START.timestamp()) * 1_000_000
    return f"""
        INSERT INTO trades
        SELECT
            element_at(array({names}), k + 1),
            timestamp_micros({start} + id * {_STEP_US}),
            CAST((100 + 40 * k) * (1 + 0.05 * sin(s / 9000 + k) + 0.02 * sin(s / 1300 + 2 * k)
                + 0.006 * sin(s / 190 + 3 * k) + 0.003 * sin(s / 31 + 5 * k)
                + 0.0000015 * pmod(hash(id, 'price'), 1000)) AS DECIMAL(10,2)),
            1 + pmod(hash(id, 'quantity'), 100)
        FROM (SELECT id, pmod(hash(id, 'symbol'), {len(SYMBOLS)}) AS k, id * {_STEP_US / 1e6}D AS s
              FROM range({first}, {first + rows}))
    """


def correction(last: int) -> list[str]:
    """Late news about trades of some minutes before trade number ``last``: prices corrected, trades cancelled."""
    at = START + timedelta(microseconds=last * _STEP_US) - timedelta(minutes=15)

    def during(seconds: int) -> str:
        begin, end = (moment.strftime("%Y-%m-%d %H:%M:%S") for moment in (at, at + timedelta(seconds=seconds)))
        return f"symbol = '{SYMBOLS[0]}' AND event_time >= TIMESTAMP '{begin}' AND event_time < TIMESTAMP '{end}'"

    return [
        f"UPDATE trades SET price = price + 2 WHERE {during(2)}",
        f"DELETE FROM trades WHERE price < 200 AND quantity > 90 AND {during(20)}",
    ]
