"""Tokens, scripts, and the place of an error."""

from __future__ import annotations

import pytest

from penstock.errors import SqlError
from penstock.sql.lexer import position, tokenize, unquote
from penstock.sql.parser import split_script


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT a, 1.5 FROM t", ["SELECT", "a", ",", "1.5", "FROM", "t"]),
        ("a -- b 'c\nd", ["a", "d"]),
        ("a /* b ; ' */ c", ["a", "c"]),
        ("a /* b\n * c */ d", ["a", "d"]),
        ("'it''s' 'a\\'b' \"x;y\"", ["'it''s'", "'a\\'b'", '"x;y"']),
        ("r'\\d+' R'x'", ["r'\\d+'", "R'x'"]),
        ("r'\\' r\"\\\" 'x'", ["r'\\'", 'r"\\"', "'x'"]),
        ("`odd name` `a``b`", ["`odd name`", "`a``b`"]),
        ("naïve été _x1", ["naïve", "été", "_x1"]),
        ("1e3 5L 2.50BD", ["1e3", "5L", "2.50BD"]),
        ("", []),
        ("  \n\t -- only a comment", []),
    ],
)
def test_tokens(text: str, words: list[str]) -> None:
    tokens = tokenize(text)
    assert [t.text for t in tokens] == words
    assert all(text[t.start : t.end] == t.text for t in tokens)


def test_depth_counts_brackets_around_a_token() -> None:
    assert [(t.text, t.depth) for t in tokenize("a (b (c)) d")] == [
        ("a", 0), ("(", 0), ("b", 1), ("(", 1), ("c", 2), (")", 1), (")", 0), ("d", 0),
    ]  # fmt: skip


def test_quoted_names_and_strings_are_never_keywords() -> None:
    assert [t.upper for t in tokenize("refresh `refresh` 'refresh' \"refresh\"")] == ["REFRESH", "", "", ""]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        ("'it\\'s'", "it's"),
        ("'a\\nb\\t\\\\'", "a\nb\t\\"),
        ("r'a\\nb'", "a\\nb"),
        ('"say ""hi"""', 'say "hi"'),
        ("`a``b`", "a`b"),
        ("''", ""),
    ],
)
def test_unquote(text: str, value: str) -> None:
    assert unquote(tokenize(text)[0]) == value


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ("SELECT 'abc", 1, 8, "string"),
        ('SELECT\n  "abc', 2, 3, "string"),
        ("SELECT `abc", 1, 8, "quoted name"),
        ("SELECT 1 /* abc", 1, 10, "comment"),
        ("a\nb\n  'c\nd", 3, 3, "string"),
    ],
)
def test_something_never_closed(text: str, line: int, column: int, what: str) -> None:
    with pytest.raises(SqlError, match=f"this {what} is never closed") as caught:
        tokenize(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_position() -> None:
    text = "ab\ncd\n\nef"
    assert [position(text, text.index(c)) for c in "abcdef"] == [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (4, 2)]
    assert position(text, len(text)) == (4, 3)


@pytest.mark.parametrize(
    ("script", "pieces"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1;;; SELECT 2 ;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' AS a; SELECT `;` FROM t", ["SELECT ';' AS a", "SELECT `;` FROM t"]),
        ("SELECT 1 -- ; not here\n; SELECT 2", ["SELECT 1 -- ; not here", "SELECT 2"]),
        ("SELECT 1 /* ; */; SELECT 2", ["SELECT 1 /* ; */", "SELECT 2"]),
        ("-- nothing\n;\n/* at all */", []),
        ("", []),
        ("-- first\nSELECT 1", ["-- first\nSELECT 1"]),
    ],
)
def test_split_script(script: str, pieces: list[str]) -> None:
    assert split_script(script) == pieces


def test_a_script_with_an_open_string_is_not_cut() -> None:
    with pytest.raises(SqlError) as caught:
        split_script("SELECT 1;\nSELECT 'a; SELECT 2")
    assert (caught.value.line, caught.value.column) == (2, 8)
