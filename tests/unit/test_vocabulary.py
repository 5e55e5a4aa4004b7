"""What Penstock says of a refresh is a word out of a list, and the list is the one that users read."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import Column, MetaData, String, Table, create_engine, insert, select

import penstock
from operators_page import CODES
from penstock.observe.suggestions import NEXT_STEPS
from penstock.vocabulary import Action, Outcome, Policy, Reason, Status, Strategy, Word

ROOT = Path(penstock.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
KINDS = (Action, Strategy, Status, Policy, Outcome, Reason)
ORDINARY = {Reason.INITIAL, Reason.REQUESTED, Reason.CHANGED, Reason.NO_CHANGE, Reason.REPLAYED}
"""What needs no next step."""
ELSEWHERE = {
    Reason.GROUP_FAILED: "docs/consistency.md tells it",
    Reason.NOT_DUE: "docs/event-time.md tells it with EMIT PERIODICALLY",
    Reason.REPLAYED: "it comes of a statement for late rows",
}


@pytest.mark.parametrize("word", [word for kind in KINDS for word in kind], ids=repr)
def test_a_word_is_its_text(word: Word) -> None:
    text = word.value
    assert type(str(word)) is str
    assert (str(word), f"{word}", f"{word:<30}", repr(word)) == (text, text, f"{text:<30}", repr(text))
    assert word == text
    assert {text: 1}[word] == 1
    assert json.dumps({word: [word]}) == json.dumps({text: [text]})
    assert json.dumps([word], indent=1) == json.dumps([text], indent=1)
    assert pa.array([word, None]).equals(pa.array([text, None]))
    assert copy.deepcopy(word) is word
    assert pickle.loads(pickle.dumps(word)) is word


def test_a_word_of_another_version_is_kept_as_it_is() -> None:
    old = Reason.recorded("OF_OLD")
    assert (old, f"{old}", json.dumps(old), type(old)) == ("OF_OLD", "OF_OLD", '"OF_OLD"', Reason)
    assert old not in list(Reason)
    assert copy.deepcopy(old) == pickle.loads(pickle.dumps(old)) == "OF_OLD"
    with pytest.raises(ValueError):
        Reason("OF_OLD")


def test_a_word_is_stored_and_found_as_its_text() -> None:
    engine, words = create_engine("sqlite://"), Table("words", MetaData(), Column("word", String))
    with engine.begin() as connection:
        words.create(connection)
        connection.execute(insert(words), [{"word": Action.FULL}, {"word": "SKIP"}])
        found = select(words.c.word).where(words.c.word.in_((Action.FULL, Action.SKIP)))
        assert [type(word) for word in connection.execute(found).scalars()] == [str, str]
        assert connection.exec_driver_sql("SELECT word FROM words ORDER BY word").scalars().all() == ["FULL", "SKIP"]


def test_every_reason_says_what_to_do_next() -> None:
    assert set(NEXT_STEPS) | ORDINARY == set(Reason)
    assert not set(NEXT_STEPS) & ORDINARY
    assert all(type(reason) is Reason for reason in NEXT_STEPS)


def test_the_page_tells_every_reason_and_no_other() -> None:
    section = PAGE.read_text().split("## Why a refresh did what it did")[1]
    told = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)*)`", section.split("| code |")[0])) | set(CODES)
    words_of_others = set(Action) | {Policy.AUTO}
    assert told - words_of_others == set(Reason) - set(ELSEWHERE)
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", section, re.M)) == set(CODES)


def test_nothing_spells_a_word_out() -> None:
    """Text may have any word in it; but to say one, or to ask for it, is to take it from the list."""
    words = {word for kind in (Action, Status, Outcome) for word in kind} | {w for w in Reason if "_" in w}
    spelt = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.name != "vocabulary.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in words
    ]
    assert [place for place in spelt if not place.startswith(SQL)] == []


SQL = ("sql/", "plan/relations.py", "bench/constructs.py")
"""Where FULL is a word of SQL's, and where queries are."""
