"""Sending from a thread of its own, in order, so that nobody waits for who receives."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

_T = TypeVar("_T")

LONGEST_QUEUE = 1000


class Sender(Generic[_T]):
    """``deliver`` is called in the thread, which begins with the first thing to send. What it raises is logged."""

    def __init__(self, name: str, deliver: Callable[[_T], None]):
        self._name, self._deliver = name, deliver
        self._log = logging.getLogger(f"penstock.{name}")
        self._queue: queue.Queue[_T | None] = queue.Queue(LONGEST_QUEUE)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.closing = threading.Event()
        """Set when there is no more time: who waits between two tries should not."""

    def send(self, item: _T) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._deliver_all, name=f"penstock-{self._name}", daemon=True)
                self._thread.start()
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            self._log.warning("%s: one was not sent, since %s wait for the receiver", self._name, LONGEST_QUEUE)

    @property
    def idle(self) -> bool:
        """Whether all that was to be sent has been, or has failed for good."""
        return not self._queue.unfinished_tasks

    def close(self, patience: float = 5.0) -> None:
        """Send what is left, for at most so many seconds."""
        if self._thread is not None:
            with suppress(queue.Full):
                self._queue.put_nowait(None)
            self._thread.join(patience)
            self.closing.set()

    def _deliver_all(self) -> None:
        while (item := self._queue.get()) is not None and not self.closing.is_set():
            try:
                self._deliver(item)
            except Exception as problem:  # its message may have the URL, and with it a secret
                self._log.warning("%s: one could not be sent: %s", self._name, type(problem).__name__)
            finally:
                self._queue.task_done()
