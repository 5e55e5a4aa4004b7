"""Random tables, views and changes: whatever the story, every view equals its query after each refresh.

Without more, the same few stories are told every time; ``make test-fuzz MINUTES=30`` tells new ones for that long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random, SystemRandom

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption
from pyspark.sql import SparkSession

import penstock
from oracle import assert_fresh
from penstock.frames import limits
from penstock.storage import apply
from stories import SMALLEST, Author, Story

MINUTES = float(os.environ.get("PENSTOCK_FUZZ_MINUTES", "0"))
FEW = 1


@contextmanager
def sizes(story: Story) -> Iterator[None]:
    """What counts as small in this story."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in story.limits:
            patch.setattr(limits, name, size)
        if story.patch:
            patch.setattr(apply, "cheaper", lambda **_: "PATCH")
        yield


def test_that_there_are_these_limits() -> None:
    assert {name for name in SMALLEST if not hasattr(limits, name)} == set()


def tell(db: penstock.Database, story: Story) -> None:
    for statement in story.tables:
        db.sql(statement)
    for name, query in story.views:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        assert_fresh(db, name, "FULL")
    for step in story.steps:
        for change in step.changes:
            db.sql(change)
        report = db.refresh(step.refresh) if step.refresh else db.refresh()
        for name, _ in story.views:
            assert_fresh(db, name, ("INCREMENTAL", "NO_DATA") if name in report else None)


def told(random: Random, place: Path) -> None:
    story = Author(random, external=str(place)).story()
    with sizes(story), penstock.connect(place / "warehouse") as db:
        try:
            tell(db, story)
        except penstock.QueryError as problem:
            if "the query is not valid" in str(problem):  # Spark does not accept every query
                reject()
            raise
        except Exception as problem:
            if "PLAN_VALIDATION_FAILED" in str(problem):  # nor can it run every query that it accepts
                reject()
            problem.add_note(f"The story was:\n{story.script()}")
            raise


# A story takes seconds: a failing one is printed as it is, and is shortened by hand rather than by many more runs.
@settings(
    deadline=None,
    max_examples=FEW,
    derandomize=not MINUTES,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(random=st.randoms(use_true_random=True))
def test_any_story(random: Random, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    told(random, tmp_path_factory.mktemp("story"))


@pytest.mark.skipif(not MINUTES, reason="the long run: make test-fuzz MINUTES=30")
def test_stories_for_minutes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    end = time.monotonic() + MINUTES * 60
    while time.monotonic() < end:
        with suppress(UnsatisfiedAssumption):
            told(Random(SystemRandom().getrandbits(64)), tmp_path_factory.mktemp("story"))
