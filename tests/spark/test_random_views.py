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
from penstock.engine import sources
from penstock.ivm import aggregate, keyed, materialize
from penstock.storage import apply, changes, local_changes, lookup, parquet
from stories import Author, Story

MINUTES = float(os.environ.get("PENSTOCK_FUZZ_MINUTES", "0"))
FEW = 1


@contextmanager
def sizes(story: Story) -> Iterator[None]:
    """What counts as a small table and a small change in this story."""
    with pytest.MonkeyPatch.context() as patch:
        if story.rewrite:
            for module in (apply, sources, keyed):
                patch.setattr(module, "SMALL_TABLE_ROWS", 0)
            if story.patch:
                patch.setattr(apply, "cheaper", lambda **_: "PATCH")
        if story.cached:
            patch.setattr(parquet, "MOST_ROWS", -1)
            patch.setattr(changes, "_SMALL_BYTES", 0)
            patch.setattr(local_changes, "MOST_ROWS", -1)
            for module in (materialize, sources):
                patch.setattr(module, "LOCAL_ROWS", 0)
        if story.far:
            patch.setattr(keyed, "TINY_ROWS", -1)
        if story.merged:
            patch.setattr(aggregate, "CHEAP_ROWS", -1)
        if story.looked_up:
            patch.setattr(lookup, "LEAST_ROWS", 1)
            patch.setattr(sources, "SMALL_TABLE_ROWS", 0)
        if story.spark_writes:
            patch.setattr(apply, "LOCAL_TABLE_ROWS", -1)
        yield


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
