"""What the load test keeps and reads: accounts of branches of a bank, as tables, views and documents.

Money only moves. So the documents of branches and of the bank add up, views add up in one epoch, and whoever writes an
account alone knows what it holds. Whatever is read says whether it is right.
"""

from __future__ import annotations

from typing import Any

import penstock

ACCOUNTS, BRANCHES, EACH = 400, 20, 1_000
TOTAL = ACCOUNTS * EACH

TABLES = {
    "tb_branch": "pk_branch INT, id STRING, name STRING",
    "tb_account": "pk_account INT, id STRING, fk_branch INT, amount BIGINT, moves INT",
}
MODELS = {
    "tv_account": (
        "SELECT pk_account, id, fk_branch, jsonb_build_object('id', id, 'amount', amount, 'moves', moves) AS data "
        "FROM tb_account"
    ),
    "tv_branch": (
        "SELECT b.pk_branch, b.id, jsonb_build_object('id', b.id, 'name', b.name, 'total', SUM(a.amount), 'accounts', "
        "jsonb_agg(v_account.data ORDER BY v_account.id)) AS data FROM tb_branch b "
        "JOIN tb_account a ON a.fk_branch = b.pk_branch JOIN v_account ON v_account.pk_account = a.pk_account "
        "GROUP BY b.pk_branch, b.id, b.name"
    ),
    "tv_bank": (
        "SELECT 1 AS pk_bank, jsonb_build_object('branches', jsonb_agg(v_branch.data ORDER BY v_branch.id)) AS data "
        "FROM v_branch"
    ),
}
VIEWS = {
    "totals": ("SELECT fk_branch, SUM(amount) AS total FROM tb_account GROUP BY fk_branch", "REFRESH IMMEDIATE"),
    "rich": ("SELECT pk_account, amount FROM tb_account WHERE amount > 1000", "TARGET LAG DOWNSTREAM"),
    "poor": ("SELECT pk_account, amount FROM tb_account WHERE amount <= 1000", "TARGET LAG DOWNSTREAM"),
    "everyone": (
        "SELECT pk_account, amount FROM rich UNION ALL SELECT pk_account, amount FROM poor",
        "TARGET LAG '5 seconds'",
    ),
    "most": (
        "SELECT fk_branch, MAX(amount) AS most, SUM(amount) AS total FROM tb_account GROUP BY fk_branch",
        "REFRESH ON COMMIT",
    ),
}
QUERIES = {
    "SELECT fk_branch, total FROM totals": "total",
    "SELECT pk_account, amount FROM everyone": "amount",
    "SELECT fk_branch, total FROM most": "total",
}
"""Queries over views, and the column that adds up to what there is."""


def found_ledger(db: penstock.Database) -> None:
    """Make the tables, the models and the views; Spark is needed for that, and for nothing later."""
    for name, columns in TABLES.items():
        db.sql(f"CREATE TABLE {name} ({columns})")
    branches = [(number, f"b-{number}", f"branch {number}") for number in range(BRANCHES)]
    accounts = [(number, f"a-{number}", number % BRANCHES, EACH, 0) for number in range(ACCOUNTS)]
    for name, rows in (("tb_branch", branches), ("tb_account", accounts)):
        db.sql(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}")
    for name, query in MODELS.items():
        db.sql(f"CREATE TABLE {name} AS {query}")
    for name, (query, when) in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query} {when}")
    db.set("poll_interval", "500 milliseconds")
    db.set("file_cache", "64 MB")  # soon full, so that memory that still grows is a leak


def move(taken: int, given: int, amount: int) -> str:
    """One statement that moves money."""
    return (
        f"UPDATE tb_account SET amount = amount + CASE pk_account WHEN {taken} THEN -{amount} ELSE {amount} END, "
        f"moves = moves + 1 WHERE pk_account IN ({taken}, {given})"
    )


def wrong_branch(data: dict[str, Any]) -> str | None:
    """What is wrong in the document of a branch: its sum and its accounts come by two ways."""
    amounts = [account["amount"] for account in data["accounts"]]
    if len(amounts) != ACCOUNTS // BRANCHES:
        return f"branch {data['id']} has {len(amounts)} accounts"
    if sum(amounts) != data["total"]:
        return f"branch {data['id']} has {sum(amounts)} in its accounts, and {data['total']} in all"
    return None


def wrong_bank(branches: list[dict[str, Any]]) -> str | None:
    """What is wrong in the documents of all branches, as of one moment."""
    found = next((wrong for data in branches if (wrong := wrong_branch(data))), None)
    total = sum(data["total"] for data in branches)
    if found is None and (len(branches), total) != (BRANCHES, TOTAL):
        return f"{len(branches)} branches have {total}"
    return found


def wrong_sum(rows: list[dict[str, Any]], column: str, query: str) -> str | None:
    total = sum(row[column] for row in rows)
    return None if total == TOTAL else f"{query}: {total} in {len(rows)} rows"
