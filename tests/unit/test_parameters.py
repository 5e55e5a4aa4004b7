"""Values of statements: whatever is in one, it is one literal of the statement, and the rest is as it was."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from penstock.errors import SqlError
from penstock.serve.parameters import bound, literal, without_values
from penstock.sql.dialect import SparkSql
from penstock.sql.lexer import tokenize

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
PIECES = st.lists(
    st.sampled_from(["'", "\\", '"', "`", "--", "/*", "*/", ";", "\n", ":a", "?", "$$", "${x}", "a", ")"])
)


@given(st.one_of(TEXTS, PIECES.map("".join)))
@example("' OR 1 = 1 --")
@example("\\")
@example("\\' OR 1 = 1 --")
def test_a_text_is_one_literal(value: str) -> None:
    assert [token.kind for token in tokenize(literal(value))] == ["string"]
    for template, given_ in (("SELECT a FROM t WHERE b = :v AND c = 'x:v?'", {"v": value}),
                             ("SELECT a FROM t WHERE b = ? AND c = 'x:v?'", [value])):  # fmt: skip
        made = bound(template, given_)
        tree = sqlglot.parse_one(made, dialect=SparkSql)
        assert sorted(e.this for e in tree.find_all(exp.Literal)) == sorted([value, "x:v?"])
        assert tree.find(exp.Or) is None
        assert [column.name for column in tree.find_all(exp.Column)].count("b") == 1


@given(
    st.one_of(
        st.integers(-(10**37), 10**37), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
    )
)
def test_other_values_are_one_value(value: float | bool | None) -> None:
    tree = sqlglot.parse_one(bound("SELECT 5 -? AS d", [value]), dialect=SparkSql)
    found = tree.expressions[0].this
    assert isinstance(found, exp.Sub)
    assert len(tree.expressions) == 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT ?", None), ("SELECT ?", []), ("SELECT ?", [1, 2]), ("SELECT 1", [1]), ("SELECT :a", {}),
        ("SELECT :a", {"a": 1, "b": 2}), ("SELECT :a", {"a": float("nan")}), ("SELECT :a", {"a": "\ud800"}),
        ("SELECT :a", {"a": "\0"}), ("SELECT :a", {"a": 10**39}), ("SELECT a? FROM t", [1]), ("SELECT ?a FROM t", [1]),
        ("SELECT $$ :a $$", {"a": "x"}), ("SELECT 1 --\r, :a", {"a": "x"}),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_refused(text: str, values: object) -> None:
    with pytest.raises(SqlError):
        bound(text, values)  # type: ignore[arg-type]


def test_markers_are_none_in_texts_comments_and_casts() -> None:
    assert bound("SELECT a::INT, ':x', \"?\", `:x?` -- ? :x\n/* ? */ FROM t WHERE b=:x", {"x": 1}) == (
        "SELECT a::INT, ':x', \"?\", `:x?` -- ? :x\n/* ? */ FROM t WHERE b=1"
    )


def test_the_audit_log_has_no_values() -> None:
    assert "secret" not in without_values("INSERT INTO t VALUES ('secret', 'it''s secret') -- secret")
    assert without_values("SELECT 'never closed") == "(cannot be read)"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("SELECT 1+:a", "SELECT 1+7"), ("SELECT 'x'||:a", "SELECT 'x'||7"), ("SELECT 8/:a*:a", "SELECT 8/7*7"),
        ("SELECT x[:a]", "SELECT x[7]"), ("SELECT 1-:a", "SELECT 1-7"), ("SELECT 1<>:a", "SELECT 1<>7"),
    ],
)  # fmt: skip
def test_an_operator_may_touch_a_marker(text: str, made: str) -> None:
    assert bound(text, {"a": 7}) == made


@pytest.mark.parametrize("text", ["SELECT x:a", "SELECT x::a", "SELECT f(x):a", "SELECT x[0]:a", "SELECT 'x':a"])
def test_what_takes_something_out_of_a_value_is_no_marker(text: str) -> None:
    assert bound(text, None) == text
