"""The views of a brokerage, inputs before readers: staging, dimensions with their history, facts, and marts.

A dimension has a row for each version of a thing, with the seconds from when and until when it held. Facts find the
version that held at their moment by BETWEEN.
"""

from __future__ import annotations

_FOREVER = "TIMESTAMP '9999-12-31 00:00:00'"
_VERSIONS = (
    f"valid_from, COALESCE(next_from - INTERVAL 1 SECOND, {_FOREVER}) AS valid_to, next_from IS NULL AS is_current"
)


def _next(key: str, at: str = "at", order: str = "at, id") -> str:
    """When the next version of a thing begins."""
    return f"LEAD({at}) OVER (PARTITION BY {key} ORDER BY {order}) AS next_from"


def _filled(key: str, *columns: str) -> str:
    """Columns that a change leaves empty, from the last change that said them."""
    over = f"OVER (PARTITION BY {key} ORDER BY at, id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    return ", ".join(f"LAST_VALUE({column}) IGNORE NULLS {over} AS {column}" for column in columns)


_CUSTOMER = (
    "tax_id", "last_name", "first_name", "gender", "tier", "born", "city", "country", "email", "tax",
)  # fmt: skip

STAGING = {
    "st_companies": """
        SELECT id, TO_TIMESTAMP(SUBSTRING(line, 1, 15), 'yyyyMMdd-HHmmss') AS at, TRIM(SUBSTRING(line, 19,
               60)) AS name,
               CAST(SUBSTRING(line, 79, 10) AS INT) AS company, SUBSTRING(line, 89, 4) AS status,
               SUBSTRING(line, 93, 2) AS industry, TRIM(SUBSTRING(line, 95, 4)) AS rating,
               TO_DATE(SUBSTRING(line, 99, 8), 'yyyyMMdd') AS founded
        FROM statements WHERE SUBSTRING(line, 16, 3) = 'CMP'""",
    "st_securities": """
        SELECT id, TO_TIMESTAMP(SUBSTRING(line, 1, 15), 'yyyyMMdd-HHmmss') AS at, TRIM(SUBSTRING(line, 19,
               15)) AS symbol,
               TRIM(SUBSTRING(line, 34, 6)) AS issue, SUBSTRING(line, 40, 4) AS status,
               TRIM(SUBSTRING(line, 44, 70)) AS name, TRIM(SUBSTRING(line, 114, 6)) AS exchange,
               CAST(SUBSTRING(line, 120, 13) AS BIGINT) AS shares,
               CAST(CAST(SUBSTRING(line, 133, 8) AS INT) / 100 AS DECIMAL(10,2)) AS dividend,
               CAST(SUBSTRING(line, 141, 10) AS INT) AS company
        FROM statements WHERE SUBSTRING(line, 16, 3) = 'SEC'""",
    "st_financials": """
        SELECT id, TO_TIMESTAMP(SUBSTRING(line, 1, 15), 'yyyyMMdd-HHmmss') AS at,
               CAST(SUBSTRING(line, 19, 4) AS INT) AS year, CAST(SUBSTRING(line, 23, 1) AS INT) AS quarter,
               CAST(TRIM(SUBSTRING(line, 24, 17)) AS BIGINT) AS revenue,
               CAST(TRIM(SUBSTRING(line, 41, 17)) AS BIGINT) AS earnings,
               CAST(TRIM(SUBSTRING(line, 58, 13)) AS BIGINT) AS shares, CAST(SUBSTRING(line, 71,
               10) AS INT) AS company
        FROM statements WHERE SUBSTRING(line, 16, 3) = 'FIN'""",
    "st_customers": """
        SELECT id, customer, at, kind, tax_id, TRIM(last_name) AS last_name, TRIM(first_name) AS first_name,
               CASE UPPER(gender) WHEN 'F' THEN 'F' WHEN 'M' THEN 'M' ELSE 'U' END AS gender, tier, born, city,
               UPPER(country) AS country, LOWER(email) AS email, tax,
               CASE kind WHEN 'INACT' THEN 'INAC' ELSE 'ACTV' END AS status
        FROM customer_events""",
    "st_accounts": """
        SELECT id, account, customer, broker, at, kind, status, TRIM(title) AS title FROM account_events""",
    "st_trades": """
        SELECT e.id, e.trade, e.at, e.status, s.name AS status_name, e.kind, t.name AS kind_name, t.sells, e.symbol,
               e.quantity, e.bid, e.account, e.price, e.fee, e.commission
        FROM trade_events e JOIN status_types s ON s.code = e.status JOIN trade_types t ON t.code = e.kind""",
    "st_cash": """
        SELECT id, account, at, CAST(at AS DATE) AS day, amount, TRIM(note) AS note FROM cash_entries""",
    "st_watches": """
        SELECT id, customer, symbol, at, CASE action WHEN 'ACTV' THEN 'begins' WHEN 'CNCL' THEN 'ends' END AS step
        FROM watch_events""",
    "st_market": """
        SELECT symbol, day, close, high, low, volume, CAST(close * volume AS DECIMAL(20,2)) AS turnover
        FROM daily_market WHERE volume > 0""",
    "st_prospects": """
        SELECT id, batch, UPPER(TRIM(last_name)) AS last_name, UPPER(TRIM(first_name)) AS first_name,
               COALESCE(UPPER(gender), 'U') AS gender, city, income, cars, children, age, credit, owns, worth
        FROM prospects
        UNION ALL
        SELECT id + 1000000000, batch, UPPER(TRIM(last_name)), UPPER(TRIM(first_name)), COALESCE(UPPER(gender),
               'U'), city,
               income, cars, children, age, credit, owns, worth
        FROM prospects_late""",
    "st_holdings": """
        SELECT id, trade, bought_by, before, after, after - before AS change FROM holding_entries""",
}

DIMENSIONS = {
    "dim_broker": """
        SELECT MD5(CAST(broker AS STRING) || '|' || branch) AS broker_key, broker,
               first_name || ' ' || last_name AS name, branch
        FROM brokers WHERE job = 314 OR job < 313""",
    "company_versions": f"""
        SELECT id, company, name, status, industry, rating, founded, at AS valid_from, {_next("company")}
               FROM st_companies""",
    "dim_company": f"""
        SELECT MD5(CAST(v.company AS STRING) || '|' || CAST(v.valid_from AS STRING)) AS company_key, v.company,
               v.name,
               s.name AS status, i.name AS industry, i.sector, v.rating,
               CASE WHEN v.rating LIKE 'A%' THEN FALSE WHEN v.rating LIKE 'BB%' THEN FALSE ELSE TRUE END AS low_grade,
               v.founded, {_VERSIONS}
        FROM company_versions v JOIN status_types s ON s.code = v.status JOIN industries i ON i.code = v.industry""",
    "security_versions": f"""
        SELECT id, symbol, issue, status, name, exchange, shares, dividend, company, at AS valid_from,
               {_next("symbol")}
        FROM st_securities""",
    "dim_security": """
        SELECT MD5(v.symbol || '|' || CAST(v.valid_from AS STRING)) AS security_key, v.symbol, v.name, v.exchange,
               v.status,
               v.shares, v.dividend, c.company_key, c.company, c.sector, v.valid_from,
               COALESCE(v.next_from - INTERVAL 1 SECOND, TIMESTAMP '9999-12-31 00:00:00') AS valid_to,
               v.next_from IS NULL AS is_current
        FROM security_versions v LEFT JOIN dim_company c
          ON c.company = v.company AND v.valid_from BETWEEN c.valid_from AND c.valid_to""",
    "customers_filled": f"""
        SELECT id, customer, at, kind, status, {_filled("customer", *_CUSTOMER)}
        FROM st_customers""",
    "customer_versions": f"""
        SELECT id, customer, status, tax_id, last_name, first_name, gender, tier, born, city, country, email, tax,
               at AS valid_from, {_next("customer")}
        FROM customers_filled""",
    "dim_customer": f"""
        SELECT MD5(CAST(v.customer AS STRING) || '|' || CAST(v.valid_from AS STRING)) AS customer_key, v.customer,
               v.status,
               v.tax_id, v.last_name, v.first_name, v.gender, v.tier, v.born, v.city, v.country, v.email,
               t.name AS tax_name,
               t.rate AS tax_rate, {_VERSIONS}
        FROM customer_versions v LEFT JOIN tax_rates t ON t.code = v.tax""",
    "current_customers": "SELECT * FROM dim_customer WHERE is_current",
    "customer_moves": """
        SELECT customer, valid_from, city, tier, city_before, tier_before,
               CASE WHEN tier > tier_before THEN 'up' WHEN tier < tier_before THEN 'down' ELSE 'same' END AS went
        FROM (SELECT customer, valid_from, city, tier,
                     LAG(city) OVER (PARTITION BY customer ORDER BY valid_from, customer_key) AS city_before,
                     LAG(tier) OVER (PARTITION BY customer ORDER BY valid_from, customer_key) AS tier_before
                     FROM dim_customer)
        WHERE city <> city_before OR tier <> tier_before""",
    "accounts_filled": f"""
        SELECT id, account, customer, at, {_filled("account", "broker", "status", "title")} FROM st_accounts""",
    "account_versions": f"""
        SELECT id, account, customer, broker, status, title, at AS valid_from, {_next("account")}
               FROM accounts_filled""",
    "dim_account": f"""
        SELECT MD5(CAST(v.account AS STRING) || '|' || CAST(v.valid_from AS STRING)) AS account_key, v.account,
               v.customer,
               v.broker, b.broker_key, COALESCE(b.branch, 'none') AS branch, v.status, v.title, {_VERSIONS}
        FROM account_versions v LEFT JOIN dim_broker b ON b.broker = v.broker""",
    "current_accounts": """
        SELECT a.account_key, a.account, a.broker, a.branch, a.status, c.customer_key, c.customer, c.tier, c.country
        FROM dim_account a JOIN current_customers c ON c.customer = a.customer WHERE a.is_current""",
    "dim_prospect": """
        SELECT p.id, p.batch, p.last_name, p.first_name, p.gender, p.city, c.customer IS NOT NULL AS is_customer,
               TRIM(BOTH '+' FROM
                 CASE WHEN p.worth > 1000000 OR p.income > 200000 THEN 'high' ELSE '' END || '+' ||
                 CASE WHEN p.children > 3 OR p.cars > 3 THEN 'expenses' ELSE '' END || '+' ||
                 CASE WHEN p.age > 45 THEN 'boomer' ELSE '' END || '+' ||
                 CASE WHEN p.credit < 600 AND p.owns = 'R' THEN 'alert' ELSE '' END) AS tags
        FROM st_prospects p LEFT JOIN current_customers c
          ON UPPER(c.last_name) = p.last_name AND UPPER(c.first_name) = p.first_name AND c.city = p.city""",
}

FACTS = {
    "trade_progress": """
        SELECT trade, MIN(at) AS created_at, MAX(CASE WHEN status IN ('CMPT', 'CNCL') THEN at END) AS closed_at,
               MAX_BY(status, id) AS status, COUNT(*) AS events FROM st_trades GROUP BY trade""",
    "trade_details": """
        SELECT t.id, t.trade, p.created_at, p.closed_at, t.status, t.kind_name, t.sells, t.symbol, t.quantity, t.bid,
               t.account, t.price, t.fee, t.commission, CAST(t.price * t.quantity AS DECIMAL(18,2)) AS value
        FROM st_trades t JOIN trade_progress p ON p.trade = t.trade AND t.at = p.closed_at WHERE t.status = 'CMPT'""",
    "fact_trades": """
        SELECT t.trade, t.created_at, t.closed_at, CAST(t.closed_at AS DATE) AS day, t.kind_name, t.sells,
               s.security_key,
               t.symbol, s.company_key, s.sector, a.account_key, t.account, a.customer, a.broker, a.branch,
               t.quantity, t.bid,
               t.price, t.value, t.fee, t.commission
        FROM trade_details t
        JOIN dim_account a ON a.account = t.account AND t.created_at BETWEEN a.valid_from AND a.valid_to
        JOIN dim_security s ON s.symbol = t.symbol AND t.created_at BETWEEN s.valid_from AND s.valid_to""",
    "cash_days": """
        SELECT account, day, SUM(amount) AS amount, COUNT(*) AS entries FROM st_cash GROUP BY account, day""",
    "fact_cash": """
        SELECT account, day, amount,
               SUM(amount) OVER (PARTITION BY account ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING
               AND CURRENT ROW) AS balance
        FROM cash_days""",
    "fact_holdings": """
        SELECT h.id, h.trade, h.bought_by, h.before, h.after, h.change, t.account_key, t.account, t.customer,
               t.security_key,
               t.symbol, t.day, t.price
        FROM st_holdings h JOIN fact_trades t ON t.trade = h.trade""",
    "fact_watches": """
        SELECT customer, symbol, MIN(CASE step WHEN 'begins' THEN at END) AS begun_at,
               MAX(CASE step WHEN 'ends' THEN at END) AS ended_at, COUNT(*) AS steps
        FROM st_watches GROUP BY customer, symbol""",
    "market_year": """
        SELECT symbol, day, close, high, low, volume, turnover,
               MAX(high) OVER (PARTITION BY symbol ORDER BY day RANGE BETWEEN INTERVAL 364 DAYS PRECEDING
               AND CURRENT ROW) AS year_high,
               MIN(low) OVER (PARTITION BY symbol ORDER BY day RANGE BETWEEN INTERVAL 364 DAYS PRECEDING
               AND CURRENT ROW) AS year_low
        FROM st_market""",
    "market_sessions": """
        SELECT symbol, day, close,
               MAX(high) OVER (PARTITION BY symbol ORDER BY day ROWS BETWEEN 251 PRECEDING
               AND CURRENT ROW) AS sessions_high,
               MIN(low) OVER (PARTITION BY symbol ORDER BY day ROWS BETWEEN 251 PRECEDING
               AND CURRENT ROW) AS sessions_low,
               LAG(close) OVER (PARTITION BY symbol ORDER BY day) AS close_before
        FROM st_market""",
    "quarters": """
        SELECT company, year, quarter, MAX_BY(earnings, id) AS earnings, MAX_BY(revenue, id) AS revenue,
               MAX_BY(shares, id) AS shares FROM st_financials GROUP BY company, year, quarter""",
    "rolling_earnings": """
        SELECT company, year, quarter, earnings,
               SUM(earnings) OVER (PARTITION BY company ORDER BY year, quarter ROWS BETWEEN 3 PRECEDING
               AND CURRENT ROW) AS year_earnings,
               LEAD(revenue) OVER (PARTITION BY company ORDER BY year, quarter) AS revenue_after
        FROM quarters""",
    "fact_market": """
        SELECT m.symbol, m.day, s.security_key, s.company, s.sector, m.close, m.volume, m.turnover, m.year_high,
               m.year_low,
               CAST(s.dividend / m.close AS DECIMAL(12,6)) AS yield, e.year_earnings
        FROM market_year m
        JOIN dim_security s ON s.symbol = m.symbol AND CAST(m.day AS TIMESTAMP) BETWEEN s.valid_from AND s.valid_to
        LEFT JOIN rolling_earnings e ON e.company = s.company AND e.year = YEAR(m.day)
        AND e.quarter = QUARTER(m.day)""",
}

MARTS = {
    "broker_months": """
        SELECT broker, branch, DATE_TRUNC('MONTH', closed_at) AS month, COUNT(*) AS trades, SUM(value) AS value,
               SUM(commission) AS commission FROM fact_trades GROUP BY broker, branch, DATE_TRUNC('MONTH',
               closed_at)""",
    "branch_ranks": """
        SELECT branch, month, commission, RANK() OVER (PARTITION BY month ORDER BY commission DESC) AS place
        FROM (SELECT branch, month, SUM(commission) AS commission FROM broker_months GROUP BY branch, month)""",
    "trading_days": """
        SELECT day, kind_name, COUNT(*) AS trades, SUM(quantity) AS quantity, SUM(value) AS value,
               MIN(price) AS lowest,
               MAX(price) AS highest FROM fact_trades GROUP BY day, kind_name""",
    "sector_days": """
        SELECT sector, day, SUM(turnover) AS turnover, COUNT(*) AS securities, MAX(yield) AS best_yield
        FROM fact_market GROUP BY sector, day""",
    "sector_months": """
        SELECT sector, DATE_TRUNC('MONTH', day) AS month, SUM(turnover) AS turnover, AVG(turnover) AS a_day
        FROM sector_days GROUP BY sector, DATE_TRUNC('MONTH', day)""",
    "new_highs": """
        SELECT symbol, day, close, year_high FROM market_year WHERE high = year_high""",
    "jumps": """
        SELECT symbol, day, close, close_before, CASE WHEN close > close_before THEN 'up' ELSE 'down' END AS went
        FROM market_sessions WHERE ABS(close - close_before) > close_before * 0.04""",
    "traded_securities": """
        SELECT symbol, sector, COUNT(*) AS trades, SUM(value) AS value FROM fact_trades GROUP BY symbol, sector""",
    "top_securities": """
        SELECT sector, symbol, value, place FROM (
          SELECT sector, symbol, value, ROW_NUMBER() OVER (PARTITION BY sector ORDER BY value DESC, symbol) AS place
          FROM traded_securities) WHERE place <= 10""",
    "account_balances": """
        SELECT account, SUM(amount) AS balance, SUM(entries) AS entries, MAX(day) AS last_day
               FROM cash_days GROUP BY account""",
    "customer_worth": """
        SELECT a.customer, a.tier, a.country, COUNT(*) AS accounts, COALESCE(SUM(b.balance), 0) AS cash
        FROM current_accounts a LEFT JOIN account_balances b ON b.account = a.account
        GROUP BY a.customer, a.tier, a.country""",
    "tier_summary": """
        SELECT tier, country, COUNT(*) AS customers, SUM(cash) AS cash, MAX(cash) AS richest FROM customer_worth
        GROUP BY tier, country""",
    "idle_accounts": """
        SELECT a.account, a.customer, a.branch FROM current_accounts a
        WHERE NOT EXISTS (SELECT 1 FROM fact_trades t WHERE t.account = a.account)
          AND NOT EXISTS (SELECT 1 FROM cash_days c WHERE c.account = a.account)""",
    "watched_and_traded": """
        SELECT w.customer, w.symbol, w.begun_at FROM fact_watches w
        WHERE w.ended_at IS NULL AND EXISTS (SELECT 1 FROM fact_trades t WHERE t.customer = w.customer
        AND t.symbol = w.symbol)""",
    "watch_counts": """
        SELECT symbol, COUNT(*) AS watchers, COUNT(DISTINCT customer) AS customers FROM fact_watches
        WHERE ended_at IS NULL GROUP BY symbol""",
    "holdings_now": """
        SELECT account, symbol, SUM(change) AS quantity, MAX(day) AS last_day FROM fact_holdings
        GROUP BY account, symbol HAVING SUM(change) <> 0""",
    "fee_outliers": """
        SELECT t.trade, t.broker, t.fee, u.usual FROM fact_trades t
        JOIN (SELECT broker, AVG(fee) AS usual FROM fact_trades GROUP BY broker) u ON u.broker = t.broker
        WHERE t.fee > u.usual * 1.8""",
    "prospect_tags": """
        SELECT tags, is_customer, COUNT(*) AS people FROM dim_prospect WHERE tags <> '' GROUP BY tags, is_customer""",
    "oddities": """
        SELECT 'trade without account' AS what, COUNT(*) AS n FROM trade_details t
        WHERE NOT EXISTS (SELECT 1 FROM dim_account a WHERE a.account = t.account)
        UNION ALL
        SELECT 'negative balance', COUNT(*) FROM account_balances WHERE balance < 0
        UNION ALL
        SELECT 'low grade with a new high', COUNT(*) FROM new_highs h
               JOIN dim_security s ON s.symbol = h.symbol AND s.is_current
        JOIN dim_company c ON c.company = s.company AND c.is_current WHERE c.low_grade""",
}

LAYERS = {"staging": STAGING, "dimensions": DIMENSIONS, "facts": FACTS, "marts": MARTS}

VIEWS = {name: query.strip() for layer in LAYERS.values() for name, query in layer.items()}
