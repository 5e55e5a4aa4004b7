"""The pipeline of an online shop, bronze to silver to gold, and a batch of mixed changes to all its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench import shop
from penstock.bench.contenders import DuckDb, Pipelines, Recomputation
from penstock.bench.measure import FULL, Cell, Goal, faster_than
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

ORDERS = 500_000


def _sizes(orders: int) -> dict[str, int]:
    return {
        "raw_customers": orders // 10,
        "raw_products": max(orders // 100, 20),
        "raw_orders": orders,
        "raw_items": orders * 2,
        "raw_stock": orders // 5,
        "raw_clicks": orders * 2,
    }


def _rows(table: str, sizes: dict[str, int], first: int, last: int) -> str:
    """The rows of a table with these numbers."""
    customer = f"CAST(pmod(hash(id, 'customer'), {sizes['raw_customers']}) AS INT)"
    product = f"CAST(pmod(hash(id, 'product'), {sizes['raw_products']}) AS INT)"
    columns = {
        "raw_customers": "IF(id % 9 = 7, NULL, concat(' User', id, '@Example.com ')), "
        "element_at(array('de', 'fr', 'us'), CAST(id % 3 + 1 AS INT)), "
        "date_add(DATE'2024-01-01', CAST(id % 365 AS INT))",
        "raw_products": "concat('product ', id), element_at(array('book', 'game', 'food'), CAST(id % 3 + 1 AS INT)), "
        "CAST(5 + id % 300 / 10 AS DECIMAL(10,2)), array('new', concat('tag', id % 20))",
        "raw_orders": f"{customer}, timestamp_seconds(1704067200 + id * 60), "
        "element_at(array('paid', 'paid', 'open', 'cancelled'), CAST(id % 4 + 1 AS INT))",
        "raw_items": f"CAST(id % 2 AS INT), {product}, CAST(id % 4 + 1 AS INT), "
        "IF(id % 10 = 3, NULL, CAST(id % 3 / 10 AS DECIMAL(4,2)))",
        # No two changes of a product's stock at one time: the last one is asked for.
        "raw_stock": f"{product}, CAST(pmod(hash(id), 13) - 6 AS INT), timestamp_seconds(1704067200 + id)",
        "raw_clicks": f"{customer}, element_at(array('view', 'view', 'cart', 'buy'), CAST(id % 4 + 1 AS INT)), "
        "timestamp_seconds(1704067200 + id * 7), IF(id % 13 = 5, 'not json', "
        f"concat('{{\"product\": ', {product}, ', \"ms\": ', id * 37 % 900, '}}'))",
    }
    key = "CAST(id DIV 2 AS INT)" if table == "raw_items" else "CAST(id AS INT)"
    return f"SELECT {key}, {columns[table]} FROM range({first}, {last})"


def _change(stage: Stage, sizes: dict[str, int], number: int) -> int:
    """About one row in a thousand of every table: new, corrected and deleted ones."""
    touched = 0
    for table in ("raw_orders", "raw_items", "raw_clicks", "raw_stock", "raw_customers"):
        some = max(sizes[table] // 2_000, 2)
        first = sizes[table] + (number - 1) * some
        stage.sql(f"INSERT INTO {table} {_rows(table, sizes, first, first + some)}")
        touched += some
    one_in = f"pmod(hash(id, {number}), {min(4_000, sizes['raw_customers'])})"
    product = f"id = {number * 7 % sizes['raw_products']}"
    for statement in (
        f"UPDATE raw_orders SET status = 'paid' WHERE {one_in} = 0",
        f"DELETE FROM raw_orders WHERE {one_in} = 1",
        f"DELETE FROM raw_items WHERE {one_in.replace('hash(id', 'hash(order_id')} = 1",
        f"UPDATE raw_products SET price = price + 2, category = 'game' WHERE {product}",
        f"UPDATE raw_customers SET country = 'us', email = NULL WHERE {one_in} = 2",
        f"DELETE FROM raw_clicks WHERE kind = 'cart' AND {one_in} = 3",
    ):
        touched += stage.sql(statement)
    return touched


def create(stage: Stage, orders: int) -> tuple[int, Callable[[int], int]]:
    """The tables and views of a shop with so many orders; gives the number of rows, and what changes them."""
    sizes = _sizes(orders)
    tables = {name: (columns, _rows(name, sizes, 0, sizes[name])) for name, columns in shop.TABLES.items()}
    stage.create(tables, shop.VIEWS)
    return sum(sizes.values()), partial(_change, stage, sizes)


def _run(bench: Bench) -> list[Cell]:
    with bench.stage() as stage:
        rows, change = create(stage, bench.rows(ORDERS))
        contenders = [Recomputation(stage), Pipelines(stage), DuckDb(stage)]
        return stage.measure({f"{len(shop.VIEWS)} views": list(shop.VIEWS)}, change, contenders, rows=rows)


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    return faster_than(cells, FULL, 5)


MEDALLION = Workload(
    name="medallion",
    title="17 views of an online shop over 2.6 million rows, about 0.1 % of them new, corrected or deleted",
    run=_run,
    goals=_goals,
)
