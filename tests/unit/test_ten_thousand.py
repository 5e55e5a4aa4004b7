"""The warehouse on paper: its catalog is a real one, its schedulers are played. Here it is a small one."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from penstock.bench.ten_thousand.filled import fill
from penstock.bench.ten_thousand.made_up import MadeUp, made_up
from penstock.bench.ten_thousand.pieces import What, measured
from penstock.bench.ten_thousand.play import Played, Takes, Way, played
from penstock.catalog import Catalog
from penstock.errors import DefinitionError
from penstock.graph.shards import Shard
from penstock.schedule.due import Due, Why
from penstock.schedule.parts import MANY, bundled
from penstock.schedule.plans import outlook


@pytest.fixture(scope="module")
def made() -> MadeUp:
    return made_up(300, 30)


def test_the_catalog_reads_what_was_made_up_and_each_piece_is_measured(made: MadeUp, tmp_path: Path) -> None:
    catalog = Catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    fill(catalog, made, str(tmp_path))
    world = catalog.world()
    assert {key: view.reads for key, view in world.views.items()} == {k: view.reads for k, view in made.views.items()}
    assert {view.trigger for view in world.views.values()} == {view.trigger for view in made.views.values()}
    found = measured(catalog, made, str(tmp_path))
    assert {piece.what for piece in found.pieces} == set(What)
    assert catalog.world().epoch > world.epoch, "epochs were really published"
    catalog.close()


def test_schedulers_with_shards_do_together_what_one_would(made: MadeUp, tmp_path: Path) -> None:
    catalog = Catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    fill(catalog, made, str(tmp_path))
    world, last, later = catalog.world(), catalog.last_refreshes(), datetime.now(timezone.utc) + timedelta(hours=1)
    newest = dict.fromkeys(made.every, 1)
    whole = outlook(world, last, last, newest, {}, later)
    parts = [outlook(world, last, last, newest, {}, later, Shard(number, 3)) for number in (1, 2, 3)]
    assert sorted(one.key for part in parts for one in part.due) == sorted(one.key for one in whole.due)
    assert min(len(part.due) for part in parts) > 0
    assert min(part.next for part in parts if part.next is not None) == whole.next
    catalog.close()


@pytest.mark.parametrize("text", ["", "2", "0/8", "9/8", "-1/8", "a/b", "1/0"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"is no shard\. Write which one of how many"):
        Shard.read(text)


def play(made: MadeUp, way: Way, look: float) -> Played:
    return played(made, way, Takes(look=look, epoch=look), timedelta(minutes=2))


def test_what_one_scheduler_cannot_do_several_can(made: MadeUp) -> None:
    """And where looking is what takes the time, so can one that puts small parts into one epoch."""
    one = play(made, Way(name="one", schedulers=1, bundles=False), look=1.5)
    several = play(made, Way(name="several", schedulers=4, shards=True, bundles=False), look=1.5)
    bundled = play(made, Way(name="bundled", schedulers=1), look=1.5)
    assert one.kept < 0.9
    assert several.kept > one.kept
    assert bundled.kept > one.kept
    assert bundled.refreshes > one.refreshes


def test_who_has_enough_time_keeps_all_targets_and_plays_the_same_again(made: MadeUp) -> None:
    way = Way(name="two", schedulers=2)
    did = play(made, way, look=0.1)
    assert did.kept == 1
    assert 0 < max(did.busy) < 0.5
    assert did == play(made, way, look=0.1)


def test_small_parts_share_an_epoch_where_there_are_many() -> None:
    """The most urgent is first, what takes long is alone, and where there are few all are."""
    parts = [(Due(f"v{number}", Why.LAG, datetime.now(timezone.utc)),) for number in range(MANY + 4)]
    seconds = {"v0": 2.0, "v3": math.inf, "v5": 0.9}
    found = bundled(parts, lambda key: seconds.get(key, 0.25), 1.0)
    assert [[one.key for one in part] for part in found[:4]] == [["v0"], ["v1", "v2", "v4"], ["v3"], ["v5"]]
    assert [len(part) for part in found[4:]] == [4, 4, 4, 2]
    assert bundled(parts[:MANY], lambda key: 0.0, 1.0) == parts[:MANY]
