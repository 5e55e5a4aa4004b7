"""Names of two and three parts: how they are read, shown and told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import NotSupportedError, SqlError
from penstock.sql.dialect import quoted
from penstock.sql.lexer import tokenize, unquote
from penstock.sql.names import DEFAULT, SYSTEM, QualifiedName, key_of
from penstock.sql.qualifying import qualified
from penstock.sql.query import parse_query, substitute_tables, table_names

parts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.text("a.`Σİß _1", min_size=1)
schemas = parts.filter(lambda text: text.lower() not in (DEFAULT, SYSTEM))
names = st.builds(QualifiedName, st.just(DEFAULT) | schemas, parts)
names_of_spark = st.builds(QualifiedName, st.just(DEFAULT) | parts, parts, parts)


@given(names | names_of_spark)
def test_what_is_shown_is_read_again(name: QualifiedName) -> None:
    assert QualifiedName.read(str(name)) == name
    assert QualifiedName.read(name.sql) == name


@given(names | names_of_spark)
def test_a_key_is_a_name_in_lower_case(name: QualifiedName) -> None:
    assert key_of(name.key) == name.key == key_of(str(name)) == key_of(name.sql)
    lower = QualifiedName(name.schema.lower(), name.name.lower(), name.catalog.lower())
    assert QualifiedName.read(name.key) == lower


@given(names | names_of_spark, names | names_of_spark)
def test_two_names_have_one_key_if_they_differ_in_case_alone(one: QualifiedName, other: QualifiedName) -> None:
    assert (one.key == other.key) == ([part.lower() for part in one.parts] == [part.lower() for part in other.parts])


@given(names)
def test_the_lexer_reads_a_name_as_sql(name: QualifiedName) -> None:
    tokens = tokenize(name.sql)
    told = [unquote(token) for token in tokens if token.kind == "quoted"]
    assert told == ([name.name] if name.schema == DEFAULT else [name.schema, name.name])


@given(names, names)
def test_a_query_reads_what_it_names(name: QualifiedName, other: QualifiedName) -> None:
    found = table_names(parse_query(f"SELECT * FROM {name.sql} JOIN {other.sql} AS o"))
    assert [key_of(one) for one in found] == list(dict.fromkeys([name.key, other.key]))
    text = substitute_tables(f"SELECT * FROM {name.sql}", lambda found: f"x{len(found)}")
    assert text == f"SELECT * FROM x{len(str(name))} AS {quoted(name.name)}"
    meant = qualified(f"SELECT 1 FROM {quoted(name.name)}", name.schema)
    assert table_names(parse_query(meant)) == [str(name)]


@pytest.mark.parametrize(
    ("written", "schema", "name", "shown"),
    [
        ("totals", DEFAULT, "totals", "totals"),
        ("DEFAULT.Totals", DEFAULT, "Totals", "Totals"),
        ("`we ird`.`näme.1`", "we ird", "näme.1", "`we ird`.`näme.1`"),
        ("we ird", DEFAULT, "we ird", "we ird"),
        ("`a.b`", DEFAULT, "a.b", "`a.b`"),
        ("gold.2026", "gold", "2026", "gold.`2026`"),
        ("gold.`tick``s`", "gold", "tick`s", "gold.`tick``s`"),
    ],
)
def test_names(written: str, schema: str, name: str, shown: str) -> None:
    found = QualifiedName.read(written)
    assert (found.schema, found.name, str(found)) == (schema, name, shown)


def test_a_name_without_a_schema_is_in_the_current_one() -> None:
    assert str(QualifiedName.read("totals", "gold")) == "gold.totals"
    assert str(QualifiedName.read("silver.totals", "gold")) == "silver.totals"


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "`a`b", "``"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(SqlError, match="is no name"):
        QualifiedName.read(text)


def test_three_parts() -> None:
    name = QualifiedName.read("Spark_Catalog.`go.ld`.Totals", "current")
    assert (name.catalog, name.schema, name.name, str(name)) == (
        "Spark_Catalog", "go.ld", "Totals", "Spark_Catalog.`go.ld`.Totals",
    )  # fmt: skip
    assert (name.key, name.schema_key) == ("spark_catalog.`go.ld`.totals", "")
    with pytest.raises(NotSupportedError, match="catalog of the Spark session"):
        QualifiedName.read("a.b.c.d")
