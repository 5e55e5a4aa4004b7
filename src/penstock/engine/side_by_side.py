"""Doing the nodes of a graph in its order, side by side where none waits for another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter

Piece = Callable[[], None]

LANES = max(2, min(os.cpu_count() or 2, 8))
"""Nodes at once. Most of a small refresh is Spark's driver planning; a large one takes all cores by itself."""


def in_order(
    graph: Mapping[str, Iterable[str]], begin: Callable[[str], Piece | None], lane: Callable[[Piece], Piece]
) -> None:
    """Do every node after its inputs.

    ``begin`` is called in this thread, as soon as a node's inputs are through, and gives the work that is left, if any.
    The work of a single node is done in this thread too; that of several each in a lane, a thread of its own.
    """
    order = TopologicalSorter(graph)
    order.prepare()
    pool = ThreadPoolExecutor(LANES, thread_name_prefix="penstock")
    busy: dict[Future[None], str] = {}
    try:
        while order.is_active():
            ready = {}
            for name in order.get_ready():
                work = begin(name)
                if work is None:
                    order.done(name)
                else:
                    ready[name] = work
            if len(ready) == 1 and not busy:
                ((name, work),) = ready.items()
                work()
                order.done(name)
                continue
            busy.update({pool.submit(lane(work)): name for name, work in ready.items()})
            if busy:
                for finished in wait(busy, return_when=FIRST_COMPLETED).done:
                    finished.result()
                    order.done(busy.pop(finished))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
