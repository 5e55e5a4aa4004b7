"""An online shop in bronze, silver and gold layers: the pipeline of the workload medallion."""

from __future__ import annotations

TABLES = {
    "raw_customers": "id INT, email STRING, country STRING, joined DATE",
    "raw_products": "id INT, name STRING, category STRING, price DECIMAL(10,2), tags ARRAY<STRING>",
    "raw_orders": "id INT, customer INT, at TIMESTAMP, status STRING",
    "raw_items": "order_id INT, line INT, product INT, quantity INT, discount DECIMAL(4,2)",
    "raw_stock": "id INT, product INT, change INT, at TIMESTAMP",
    "raw_clicks": "id INT, customer INT, kind STRING, at TIMESTAMP, payload STRING",
}

VIEWS = {
    # bronze to silver: cleaned, typed, flattened
    "customers": "SELECT id, LOWER(TRIM(email)) AS email, UPPER(country) AS country, joined FROM raw_customers "
    "WHERE email IS NOT NULL",
    "product_tags": "SELECT id AS product, tag FROM raw_products LATERAL VIEW EXPLODE(tags) t AS tag",
    "items": "SELECT i.order_id, i.line, i.product, p.category, i.quantity, "
    "CAST(i.quantity * p.price * (1 - COALESCE(i.discount, 0)) AS DECIMAL(12,2)) AS revenue "
    "FROM raw_items i JOIN raw_products p ON p.id = i.product",
    "clicks": "SELECT id, customer, kind, at, GET_JSON_OBJECT(payload, '$.product') AS product, "
    "TRY_CAST(GET_JSON_OBJECT(payload, '$.ms') AS INT) AS ms FROM raw_clicks",
    "orders": "SELECT o.id, o.customer, o.at, DATE_TRUNC('WEEK', o.at) AS week, o.status, s.lines, "
    "COALESCE(s.revenue, 0) AS revenue FROM raw_orders o LEFT JOIN (SELECT order_id, COUNT(*) AS lines, "
    "SUM(revenue) AS revenue FROM items GROUP BY order_id) s ON s.order_id = o.id WHERE o.status <> 'cancelled'",
    # silver to gold: what people look at
    "weekly": "SELECT week, COUNT(*) AS orders, COUNT(DISTINCT customer) AS customers, SUM(revenue) AS revenue "
    "FROM orders GROUP BY week",
    "weekly_growth": "SELECT week, revenue, LAG(revenue) OVER (ORDER BY week) AS before, "
    "SUM(revenue) OVER (ORDER BY week ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS three_weeks FROM weekly",
    "by_category": "SELECT i.category, c.country, SUM(i.revenue) AS revenue, SUM(i.quantity) AS pieces "
    "FROM items i JOIN orders o ON o.id = i.order_id JOIN customers c ON c.id = o.customer "
    "GROUP BY GROUPING SETS ((i.category, c.country), (i.category), ())",
    "customer_value": "SELECT c.id, c.country, COUNT(o.id) AS orders, COALESCE(SUM(o.revenue), 0) AS revenue, "
    "MAX(o.at) AS last_order FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id, c.country",
    "customer_score": "SELECT id, country, CASE WHEN revenue > 150 THEN 'gold' WHEN orders > 1 THEN 'silver' "
    "ELSE 'new' END AS score, RANK() OVER (PARTITION BY country ORDER BY revenue DESC) AS place FROM customer_value",
    "stock": "SELECT product, SUM(change) AS on_hand, MAX_BY(change, at) AS last_change FROM raw_stock "
    "GROUP BY product",
    "to_reorder": "SELECT p.id, p.name, COALESCE(s.on_hand, 0) AS on_hand FROM raw_products p LEFT JOIN stock s "
    "ON s.product = p.id WHERE COALESCE(s.on_hand, 0) < (SELECT AVG(on_hand) FROM stock)",
    "funnel": "SELECT product, COUNT_IF(kind = 'view') AS views, COUNT_IF(kind = 'cart') AS carts, "
    "COUNT(DISTINCT customer) FILTER (WHERE kind = 'buy') AS buyers, MEDIAN(ms) AS ms FROM clicks "
    "WHERE product IS NOT NULL GROUP BY product",
    "never_ordered": "SELECT c.id, c.email FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o "
    "WHERE o.customer = c.id) AND c.id IN (SELECT customer FROM clicks WHERE kind = 'cart')",
    "best_sellers": "SELECT category, product, revenue FROM (SELECT category, product, SUM(revenue) AS revenue, "
    "ROW_NUMBER() OVER (PARTITION BY category ORDER BY SUM(revenue) DESC, product) AS place FROM items "
    "GROUP BY category, product) WHERE place <= 2",
    "top_customers": "SELECT id, revenue FROM customer_value ORDER BY revenue DESC, id LIMIT 3",
    "tag_revenue": "SELECT t.tag, SUM(i.revenue) AS revenue FROM items i JOIN product_tags t ON t.product = i.product "
    "GROUP BY t.tag HAVING SUM(i.revenue) > 10",
}
