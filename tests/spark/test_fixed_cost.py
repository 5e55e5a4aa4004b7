"""Fixed cost: what a refresh asks of the catalog, of logs and of the parser is counted, and does not creep up.

Times say more of the machine than of the code, so none is measured here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from deltalake import DeltaTable
from py4j.java_gateway import GatewayClient
from sqlalchemy import event

import penstock
from connect_server import OVER_CONNECT
from oracle import assert_all_fresh, assert_fresh
from penstock.engine import planning
from penstock.frames import limits
from penstock.sql import query
from penstock.storage import delta_log, row_groups, view_table
from penstock.storage.file_cache import FILES


class Counts(Counter[str]):
    """What was done since it was last cleared; ``texts`` are those that were parsed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def clear(self) -> None:
        super().clear()
        self.texts.clear()


@pytest.fixture
def counts(db: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    found, parse, engine = Counts(), sqlglot.parse, db._catalog._engine

    class Counted(DeltaTable):
        def __init__(self, *arguments: Any, **options: Any):
            found["opened"] += 1
            super().__init__(*arguments, **options)

    def counted(text: str, *arguments: Any, **options: Any) -> Any:
        found["parsed"] += 1
        found.texts.append(text)
        return parse(text, *arguments, **options)

    def executed(*about: Any) -> None:
        found["statements"] += 1

    def begun(*about: Any) -> None:
        found["transactions"] += 1

    monkeypatch.setattr(sqlglot, "parse", counted)
    for module in (delta_log, view_table):
        monkeypatch.setattr(module, "DeltaTable", Counted)
    event.listen(engine, "before_cursor_execute", executed)
    event.listen(engine, "begin", begun)
    yield found
    event.remove(engine, "before_cursor_execute", executed)
    event.remove(engine, "begin", begun)


def as_in_a_new_process() -> None:
    """Forget what a process has learnt."""
    FILES.clear()
    planning._planned.cache_clear()
    query._parse.cache_clear()


def fill(db: penstock.Database) -> None:
    for name in ("orders", "refunds"):
        db.sql(f"CREATE TABLE {name} (id INT, region STRING, amount INT)")
        db.sql(f"INSERT INTO {name} VALUES (1, 'eu', 10), (2, 'us', 20)")


def add_views(db: penstock.Database, first: int, last: int) -> None:
    """Three views for each number: of the two tables, and one that reads another."""
    for i in range(first, last):
        db.create_view(f"totals{i}", f"SELECT region, SUM(amount) + {i} AS total FROM orders GROUP BY region")
        db.create_view(f"large{i}", f"SELECT region, total FROM totals{i} WHERE total > {i}")
        db.create_view(f"paid{i}", f"SELECT o.id, r.amount + {i} AS n FROM orders o JOIN refunds r ON o.id = r.id")


def test_finding_many_views_idle_asks_as_much_as_finding_few(db: penstock.Database, counts: Counts) -> None:
    fill(db)
    found = []
    for first, last in ((0, 1), (1, 4)):
        add_views(db, first, last)
        db.refresh()
        as_in_a_new_process()
        counts.clear()
        db.refresh()
        found.append((counts["transactions"], counts["statements"], counts["parsed"], counts["opened"]))
        assert_all_fresh(db, "NO_DATA")
    few, many = found
    assert few == many
    assert many[2] == 0, "nothing is parsed"
    assert many[3] <= 2, "of all tables only the two sources may be opened"
    assert many[0] <= 6


def test_another_penstock_plans_once_and_says_that_it_has(
    db: penstock.Database, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db)
    add_views(db, 0, 1)
    as_in_a_new_process()
    monkeypatch.setattr(planning, "_planner", lambda: "another")
    counts.clear()
    db.refresh()
    assert counts["parsed"] == 3, "each view's plan is made, and found to be the same"
    assert_all_fresh(db, "NO_DATA")
    as_in_a_new_process()
    counts.clear()
    db.refresh()
    assert counts["parsed"] == 0
    db.sql("INSERT INTO orders VALUES (3, 'eu', 30)")
    db.refresh()
    assert_all_fresh(db, "INCREMENTAL")


def test_a_further_view_of_a_small_change_costs_one_look_at_leases_and_opens_no_table(
    db: penstock.Database, counts: Counts
) -> None:
    fill(db)
    found = []
    for first, last in ((0, 2), (2, 6)):
        for i in range(first, last):
            db.create_view(f"v{i}", f"SELECT region, SUM(amount) + {i} AS total FROM orders GROUP BY region")
            db.create_view(f"w{i}", f"SELECT id, amount + {i} AS n FROM orders")
        for _ in range(2):
            db.sql("INSERT INTO orders VALUES (3, 'eu', 30)")
            counts.clear()
            db.refresh()
        for name in (f"v{first}", f"w{first}"):
            assert_fresh(db, name, "INCREMENTAL")
        found.append(Counter(counts))
    few, many = found
    further = {what: (many[what] - few[what]) / 8 for what in ("transactions", "statements", "parsed", "opened")}
    assert further == {"transactions": 1, "statements": 2, "parsed": 0, "opened": 0}


@pytest.mark.parametrize(
    "written",
    [
        "SELECT region, COUNT(*) AS n FROM orders WHERE amount > 1 GROUP BY region",
        "SELECT o.id, (SELECT MAX(r.amount) FROM refunds r WHERE r.id = o.id) AS m FROM orders o",
        "TABLE orders",
    ],
)
def test_creating_a_view_parses_its_text_once(db: penstock.Database, counts: Counts, written: str) -> None:
    fill(db)
    for create in (
        lambda: db.sql(f"CREATE MATERIALIZED VIEW\n v AS\n {written}\n REFRESH POLICY INCREMENTAL STRICT"),
        lambda: db.create_view("v", written, policy="INCREMENTAL STRICT"),
    ):
        as_in_a_new_process()
        counts.clear()
        create()
        own = [text for text in counts.texts if query.whole(written) in text or written in text]
        assert own == [query.whole(written)]
        db.drop_view("v")


def test_rows_marked_in_a_file_that_was_read_before_are_taken_from_memory(
    db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "READ_ROWS", -1)  # Spark writes: marks, and no rows in the change feed
    db.sql("CREATE TABLE t (id INT, name STRING, at TIMESTAMP, amount DECIMAL(10,2))")
    db.sql(
        "INSERT INTO t SELECT /*+ COALESCE(1) */ id, IF(id % 7 = 0, NULL, concat('n', id % 5)), "
        "timestamp_seconds(id), id / 4 FROM range(500)"
    )
    db.create_view("large", "SELECT id, name, at, amount FROM t WHERE amount > 10")
    db.create_view("sums", "SELECT name, SUM(amount) AS total FROM t GROUP BY name")
    opened = []
    real = row_groups.GroupColumns._keep

    def keep(self: row_groups.GroupColumns, names: Sequence[str], rows: pa.Table) -> None:
        opened.append(sorted(names))
        real(self, names, rows)

    monkeypatch.setattr(row_groups.GroupColumns, "_keep", keep)
    FILES.clear()
    for number in (3, 4):
        db.sql(f"DELETE FROM t WHERE id % 10 = {number}")
        db.refresh()
        assert_all_fresh(db, "INCREMENTAL")
        read = {name for names in opened for name in names}
        assert ("amount" in read) == (number == 3), read
        opened.clear()


def test_a_refresh_asks_little_of_java(db: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    if OVER_CONNECT:
        pytest.skip("there is no Java to talk to")
    fill(db)
    add_views(db, 0, 1)
    sent: list[int] = []
    send = GatewayClient.send_command

    def counted(self: GatewayClient, command: str, *rest: Any, **options: Any) -> str:
        answer: str = send(self, command, *rest, **options)
        if not command.startswith("m\n"):  # that a Java object is not needed any more
            sent.append(len(answer))
        return answer

    for number in range(3):
        db.sql(f"INSERT INTO orders VALUES ({number}, 'eu', 30)")
        monkeypatch.setattr(GatewayClient, "send_command", counted)
        sent.clear()
        db.refresh()
        monkeypatch.undo()
    assert_all_fresh(db, "INCREMENTAL")
    assert 0 < len(sent) <= 80
    assert max(sent) < 8_000, "a longer answer waits 40 ms in the network's buffers"
