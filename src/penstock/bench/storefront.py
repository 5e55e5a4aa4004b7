"""A shop for the Studio to show: twenty views of every kind over six tables, and customers who go on buying.

All that happens is generated, and the same at every run but for the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.database import Database

CUSTOMERS, PRODUCTS, ORDERS = 60, 40, 120
MOST_ORDERS = 1_000
"""Older ones are put into the archive, so that the shop can be left running."""

TABLES = {
    "customers": "id INT, name STRING, country STRING",
    "products": "id INT, name STRING, category STRING, price DECIMAL(10,2)",
    "orders": "id INT, customer INT, at TIMESTAMP, status STRING",
    "items": "order_id INT, line INT, product INT, quantity INT",
    "stock": "id INT, product INT, change INT, note STRING",
    "clicks": (
        "id INT, customer INT, kind STRING, product INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 5 SECONDS"
    ),
}

MODELS = {
    "tv_product": (
        "SELECT p.id AS pk_product, p.category, jsonb_build_object('name', p.name, 'category', p.category, "
        "'price', p.price) AS data FROM products p"
    ),
    "tv_order": (
        "SELECT o.id AS pk_order, o.customer AS fk_customer, jsonb_build_object('id', o.id, 'status', o.status, 'at', "
        "o.at, 'lines', jsonb_agg(jsonb_build_object('line', i.line, 'quantity', i.quantity, 'product', "
        "v_product.data) ORDER BY i.line)) AS data FROM orders o JOIN items i ON i.order_id = o.id "
        "JOIN v_product ON v_product.pk_product = i.product GROUP BY o.id, o.customer, o.status, o.at"
    ),
}
"""Documents, which are right when the statement that changes a part of them returns."""

VIEWS = {
    "order_lines": (
        "SELECT i.order_id, i.line, i.product, p.category, i.quantity, i.quantity * p.price AS amount "
        "FROM items i JOIN products p ON p.id = i.product",
        "REFRESH IMMEDIATE",
    ),
    "stock_level": ("SELECT product, SUM(change) AS on_hand FROM stock GROUP BY product", "REFRESH IMMEDIATE"),
    "sales": (
        "SELECT o.id, o.customer, o.at, o.status, s.lines, s.amount FROM orders o "
        "JOIN (SELECT order_id, COUNT(*) AS lines, SUM(amount) AS amount FROM order_lines GROUP BY order_id) s "
        "ON s.order_id = o.id WHERE o.status <> 'cancelled'",
        "TARGET LAG '5 seconds'",
    ),
    "domestic": (
        "SELECT s.id, c.country, s.amount FROM sales s JOIN customers c ON c.id = s.customer WHERE c.country = 'DE'",
        "TARGET LAG DOWNSTREAM",
    ),
    "abroad": (
        "SELECT s.id, c.country, s.amount FROM sales s JOIN customers c ON c.id = s.customer WHERE c.country <> 'DE'",
        "TARGET LAG DOWNSTREAM",
    ),
    "by_country": (
        "SELECT country, COUNT(*) AS orders, SUM(amount) AS revenue FROM (SELECT * FROM domestic UNION ALL "
        "SELECT * FROM abroad) GROUP BY country",
        "TARGET LAG '10 seconds'",
    ),
    "by_category": (
        "SELECT category, SUM(quantity) AS pieces, SUM(amount) AS revenue FROM order_lines GROUP BY category",
        "REFRESH ON COMMIT",
    ),
    "best_sellers": (
        "SELECT category, product, amount FROM (SELECT category, product, SUM(amount) AS amount, ROW_NUMBER() OVER "
        "(PARTITION BY category ORDER BY SUM(amount) DESC, product) AS place FROM order_lines "
        "GROUP BY category, product) WHERE place <= 3",
        "TARGET LAG '30 seconds'",
    ),
    "customer_value": (
        "SELECT c.id, c.name, c.country, COUNT(s.id) AS orders, SUM(s.amount) AS revenue "
        "FROM customers c LEFT JOIN sales s ON s.customer = c.id GROUP BY c.id, c.name, c.country",
        "TARGET LAG '15 seconds'",
    ),
    "never_ordered": (
        "SELECT c.id, c.name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM sales s WHERE s.customer = c.id)",
        "TARGET LAG '1 minute'",
    ),
    "top_customers": (
        "SELECT id, name, revenue FROM customer_value ORDER BY revenue DESC NULLS LAST, id LIMIT 10",
        "TARGET LAG '30 seconds'",
    ),
    "to_reorder": (
        "SELECT p.id, p.name, COALESCE(s.on_hand, 0) AS on_hand FROM products p LEFT JOIN stock_level s "
        "ON s.product = p.id WHERE COALESCE(s.on_hand, 0) < 20",
        "REFRESH ON COMMIT",
    ),
    "clicks_per_10s": (
        "SELECT TUMBLE_START(at, INTERVAL '10 seconds') AS begins, COUNT(*) AS clicks FROM clicks "
        "GROUP BY TUMBLE(at, INTERVAL '10 seconds') EMIT AFTER WATERMARK",
        "REFRESH ON COMMIT",
    ),
    "visits": (
        "SELECT customer, SESSION_START(at, INTERVAL '30 seconds') AS came, COUNT(*) AS clicks FROM clicks "
        "GROUP BY customer, SESSION(at, INTERVAL '30 seconds')",
        "REFRESH EVERY 20 SECONDS",
    ),
    "funnel": (
        "SELECT product, COUNT_IF(kind = 'view') AS views, COUNT_IF(kind = 'cart') AS carts, "
        "COUNT_IF(kind = 'buy') AS buys FROM clicks GROUP BY product",
        "REFRESH EVERY 15 SECONDS",
    ),
    "wanted": (
        "SELECT p.category, SUM(f.views) AS views, SUM(f.buys) AS buys FROM funnel f JOIN products p "
        "ON p.id = f.product GROUP BY p.category",
        "TARGET LAG '30 seconds'",
    ),
    "usual_basket": (
        "SELECT category, MODE(quantity) AS quantity FROM order_lines GROUP BY category",
        "TARGET LAG '1 minute'",
    ),
    "deliveries": (
        "SELECT id, product, CAST(note AS INT) AS parcel FROM stock WHERE change > 0",
        "TARGET LAG '30 seconds'",
    ),
}
"""What each view is, and when it refreshes."""

SUSPENDED, RECOMPUTED, FAILING = "never_ordered", "usual_basket", "deliveries"

_CATEGORIES = ("books", "games", "garden", "kitchen", "music")
_COUNTRIES = ("DE", "DE", "FR", "NL", "PL", "US")
_KINDS = ("view", "view", "view", "cart", "buy")


def statements() -> Iterator[tuple[str, str]]:
    """The name of each view and the statement that makes it, inputs before readers."""
    for name, query in MODELS.items():
        yield name, f"CREATE TABLE {name} AS {query}"
    for name, (query, when) in VIEWS.items():
        yield name, f"CREATE MATERIALIZED VIEW {name} AS {query} {when}"


class Shop:
    """The shop's tables, and what happens in them."""

    def __init__(self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)):
        self._database, self._now, self._random = database, now, Random(7)
        self._orders, self._archived, self._clicks, self._deliveries = 0, 0, 0, 0

    def open(self) -> None:
        """The tables, with what there is on the first day. It needs no Spark."""
        for name, columns in TABLES.items():
            self._database.sql(f"CREATE TABLE {name} ({columns})")
        self._insert(
            "customers", [(n, f"Customer {n}", _COUNTRIES[n % len(_COUNTRIES)]) for n in range(1, CUSTOMERS + 1)]
        )
        self._insert(
            "products",
            [(n, f"Product {n}", _CATEGORIES[n % len(_CATEGORIES)], n * 7 % 90 + 9.99) for n in range(1, PRODUCTS + 1)],
        )
        self._deliver(range(1, PRODUCTS + 1))
        orders = [self._order() for _ in range(ORDERS)]
        self._insert("orders", [order for order, _ in orders])
        self._insert("items", [item for _, items in orders for item in items])
        self._click(100)

    def break_something(self) -> None:
        """What a view cannot digest."""
        self._database.suspend(SUSPENDED)
        self._insert("stock", [(0, 1, 1, "by bicycle")])

    def happen(self) -> None:
        """One thing, as it comes."""
        what = self._random.choices((self._buy, self._click, self._pay, self._restock, self._price), (5, 5, 4, 1, 1))[0]
        what()

    def _buy(self) -> None:
        order, items = self._order()
        with self._database.transaction() as tx:
            tx.sql(f"INSERT INTO orders VALUES {_row(order)}")
            tx.sql(f"INSERT INTO items VALUES {', '.join(map(_row, items))}")
        if self._orders - self._archived > MOST_ORDERS:
            self._archived += MOST_ORDERS // 10
            with self._database.transaction() as tx:
                tx.sql(f"DELETE FROM orders WHERE id <= {self._archived}")
                tx.sql(f"DELETE FROM items WHERE order_id <= {self._archived}")

    def _order(self) -> tuple[tuple[object, ...], list[tuple[object, ...]]]:
        self._orders += 1
        products = self._random.sample(range(1, PRODUCTS + 1), self._random.randint(1, 3))
        items = [(self._orders, line, each, self._random.randint(1, 4)) for line, each in enumerate(products, 1)]
        return (self._orders, self._customer(), self._now(), "placed"), list(items)

    def _customer(self) -> int:
        """Some come often, and some never."""
        return int(CUSTOMERS * self._random.betavariate(1, 3)) + 1

    def _pay(self) -> None:
        status = self._random.choices(("paid", "sent", "cancelled"), (5, 4, 1))[0]
        order = self._random.randint(self._archived + 1, self._orders)
        self._database.sql(f"UPDATE orders SET status = '{status}' WHERE id = {order}")

    def _click(self, count: int = 3) -> None:
        rows: list[tuple[object, ...]] = []
        for _ in range(count):
            self._clicks += 1
            kind, product = self._random.choice(_KINDS), self._random.randint(1, PRODUCTS)
            rows.append((self._clicks, self._customer(), kind, product, self._now()))
        self._insert("clicks", rows)

    def _restock(self) -> None:
        self._deliver(self._random.sample(range(1, PRODUCTS + 1), 2))

    def _deliver(self, products: range | list[int]) -> None:
        rows: list[tuple[object, ...]] = []
        for product in products:
            self._deliveries += 1
            rows.append((self._deliveries, product, self._random.randint(5, 40), str(1000 + self._deliveries)))
        self._insert("stock", rows)

    def _price(self) -> None:
        product, change = self._random.randint(1, PRODUCTS), self._random.choice(("+ 1", "- 1"))
        self._database.sql(f"UPDATE products SET price = price {change} WHERE id = {product} AND price > 2")

    def _insert(self, table: str, rows: list[tuple[object, ...]]) -> None:
        self._database.sql(f"INSERT INTO {table} VALUES {', '.join(map(_row, rows))}")


def _row(values: tuple[object, ...]) -> str:
    """
    >>> _row((1, "it's", datetime(2026, 1, 2)))
    "(1, 'it\\\\'s', TIMESTAMP '2026-01-02 00:00:00+00:00')"
    """
    return f"({', '.join(map(_literal, values))})"


def _literal(value: object) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=value.tzinfo or timezone.utc).isoformat(' ')}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
