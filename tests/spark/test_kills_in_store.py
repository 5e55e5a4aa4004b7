"""``kill -9`` at points of what changes a warehouse in an object store: as ``test_kills.py``, with an S3 server.

What is to be hurt is put back before each kill, under the same URLs: a store has no directories that could be copied
and known by another name.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from test_kills import WORKS, Work

import penstock
from connect_server import OVER_CONNECT
from going_on import published, stock, went_on
from longer import LONG
from nursery import Death, Nursery
from penstock.bench.store_server import BUCKET, far_store
from penstock.storage.file_cache import FILES
from penstock.storage.files import files_of

pytestmark = pytest.mark.skipif(OVER_CONNECT, reason="nothing here needs Spark")

HERE = (
    "from penstock.frames import limits; limits.SMALL_TABLE_ROWS = 1; "
    "import penstock.storage.apply as apply; apply.cheaper = lambda **_: 'PATCH'; "
    "import penstock.storage.deletion_vectors as vectors; vectors.LARGEST_INLINE = 1"
)
"""Rows are marked as deleted, by the driver, and the marks are in a file."""
TRANSACTION = ("BEGIN", "INSERT INTO t VALUES (4, 4)", "UPDATE t SET x = x + 1 WHERE k = 1", "COMMIT")
IN_STORE = {
    **{name: work for name, work in WORKS.items() if not work.needs_spark},
    "patch": replace(WORKS["patch"], more=HERE),
    "transaction": Work(f"[db.sql(text) for text in {TRANSACTION}]", 8, stride=3),
}
OFTEN = {"refresh": 9, "patch": 8, "insert": 3, "transaction": 4, "vacuum": 12}
"""What ``make test`` kills, and at every how many points."""


@dataclass
class Walk:
    folder: Path
    objects: dict[str, bytes]
    nursery: Nursery

    def put_back(self, name: str) -> Path:
        """The store as it was, with a catalog of its own."""
        bucket = files_of(BUCKET)
        bucket.delete([info.name for info in bucket.listing()])
        bucket.each(lambda one: bucket.write(one, lambda out: out.write(self.objects[one])), list(self.objects))
        FILES.clear()
        catalog = self.folder / f"{name}.sqlite"
        shutil.copyfile(self.folder / "base.sqlite", catalog)
        return catalog

    def let(self, work: Work, catalog: Path, die_at: int = 0) -> Death:
        return self.nursery.let(work.do, WAREHOUSE, die_at=die_at, more=work.more, catalog=catalog)


WAREHOUSE = f"{BUCKET}/warehouse"


@pytest.fixture(scope="module")
def walk(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    folder = tmp_path_factory.mktemp("kills")
    with far_store(0) as store, pytest.MonkeyPatch.context() as patch:
        for name, value in {**store.options, "AWS_ALLOW_HTTP": "true"}.items():
            patch.setenv(name, value)
        with penstock.connect(WAREHOUSE, catalog=f"sqlite:///{folder}/base.sqlite") as db:
            stock(db)
        bucket = files_of(BUCKET)
        objects = {info.name: bucket.read(info.name) for info in bucket.listing()}
        with Nursery({**os.environ}) as nursery:
            yield Walk(folder, objects, nursery)


@pytest.mark.parametrize(
    ("name", "stride"), [*OFTEN.items(), *(pytest.param(name, 1, marks=LONG) for name in IN_STORE)]
)
def test_killed_in_a_store(walk: Walk, name: str, stride: int) -> None:
    work = IN_STORE[name]
    catalog = walk.put_back("undisturbed")
    before = published(WAREHOUSE, f"sqlite:///{catalog}")
    done = walk.let(work, catalog)
    FILES.clear()
    points, after = done.points, published(WAREHOUSE, f"sqlite:///{catalog}")
    assert "Error" not in done.said, done.said
    for number in range(1, len(points) + 1, stride):
        catalog = walk.put_back(f"{name} {number}")
        death = walk.let(work, catalog, number)
        FILES.clear()
        if not death.killed:  # on a busy machine another strategy may be chosen, which has fewer points
            assert number > len(death.points), death
            break
        try:
            refreshes = work.do.startswith("db.refresh()")
            went_on(WAREHOUSE, before, after, refreshes=refreshes, catalog=f"sqlite:///{catalog}")
        except BaseException as problem:
            where = f"{name} was killed at point {number}, which is {death.points[-1]!r}, of {' '.join(points)}"
            raise AssertionError(f"{where}: {problem}") from problem
    print(f"{name}: {len(points)} points")
