"""The soak test, some seconds of it: that all of it works, and that it finds what is planted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from bank import VIEWS, Bank, found_bank
from journal import BEGUN, DONE, Journal, read_journal
from judge import judge
from processes import Company, Member
from pyspark.sql import SparkSession
from sqlalchemy import update

import penstock
from longer import LONG
from penstock.bench.store_server import BUCKET, far_store
from penstock.catalog import tables as t
from penstock.storage.file_cache import FILES
from postgres import new_database
from soak import Soak
from tampering import tamper, without


@pytest.fixture(params=["disk", pytest.param("store", marks=LONG)])
def bank(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    if request.param == "disk":
        yield Bank(str(tmp_path / "warehouse"), str(tmp_path / "events"))
        return
    with far_store(0) as store:
        for name, value in {**store.options, "AWS_ALLOW_HTTP": "true"}.items():
            monkeypatch.setenv(name, value)
        FILES.clear()
        yield Bank(f"{BUCKET}/warehouse", f"{BUCKET}/events", new_database(request.getfixturevalue("postgres")))


def test_a_short_soak_and_planted_faults(spark: SparkSession, bank: Bank, tmp_path: Path) -> None:
    with bank.opened() as db:
        found_bank(db, bank.events)
        soak = Soak(bank, tmp_path, 8, Random(7), between=(0.5, 1.5), longest=2, readers=1, least=8)
        company = soak.run()
        db.refresh()
        verdict = judge(db, soak.journals)
        assert (verdict.lost, verdict.wrong, company.faults) == ([], [], [])
        failed = soak.figures(db)["refreshes that failed"]
        assert all(told.startswith(("INTERRUPTED", "LEASE_LOST")) for told in failed), failed
        for what in ("transfers", "reads of an epoch", "views compared at the end", "epochs read again at the end"):
            assert verdict.looked[what] > 0, what
        if bank.catalog is None:  # what the judge finds does not depend on where it looks
            _plant(db, soak)


def _plant(db: penstock.Database, soak: Soak) -> None:
    """Rows that are lost or that nobody wrote down, a view without a row, and a reader that saw something else."""
    written = Journal(soak.journals / "writer9.jsonl")
    for state in (BEGUN, DONE):
        written.write(number=0, state=state, kind="insert", transfers=[-2, -3])
    db.sql("INSERT INTO entries VALUES (-3, 1, 7)")
    db.sql("INSERT INTO entries VALUES (-1, 0, 5)")
    db.sql("UPDATE accounts SET balance = balance + 1 WHERE id = 3")
    db.sql("UPDATE owners SET region = 77 WHERE id = 9")
    db.refresh()
    _show_wrong(db, "extremes")
    line = next(line for line in read_journal(soak.journals / "reader0.jsonl") if "digests" in line)
    Journal(soak.journals / "reader1.jsonl").write(**{**line, "digests": dict.fromkeys(VIEWS, "other")})
    found = judge(db, soak.journals)
    for text in (
        "-2 is lost",
        "-3 has the amounts [7]",
        "nobody wrote transfer -1",
        "not explained",
        "owners: 9 is in [77]",
    ):
        assert any(text in problem for problem in found.lost), (text, found.lost)
    for text in ("extremes is not its query", "everyone: balances", "ledger: entries add up", "two readers saw"):
        assert any(text in problem for problem in found.wrong), (text, found.wrong)


def _show_wrong(db: penstock.Database, view: str) -> None:
    """A row less in what the newest epoch shows of a view."""
    before = db._catalog.world().nodes[view].version
    tamper(db, view, without(0))
    now = db._catalog.world().nodes[view].version
    with db._catalog.transaction(writes=True) as connection:
        shown = t.node_versions.c.node == view, t.node_versions.c.version == before
        connection.execute(update(t.node_versions).where(*shown).values(version=now))


def test_who_ends_by_itself_is_a_fault(tmp_path: Path) -> None:
    member = Member("one", "reader", ["/bin/false"], tmp_path, tmp_path)
    company = Company([member], Random(1), None, 0)
    company.start()
    assert member.process is not None
    member.process.wait()
    company.tend()
    assert company.faults == ["one ended by itself with 1"]
