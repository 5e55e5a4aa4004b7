"""Whole pipelines: tables, views over views, and a batch of changes, as a team would have them.

``MEDALLION`` is an online shop in bronze, silver and gold layers. ``NEXMARK`` is the auction site of the streaming
benchmark, with the queries of it that make sense on tables, as cascades.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.bench import shop


@dataclass(frozen=True)
class Pipeline:
    name: str
    tables: dict[str, str]
    rows: dict[str, list[str]]
    views: dict[str, str]
    changes: list[str]


def _rows(count: int, row: Callable[[int], str], start: int = 0) -> list[str]:
    return [row(i) for i in range(start, start + count)]


def _insert(table: str, rows: list[str]) -> str:
    return f"INSERT INTO {table} VALUES {', '.join(rows)}"


# -- an online shop ---------------------------------------------------------------------------------------------------


def _customer(i: int) -> str:
    email = "NULL" if i % 9 == 7 else f"' User{i}@Example.com '"
    return f"({i}, {email}, '{('de', 'fr', 'us')[i % 3]}', DATE'2024-01-{i % 28 + 1:02d}')"


def _product(i: int) -> str:
    return (
        f"({i}, 'product {i}', '{('book', 'game', 'food')[i % 3]}', {5 + i * 3}.{i % 10}0, ARRAY('new', 'tag{i % 2}'))"
    )


def _order(i: int) -> str:
    status = ("paid", "paid", "open", "cancelled")[i % 4]
    return f"({i}, {i % 12}, TIMESTAMP'2024-02-{i % 27 + 1:02d} {i % 24:02d}:15:00', '{status}')"


def _item(i: int) -> str:
    return f"({i // 2}, {i % 2}, {(i * 7) % 10}, {i % 4 + 1}, {'NULL' if i % 10 == 3 else f'0.{i % 3}0'})"


def _stock(i: int) -> str:
    return f"({i}, {i % 10}, {(-1) ** i * (i % 7)}, TIMESTAMP'2024-02-{i % 27 + 1:02d} 06:00:00')"


def _click(i: int) -> str:
    payload = "not json" if i % 13 == 5 else f'{{"product": {i % 10}, "ms": {i * 37 % 900}}}'
    return (
        f"({i}, {i % 14}, '{('view', 'view', 'cart', 'buy')[i % 4]}', "
        f"TIMESTAMP'2024-02-{i % 9 + 1:02d} 1{i % 10}:{i % 60:02d}:00', '{payload}')"
    )


MEDALLION = Pipeline(
    "medallion",
    tables={name: f"({columns})" for name, columns in shop.TABLES.items()},
    rows={
        "raw_customers": _rows(14, _customer), "raw_products": _rows(10, _product), "raw_orders": _rows(30, _order),
        "raw_items": _rows(60, _item), "raw_stock": _rows(25, _stock), "raw_clicks": _rows(60, _click),
    },
    views=shop.VIEWS,
    changes=[
            _insert("raw_orders", _rows(4, _order, 30)), _insert("raw_items", _rows(8, _item, 60)),
            _insert("raw_clicks", _rows(5, _click, 60)), _insert("raw_customers", _rows(2, _customer, 14)),
            "UPDATE raw_orders SET status = 'paid' WHERE id IN (2, 6)",
            "UPDATE raw_products SET price = price + 2, category = 'game' WHERE id IN (0, 4)",
            "DELETE FROM raw_orders WHERE id IN (1, 9)", "DELETE FROM raw_items WHERE order_id IN (1, 9)",
            "UPDATE raw_customers SET country = 'us', email = NULL WHERE id = 3",
            _insert("raw_stock", _rows(4, _stock, 25)), "DELETE FROM raw_clicks WHERE kind = 'cart' AND customer < 4",
    ],
)  # fmt: skip


# -- auctions ---------------------------------------------------------------------------------------------------------


def _person(i: int) -> str:
    return f"({i}, 'p{i}', '{('or', 'ca', 'id', 'wa')[i % 4]}', TIMESTAMP'2024-03-01 10:{i % 60:02d}:00')"


def _auction(i: int) -> str:
    return (
        f"({i}, 'item {i}', {i % 6}, {i % 3 + 10}, {i * 5 % 40}, TIMESTAMP'2024-03-01 10:{i % 60:02d}:00', "
        f"TIMESTAMP'2024-03-01 11:{i % 60:02d}:00')"
    )


def _bid(i: int) -> str:
    return (
        f"({i % 9}, {i % 7}, {(i * 17) % 50 + 1}, '{('web', 'app')[i % 2]}', "
        f"'https://auction.example/{i % 4}/page{i % 3}', TIMESTAMP'2024-03-01 10:{i % 60:02d}:{i % 50:02d}')"
    )


NEXMARK = Pipeline(
    "nexmark",
    tables={
        "person": "(id INT, name STRING, state STRING, at TIMESTAMP)",
        "auction": "(id INT, item STRING, seller INT, category INT, reserve INT, at TIMESTAMP, expires TIMESTAMP)",
        "bid": "(auction INT, bidder INT, price INT, channel STRING, url STRING, at TIMESTAMP)",
    },
    rows={"person": _rows(8, _person), "auction": _rows(12, _auction), "bid": _rows(70, _bid)},
    views={
        "q1_currency": "SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(12,3)) AS price, at FROM bid",
        "q2_selection": "SELECT auction, price FROM bid WHERE auction % 3 = 0",
        "q3_local_items": "SELECT p.name, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
        "WHERE a.category = 10 AND p.state IN ('or', 'id', 'ca')",
        "q9_winning_bids": "SELECT id, category, seller, expires, price, bidder FROM (SELECT a.id, a.category, a.seller, "
        "a.expires, b.price, b.bidder, ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.at, b.bidder) AS place "
        "FROM auction a JOIN bid b ON a.id = b.auction AND b.at BETWEEN a.at AND a.expires) WHERE place = 1",
        "q4_average_price": "SELECT category, AVG(price) AS average FROM q9_winning_bids GROUP BY category",
        "q5_hot_items": "SELECT minute, auction, bids FROM (SELECT minute, auction, bids, RANK() OVER (PARTITION BY minute "
        "ORDER BY bids DESC) AS place FROM (SELECT TUMBLE_START(at, INTERVAL '10 minutes') AS minute, auction, "
        "COUNT(*) AS bids FROM bid GROUP BY TUMBLE(at, INTERVAL '10 minutes'), auction)) WHERE place = 1",
        "q6_seller_average": "SELECT seller, id, AVG(price) OVER (PARTITION BY seller ORDER BY expires, id "
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS average FROM q9_winning_bids",
        "q7_highest_bids": "SELECT b.auction, b.price, b.bidder, m.minute FROM bid b JOIN (SELECT MAX(price) AS top, "
        "TUMBLE_START(at, INTERVAL '10 minutes') AS minute FROM bid GROUP BY TUMBLE(at, INTERVAL '10 minutes')) m "
        "ON b.price = m.top AND b.at >= m.minute AND b.at < m.minute + INTERVAL 10 MINUTES",
        "q8_new_sellers": "SELECT p.id, p.name, COUNT(*) AS auctions FROM person p JOIN auction a ON a.seller = p.id "
        "AND DATE_TRUNC('HOUR', p.at) = DATE_TRUNC('HOUR', a.at) GROUP BY p.id, p.name",
        "q15_bidders": "SELECT CAST(at AS DATE) AS day, COUNT(*) AS bids, COUNT(*) FILTER (WHERE price < 20) AS low, "
        "COUNT(DISTINCT bidder) AS bidders, COUNT(DISTINCT auction) FILTER (WHERE price >= 20) AS auctions FROM bid "
        "GROUP BY CAST(at AS DATE)",
        "q16_channels": "SELECT channel, DATE_FORMAT(MAX(at), 'HH:mm') AS until, COUNT(*) AS bids, "
        "COUNT(DISTINCT bidder) AS bidders FROM bid GROUP BY channel",
        "q17_auction_stats": "SELECT auction, COUNT(*) AS bids, MIN(price) AS low, MAX(price) AS high, AVG(price) AS average, "
        "SUM(price) AS total FROM bid GROUP BY auction",
        "q18_last_bid": "SELECT auction, bidder, price, at FROM bid QUALIFY ROW_NUMBER() OVER (PARTITION BY bidder, auction "
        "ORDER BY at DESC, price) = 1",
        "q19_top_bids": "SELECT auction, price, bidder FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction "
        "ORDER BY price DESC, at, bidder) AS place FROM bid) WHERE place <= 3",
        "q20_expensive": "SELECT b.auction, b.price, a.item, a.category FROM bid b JOIN auction a ON b.auction = a.id "
        "WHERE a.category = 10 AND b.price > (SELECT AVG(average) FROM q17_auction_stats)",
        "q22_urls": "SELECT auction, bidder, SPLIT_PART(url, '/', 3) AS site, SPLIT_PART(url, '/', 4) AS dir FROM bid",
        "no_bids": "SELECT a.id FROM auction a LEFT ANTI JOIN bid b ON a.id = b.auction",
    },
    changes=[
            _insert("bid", _rows(10, _bid, 70)), _insert("auction", _rows(2, _auction, 12)), _insert("person", [_person(9)]),
            "UPDATE bid SET price = price + 30 WHERE bidder = 3 AND auction = 3", "DELETE FROM bid WHERE auction = 5",
            "UPDATE auction SET seller = 2, category = 10 WHERE id = 4", "DELETE FROM person WHERE id = 1",
    ],
)  # fmt: skip
