"""Cycles of changes to the tables of TPC-H, with every query as a view that is refreshed and checked after each.

What happened to a view is recorded, not asserted, so that one that is wrong does not hide the others.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import penstock
from oracle import assert_fresh
from penstock.bench.tpch.queries import QUERIES, query

# Each cycle is several commits. {n} divides the order keys: a statement with % {n} changes one order in so many.
CYCLES: list[dict[str, list[str]]] = [
    {
        "orders": [
            """INSERT INTO orders
            SELECT o_orderkey + 1000000000, o_custkey + 1, o_orderstatus, o_totalprice + 1000, o_orderdate,
                   o_orderpriority, o_clerk, o_shippriority, o_comment
            FROM orders WHERE o_orderkey % {n} IN (1, 2)""",
            "DELETE FROM orders WHERE o_orderkey % {n} = 3 AND o_orderkey < 1000000000",
            "UPDATE orders SET o_custkey = o_custkey - 1, o_orderdate = o_orderdate + 90 WHERE o_orderkey % {n} = 6",
            "UPDATE orders SET o_orderkey = o_orderkey + 2000000000 WHERE o_orderkey % {n} = 4",
        ],
        "lineitem": [
            """INSERT INTO lineitem
            SELECT l_orderkey + 1000000000, l_partkey, l_suppkey, l_linenumber, l_quantity + 1, l_extendedprice * 2,
                   l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate,
                   l_shipinstruct, l_shipmode, l_comment
            FROM lineitem WHERE l_orderkey % {n} IN (1, 2)""",
            "DELETE FROM lineitem WHERE l_orderkey % {n} = 3 AND l_orderkey < 1000000000",
            "UPDATE lineitem SET l_quantity = 50, l_receiptdate = l_shipdate + 5 WHERE l_orderkey % {n} IN (4, 5)",
            "UPDATE lineitem SET l_orderkey = l_orderkey + 2000000000 WHERE l_orderkey % {n} = 4",
        ],
    },
    {
        # A view that reads none of the changed columns has nothing to do, rightly: so this changes one of each reader.
        "lineitem": [
            """UPDATE lineitem SET l_partkey = l_partkey % 2000 + 1, l_suppkey = l_suppkey % 100 + 1,
                   l_quantity = IF(l_linenumber = 1, 1, 10), l_extendedprice = l_extendedprice * 100,
                   l_shipdate = l_shipdate - 60, l_receiptdate = l_receiptdate - 60, l_shipmode = 'AIR',
                   l_shipinstruct = 'DELIVER IN PERSON'
            WHERE l_orderkey % {n} IN (7, 8)""",
        ],
        "part": [
            """UPDATE part SET p_size = IF(p_partkey % 2 = 0, 15, 5), p_brand = 'Brand#23', p_container = 'MED BOX',
                   p_type = IF(p_partkey % 2 = 0, 'PROMO BRASS', 'ECONOMY ANODIZED STEEL')
            WHERE p_partkey % 17 = 7""",
            "DELETE FROM part WHERE p_partkey % 37 = 11",
        ],
        "customer": [
            "DELETE FROM customer WHERE c_custkey % 23 = 5",
            """UPDATE customer SET c_nationkey = (c_nationkey + 7) % 25, c_acctbal = c_acctbal + 3000,
                   c_mktsegment = 'BUILDING'
            WHERE c_custkey % 9 = 4""",
        ],
        "supplier": [
            """INSERT INTO supplier
            SELECT s_suppkey + 100000000, CONCAT(s_name, '+'), s_address, s_nationkey, s_phone, s_acctbal, s_comment
            FROM supplier WHERE s_suppkey % 9 = 1""",
            # The nations are Saudi Arabia, Canada and Brazil.
            """UPDATE supplier SET s_nationkey = CASE s_suppkey % 3 WHEN 0 THEN 20 WHEN 1 THEN 3 ELSE 2 END,
                   s_acctbal = s_acctbal + 500, s_comment = 'Customer Complaints'
            WHERE s_suppkey % 2 = 1""",
        ],
        "partsupp": ["UPDATE partsupp SET ps_availqty = 3 * ps_availqty, ps_supplycost = 9 WHERE ps_suppkey % 8 = 5"],
    },
]


@dataclass(frozen=True)
class Outcome:
    """What one refresh did to one view, and what is wrong with it, if anything."""

    cycle: int
    action: str
    changed: int
    problem: str | None


def view_name(number: int) -> str:
    return f"q{number:02d}"


def create_views(db: penstock.Database, scale: float) -> dict[int, str]:
    """Make every query a view; the errors of those that could not be made."""
    problems = {}
    for number in QUERIES:
        try:
            # Whether recomputing would be cheaper is not the question here, so it is not left to AUTO.
            db.create_view(view_name(number), query(number, scale), policy="INCREMENTAL STRICT", initialize=False)
        except penstock.PenstockError as error:
            problems[number] = str(error)
    db.refresh()
    return problems


def run_cycle(db: penstock.Database, cycle: int, every: int) -> dict[int, Outcome]:
    """Make the changes of a cycle to one order in ``every``, refresh, and say what became of each view."""
    changes = CYCLES[cycle]
    for statements in changes.values():
        for statement in statements:
            db.sql(statement.format(n=every))
    with suppress(penstock.RefreshError):  # the history has it, and the oracle looks there
        db.refresh()
    names = {status.name for status in db.status()}
    return {n: check(db, cycle, view_name(n), set(changes)) for n in QUERIES if view_name(n) in names}


def check(db: penstock.Database, cycle: int, view: str, changed: set[str]) -> Outcome:
    """A view whose tables changed is refreshed incrementally, another one not at all, and both equal their query."""
    last = db.history(view, 1)[0]
    expected = "INCREMENTAL" if changed & set(db._catalog.world().views[view].reads) else "NO_DATA"
    try:
        assert_fresh(db, view, expected)
        problem = None
    except AssertionError as error:
        problem = str(error)
    return Outcome(cycle + 1, last.action, last.rows_inserted + last.rows_deleted, problem)
