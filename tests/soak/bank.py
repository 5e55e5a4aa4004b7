"""The bank that the soak test keeps: its tables, its views, and the sums that nothing may change.

Money only moves, so every view of balances adds up to what there was at the beginning, and every view of entries, which
come in pairs, to nothing. Whoever reads one epoch checks that, whatever is being written meanwhile.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import penstock
from penstock.catalog import World
from penstock.engine.relations import visible_columns
from penstock.engine.snapshots import Reader
from penstock.storage.delta_log import Snapshot
from penstock.storage.pinned import Pinned


@dataclass(frozen=True)
class Bank:
    """Where it is: paths or URLs; the catalog's, if it is not in the warehouse."""

    warehouse: str
    events: str
    catalog: str | None = None

    def opened(self) -> penstock.Database:
        return penstock.connect(self.warehouse, catalog=self.catalog)


ACCOUNTS, EACH, BRANCHES, REGIONS = 120, 1_000, 5, 4
TOTAL = ACCOUNTS * EACH

Rows = Counter[tuple[Any, ...]]

TABLES = {
    "accounts": "id INT, branch INT, balance BIGINT",
    "owners": "id INT, region INT",
    "entries": "transfer BIGINT, account INT, amount BIGINT",
}
"""All of them are written through Penstock; ``events`` is written by delta-rs."""
EVENTS = pa.schema([("transfer", pa.int64()), ("kind", pa.int32()), ("amount", pa.int64())])

VIEWS = {
    "totals": (
        "SELECT branch, SUM(balance) AS total, COUNT(*) AS n FROM accounts GROUP BY branch",
        "TRIGGER ON UPDATE",
    ),
    "rich": ("SELECT id, branch, balance FROM accounts WHERE balance > 1000", "TARGET LAG DOWNSTREAM"),
    "poor": ("SELECT id, branch, balance FROM accounts WHERE balance <= 1000", "TARGET LAG DOWNSTREAM"),
    "everyone": (
        "SELECT id, balance FROM rich UNION ALL SELECT id, balance FROM poor",
        "TARGET LAG '10 seconds'",
    ),
    "by_region": (
        "SELECT o.region, SUM(a.balance) AS total, COUNT(*) AS n FROM accounts a JOIN owners o ON a.id = o.id "
        "GROUP BY o.region",
        "TARGET LAG '10 seconds' PRIORITY 5",
    ),
    "bank": ("SELECT SUM(total) AS total, SUM(n) AS n FROM totals", "TARGET LAG '20 seconds'"),
    "extremes": (
        "SELECT branch, MAX(balance) AS most, MIN(balance) AS least, SUM(balance) AS total, COUNT(*) AS n "
        "FROM accounts GROUP BY branch",
        "SCHEDULE EVERY 15 SECONDS",
    ),
    "ledger": (
        "SELECT account, SUM(amount) AS amount, COUNT(*) AS n FROM entries GROUP BY account",
        "REFRESH INCREMENTAL AT MOST EVERY INTERVAL 2 SECONDS",
    ),
    "ledger_by_region": (
        "SELECT o.region, SUM(e.amount) AS amount, COUNT(*) AS n FROM entries e JOIN owners o ON e.account = o.id "
        "GROUP BY o.region",
        "TARGET LAG '30 seconds'",
    ),
    "moved": (
        "SELECT transfer, account, amount FROM entries WHERE amount > 0",
        "SCHEDULE CRON '*/20 * * * * ?' AT TIME ZONE 'Europe/Berlin'",
    ),
    "owing": (
        "SELECT a.id, a.balance, l.amount, l.n FROM accounts a LEFT JOIN ledger l ON l.account = a.id "
        "WHERE a.balance < 1000",
        "TARGET LAG '2 minutes'",
    ),
    "readings": (
        "SELECT kind, SUM(amount) AS amount, COUNT(*) AS n FROM events GROUP BY kind",
        "TARGET LAG '10 seconds'",
    ),
    "by_hand": ("SELECT branch, COUNT(*) AS n FROM rich GROUP BY branch", "REFRESH MANUAL"),
}
"""What each view is, and when it refreshes. All of them are maintained on the driver, so that no JVM is needed."""


def found_bank(db: penstock.Database, events: str) -> None:
    """Make the tables and the views; Spark is needed for the views, and for nothing later."""
    for name, columns in TABLES.items():
        db.sql(f"CREATE TABLE {name} ({columns})")
    write_deltalake(events, EVENTS.empty_table())
    db.register_table("events", events)
    accounts = [(number, number % BRANCHES, EACH) for number in range(ACCOUNTS)]
    owners = [(number, number % REGIONS) for number in range(ACCOUNTS)]
    for name, rows in (("accounts", accounts), ("owners", owners)):
        db.sql(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}")
    for name, (query, when) in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query} {when}")
    db.set("poll_interval", "500 milliseconds")
    db.set("retention", "10 minutes")


def rows_of(db: penstock.Database, moment: Reader, view: str) -> Rows:
    """A view's rows at a moment, read without Spark."""
    node = moment.moment.world.nodes[view]
    snapshot = Snapshot(node.path, node.version)
    columns = tuple(visible_columns(snapshot))
    return counted(Pinned(spark=db._at.spark, snapshot=snapshot, columns=columns).read().arrow())


def counted(table: pa.Table) -> Rows:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def digest(rows: Rows) -> str:
    """A word that tells rows from others, for journals."""
    return hashlib.sha256(repr(sorted(rows.items(), key=repr)).encode()).hexdigest()[:16]


def wrong_sums(rows: Mapping[str, Rows]) -> list[str]:
    """What does not add up among the views of one epoch."""
    found = []
    for view, place, count in (("totals", 1, 2), ("by_region", 1, 2), ("bank", 0, 1), ("extremes", 3, 4)):
        _expect(found, f"{view}: balances, accounts", (_sum(rows[view], place), _sum(rows[view], count)))
    _expect(found, "everyone: balances, accounts", (_sum(rows["everyone"], 1), rows["everyone"].total()))
    both = rows["rich"] + rows["poor"]
    _expect(found, "rich and poor: balances, accounts", (_sum(both, 2), both.total()))
    if Counter((number, balance) for number, _, balance in both.elements()) != rows["everyone"]:
        found.append("rich and poor are not everyone")
    for view in ("ledger", "ledger_by_region", "readings"):
        if (amount := _sum(rows[view], 1)) != 0:
            found.append(f"{view}: entries add up to {amount}, expected 0")
    return found


def _expect(found: list[str], what: str, seen: tuple[int, int]) -> None:
    if seen != (TOTAL, ACCOUNTS):
        found.append(f"{what}: {seen}, expected {(TOTAL, ACCOUNTS)}")


def _sum(rows: Rows, place: int) -> int:
    return sum(row[place] * count for row, count in rows.items() if row[place] is not None)


def by_query(world: World, view: str) -> Rows:
    """The rows of a view's query on the versions that it has read, by delta-rs, which shares no code with Penstock."""
    graph = world.views_graph()
    below = [name for name in graph.order(graph.ancestors([view])) if name in world.views]
    builder = QueryBuilder()
    for name, consumed in sorted(world.frontiers[view].items()):
        if name in world.tables:
            builder = builder.register(name, DeltaTable(world.tables[name].path, version=consumed.version))
    written_out = ", ".join(f"{name} AS ({world.views[name].query})" for name in below)
    query = world.views[view].query
    return counted(pa.table(builder.execute(f"WITH {written_out} {query}" if below else query)))
