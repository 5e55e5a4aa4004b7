"""JSON documents in queries: what is known to be one, what the functions become, and what they refuse."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.errors import SqlError
from penstock.frames.arrow.expressions.values import Rows, computed
from penstock.sql.dialect import SparkSql
from penstock.sql.json_functions import uses_json
from penstock.sql.json_lineage import document_columns
from penstock.sql.query import parse_query, parse_written, round_trip, spark_text

STORED = "(SELECT id, __json(data) AS data FROM tv_x) AS v_x"

DOCUMENTS = {
    f"SELECT data FROM {STORED}": True,
    f"SELECT v_x.data FROM t JOIN {STORED} ON t.k = v_x.id": True,
    f"WITH a AS (SELECT * FROM {STORED}), b (i, d) AS (SELECT id, data FROM a) SELECT d FROM b": True,
    f"SELECT d FROM (SELECT MAX(data) AS d FROM {STORED} UNION ALL SELECT to_json(struct(1 AS a))) x": True,
    f"SELECT COALESCE(data, '{{}}') AS d FROM {STORED}": True,
    f"SELECT IF(id > 1, data, NULL) AS d FROM {STORED}": True,
    f"SELECT (SELECT MAX(data) FROM {STORED}) AS d FROM t": True,
    f"SELECT LAG(data) OVER (ORDER BY id) AS d FROM {STORED}": True,
    f"SELECT COALESCE(data, 'no JSON') AS d FROM {STORED}": False,
    f"SELECT data || '' AS d FROM {STORED}": False,
    f"SELECT id FROM {STORED}": False,
    "SELECT data FROM tv_x": False,
    f"SELECT t.data FROM t JOIN {STORED} ON t.k = v_x.id": False,
    f"SELECT d FROM (SELECT data AS d FROM {STORED} UNION ALL SELECT name FROM t) x": False,
}


@pytest.mark.parametrize("query", DOCUMENTS)
def test_a_document_is_known_by_what_made_it(query: str) -> None:
    assert (document_columns(parse_written(query), 1) == [0]) == DOCUMENTS[query]


def test_a_document_nests_and_other_text_is_quoted() -> None:
    rows = Rows({"id": pa.array([1]), "name": pa.array(['{"a":1}']), "data": pa.array(['{"a":1}'])}, 1)

    def built(value: str) -> str:
        tree = parse_query(
            f"SELECT jsonb_build_array({value}) AS x FROM (SELECT id, name, __json(data) AS data FROM t) v"
        )
        return str(computed(tree.selects[0].this, rows)[0])

    assert built("data") == '[{"a":1}]'
    assert built("name") == '["{\\"a\\":1}"]'
    assert built("COALESCE(data, '[]'), NULL") == '[{"a":1},null]'
    assert built("jsonb_build_object('k', data, 'l', jsonb_build_object())") == '[{"k":{"a":1},"l":{}}]'
    assert built("named_struct('n', named_struct('d', data), 'x', array(data, data))") == (
        '[{"n":{"d":{"a":1}},"x":[{"a":1},{"a":1}]}]'
    )


def test_only_the_calls_are_replaced_in_the_text() -> None:
    written = "SELECT  jsonb_build_object('a',  d.x ) AS j -- why\nFROM (SELECT jsonb_build_array() AS x FROM t) d"
    assert spark_text(written) == (
        "SELECT  CONCAT('{\"a\":', COALESCE(d.x, 'null'), '}') AS j -- why\nFROM (SELECT '[]' AS x FROM t) d"
    )
    ordered = "SELECT jsonb_agg(a+1 ORDER BY b DESC NULLS FIRST, f(c , 2)) FILTER (WHERE a>0) AS j FROM t"
    assert "ORDER BY b DESC NULLS FIRST, (f(c , 2)), " in spark_text(ordered)
    assert spark_text(ordered).count("FILTER(WHERE (a>0))") == 1
    for text in (written, ordered):
        tree = parse_written(spark_text(text)).sql(dialect=SparkSql, comments=False)
        assert tree.replace("(", "").replace(")", "") == round_trip(text).replace("(", "").replace(")", "")
    assert not uses_json(parse_written("SELECT to_json(struct(a)) FROM t"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("jsonb_build_object('a')", "takes keys and values in turn, and one is missing"),
        ("jsonb_build_object('a', 1, 'a', 2)", "has the key 'a' twice"),
        ("jsonb_build_object(a, 1)", "are texts in quotes, and a is none"),
        ("jsonb_agg(DISTINCT a)", "has no DISTINCT"),
        ("jsonb_agg(a) OVER ()", "has no OVER"),
        ("jsonb_agg(a, b)", "takes one value"),
    ],
)
def test_what_cannot_be_built_is_told(call: str, said: str) -> None:
    with pytest.raises(SqlError, match=said):
        parse_query(f"SELECT {call} AS x FROM t")
