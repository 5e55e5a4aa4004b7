"""Expressions that the driver computes for all ordinary rows, and others of which it computes what it is sure of."""

from __future__ import annotations

WINDOWS = [
    "TIMESTAMPADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST(at AS TIMESTAMP)), 60000000), at)",
    "TIMESTAMPADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST(n AS TIMESTAMP)), 60000000), n)",
    "TIMESTAMPADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST(at AS TIMESTAMP)) - 5000000, 172800000000), at)",
    "TIMESTAMPADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST(day AS TIMESTAMP)), 3600000000), day)",
    "TIMESTAMPADD(MICROSECOND, 300, TIMESTAMPADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST(at AS TIMESTAMP)), 60000), at))",
    "ARRAY_COMPACT(ARRAY(TIMESTAMPADD(MICROSECOND, -5, at), IF(at > till, at, NULL)))",
    "TIMESTAMPADD(MICROSECOND, l, n)",
]  # fmt: skip
"""What TUMBLE and HOP are made of."""
TIMES = [
    "TIMESTAMPADD(HOUR, 1, at)", "TIMESTAMPADD(DAY, k, at)", "TIMESTAMPADD(MONTH, k, at)",
    "TIMESTAMPADD(YEAR, -1, n)", "TIMESTAMPADD(WEEK, 2, due)", "TIMESTAMPADD(QUARTER, 2, at)", "DATEADD(HOUR, i, n)",
    "DATEADD(DAY, 3, due)", "at + INTERVAL 1 DAY", "at - INTERVAL 3 WEEKS", "at + INTERVAL '1.5' SECOND",
    "at + INTERVAL 2 MONTHS", "n - INTERVAL 1 YEAR", "INTERVAL 1 HOUR + at", "due + INTERVAL 1 WEEK",
    "due + INTERVAL 1 HOUR", "due - INTERVAL 1 MONTH", "n + INTERVAL 90 MINUTES", "at + INTERVAL 25 HOURS",
    "due + 1", "due - k", "at + INTERVAL -1 DAY", "at - INTERVAL '10' MILLISECOND", "DATE_ADD(due, 3)",
    "DATE_ADD(due, i)", "DATE_SUB(due, k)", "DATE_ADD(at, 1)", "DATE_ADD(digits, 1)", "ADD_MONTHS(due, i)",
    "ADD_MONTHS(at, 1)", "DATEDIFF(day, due)", "DATEDIFF(at, due)", "DATEDIFF(day, at)", "DATE_DIFF(due, day)",
    "DATEDIFF(HOUR, at, till)", "DATEDIFF(MONTH, at, till)", "TIMESTAMPDIFF(SECOND, at, till)",
    "TIMESTAMPDIFF(DAY, at, till)", "TIMESTAMPDIFF(MONTH, n, m)", "TIMESTAMPDIFF(YEAR, due, day)",
    "TIMESTAMPDIFF(QUARTER, at, n)", "TIMESTAMPDIFF(WEEK, at, till)", "TIMESTAMPDIFF(MICROSECOND, n, m)",
    "TIMESTAMPDIFF(MINUTE, at, due)", "MONTHS_BETWEEN(at, till)", "MONTHS_BETWEEN(due, day)",
    "MONTHS_BETWEEN(at, due, false)", "UNIX_MICROS(at)", "UNIX_MILLIS(at)", "UNIX_SECONDS(at)", "UNIX_DATE(due)",
    "DATE_FROM_UNIX_DATE(i)", "TIMESTAMP_MICROS(l)", "TIMESTAMP_MILLIS(l)", "TIMESTAMP_SECONDS(l)",
    "TIMESTAMP_SECONDS(i)", "YEAR(at)", "YEAR(due)", "YEAR(n)", "YEAR(digits)", "QUARTER(at)", "MONTH(n)",
    "WEEKOFYEAR(at)", "DAY(at)", "DAYOFMONTH(due)", "DAYOFWEEK(at)", "WEEKDAY(n)", "DAYOFYEAR(at)", "HOUR(at)",
    "HOUR(n)", "MINUTE(at)", "SECOND(at)", "HOUR(due)", "DAYNAME(at)", "MONTHNAME(due)", "LAST_DAY(due)",
    "LAST_DAY(at)", "NEXT_DAY(due, 'MO')", "NEXT_DAY(at, 'Friday')", "NEXT_DAY(due, 'sun')", "MAKE_DATE(2024, k, 3)",
    "MAKE_DATE(2000 + k, k, k)", "DATE_PART('HOUR', at)", "DATE_PART('doy', due)",
]  # fmt: skip
PARTS = "YEAR YEAROFWEEK QUARTER MONTH WEEK DAY DAYOFWEEK DOW DAYOFWEEK_ISO DOY".split()
HOURS = "HOUR MINUTE SECOND S MIN H D W Y".split()
DAYS = "YEAR YYYY YY QUARTER MONTH MM MON WEEK".split()
CUT = [*DAYS, *"DAY DD HOUR MINUTE SECOND MILLISECOND MICROSECOND".split()]
PARTS_OF_TIMES = [
    *[f"EXTRACT({part} FROM {of})" for part in PARTS for of in ("at", "due", "n")],
    *[f"EXTRACT({part} FROM {of})" for part in HOURS for of in ("at", "n")],
    *[f"DATE_TRUNC('{unit}', {of})" for unit in CUT for of in ("at", "n", "due")],
    *[f"TRUNC({of}, '{unit}')" for unit in DAYS for of in ("due", "at")],
    "EXTRACT(MINUTE FROM due)",
]
CASTS = [
    "CAST(t AS STRING)", "CAST(s AS STRING)", "CAST(i AS STRING)", "CAST(l AS STRING)", "CAST(d AS STRING)",
    "CAST(e AS STRING)", "CAST(w AS STRING)", "CAST(f AS STRING)", "CAST(b AS STRING)", "CAST(due AS STRING)",
    "CAST(at AS STRING)", "CAST(n AS STRING)", "CAST(t AS BIGINT)", "CAST(s AS BIGINT)", "CAST(i AS BIGINT)",
    "CAST(l AS BIGINT)", "CAST(d AS BIGINT)", "CAST(e AS BIGINT)", "CAST(b AS BIGINT)", "CAST(at AS BIGINT)",
    "CAST(whole AS BIGINT)", "CAST(f AS BIGINT)", "CAST(f AS INT)", "CAST(i AS SMALLINT)", "CAST(t AS DOUBLE)",
    "CAST(s AS DOUBLE)", "CAST(i AS DOUBLE)", "CAST(l AS DOUBLE)", "CAST(d AS DOUBLE)", "CAST(e AS DOUBLE)",
    "CAST(q AS DOUBLE)", "CAST(b AS DOUBLE)", "CAST(at AS DOUBLE)", "CAST(fraction AS DOUBLE)",
    "CAST(whole AS DOUBLE)", "CAST(g AS DOUBLE)", "CAST(t AS DECIMAL(20,6))", "CAST(s AS DECIMAL(20,6))",
    "CAST(i AS DECIMAL(20,6))", "CAST(d AS DECIMAL(20,6))", "CAST(f AS DECIMAL(20,6))", "CAST(b AS DECIMAL(20,6))",
    "CAST(whole AS DECIMAL(20,6))", "CAST(fraction AS DECIMAL(20,6))", "CAST(d AS DECIMAL(10,1))",
    "CAST(whole AS INT)", "TRY_CAST(whole AS INT)", "CAST(digits AS DATE)", "CAST(moment AS TIMESTAMP)",
    "CAST(moment AS TIMESTAMP_NTZ)", "CAST(moment AS DATE)", "CAST(digits AS TIMESTAMP)", "TRY_CAST(x AS BOOLEAN)",
    "TRY_CAST(i AS TINYINT)", "CAST(due AS TIMESTAMP)", "CAST(due AS TIMESTAMP_NTZ)", "CAST(at AS DATE)",
    "CAST(at AS TIMESTAMP_NTZ)", "CAST(n AS TIMESTAMP)", "CAST(n AS DATE)", "CAST(i AS TIMESTAMP)",
    "CAST(l AS TIMESTAMP)", "CAST(i AS BOOLEAN)", "CAST(d AS BOOLEAN)", "STRING(i)", "INT(whole)", "BIGINT(i)",
    "DOUBLE(fraction)", "DATE(at)", "TIMESTAMP(due)", "BOOLEAN(i)", "DECIMAL(i)", "i::STRING", "TO_DATE(digits)",
    "TO_TIMESTAMP(moment)", "TRY_CAST(json AS DECIMAL(5,2))", "CAST('2026-03-29 10:00:00' AS TIMESTAMP)",
    "TIMESTAMP'2026-03-29 12:30:00.5'", "TIMESTAMP_NTZ'2026-03-29 02:30:00'", "DATE'2024-02-29'",
    "CAST('12' AS INT)", "1.5D", "CAST(whole AS DECIMAL(10))", "CAST(i AS DECIMAL)",
]  # fmt: skip
NUMBERS = [
    "PMOD(i, 7)", "PMOD(i, -7)", "PMOD(l, k)", "PMOD(k, l + 1000)", "MOD(i, k)", "i DIV 2", "i DIV k", "l DIV -3",
    "t DIV (s + 1000)", "ROUND(d, 1)", "ROUND(d)", "ROUND(d, 3)", "ROUND(d, -1)", "ROUND(e, 2)", "ROUND(i, -1)",
    "ROUND(i)", "ROUND(l, 2)", "ROUND(w, -3)", "BROUND(d, 1)", "BROUND(d)", "BROUND(e, 3)", "FLOOR(d)", "CEIL(d)",
    "CEILING(e)", "FLOOR(i)", "CEIL(t)", "FLOOR(f)", "CEIL(f)", "FLOOR(w)", "ABS(i)", "ABS(d)", "ABS(f)", "SIGN(i)",
    "SIGNUM(d)", "SIGN(f)", "POWER(k, 2)", "POW(2, k)", "POWER(k, 3)", "SQRT(k)", "SQRT(f * f)", "SQRT(d * d)",
    "GREATEST(i, t)", "GREATEST(i, l, 3)", "LEAST(d, e)", "GREATEST(x, y)", "LEAST(x, y, 'm')", "GREATEST(day, due)",
    "LEAST(at, till)", "GREATEST(f, h)", "LEAST(n, m)", "i & 3", "i | t", "i ^ l", "~i", "NEGATIVE(i)",
    "POSITIVE(d)", "GREATEST(d, i)", "LEAST(NULL, i)", "MD5(x)", "SHA(x)", "SHA1(y)", "SHA2(x, 256)", "SHA2(x, 0)",
    "SHA2(y, 512)", "SHA2(x, 224)", "SHA2(x, 384)", "CRC32(x)", "MD5(v)", "SHA2(CAST(i AS STRING), 256)",
    "ROUND(f, 2)", "ROUND(f)", "ROUND(h, -1)", "BROUND(f, 1)",
]  # fmt: skip
TEXTS = [
    "UPPER(x)", "LOWER(x)", "UCASE(y)", "LCASE(y)", "TRIM(x)", "LTRIM(x)", "RTRIM(x)", "TRIM('a' FROM x)",
    "TRIM(BOTH 'ab' FROM x)", "TRIM(LEADING FROM x)", "TRIM(TRAILING y FROM x)", "LTRIM('a', x)", "BTRIM(x)",
    "BTRIM(x, 'a ')", "SUBSTRING(x, -2, 1)", "SUBSTRING(x FROM 2 FOR 3)", "SUBSTR(x, k)", "SUBSTR(x, k - 6, k - 3)",
    "SUBSTRING(x, 0, 2)", "SUBSTRING(x, -3)", "SUBSTRING(x, -5, 3)", "SUBSTRING(x, t, 2)", "SUBSTRING(x, 1, -1)",
    "CONCAT_WS('-', x, y)", "CONCAT_WS(x, 'a', y, NULL)", "CONCAT_WS(',', x, i)", "CONCAT(x, i)",
    "CONCAT(i, '-', d, b, due)", "i || x", "at || x", "LENGTH(x)", "CHAR_LENGTH(y)", "LEN(x)", "OCTET_LENGTH(x)",
    "BIT_LENGTH(y)", "LENGTH(i)", "REPLACE(x, 'a', 'bb')", "REPLACE(x, 'a')", "REPLACE(x, y, 'z')",
    "REPLACE(x, '', 'z')", "SPLIT(x, ',')", "SPLIT(x, ',', 2)", "SPLIT(x, ' ')", "SPLIT(x, '\\\\.')",
    "SPLIT(x, '[,-]')", "SPLIT(x, ',', -1)", "SPLIT_PART(x, ',', 1)", "SPLIT_PART(x, '-', -1)",
    "SPLIT_PART(x, '.', 2)", "LPAD(x, 3)", "LPAD(x, 6, 'ab')", "RPAD(x, 6, 'é')", "LPAD(x, 0, 'a')", "RPAD(x, k, y)",
    "LPAD(x, -1, 'a')", "LPAD(x, 5, '')", "LPAD(i, 5, '0')", "LEFT(x, 2)", "RIGHT(x, 2)", "LEFT(x, 0)",
    "RIGHT(x, -1)", "RIGHT(x, k)", "LEFT(x, 100)", "REVERSE(x)", "INSTR(x, 'b')", "INSTR(x, y)", "INSTR(x, '')",
    "LOCATE('a', x)", "LOCATE('a', x, 2)", "LOCATE('', x, 3)", "LOCATE(y, x)", "POSITION('b' IN x)",
    "POSITION('a', x, 3)", "STARTSWITH(x, 'a')", "STARTSWITH(x, y)", "ENDSWITH(x, '')", "CONTAINS(x, 'b')",
    "CONTAINS(x, y)", "x LIKE 'a/%' ESCAPE '/'", "x LIKE 'x\\_y'", "x LIKE 'x\\\\%y'", "x NOT LIKE '%\\\\_%'",
    "x LIKE ''", "x LIKE '%a%'", "x LIKE '_b%'", "x LIKE 'a.b'", "i LIKE '1%'", "x RLIKE 'a'", "x RLIKE '^[a-z]+$'",
    "x NOT RLIKE '\\\\d'", "REGEXP_LIKE(x, '(a|b)c')", "x REGEXP '^\\\\w+@\\\\w+\\\\.com$'", "x RLIKE 'a{2,3}|b+'",
    "REGEXP(x, '[^a-z ]')", "x RLIKE '(an)+'", "x RLIKE r'\\s'", "x RLIKE ''", "REGEXP_REPLACE(x, '[aeiou]', '*')",
    "REGEXP_REPLACE(x, '\\\\s+', ' ')", "REGEXP_REPLACE(x, 'a*', '-')", "REGEXP_EXTRACT(x, '(\\\\d+)', 1)",
    "REGEXP_EXTRACT(x, '([a-z])([a-z]?)', 2)", "REGEXP_EXTRACT(x, '[a-z]+', 0)", "REGEXP_EXTRACT(x, '^(\\\\w+)@')",
    "REGEXP_COUNT(x, 'a')", "REGEXP_COUNT(x, 'a*')", "REPEAT(x, 2)", "REPEAT(x, 0)", "REPEAT(x, k)", "REPEAT(x, -1)",
    "SPACE(k)", "TRANSLATE(x, 'abc', '12')", "TRANSLATE(x, 'aab', '123')", "ASCII(x)", "'a\\nb' || x", "'it''s'",
    "'a\\\\b'", "'\\%'", "r'a\\d'", "UPPER(i)", "TRIM(due)", "1e3", "2.5E-1", "x = 'it\\'s'",
    "REPLACE(x, '\\'', '\"')", "x ILIKE 'A%'", "x NOT ILIKE '%B'", "y ILIKE '_'",
]  # fmt: skip
CHOICES_AND_ARRAYS = [
    "NULLIF(i, 0)", "NULLIF(x, 'a')", "NULLIF(i, NULL)", "NULLIF(d, i)", "NULLIF(due, day)", "NVL(i, 0)",
    "NVL2(i, 1, 2)", "NVL2(x, y, 'none')", "IFNULL(x, 'none')", "IF(b, i, NULL)", "ZEROIFNULL(i)", "NULLIFZERO(i)",
    "ISNULL(i)", "ISNOTNULL(x)", "i IN (1, NULL)", "i NOT IN (1, NULL, 3)", "x IN ('a', y)", "d IN (1, 2.5)",
    "due IN (day, DATE'2024-02-29')", "CASE i WHEN 1 THEN 'one' WHEN 7 THEN x END",
    "CASE x WHEN 'a' THEN 1 ELSE 2 END", "i IS DISTINCT FROM t", "x IS NOT DISTINCT FROM y", "b IS TRUE",
    "b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "b IS UNKNOWN", "b IS NOT UNKNOWN", "EQUAL_NULL(i, t)", "!b",
    "i == t", "i BETWEEN 1 AND 7", "x NOT BETWEEN 'a' AND 'b'", "at BETWEEN till AND till", "n = m",
    "COALESCE(due, day)", "COALESCE(NULL, i)", "STRUCT(i, x)", "NAMED_STRUCT('a', i, 'b', x)",
    "NAMED_STRUCT('a', i).a", "STRUCT(i AS a, STRUCT(x AS c) AS b).b.c", "ARRAY(i, t)", "ARRAY(x, NULL, y)",
    "ARRAY(1, 2)[0]", "SIZE(ARRAY(i, t))", "ARRAY_COMPACT(a)", "ARRAY_COMPACT(ARRAY(i, NULL, t))",
    "ARRAY_REPEAT(x, 2)", "ARRAY_REPEAT(i, k)", "ARRAY_REPEAT(1, 0)", "ARRAY_REPEAT(at, k - 2)", "GET(a, 0)",
    "GET(a, i)", "GET(a, -1)", "TRY_ELEMENT_AT(a, 1)", "TRY_ELEMENT_AT(a, -1)", "ARRAY_CONTAINS(a, 1)",
    "ARRAY_CONTAINS(o, 'a')", "ARRAY_CONTAINS(a, k)", "SORT_ARRAY(a)", "SORT_ARRAY(a, false)", "SORT_ARRAY(o)",
    "ARRAY_SORT(a)", "ARRAY_JOIN(o, ',')", "ARRAY_JOIN(o, '-', '?')", "ARRAY_MIN(a)", "ARRAY_MAX(a)", "ARRAY_MAX(o)",
    "ARRAY_DISTINCT(a)", "ARRAY_DISTINCT(o)", "SEQUENCE(1, k)", "SEQUENCE(k, 1)", "SEQUENCE(1, 10, 3)",
    "MAP_KEYS(r)", "MAP_VALUES(r)", "SPLIT(x, ',')[0]", "r['a']", "ISNAN(f)", "MAP('a', i)",
    "MAP('a', x, 'b', y)['b']", "ARRAY_POSITION(a, 1)", "ARRAY_POSITION(o, x)", "SLICE(a, 1, 2)", "SLICE(a, -2, k)",
    "TO_JSON(STRUCT(i, x, b))", "TO_JSON(NAMED_STRUCT('a', x))", "HEX(i)", "HEX(x)", "HEX(l)", "CHR(k + 60)",
    "CHR(i)",
]  # fmt: skip
FORMATS_AND_MEETINGS = [
    "DATE_FORMAT(at, 'yyyy-MM-dd')", "DATE_FORMAT(at, 'yyyy-MM-dd HH:mm:ss')", "DATE_FORMAT(due, 'yyyyMM')",
    "DATE_FORMAT(n, 'HH:mm')", "DATE_FORMAT(at, 'EEEE')", "DATE_FORMAT(at, 'E, d MMM yyyy')",
    "DATE_FORMAT(at, 'MMMM')", "DATE_FORMAT(at, 'yy/M/d H:m:s')", "DATE_FORMAT(at, 'hh:mm a')",
    "DATE_FORMAT(at, 'yyyy-MM-dd HH:mm:ss.SSS')", "DATE_FORMAT(at, 'HH:mm:ss.SSSSSS')",
    "DATE_FORMAT(at, 'yyyy-MM-dd\\'T\\'HH:mm:ss')", "TO_DATE(code, 'yyyyMMdd')",
    "TO_DATE(TRIM(digits), 'yyyy-MM-dd')",
    "TO_TIMESTAMP(DATE_FORMAT(at, 'yyyy-MM-dd HH:mm:ss'), 'yyyy-MM-dd HH:mm:ss')", "TO_TIMESTAMP(code, 'yyyyMMdd')",
    "UNIX_TIMESTAMP(at)", "UNIX_TIMESTAMP(due)", "UNIX_TIMESTAMP(code, 'yyyyMMdd')",
    "UNIX_TIMESTAMP(DATE_FORMAT(at, 'yyyy-MM-dd HH:mm:ss'))", "TO_UNIX_TIMESTAMP(at)",
    "FROM_UNIXTIME(1700000000 + i)", "FROM_UNIXTIME(1700000000L + k * 86400, 'yyyy-MM-dd')",
    "FROM_UTC_TIMESTAMP(at, 'Europe/Berlin')", "TO_UTC_TIMESTAMP(at, 'America/New_York')",
    "FROM_UTC_TIMESTAMP(at, '+05:30')", "GET_JSON_OBJECT(json, '$.b.c')", "GET_JSON_OBJECT(json, '$.zz')",
    "IF(b, f, i)", "COALESCE(f, 0)", "IF(b, due, at)", "i = '7'", "whole = i", "CASE WHEN b THEN f ELSE 0 END",
    "i / NULLIF(f, 0)", "at > '2026-01-01'", "due = '2024-02-29'", "due <= '2026-10-25'", "at > due", "n >= due",
    "n < at", "due IN ('2024-02-29', '2026-03-29')", "due BETWEEN '2020-01-01' AND '2026-12-31'", "f > d", "f > i",
    "f = l", "f + 1", "f * i", "f * d", "d - f", "f / 3", "CASE due WHEN '2024-02-29' THEN 1 END", "f + 0.5",
    "TRY_ADD(i, 1)", "TRY_SUBTRACT(k, i)", "TRY_MULTIPLY(k, 2)", "TRY_DIVIDE(i, k)", "TRY_DIVIDE(i, t)",
    "FLOOR(CAST(i AS DECIMAL(20,0)))", "NULLIF(at, '2024-02-29')", "f BETWEEN 0 AND 10", "1e3 * i",
    "TO_DATE(moment)", "digits > due", "at <=> due", "due <=> '2024-02-29'",
]  # fmt: skip
"""Patterns of dates, JSON, and values of unlike types that meet."""
HERE = {
    "windows": WINDOWS, "times": TIMES, "parts of times": PARTS_OF_TIMES, "casts": CASTS, "numbers": NUMBERS,
    "texts": TEXTS, "choices and arrays": CHOICES_AND_ARRAYS, "formats and meetings": FORMATS_AND_MEETINGS,
}  # fmt: skip

MAYBE_OTHERS = [
    "SQRT(f)", "POWER(i, 2)", "ROUND(q, 5)", "ROUND(f, 1)", "PMOD(d, e)", "ROUND(i, -9)", "ROUND(t, -2)",
    "ROUND(x, 1)", "ABS(l)", "ABS(w)", "ROUND(g,1)", "FLOOR(q)", "CEIL(w)", "GREATEST(b,c)", "SIGN(g)",
    "GREATEST(f,i)", "ROUND(d, k)", "INITCAP(x)", "INITCAP('hello wORLD foo')", "INITCAP(LOWER(x))", "x RLIKE y",
    "x LIKE y", "SPLIT(x, '')", "UPPER('ß')", "LOWER('ΑΣ')", "SUBSTRING(x, i, j)", "SUBSTRING(v, 1, 2)", "LENGTH(v)",
    "CONCAT(v, v)", "CONCAT(a, a)", "REVERSE(a)", "LPAD(v, 3)", "LPAD(x, 2147483647)", "x RLIKE '(?i)a'",
    "x RLIKE '\\\\bfoo'", "x RLIKE 'a++'", "x RLIKE 'a$b'", "x RLIKE '[a-z&&[^b]]'", "x RLIKE '.'", "x RLIKE 'b.$'",
    "x RLIKE '^.*$'", "x RLIKE '[\\\\s]'", "REGEXP_REPLACE(x, '(a)', '$1$1')", "REGEXP_REPLACE(x, '.$', '!')",
    "REGEXP_EXTRACT(x, '(.)(.*)', 2)", "SPLIT(x, 'a*')", "SPLIT(x, '.')", "INSTR(x, v)", "ASCII(CAST(i AS STRING))",
    "x LIKE 'a\\\\'", "x LIKE 'a\\\\b'", "FORMAT_STRING('%s', x)", "CHR(i)", "TRIM(NULL)", "REPEAT(x, i)",
    "SPLIT_PART(x, '', 1)", "SPLIT_PART(x, ',', 0)", "LEFT(x, i)", "x RLIKE 'a-z'", "x RLIKE '[a-]'",
    "x RLIKE '[-a]'", "x RLIKE '[.]b'", "x RLIKE '[$]'", "x RLIKE '}'", "x RLIKE 'a,b|'", "x RLIKE '(|a)b'",
    "x RLIKE '[é日]'", "x RLIKE 'é'", "REGEXP_REPLACE(x, '', '-')", "REGEXP_REPLACE(x, 'b|', '-')", "x RLIKE '[^a]$'",
    "x RLIKE '^$'", "x RLIKE '\\\\.'", "x RLIKE '[\\\\d-]'", "x RLIKE '[\\\\w.]+@[\\\\w.]+'",
    "REGEXP_EXTRACT(x, '[a-z]*$', 0)", "x RLIKE 'a|^b'", "x RLIKE '[[:alpha:]]'", "x RLIKE '[]a]'",
    "x RLIKE '[^]a]'", "x RLIKE '\\\\Qa.b\\\\E'", "x RLIKE 'a{,2}'", "x RLIKE 'a{2}{3}'", "x RLIKE '()'",
    "x RLIKE '(a'", "x RLIKE '\\\\/'", "x RLIKE '^a|b$'", "REGEXP_COUNT(x, '(a|b)')", "x RLIKE '(?:an){2}'",
    "REGEXP_EXTRACT(x, 'a|(b)', 1)", "a[0]", "a[i]", "a[k - 1]", "ELEMENT_AT(a, 1)", "ELEMENT_AT(a, -1)",
    "ELEMENT_AT(r, 'a')", "TRY_ELEMENT_AT(r, 'b')", "SIZE(a)", "SIZE(r)", "CARDINALITY(a)", "ARRAY_SIZE(a)",
    "IF(ISNOTNULL(a), SIZE(a), 0)", "ARRAY()", "MAP('a', i)", "MAP('a', i)['a']", "ARRAY(i, x)", "SEQUENCE(i, j)",
    "SLICE(a, 1, 2)", "FLATTEN(ARRAY(a, a))", "ARRAY_UNION(a, a)", "ARRAY_POSITION(a, 1)", "SEQUENCE(day, due)",
    "TRANSFORM(a, z -> z + 1)", "STRUCT(i + 1)", "NULLIF(f, h)", "NULLIF(i, f)", "i IN ('1')", "p.value", "p.at",
    "NANVL(f, 0)", "GREATEST(b, c)", "a = a", "p = p", "o <=> o", "CASE b WHEN true THEN 1 END", "ARRAY(a, a)",
    "ARRAY(p, p)", "ARRAY_CONTAINS(a, NULL)", "STRUCT(NULL AS a)", "EXPLODE(a)", "NULLIF(b, true)",
]  # fmt: skip
MAYBE_MEETINGS = [
    "IF(b, d, f)", "COALESCE(i, f)", "COALESCE(x, i)", "IF(b, x, due)", "GREATEST(f, d)", "GREATEST(x, i)",
    "ARRAY(i, f)", "ARRAY(due, at)", "CASE WHEN b THEN f ELSE 0 END", "CASE WHEN b THEN 0 ELSE d END",
    "COALESCE(f, 0)", "COALESCE(at, due)", "COALESCE(n, due)", "COALESCE(n, at)", "i > '3.5'", "t = '300'",
    "f = fraction", "f > 'a'", "i IN ('7', 3)", "s = whole", "l = whole", "IF(b, g, f)", "IF(b, l, f)", "i = ' 7'",
    "k IN (1, 2.5)", "k IN (1D, 2)", "i IN (f, 1)", "DATE_FORMAT(at, 'D')", "DATE_FORMAT(at, 'yyyy-QQ')",
    "DATE_FORMAT(at, 'u')", "DATE_FORMAT(at, 'SSSS')", "DATE_FORMAT(at, 'yyyy-MM-dd''T''HH')",
    "DATE_FORMAT(digits, 'yyyy')", "TO_DATE(x, 'yyyy-MM-dd')", "TO_DATE(digits, 'yyyy-M-d')",
    "TO_DATE(code, 'yyMMdd')", "TO_DATE(at, 'yyyy')", "TO_TIMESTAMP(moment, 'yyyy-MM-dd HH:mm:ss')",
    "TO_TIMESTAMP(moment, 'yyyy-MM-dd HH:mm:ss.SSS')", "TO_DATE(digits, 'yyyy-MM-dd')", "TO_DATE(code, 'yyyyMMdd')",
    "FROM_UNIXTIME(l)", "FROM_UNIXTIME(i)", "UNIX_TIMESTAMP(n)", "UNIX_TIMESTAMP(moment)",
    "GET_JSON_OBJECT(json, '$.a')", "GET_JSON_OBJECT(json, '$.b')", "GET_JSON_OBJECT(json, '$.d[0]')",
    "GET_JSON_OBJECT(x, '$.a')", "GET_JSON_OBJECT(json, '$.b.c.d')", "i / t", "f / h", "d / f", "i / 0", "i = '7'",
    "whole = i", "x > i", "d = '1.5'", "b = 'true'", "f < h", "at = moment", "due = digits", "n = moment",
    "at IN (due)", "f % 2", "i % 2.5", "NANVL(f, h)", "due = x", "TRY_ADD(d, 1)", "TRY_DIVIDE(d, 2)",
    "TRY_ADD(l, l)", "f = d", "q < f", "COALESCE(due, '2024-01-01')", "IF(b, f, i)", "IF(b, due, at)",
    "GREATEST(due, at)", "FROM_UTC_TIMESTAMP(n, 'UTC')", "CONVERT_TIMEZONE('UTC', 'Europe/Berlin', n)", "g + 1",
    "g = f", "g * g", "f > NULL",
]  # fmt: skip
KINDS = {
    "t": "TINYINT", "s": "SMALLINT", "i": "INT", "l": "BIGINT", "d": "DECIMAL(10,2)", "e": "DECIMAL(20,6)",
    "f": "DOUBLE", "x": "STRING", "b": "BOOLEAN", "due": "DATE", "at": "TIMESTAMP", "n": "TIMESTAMP_NTZ",
}  # fmt: skip
TYPES = [*KINDS.values(), "DECIMAL(38,10)", "DECIMAL(3,0)"]
MAYBE_CASTS = [
    f"{cast}({of} AS {kind})"
    for cast in ("CAST", "TRY_CAST")
    for of in (*KINDS, "whole", "fraction", "digits", "moment", "q", "w", "g")
    for kind in TYPES
]
MAYBE = {"others": MAYBE_OTHERS, "meetings": MAYBE_MEETINGS, "casts": MAYBE_CASTS}
"""What is Spark's for some rows or altogether; what is computed must be right."""

NEVER = [
    "REGEXP_REPLACE(x, 'a??', '-')", "REGEXP_REPLACE(x, '(|a)', '-')", "REGEXP_COUNT(x, 'a*?')",
    "at - till", "due - day", "RAND()", "EXP(f)", "LN(f)", "LOG10(f)", "SIN(f)", "POWER(f, 0.5D)", "x LIKE y",
    "x RLIKE y", "x RLIKE '(?i)a'", "x RLIKE '\\\\bfoo'", "x RLIKE 'a++'", "x RLIKE '(a)\\\\1'",
    "x RLIKE '[a-z&&[^b]]'", "x RLIKE '(?=a)'", "SPLIT(x, '')", "REGEXP_REPLACE(x, '(a)', '$1$1')",
    "CAST(g AS STRING)", "CAST(due AS INT)", "CAST(v AS STRING)", "DATE_TRUNC('CENTURY', at)", "TRUNC(due, 'DAY')",
    "NEXT_DAY(due, 'X')", "CURRENT_TIMESTAMP()", "CURRENT_DATE", "UUID()", "TRANSFORM(a, z -> z + 1)",
    "FORMAT_NUMBER(d, 2)", "LEVENSHTEIN(x, y)", "SOUNDEX(x)", "ARRAY()", "WEEK(due)", "MY_FUNCTION(i)", "json:a",
]  # fmt: skip
"""What has no rule, or a meaning that libraries and machines do not share."""
