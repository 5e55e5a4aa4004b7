"""Every construct of bench/constructs.py as a view, through rounds of changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from pyspark.sql import SparkSession

import evidence
import penstock
from connect_server import opened
from evidence import Evidence
from oracle import assert_fresh
from penstock.bench.constructs import CONSTRUCTS, ROUNDS, ROWS, TABLES, Construct
from penstock.observe.explain import Explanation

SHOWN: list[Evidence] = []


@dataclass
class Outcome:
    """What became of a construct's view: its plan, what each refresh did, and the first thing that was wrong."""

    explanation: Explanation | None = None
    actions: list[str] = field(default_factory=list)
    problem: str | None = None


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Outcome]]:
    """All constructs in one warehouse: refreshed together, checked one by one."""
    with opened(tmp_path_factory.mktemp("constructs") / "warehouse", spark) as db:
        for name, statement in TABLES.items():
            db.sql(statement)
            db.sql(f"INSERT INTO {name} VALUES {', '.join(ROWS[name])}")
        found = {construct.name: Outcome() for construct in CONSTRUCTS}
        views = {f"v{i}": found[construct.name] for i, construct in enumerate(CONSTRUCTS)}
        for view, construct in zip(views, CONSTRUCTS, strict=True):
            try:
                db.create_view(view, construct.query, initialize=False)
                views[view].explanation = db.explain(view)
            except penstock.PenstockError as problem:
                views[view].problem = f"not created: {problem}"
        with suppress(penstock.RefreshError):  # the rounds say which view it is
            db.refresh()
        for number, statements in enumerate(ROUNDS, start=1):
            for statement in statements:
                db.sql(statement)
            _refresh(db, {v: o for v, o in views.items() if o.problem is None}, number)
        evidence.forget("constructs")
        yield found
        evidence.save("constructs", SHOWN)


def _refresh(db: penstock.Database, views: dict[str, Outcome], number: int) -> None:
    try:
        report = db.refresh()
    except penstock.RefreshError as problem:
        report = problem.report  # type: ignore[assignment]
    for view, outcome in views.items():
        outcome.actions.append(report[view].action)
        try:
            assert report[view].error is None, report[view].error
            assert_fresh(db, view)
        except AssertionError as problem:
            outcome.problem = f"round {number}: {problem}"


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda c: f"{c.section}: {c.name}")
def test_a_construct_is_maintained(construct: Construct, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[construct.name]
    assert outcome.problem is None, construct.query
    assert outcome.explanation is not None
    assert outcome.explanation.reason_code == construct.code, outcome.explanation.reason
    actions = set(outcome.actions)
    if construct.code is None:
        assert actions <= {"INCREMENTAL", "NO_DATA"}
        assert "INCREMENTAL" in actions
    else:
        assert actions <= {"FULL", "NO_DATA"}
    nodes = outcome.explanation.nodes
    SHOWN.append(
        Evidence(
            construct.section, construct.name, construct.code,
            [n.rule for n in nodes], [n.reads for n in nodes], outcome.actions,
        )
    )  # fmt: skip
