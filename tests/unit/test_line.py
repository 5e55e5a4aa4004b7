"""Standing in line: first come, first served, and nobody waits for ever."""

from __future__ import annotations

import threading

from penstock.engine.line import Line


def test_first_come_first_served() -> None:
    line, served, threads = Line(), list[int](), []

    def serve(number: int) -> None:
        with line.behind_others("orders", 60):
            served.append(number)

    with line.behind_others("orders", 60):
        for number in range(5):
            threads.append(threading.Thread(target=serve, args=(number,)))
            threads[-1].start()
            while len(line._waiting["orders"]) < number + 2:
                pass  # it stands in line before the next one comes
        with line.behind_others("others", 60), line.behind_others("orders", 60):
            assert served == [], "another table is another line, and who is in turn may call itself"
    for thread in threads:
        thread.join()
    assert served == [0, 1, 2, 3, 4]
    assert line._waiting == {}


def test_who_has_waited_too_long_goes_ahead() -> None:
    line, over = Line(), threading.Event()

    def serve() -> None:
        with line.behind_others("orders", 0.0):
            over.set()

    with line.behind_others("orders", 60):
        thread = threading.Thread(target=serve)
        thread.start()
        over.wait()
        thread.join()
    with line.behind_others("orders", 60):
        assert list(line._waiting) == ["orders"]
