"""Every reason code that asks for something says what."""

from __future__ import annotations

import re
from pathlib import Path

from operators_page import CODES
from penstock.observe.suggestions import NEXT_STEPS, for_table, next_step

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"


def test_every_code_of_a_construct_suggests_a_next_step() -> None:
    assert {code for code in CODES if code not in NEXT_STEPS} == set()


def test_the_codes_of_refreshes_are_those_of_the_page() -> None:
    section = PAGE.read_text().split("## Why a refresh did what it did")[1]
    assert {code for code in NEXT_STEPS if f"`{code}`" not in section} <= {"GROUP_FAILED", "NOT_DUE"}


def test_a_step_is_a_sentence() -> None:
    for step in NEXT_STEPS.values():
        assert re.fullmatch(r"[A-Z].*[.]", step), step
    assert next_step("CHANGED") is None
    assert next_step(None) is None


def test_what_to_switch_on() -> None:
    advice = for_table("orders", {})
    assert advice is not None
    assert "ALTER TABLE orders SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true'" in advice
    assert for_table("orders", {"delta.enableChangeDataFeed": "true"}) is None
