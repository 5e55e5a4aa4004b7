"""Every type that a table can hold: as key of a group, as row of a projection, as row of DISTINCT, as key of a join."""

from __future__ import annotations

import penstock
from oracle import after

SIMPLE = {
    "l": "BIGINT", "i": "INT", "b": "TINYINT", "o": "BOOLEAN", "s": "STRING", "v": "VARCHAR(9)",
    "d": "DECIMAL(38,10)", "dt": "DATE", "ts": "TIMESTAMP",
}  # fmt: skip
OTHER = {
    "tn": "TIMESTAMP_NTZ", "y": "BINARY", "f": "FLOAT", "a": "ARRAY<STRUCT<p: INT, q: DOUBLE>>", "st": "STRUCT<x: STRING, z: DATE>",  # noqa: E501
}  # fmt: skip
SIMPLE_ROWS = [
    r"-9223372036854775808L, -2147483648, -128, true, 'it\'s \\ \n\t%', '', -0.0000000001BD, DATE'0001-01-01', TIMESTAMP'0002-01-02 00:00:00'",  # noqa: E501
    "9223372036854775807L, 2147483647, 127, false, '日本 é 🙂', 'x  ', 9999999999999999999999999999.9999999999BD, DATE'9999-12-31', "  # noqa: E501
    "TIMESTAMP'9999-12-31 23:59:59.999999'",
    "0, 0, 0, NULL, '', 'null', 0, DATE'1970-01-01', TIMESTAMP'1969-12-31 23:59:59.999999'",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
]
OTHER_ROWS = [
    "TIMESTAMP_NTZ'1582-10-15 12:00:00.5', X'00FF', float('NaN'), array(named_struct('p', 1, 'q', -0.0D)), named_struct('x', 'a', 'z', NULL)",  # noqa: E501
    "TIMESTAMP_NTZ'9999-12-31 00:00:00', X'', -0.0, array(), named_struct('x', NULL, 'z', DATE'2024-02-29')",
    "TIMESTAMP_NTZ'1970-01-01 00:00:00', X'61', 1.5, array(NULL, named_struct('p', NULL, 'q', double('NaN'))), NULL",
    "NULL, NULL, NULL, NULL, NULL",
]


def a_story_of(db: penstock.Database, columns: dict[str, str], values: list[str]) -> None:
    listed = ", ".join(columns)
    db.sql(f"CREATE TABLE t (id INT, {', '.join(f'{name} {kind}' for name, kind in columns.items())})")
    db.sql(f"INSERT INTO t VALUES {', '.join(f'({i}, {row})' for i, row in enumerate(values))}")
    db.create_view("groups", f"SELECT {listed}, COUNT(*) AS n, SUM(id) AS ids FROM t GROUP BY {listed}")
    db.create_view("once", f"SELECT DISTINCT {listed} FROM t")
    db.create_view("as_they_are", f"SELECT {listed} FROM t")
    db.create_view(
        "extremes",
        f"SELECT id % 2 AS k, {', '.join(f'MIN({c}) AS lo_{c}, MAX({c}) AS hi_{c}' for c in columns)} FROM t GROUP BY 1",  # noqa: E501
    )
    matches = " AND ".join(f"x.{c} <=> y.{c}" for c in columns)
    db.create_view("matched", f"SELECT x.id AS a, y.id AS b FROM t AS x JOIN t AS y ON {matches}")
    after(db, f"INSERT INTO t VALUES {', '.join(f'({10 + i}, {row})' for i, row in enumerate(values))}")
    after(db, "DELETE FROM t WHERE id IN (1, 10)")
    after(db, "UPDATE t SET id = id + 100 WHERE id < 4", "DELETE FROM t WHERE id >= 12 AND id < 100")
    after(db, "DELETE FROM t")


def test_types_that_can_be_written_down(db: penstock.Database) -> None:
    a_story_of(db, SIMPLE, SIMPLE_ROWS)


def test_types_that_are_compared_by_joins(db: penstock.Database) -> None:
    a_story_of(db, OTHER, OTHER_ROWS)


def test_types_without_order_or_equality(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, m MAP<STRING, DOUBLE>, v VARIANT)")
    db.sql(
        "INSERT INTO t VALUES (1, map('a', 1D, 'b', double('NaN')), parse_json('{\"a\": [1, null]}')), (2, map(), NULL), (3, NULL, parse_json('1'))"  # noqa: E501
    )
    db.create_view("as_they_are", "SELECT m, v FROM t")
    db.create_view("joined", "SELECT x.m, y.v FROM t AS x JOIN t AS y ON x.id = y.id")
    after(db, "INSERT INTO t SELECT id + 10, m, v FROM t")
    after(db, "DELETE FROM t WHERE id IN (1, 2, 13)")
    after(db, "DELETE FROM t")


def test_text_that_looks_like_a_variable_of_spark(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k STRING, x INT)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS s FROM t GROUP BY k")
    for number in (1, 2):
        after(
            db, f"INSERT INTO t VALUES (concat('$', '{{spark.app.name}}'), {number}), (concat('$', '{{env:HOME}}'), 1)"
        )
