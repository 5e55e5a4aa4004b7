"""Every reason code that asks for something says what."""

from __future__ import annotations

import re
from pathlib import Path

from operators_page import CODES
from penstock.observe.suggestions import NEXT_STEPS, NOTHING_TO_DO, for_table, next_step, suggestion
from penstock.vocabulary import Reason

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"


def test_every_code_of_a_construct_suggests_a_next_step() -> None:
    assert {code for code in CODES if code not in NEXT_STEPS} == set()


def test_every_code_has_a_suggestion_and_only_one() -> None:
    assert [reason for reason in Reason if suggestion(reason) is None] == []
    assert NEXT_STEPS.keys() & NOTHING_TO_DO.keys() == set()
    assert dict.fromkeys(Reason, 1) == dict.fromkeys([*NEXT_STEPS, *NOTHING_TO_DO], 1)


def test_what_a_code_suggests_names_something_to_write_or_to_look_at() -> None:
    """Of a construct: what to write instead. Of a refresh: a statement, a command, a setting, or that all is well."""
    for code in CODES:
        step = NEXT_STEPS[Reason(code)]
        assert re.search(r"[A-Z_]{3,}|t\.column|join|query|table|aggregate|functions", step), step
    for reason in NEXT_STEPS.keys() - {Reason(code) for code in CODES}:
        assert re.search(r"[A-Z_]{4,}|penstock |again|Nothing to do", NEXT_STEPS[reason]), reason


def test_the_codes_of_refreshes_are_those_of_the_page() -> None:
    section = PAGE.read_text().split("## Why a refresh did what it did")[1]
    assert {code for code in NEXT_STEPS if f"`{code}`" not in section} <= {"GROUP_FAILED", "NOT_DUE"}


def test_a_step_is_a_sentence() -> None:
    for step in [*NEXT_STEPS.values(), *NOTHING_TO_DO.values()]:
        assert re.fullmatch(r"[A-Z].*[.]", step), step
    assert next_step("CHANGED") is None
    assert next_step(None) is None


def test_what_to_switch_on() -> None:
    advice = for_table("orders", {})
    assert advice is not None
    assert "ALTER TABLE orders SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true'" in advice
    assert for_table("orders", {"delta.enableChangeDataFeed": "true"}) is None
