"""``python -m penstock.bench.ten_thousand``: measures the pieces and plays the ways to work, as tables in Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.bench.ten_thousand.filled import fill
from penstock.bench.ten_thousand.made_up import made_up
from penstock.bench.ten_thousand.pieces import Measured, What, measured
from penstock.bench.ten_thousand.play import Played, Takes, Way, played
from penstock.catalog import Catalog

WAYS = (
    Way(name="1 scheduler, an epoch for each part", schedulers=1, bundles=False),
    Way(name="1 scheduler", schedulers=1),
    Way(name="2 schedulers, leases decide", schedulers=2),
    Way(name="2 schedulers, `--shard`", schedulers=2, shards=True),
    Way(name="4 schedulers, leases decide", schedulers=4),
    Way(name="4 schedulers, `--shard`", schedulers=4, shards=True),
    Way(name="8 schedulers, `--shard`", schedulers=8, shards=True),
    Way(name="8 warehouses, a scheduler each", schedulers=8, shards=True, catalogs=8),
)


def takes(found: Measured) -> Takes:
    """What a look and an epoch cost, made of the measured pieces: the steps of ``Scheduler`` and ``Engine.refresh``.

    It is the time of the processor, which does not depend on what else the machine had to do.
    """
    look = sum(map(found.processor, (What.WORLD, What.HISTORY, What.OUTLOOK, What.IDLE_LOGS)))
    return Takes(look=look, epoch=sum(map(found.processor, (What.WORLD, What.LEASES, What.PUBLISH_TEN))))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m penstock.bench.ten_thousand", description=__doc__)
    parser.add_argument("--views", type=int, default=10_000)
    parser.add_argument("--sources", type=int, default=1_000)
    parser.add_argument("--minutes", type=int, default=20, help="how long schedulers are played for")
    parser.add_argument(
        "--catalog", help="the URL of an empty database; without it, SQLite in a directory that goes again"
    )
    given = parser.parse_args()
    made = made_up(given.views, given.sources)
    with TemporaryDirectory(prefix="penstock-ten-thousand-") as where:
        catalog = Catalog(given.catalog or f"sqlite:///{Path(where) / 'catalog.db'}")
        try:
            fill(catalog, made, where)
            found = measured(catalog, made, where)
        finally:
            catalog.close()
    _print(("piece", "time", "of which processor"), [
        (piece.what.value, _milliseconds(piece.seconds), _milliseconds(piece.processor)) for piece in found.pieces
    ])  # fmt: skip
    print(f"\nA scheduler keeps {found.held / 2**20:.0f} MiB between two looks.\n")
    length = timedelta(minutes=given.minutes)
    _print(_COLUMNS, (_row(way, played(made, way, takes(found), length)) for way in WAYS))


_COLUMNS = (
    "how", "targets kept", "schedulers busy", "cores for the refreshes", "looked at", "changed", "epochs", "in vain",
    "transactions",
)  # fmt: skip


def _row(way: Way, did: Played) -> tuple[str, ...]:
    return (
        way.name, f"{did.kept:.0%}", f"{min(sum(did.busy) / len(did.busy), 1):.0%}", f"{did.work / did.seconds:.1f}",
        f"{did.refreshes / did.seconds:.0f}", f"{did.changed / did.seconds:.0f}", f"{did.epochs / did.seconds:.1f}",
        f"{did.in_vain / did.seconds:.1f}", f"{did.transactions:.0f}",
    )  # fmt: skip


def _print(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for row in [columns, ["---"] * len(columns)]:
        print(f"| {' | '.join(row)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1_000:,.1f} ms"


if __name__ == "__main__":
    main()
