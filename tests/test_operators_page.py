"""docs/operators.md says what the tests executed. Runs last (see conftest); PENSTOCK_WRITE_DOCS=1 writes the page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import evidence
from constructs import CONSTRUCTS, ROUNDS
from operators_page import PAGE, page

pytestmark = pytest.mark.xdist_group("evidence")


def test_the_page_on_operators_says_what_was_run() -> None:
    if len(evidence.constructs) < len(CONSTRUCTS) or len(evidence.tpch) < 22:
        pytest.skip(
            "the page is made of a whole run of tests/spark/test_constructs.py and tests/tpch, all of it passed"
        )
    text = page(evidence.constructs.values(), len(ROUNDS), evidence.tpch)
    path = Path(__file__).parents[1] / PAGE
    if os.environ.get("PENSTOCK_WRITE_DOCS"):
        path.write_text(text)
    assert path.read_text() == text, "run 'make docs' and commit the page"
