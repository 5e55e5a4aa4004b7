"""Expressions go through our planner and come out as Spark SQL again: their values and types must not change."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import penstock
from connect_server import opened
from oracle import assert_fresh

ROWS = r"""
  (1, 7, 9223372036854775807, 12.345, 1.5D, 'Ab c', DATE'2024-02-29', TIMESTAMP'2024-02-29 13:14:15.123456', true,
   array(3, 1, NULL), map('a', 1, 'b', 2), named_struct('x', 1, 'y', 'z')),
  (2, -7, -3, -0.005, double('NaN'), 'it\'s \\ %_', DATE'1969-12-31', TIMESTAMP'1969-12-31 23:59:59.999999', false,
   array(7, 8), map(), named_struct('x', NULL, 'y', '')),
  (3, 0, 0, 0, -0.0D, '', DATE'1600-01-01', TIMESTAMP'2024-06-30 00:00:00', NULL, NULL, NULL, NULL),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""

EXPRESSIONS = {
    "arithmetic": [
        "i + 1", "i - l % 5", "i * 2", "i / 2", "i DIV 2", "i % 3", "-i", "+i", "d * d", "d / 3", "d + i", "d - 1.5",
        "f / 2", "f * d", "i + 1L", "i + 1S", "i + 1Y", "1.5BD + d", "1.5D + d", "1e2 * i", "2.50 * i", "i & 3",
        "i | 8", "i ^ 1", "~i", "i << 1", "i >> 1", "shiftrightunsigned(i, 1)", "mod(i, 3)", "pmod(i, 3)", "abs(i)",
        "round(d, 1)", "bround(d, 2)", "floor(d)", "ceil(d)", "ceil(d, 1)", "floor(d, 1)", "sign(d)", "power(i, 2)",
        "sqrt(abs(i))", "exp(0)", "ln(abs(i) + 1)", "log(2, abs(i) + 1)", "log10(abs(i) + 1)", "log2(abs(i) + 1)",
        "greatest(i, 1)", "least(i, d)", "hex(i)", "bin(i)", "conv('10', 2, 10)", "factorial(3)",
        "width_bucket(f, 0, 10, 5)", "try_divide(i, 0)", "try_add(l, 1)", "nullif(i, 7)", "rint(f)", "cbrt(8)",
    ],
    "logic": [
        "i > 1 AND i < 9", "i > 1 OR b", "NOT b", "!b", "i = 7", "i == 7", "i <> 7", "i != 7", "i <=> NULL",
        "NOT i <=> 7", "i IS NULL", "i IS NOT NULL", "b IS TRUE", "b IS NOT FALSE", "i BETWEEN 0 AND 7",
        "i NOT BETWEEN 0 AND 7", "i IN (7, 0)", "i NOT IN (7, NULL)", "i IS DISTINCT FROM 7",
        "i IS NOT DISTINCT FROM 7", "CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' END",
        "CASE i WHEN 7 THEN 'seven' ELSE 'other' END", "IF(b, i, -1)", "COALESCE(i, 0)", "nvl(i, 0)", "nvl2(i, 1, 2)",
        "ifnull(i, 0)", "isnan(f)", "nanvl(f, 0)", "isnull(i)", "isnotnull(i)", "decode(i, 7, 'a', 'b')",
        "equal_null(i, 7)", "zeroifnull(i)",
    ],
    "text": [
        "s || 'x'", "concat(s, 'x', NULL)", "concat_ws('-', s, 'x', NULL)", "upper(s)", "lower(s)", "initcap(s)",
        "length(s)", "char_length(s)", "substring(s, 2, 3)", "substr(s, 2)", "substring(s FROM 2 FOR 1)",
        "left(s, 2)", "right(s, 2)", "trim(s)", "ltrim(s)", "rtrim(s)", "trim(BOTH 'A' FROM s)",
        "trim(LEADING 'A' FROM s)", "lpad(s, 6, '*')", "rpad(s, 6)", "repeat(s, 2)", "replace(s, 'b', 'B')",
        "reverse(s)", "translate(s, 'Ab', 'xy')", "instr(s, 'b')", "locate('b', s)", "position('b' IN s)",
        "split(s, ' ')", "split_part(s, ' ', 1)", "s LIKE 'A%'", "s LIKE '%\\\\%%'", "s LIKE '%#%%' ESCAPE '#'",
        "s ILIKE 'a%'", "s RLIKE '^A.*c$'", "s NOT LIKE 'A%'", "regexp_replace(s, '(\\\\w)(\\\\w)', '$2$1')",
        "regexp_extract(s, r'(\\w+) (\\w+)', 2)", "s REGEXP 'b'", "startswith(s, 'A')", "endswith(s, 'c')",
        "contains(s, 'b')", "ascii(s)", "chr(65)", "md5(s)", "sha2(s, 256)", "crc32(s)", "hash(s)", "xxhash64(s, i)",
        "base64(s)", "unbase64('YQ==')", "encode(s, 'utf-8')", "format_number(d, 2)", "format_string('%s-%d', s, i)",
        "'a' 'b'", "'tab\\tend'", "'quote\\'s'", '"double"', "'back\\\\slash'", "'é日本'", "X'1F'",
        "levenshtein(s, 'abc')", "soundex(s)", "overlay(s PLACING 'X' FROM 2)", "elt(1, s, 'x')",
        "find_in_set('b', 'a,b')", "space(2)", "mask(s)", "len(s)", "s = 'it\\'s'", "s IN ('', 'Ab c')",
        "concat('a', i)", "substring_index(s, ' ', 1)", "bit_length(s)", "octet_length(s)",
        "s COLLATE UTF8_LCASE = 'AB C'",
    ],
    "time": [
        "date_add(dt, 1)", "date_sub(dt, 1)", "dt + INTERVAL 1 DAY", "dt - INTERVAL '2' MONTH",
        "ts + INTERVAL '1 02:03:04' DAY TO SECOND", "datediff(dt, DATE'2024-01-01')",
        "date_diff(DAY, DATE'2024-01-01', dt)", "timestampdiff(HOUR, TIMESTAMP'2024-01-01', ts)",
        "timestampadd(MINUTE, 5, ts)", "dateadd(MONTH, 1, dt)", "add_months(dt, 1)",
        "months_between(dt, DATE'2024-01-01')", "last_day(dt)", "next_day(dt, 'Mon')", "year(dt)", "quarter(dt)",
        "month(dt)", "day(dt)", "dayofweek(dt)", "dayofyear(dt)", "weekofyear(dt)", "weekday(dt)", "hour(ts)",
        "minute(ts)", "second(ts)", "extract(YEAR FROM dt)", "extract(SECOND FROM ts)", "date_part('DOW', dt)",
        "date_trunc('month', ts)", "date_trunc('MINUTE', ts)", "trunc(dt, 'MM')", "to_date('2024-02-29')",
        "to_date('29.02.2024', 'dd.MM.yyyy')", "to_timestamp('2024-02-29 01:02:03')", "to_timestamp('2024', 'yyyy')",
        "date_format(ts, 'yyyy/MM/dd HH:mm')", "unix_timestamp(ts)", "unix_timestamp('2024-02-29', 'yyyy-MM-dd')",
        "from_unixtime(0)", "to_unix_timestamp('2024-02-29', 'yyyy-MM-dd')", "unix_micros(ts)",
        "timestamp_seconds(0)", "make_date(2024, 2, 29)", "make_timestamp(2024, 2, 29, 1, 2, 3.5)",
        "from_utc_timestamp(ts, 'Asia/Tokyo')", "to_utc_timestamp(ts, 'Asia/Tokyo')", "CAST(dt AS TIMESTAMP)",
        "CAST(ts AS DATE)", "CAST(ts AS TIMESTAMP_NTZ)", "DATE'2024-02-29' = dt",
        "TIMESTAMP'2024-02-29 00:00:00' < ts", "TIMESTAMP_NTZ'2024-02-29 00:00:00'", "dt > '2024-01-01'",
        "dayname(dt)", "date_from_unix_date(0)", "CAST('2024-02-29' AS DATE) - INTERVAL 1 YEAR",
        "CAST(dt - DATE'2024-02-01' AS STRING)",
    ],
    "casts": [
        "CAST(i AS STRING)", "CAST(d AS INT)", "CAST(f AS STRING)", "CAST(i AS DOUBLE)", "CAST(i AS DECIMAL(20,5))",
        "CAST(i AS DECIMAL)", "CAST(d AS DECIMAL(10,1))", "i::STRING", "i::DECIMAL(8,3)", "CAST(i AS BIGINT)",
        "CAST(id AS TINYINT)", "CAST(i AS SMALLINT)", "CAST(i AS FLOAT)", "CAST(b AS INT)", "CAST(s AS BINARY)",
        "try_cast(s AS INT)", "CAST('1' AS INT)", "int('5')", "string(i)", "double(i)", "boolean(i)",
        "date('2024-02-29')", "CAST(ts AS STRING)", "CAST(ts AS BIGINT)", "CAST(xs AS ARRAY<STRING>)",
        "CAST(st AS STRUCT<x: BIGINT, y: STRING>)", "typeof(d / 3)", "CAST(i AS LONG)", "CAST(i AS INTEGER)",
        "CAST(d AS REAL)",
    ],
    "nested": [
        "xs[0]", "element_at(xs, 2)", "size(xs)", "array_contains(xs, 1)", "sort_array(xs)", "array_sort(xs)",
        "array_max(xs)", "array(i, 1)", "array_distinct(xs)", "array_union(xs, array(9))",
        "transform(xs, x -> x + i)", "filter(xs, x -> x > 1)", "aggregate(xs, 0, (acc, x) -> acc + coalesce(x, 0))",
        "zip_with(xs, xs, (a, b) -> a + b)", "concat(xs, array(5))", "slice(xs, 1, 2)",
        "array_join(CAST(xs AS ARRAY<STRING>), ',')", "m['a']", "element_at(m, 'b')", "map_keys(m)", "map_values(m)",
        "map('k', i)['k']", "map_from_arrays(array('a'), array(i))['a']", "map_contains_key(m, 'a')", "st.x",
        "st.y || '!'", "named_struct('p', i, 'q', s)", "struct(i, s)", "struct(i AS p, s AS q).q", "sequence(1, 3)",
        "flatten(array(xs, xs))", "array_position(xs, 1)", "cardinality(xs)",
        'get_json_object(\'{"a": 1}\', \'$.a\')', "to_json(named_struct('a', i))",
        'from_json(\'{"a": 1}\', \'a INT\').a', "reverse(xs)", "array_repeat(i, 2)", "arrays_overlap(xs, array(1))",
        "array_remove(xs, 1)", "forall(xs, x -> x > 0)", "array_append(xs, 4)", "map_filter(m, (k, v) -> v > 1)['b']",
        "transform(xs, (x, n) -> x + n)", "t.st.x", "get(xs, 0)", "try_element_at(m, 'zz')",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> penstock.Database:
    db = opened(tmp_path_factory.mktemp("expressions"), spark)
    db.sql(
        "CREATE TABLE t (id INT, i INT, l BIGINT, d DECIMAL(10,3), f DOUBLE, s STRING, dt DATE, ts TIMESTAMP, b BOOLEAN, "  # noqa: E501
        "xs ARRAY<INT>, m MAP<STRING, INT>, st STRUCT<x: INT, y: STRING>)"
    )
    db.sql(f"INSERT INTO t VALUES {ROWS}")
    return db


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_expressions_keep_their_meaning(table: penstock.Database, kind: str) -> None:
    columns = ", ".join(f"{text} AS e{n}" for n, text in enumerate(EXPRESSIONS[kind]))
    table.create_view(f"of_{kind}", f"SELECT id, {columns} FROM t", policy="INCREMENTAL STRICT", or_replace=True)
    assert_fresh(table, f"of_{kind}", "FULL")
