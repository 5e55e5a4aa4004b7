"""Every query of TPC-H as a view over shared tables, kept fresh incrementally through cycles of mixed changes.

Plain pytest runs it on a few thousand rows; ``make test-tpch SF=0.1`` on all rows of that scale factor.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from pyspark.sql import SparkSession

import evidence
import penstock
from evidence import Evidence
from penstock.bench.tpch.queries import QUERIES
from tpch.cycles import CYCLES, Outcome, create_views, run_cycle
from tpch.data import generate, load

WHOLE = "PENSTOCK_TPCH_SF" in os.environ
SCALE = float(os.environ.get("PENSTOCK_TPCH_SF", "0.01"))
SHOWN: list[Evidence] = []
EVERY = 997 if WHOLE else 41  # one order in so many is changed by a statement


@dataclass
class Run:
    refused: dict[int, str] = field(default_factory=dict)
    cycles: list[dict[int, Outcome]] = field(default_factory=list)


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    files = generate(tmp_path_factory.getbasetemp() / "tpch", SCALE)
    with penstock.connect(tmp_path_factory.mktemp("tpch") / "warehouse") as db:
        load(db, files, sample=not WHOLE)
        refused = create_views(db, SCALE)
        evidence.forget("tpch")
        yield Run(refused, [run_cycle(db, cycle, EVERY) for cycle in range(len(CYCLES))])
        evidence.save("tpch", SHOWN)


@pytest.mark.parametrize("number", QUERIES)
def test_a_query_is_kept_fresh_incrementally(run: Run, number: int) -> None:
    assert number not in run.refused, run.refused[number]
    outcomes = [cycle[number] for cycle in run.cycles]
    assert not [outcome for outcome in outcomes if outcome.problem]
    assert any(outcome.changed for outcome in outcomes), "no cycle changes its rows, so it tests nothing"
    SHOWN.append(Evidence("TPC-H", f"Q{number}", None, [], [], [outcome.action for outcome in outcomes]))
