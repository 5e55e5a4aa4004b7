"""Arrays and maps that are stored, compared and taken apart on the driver, against Spark; and JSON in texts."""

from __future__ import annotations

from random import Random

import pytest

import penstock
from oracle import assert_fresh

COLUMNS = "id INT, a ARRAY<INT>, o ARRAY<STRUCT<n: INT, s: STRING>>, m MAP<STRING, INT>, j STRING"
VIEWS = {
    "plain": "SELECT * FROM t",
    "distinct_arrays": "SELECT DISTINCT a FROM t",
    "by_array": "SELECT a, COUNT(*) AS n, MIN(id) AS first FROM t GROUP BY a",
    "exploded": "SELECT id, e FROM t LATERAL VIEW EXPLODE(a) AS e",
    "outer_exploded": "SELECT id, e FROM t LATERAL VIEW OUTER EXPLODE(a) AS e",
    "explode_outer": "SELECT id, EXPLODE_OUTER(a) AS e FROM t",
    "placed": "SELECT id, p, e FROM t LATERAL VIEW POSEXPLODE(a) AS p, e",
    "placed_outer": "SELECT id, p, e FROM t LATERAL VIEW POSEXPLODE_OUTER(a) AS p, e",
    "of_map": "SELECT id, k, v FROM t LATERAL VIEW EXPLODE(m) AS k, v",
    "of_map_outer": "SELECT id, k, v FROM t LATERAL VIEW EXPLODE_OUTER(m) AS k, v",
    "placed_map": "SELECT id, p, k, v FROM t LATERAL VIEW POSEXPLODE(m) AS p, k, v",
    "inlined": "SELECT id, n, s FROM t LATERAL VIEW INLINE(o) AS n, s",
    "inlined_outer": "SELECT id, n, s FROM t LATERAL VIEW INLINE_OUTER(o) AS n, s",
    "inlined_here": "SELECT id, x FROM t LATERAL VIEW INLINE(ARRAY(STRUCT(id AS v), STRUCT(1 AS v))) AS x",
    "repeated": "SELECT id, e FROM t LATERAL VIEW EXPLODE(ARRAY_REPEAT(id, GET(a, 0))) AS e",
    "tuple": "SELECT id, x, y FROM t LATERAL VIEW JSON_TUPLE(j, 'x', 'y') AS x, y",
    "member": "SELECT id, GET_JSON_OBJECT(j, '$.x') AS x, GET_JSON_OBJECT(j, '$.z.x') AS zx FROM t",
    "lists": "SELECT id % 2 AS g, COLLECT_LIST(GET(a, 0)) AS l FROM t GROUP BY id % 2",
    "over_lists": "SELECT g, e FROM lists LATERAL VIEW EXPLODE(l) AS e",
    "twice": "SELECT id FROM t INTERSECT ALL SELECT GET(a, 0) AS id FROM t",
}
LEFT = {"repeated", "member", "tuple"}
"""Which Spark may be asked about: a place that an array does not have, numbers with a fraction in JSON."""


def _value(random: Random) -> str:
    array = random.choice(["NULL", "ARRAY()", "ARRAY(1)", "ARRAY(1, NULL, 2)", "ARRAY(2, 2)", "ARRAY(3, 1)"])
    array = f"CAST({array} AS ARRAY<INT>)"
    rows = random.choice(
        ["NULL", "ARRAY()", "ARRAY(STRUCT(1 AS n, 'x' AS s))", "ARRAY(STRUCT(NULL, 'y'), NULL, STRUCT(2, NULL))"]
    )
    pairs = random.choice(["NULL", "MAP()", "MAP('a', 1)", "MAP('a', NULL, 'b', 2)", "MAP('b', 2, 'a', NULL)"])
    texts = [
        "NULL", "''", "'not json'", "'null'", "'7'", """'{"x": "é", "y": 7}'""", """'{"x": null, "z": {"x": true}}'""",
        """' {"y": [1], "x": 5}'""", """'{"x": 1.50}'""", "'\"x\"'", """'{"z": 3}'""", "'{'", """'{"x": {"x": 1}}'""",
    ]  # fmt: skip
    text = random.choice(texts)
    return (
        f"SELECT {random.randint(1, 4)}, {array}, CAST({rows} AS ARRAY<STRUCT<n: INT, s: STRING>>), "
        f"CAST({pairs} AS MAP<STRING, INT>), {text}"
    )


@pytest.mark.parametrize("seed", [1])
def test_nested_rows_are_maintained_without_a_job(db: penstock.Database, seed: int) -> None:
    random = Random(seed)
    db.sql(f"CREATE TABLE t ({COLUMNS})")

    def insert(count: int) -> None:
        db.sql("INSERT INTO t " + " UNION ALL ".join(_value(random) for _ in range(count)))

    insert(8)
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for step in range(3):
        if step != 1:
            insert(random.randint(1, 4))
        if step != 0:
            db.sql(f"DELETE FROM t WHERE id = {random.randint(1, 4)}")
            db.sql(f"UPDATE t SET j = 'other' WHERE id = {random.randint(1, 4)}")
        report = db.refresh()
        for name in VIEWS:
            assert_fresh(db, name, ("INCREMENTAL", "NO_DATA"))
            assert name in LEFT or report[name].jobs == 0, f"{name}: {report[name]}"
