"""A shop with views of every kind that the Studio draws: fresh, late, failing, suspended, recomputed, in groups."""

from __future__ import annotations

from penstock import Database
from penstock.errors import RefreshError

TABLES = """
CREATE TABLE orders (order_id INT, customer_id INT, region STRING, amount DECIMAL(10,2), status STRING);
CREATE TABLE customers (customer_id INT, name STRING, country STRING);
CREATE TABLE products (product_id INT, title STRING, category STRING, price DECIMAL(10,2), packs INT);
CREATE TABLE lines (order_id INT, product_id INT, quantity INT);
CREATE TABLE tb_author (pk_author INT, id STRING, name STRING);
CREATE TABLE tb_post (pk_post INT, id STRING, fk_author INT, title STRING);
INSERT INTO customers VALUES (1, 'Ada', 'UK'), (2, 'Grace', 'US'), (3, 'Edsger', 'NL'), (4, 'Barbara', 'US');
INSERT INTO products VALUES (1, 'Kettle', 'kitchen', 29.90, 4), (2, 'Lamp', 'living', 49.00, 2), (3, 'Rug', 'living', 120.00, 1);
INSERT INTO orders VALUES (1, 1, 'eu', 59.80, 'paid'), (2, 2, 'us', 49.00, 'paid'), (3, 3, 'eu', 149.90, 'open');
INSERT INTO lines VALUES (1, 1, 2), (2, 2, 1), (3, 3, 1), (3, 1, 1);
INSERT INTO tb_author VALUES (1, 'a-1', 'Ada'), (2, 'a-2', 'Grace');
INSERT INTO tb_post VALUES (1, 'p-1', 1, 'Hello'), (2, 'p-2', 2, 'On kettles'), (3, 'p-3', 1, 'On rugs')
"""

VIEWS = """
CREATE MATERIALIZED VIEW sales_by_region REFRESH IMMEDIATE AS
  SELECT region, COUNT(*) AS orders, SUM(amount) AS revenue FROM orders WHERE status = 'paid' GROUP BY region;
CREATE MATERIALIZED VIEW sales_by_customer TARGET LAG '2 hours' AS
  SELECT customer_id, COUNT(*) AS orders, SUM(amount) AS revenue FROM orders GROUP BY customer_id;
CREATE MATERIALIZED VIEW sales_by_country TARGET LAG '30 minutes' AS
  SELECT c.country, SUM(s.revenue) AS revenue FROM sales_by_customer s JOIN customers c USING (customer_id) GROUP BY c.country;
CREATE MATERIALIZED VIEW sales_board TARGET LAG '1 hour' AS
  SELECT c.name, s.orders, s.revenue, n.revenue AS country_revenue FROM sales_by_customer s
    JOIN customers c ON c.customer_id = s.customer_id JOIN sales_by_country n ON n.country = c.country;
CREATE MATERIALIZED VIEW stock_sold TARGET LAG '10 minutes' AS
  SELECT p.product_id, p.title, p.category, SUM(l.quantity) AS sold, SUM(l.quantity * p.price) AS worth
    FROM lines l JOIN products p ON p.product_id = l.product_id GROUP BY p.product_id, p.title, p.category;
CREATE MATERIALIZED VIEW stock_by_category REFRESH ON COMMIT AS
  SELECT category, SUM(sold) AS sold, SUM(worth) AS worth FROM stock_sold GROUP BY category;
CREATE MATERIALIZED VIEW stock_best REFRESH EVERY 5 MINUTES AS
  SELECT title, sold FROM stock_sold ORDER BY sold DESC LIMIT 2;
CREATE MATERIALIZED VIEW stock_packs AS SELECT product_id, title, 12 / packs AS per_pack FROM products;
CREATE MATERIALIZED VIEW stock_packs_dear AS SELECT product_id, title FROM stock_packs WHERE per_pack > 5;
CREATE MATERIALIZED VIEW audit_orders REFRESH POLICY FULL AS SELECT status, COUNT(*) AS orders FROM orders GROUP BY status;
CREATE MATERIALIZED VIEW audit_names AS SELECT country, FIRST(name) AS somebody FROM customers GROUP BY country;
CREATE MATERIALIZED VIEW audit_customers TARGET LAG '1 day' AS SELECT COUNT(*) AS customers FROM customers;
CREATE TABLE tv_author AS SELECT pk_author, id, jsonb_build_object('id', id, 'name', name) AS data FROM tb_author;
CREATE TABLE tv_post AS
  SELECT p.pk_post, p.id, p.fk_author, a.id AS author_id,
         jsonb_build_object('id', p.id, 'title', p.title, 'author', v_author.data) AS data
    FROM tb_post p JOIN tb_author a ON a.pk_author = p.fk_author JOIN v_author ON v_author.pk_author = p.fk_author
"""


def stock(db: Database) -> None:
    for statement in (TABLES + ";" + VIEWS).split(";"):
        db.sql(statement.strip())
    db.sql("INSERT INTO orders VALUES (4, 2, 'us', 98.00, 'paid'), (5, 4, 'us', 29.90, 'open')")
    db.sql("INSERT INTO lines VALUES (4, 2, 2), (5, 1, 1)")
    db.refresh()
    db.sql("UPDATE orders SET status = 'paid' WHERE order_id = 3")
    db.refresh()
    db.refresh("stock_sold", full=True)
    db.sql("ALTER MATERIALIZED VIEW audit_customers SUSPEND")
    db.sql("INSERT INTO products VALUES (4, 'Vase', 'living', 15.00, 0)")  # nothing can be divided by its packs
    try:
        db.refresh("stock_packs")
    except RefreshError:
        return
    raise AssertionError("stock_packs should have failed")
