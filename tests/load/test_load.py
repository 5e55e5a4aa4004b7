"""The load test, some seconds of it: that all of it works, and that it finds what is planted."""

from __future__ import annotations

from pathlib import Path

from clients import Reader, Writer
from http_server import Server
from ledger import ACCOUNTS, found_ledger
from pyspark.sql import SparkSession

import penstock
from load import Load


def test_a_short_load_and_planted_faults(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    with penstock.connect(warehouse) as db:
        found_ledger(db)
        load = Load(warehouse, 6, 7, readers=6, writers=2, processes=1)
        load.run()
        assert load.seen.problems == []
        figures = load.figures()
        assert {"read by key", "read of a list", "query", "write"} <= set(figures["requests"])
        assert figures["memory"]["MiB at the end"] > 10
        load.judge(db)
        assert load.seen.problems == []
        load.seen.balances[0] += 1
        db.sql("UPDATE tb_account SET amount = amount + 1 WHERE pk_account = 3")
        load.judge(db)
    found = " ".join(load.seen.problems)
    for told in ("account 0 has", "account 3 has", f"{ACCOUNTS * 1000 + 1} in all at the end", "branches have"):
        assert told in found, found
    server = Server("-w", f"shop={warehouse}")
    reader = Reader(server.url, 1, float("inf"))
    for _ in range(150):
        reader.step()
    server.stop()
    found = " ".join(reader.seen.problems)
    for told in ("branches have 400001", "totals: 400001 in 20 rows", "everyone: 400001 in 400 rows"):
        assert told in found, found


def test_a_server_that_is_gone_is_told() -> None:
    nobody = "http://127.0.0.1:1"
    for asker in (Reader(nobody, 1, float("inf")), Writer(nobody, 1, float("inf"), 0, 1)):
        assert "ended: ConnectionRefusedError" in asker.run().problems[0]
