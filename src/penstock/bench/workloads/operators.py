"""One view of each operator over facts and what they refer to: the views of the workloads crossover and growth."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.contenders import Feed, HandWritten

if TYPE_CHECKING:
    from pyspark.sql import Column

ROWS_PER_FILE = 500_000
FACTS = "id BIGINT, k BIGINT, d BIGINT, amount DECIMAL(12,2), day DATE"
HEADS = "d BIGINT, region STRING, rate INT"

VIEWS = {
    "filtered": "SELECT id, k, amount FROM facts WHERE amount >= 900",
    "joined": "SELECT f.id, f.amount, h.region, f.amount * h.rate AS rated FROM facts f JOIN heads h ON h.d = f.d",
    "aggregated": "SELECT k, COUNT(*) AS n, SUM(amount) AS total FROM facts GROUP BY k",
    "join_aggregated": "SELECT h.region, f.day, COUNT(*) AS n, SUM(f.amount * h.rate) AS total FROM facts f "
    "JOIN heads h ON h.d = f.d GROUP BY h.region, f.day",
    "ranked": "SELECT id, k, amount, ROW_NUMBER() OVER (PARTITION BY k ORDER BY amount DESC, id) AS place FROM facts",
}
KINDS = {
    "filtered": "filter",
    "joined": "join",
    "aggregated": "aggregate",
    "join_aggregated": "join + aggregate",
    "ranked": "window",
}


def facts(first: int, last: int, groups: int, heads: int, clustered: bool) -> str:
    """Facts with these numbers. Clustered, neighbours share groups and heads; otherwise these are spread by a hash."""
    files = max(2, (last - first) // ROWS_PER_FILE)
    k, d = ("id DIV 100", "id DIV 10") if clustered else (f"pmod(hash(id, 1), {groups})", f"pmod(hash(id, 2), {heads})")
    return (
        f"SELECT id, CAST({k} AS BIGINT), CAST({d} AS BIGINT), CAST(pmod(hash(id, 3), 100000) / 100 AS DECIMAL(12,2)), "
        f"date_add(DATE'2024-01-01', CAST(pmod(hash(id, 4), 365) AS INT)) FROM range({first}, {last}, 1, {files})"
    )


def heads(count: int) -> str:
    files = max(2, count // ROWS_PER_FILE)
    return (
        "SELECT id, concat('region ', pmod(hash(id), 20)), CAST(1 + pmod(hash(id, 5), 9) AS INT) "
        f"FROM range(0, {count}, 1, {files})"
    )


# -- the same by hand, for changes of facts only ----------------------------------------------------------------------

_SIGN = "IF(_change_type IN ('insert', 'update_postimage'), 1, -1)"
_LAST = "_change_type <> 'update_preimage'"


def _follow_rows(view: str, where: str, columns: str, feed: Feed) -> None:
    """A row a fact: the last change of each fact decides what becomes of its row."""
    change = feed.changes("facts").where(_LAST)
    change = change.groupBy("id").agg(_expr("max_by(struct(*), _commit_version) AS c")).select("c.*")
    change.createOrReplaceTempView("__facts")
    feed.table("heads").createOrReplaceTempView("__heads")
    change = feed.spark.sql(
        f"SELECT f.id AS id, {columns}, f._change_type <> 'delete' AND {where} AS stays "
        "FROM __facts f LEFT JOIN __heads h ON h.d = f.d"
    )
    names = [name for name in change.columns if name != "stays"]
    feed.merge(
        view, change, "t.id = d.id",
        f"""WHEN MATCHED AND NOT d.stays THEN DELETE
        WHEN MATCHED THEN UPDATE SET {", ".join(f"{name} = d.{name}" for name in names)}
        WHEN NOT MATCHED AND d.stays THEN INSERT ({", ".join(names)}) VALUES ({", ".join(f"d.{n}" for n in names)})""",
    )  # fmt: skip


def _follow_groups(view: str, keys: dict[str, str], amount: str, feed: Feed) -> None:
    """Counts and sums: the change of each group is added to the stored group, which goes with its last row."""
    feed.changes("facts").createOrReplaceTempView("__facts")
    feed.table("heads").createOrReplaceTempView("__heads")
    change = feed.spark.sql(
        f"SELECT {', '.join(f'{e} AS {k}' for k, e in keys.items())}, SUM({_SIGN}) AS n, "
        f"SUM({_SIGN} * {amount}) AS total "
        f"FROM __facts f {'JOIN __heads h ON h.d = f.d ' if 'h.' in amount else ''}GROUP BY ALL"
    )
    feed.merge(
        view, change, " AND ".join(f"t.{key} = d.{key}" for key in keys),
        f"""WHEN MATCHED AND t.n + d.n = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET n = t.n + d.n, total = t.total + d.total
        WHEN NOT MATCHED AND d.n > 0 THEN INSERT ({", ".join(keys)}, n, total)
            VALUES ({", ".join(f"d.{key}" for key in keys)}, d.n, d.total)""",
    )  # fmt: skip


def _expr(text: str) -> Column:
    from pyspark.sql import functions as F

    return F.expr(text)


def by_hand() -> list[HandWritten]:
    """A pipeline for each view but the window: no one merges ranks by hand."""
    rated = "f.amount AS amount, h.region AS region, f.amount * h.rate AS rated"
    region = {"region": "h.region", "day": "f.day"}
    pipelines = {
        "filtered": partial(_follow_rows, "filtered", "f.amount >= 900", "f.k AS k, f.amount AS amount"),
        "joined": partial(_follow_rows, "joined", "h.d IS NOT NULL", rated),
        "aggregated": partial(_follow_groups, "aggregated", {"k": "f.k"}, "f.amount"),
        "join_aggregated": partial(_follow_groups, "join_aggregated", region, "f.amount * h.rate"),
    }
    return [HandWritten({view: VIEWS[view]}, follow) for view, follow in pipelines.items()]
