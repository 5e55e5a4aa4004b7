"""An auction house: persons, auctions and bids, and the questions that the Nexmark benchmark asks of such streams.

Each question is written anew as a view over tables. Two of the original are no queries over rows: what arrives by the
clock of the machine (q12) is counted by the time of the bid, and what is written to files (q10) is a view as any other.
"""

from __future__ import annotations

COLUMNS = {
    "persons": "id BIGINT, name STRING, email STRING, city STRING, state STRING, at TIMESTAMP",
    "auctions": "id BIGINT, item STRING, first_bid BIGINT, reserve BIGINT, at TIMESTAMP, expires TIMESTAMP, "
    "seller BIGINT, category INT",
    "bids": "id BIGINT, auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, at TIMESTAMP, "
    "extra STRING",
    "side": "code BIGINT, label STRING",
}

_START, _PER_SECOND = 1704067200, 10
_SIDE = 1_000


def sizes(bids: int) -> dict[str, int]:
    """Of fifty events one is a person, three are auctions, the others bids, about."""
    return {"persons": max(bids // 46, 50), "auctions": max(bids * 3 // 46, 150), "bids": bids}


def tables(bids: int) -> dict[str, tuple[str, str]]:
    filled = {table: rows(table, sizes(bids), 0, size) for table, size in sizes(bids).items()}
    filled["side"] = f"SELECT id, concat('label ', id % 20) FROM range({_SIDE})"
    return {table: (COLUMNS[table], query) for table, query in filled.items()}


def rows(table: str, size: dict[str, int], first: int, last: int) -> str:
    """The rows of a table with these numbers; time goes on with them, equally fast in all tables."""
    at = f"timestamp_micros({_START}000000 + id * {1_000_000 // _PER_SECOND} * {size['bids']} DIV {size[table]})"
    columns = {
        "persons": f"concat('  Person ', id), concat('p', id, '@Example.com'), concat('city ', {_chance('city', 40)}), "
        f"element_at(array('OR', 'ID', 'CA', 'NY', 'WA'), {_chance('state', 5)} + 1), {at}",
        "auctions": f"concat('item ', {_chance('item', 500)}), CAST({_chance('first', 100)} AS BIGINT), "
        f"CAST(100 + {_chance('reserve', 1_000)} AS BIGINT), {at}, {at} + make_dt_interval(0, 0, 5 + id % 20, 0), "
        f"{_near('persons', size, 'seller')}, 10 + {_chance('category', 5)}",
        "bids": f"{_near('auctions', size, 'auction')}, {_near('persons', size, 'bidder')}, "
        f"CAST(100 + {_chance('price', 100_000)} AS BIGINT), "
        f"element_at(array('apple', 'google', 'baidu', 'facebook', 'other'), {_chance('channel', 5)} + 1), "
        f"concat('https://www.nexmark.com/', {_chance('a', 30)}, '/b', {_chance('b', 9)}, '/item.htm?query=1', "
        f"IF(id % 3 = 0, concat('&channel_id=', {_chance('id', 999)}), '')), {at}, "
        f"repeat(element_at(array('abc', 'xcyc', 'zz'), {_chance('extra', 3)} + 1), 3)",
    }
    files = max(1, (last - first) // 500_000)
    return f"SELECT id, {columns[table]} FROM range({first}, {last}, 1, {files})"


def _chance(what: str, below: int) -> str:
    return f"CAST(pmod(hash(id, '{what}'), {below}) AS INT)"


def _near(table: str, size: dict[str, int], what: str) -> str:
    """One of the hundred rows of another table that came last by then."""
    own = "bids" if table == "auctions" or what == "bidder" else "auctions"
    newest = f"id * {size[table]} DIV {size[own]}"
    return f"GREATEST({newest} - {_chance(what, 100)}, 0L)"


_BID_DAY = "DATE_FORMAT(at, 'yyyy-MM-dd')"

VIEWS = {
    "q0": "SELECT auction, bidder, price, at, extra FROM bids",
    "q1": "SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(20,3)) AS price, at, extra FROM bids",
    "q2": "SELECT auction, price FROM bids WHERE auction % 123 = 0",
    "q3": "SELECT TRIM(p.name) AS name, p.city, p.state, a.id FROM auctions a JOIN persons p ON p.id = a.seller "
    "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    "q4": "SELECT category, AVG(final) AS final FROM (SELECT a.id, a.category, MAX(b.price) AS final FROM auctions a "
    "JOIN bids b ON b.auction = a.id AND b.at BETWEEN a.at AND a.expires GROUP BY a.id, a.category) GROUP BY category",
    "q5_counts": "SELECT auction, HOP_START(at, INTERVAL 10 SECONDS, INTERVAL 1 MINUTE) AS begins, COUNT(*) AS n "
    "FROM bids GROUP BY auction, HOP(at, INTERVAL 10 SECONDS, INTERVAL 1 MINUTE)",
    "q5": "SELECT c.auction, c.begins, c.n FROM q5_counts c JOIN (SELECT begins, MAX(n) AS most FROM q5_counts "
    "GROUP BY begins) m ON m.begins = c.begins AND c.n >= m.most",
    "q6": "SELECT seller, id, AVG(final) OVER (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND "
    "CURRENT ROW) AS average FROM (SELECT a.id, a.seller, a.expires, MAX(b.price) AS final FROM auctions a "
    "JOIN bids b ON b.auction = a.id AND b.at BETWEEN a.at AND a.expires GROUP BY a.id, a.seller, a.expires)",
    "q7": "SELECT b.auction, b.price, b.bidder, b.at FROM bids b JOIN (SELECT TUMBLE_START(at, INTERVAL 10 SECONDS) AS "
    "begins, MAX(price) AS most FROM bids GROUP BY TUMBLE(at, INTERVAL 10 SECONDS)) m ON b.price = m.most "
    "AND b.at >= m.begins AND b.at < m.begins + INTERVAL 10 SECONDS",
    "q8": "SELECT p.id, p.name, p.begins FROM (SELECT id, name, TUMBLE_START(at, INTERVAL 1 MINUTE) AS begins "
    "FROM persons GROUP BY id, name, TUMBLE(at, INTERVAL 1 MINUTE)) p JOIN (SELECT seller, "
    "TUMBLE_START(at, INTERVAL 1 MINUTE) AS begins FROM auctions GROUP BY seller, TUMBLE(at, INTERVAL 1 MINUTE)) a "
    "ON a.seller = p.id AND a.begins = p.begins",
    "q9": "SELECT id, item, seller, bidder, price, at FROM (SELECT a.id, a.item, a.seller, b.bidder, b.price, b.at, "
    "ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.at, b.id) AS place FROM auctions a "
    "JOIN bids b ON b.auction = a.id AND b.at BETWEEN a.at AND a.expires) WHERE place = 1",
    "q10": f"SELECT auction, bidder, price, at, extra, {_BID_DAY} AS day, DATE_FORMAT(at, 'HH:mm') AS minute FROM bids",
    "q11": "SELECT bidder, COUNT(*) AS n, SESSION_START(at, INTERVAL 10 SECONDS) AS begins, "
    "SESSION_END(at, INTERVAL 10 SECONDS) AS ends FROM bids GROUP BY bidder, SESSION(at, INTERVAL 10 SECONDS)",
    "q12": "SELECT bidder, COUNT(*) AS n, TUMBLE_START(at, INTERVAL 10 SECONDS) AS begins FROM bids "
    "GROUP BY bidder, TUMBLE(at, INTERVAL 10 SECONDS)",
    "q13": "SELECT b.auction, b.bidder, b.price, b.at, s.label FROM bids b JOIN side s ON s.code = b.auction % 1000",
    "q14": "SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(20,3)) AS price, CASE WHEN HOUR(at) >= 8 AND "
    "HOUR(at) <= 18 THEN 'day' WHEN HOUR(at) <= 6 OR HOUR(at) >= 20 THEN 'night' ELSE 'other' END AS part, at, "
    "LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS letters FROM bids WHERE price * 0.908 > 50000",
    "q15": f"SELECT {_BID_DAY} AS day, COUNT(*) AS bids, COUNT(*) FILTER (WHERE price < 10000) AS low, "
    "COUNT(DISTINCT bidder) AS bidders, COUNT(DISTINCT bidder) FILTER (WHERE price >= 50000) AS high_bidders, "
    f"COUNT(DISTINCT auction) AS auctions FROM bids GROUP BY {_BID_DAY}",
    "q16": f"SELECT channel, {_BID_DAY} AS day, MAX(DATE_FORMAT(at, 'HH:mm')) AS minute, COUNT(*) AS bids, "
    "COUNT_IF(price >= 50000) AS high, COUNT(DISTINCT bidder) AS bidders, COUNT(DISTINCT auction) AS auctions "
    f"FROM bids GROUP BY channel, {_BID_DAY}",
    "q17": f"SELECT auction, {_BID_DAY} AS day, COUNT(*) AS bids, COUNT_IF(price < 10000) AS low, MIN(price) AS least, "
    f"MAX(price) AS most, AVG(price) AS average, SUM(price) AS total FROM bids GROUP BY auction, {_BID_DAY}",
    "q18": "SELECT auction, bidder, price, at FROM (SELECT auction, bidder, price, at, ROW_NUMBER() OVER (PARTITION BY "
    "bidder, auction ORDER BY at DESC, id DESC) AS place FROM bids) WHERE place <= 1",
    "q19": "SELECT auction, bidder, price, place FROM (SELECT auction, bidder, price, ROW_NUMBER() OVER (PARTITION BY "
    "auction ORDER BY price DESC, id) AS place FROM bids) WHERE place <= 10",
    "q20": "SELECT b.auction, b.bidder, b.price, b.channel, b.at, a.item, a.reserve, a.seller FROM bids b "
    "JOIN auctions a ON a.id = b.auction WHERE a.category = 10",
    "q21": "SELECT auction, bidder, price, channel, CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' "
    "WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS code "
    "FROM bids WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) <> '' OR LOWER(channel) IN ('apple', 'google')",
    "q22": "SELECT auction, bidder, price, SPLIT(url, '/')[3] AS first, SPLIT(url, '/')[4] AS second, "
    "SPLIT_PART(url, '/', 6) AS third FROM bids",
}
