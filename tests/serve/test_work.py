"""How statements wait for their turn."""

from __future__ import annotations

import asyncio
import threading

from penstock.serve.work import Gate


def test_who_reads_does_not_wait_for_those_who_change() -> None:
    async def story() -> None:
        gate, stop = Gate(2, 10), threading.Event()
        changes = [asyncio.create_task(gate.run(stop.wait, changes=True)) for _ in range(3)]
        while gate.running + gate.waiting < 3:
            await asyncio.sleep(0)
        assert (gate.running, gate.waiting) == (1, 2)
        assert await gate.run(lambda: "read") == "read"
        stop.set()
        assert await asyncio.gather(*changes) == [True] * 3

    asyncio.run(story())
