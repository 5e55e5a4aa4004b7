"""``demo studio``: the Studio over a shop that fills while you look, with views of every kind and customers who buy."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.bench.storefront import Shop, statements
from penstock.cli.output import numbered, say_hint
from penstock.errors import NotSupportedError, PenstockError

if TYPE_CHECKING:
    from penstock.database import Database
    from penstock.serve.app import Application

DATABASE = "shop"
PORT = 8080
_PAUSE = 0.35
"""Seconds between two things that happen in the shop."""


def serve_studio(path: str, port: int) -> None:
    """Until Ctrl-C. The page is there at once; Spark, which new views need, starts meanwhile."""
    try:
        from penstock.serve.options import Options, Place
        from penstock.serve.process import serve
    except ModuleNotFoundError as problem:
        raise NotSupportedError(
            f"the server needs the Python module {problem.name!r}. Run pip install 'penstock-spark[serve]'."
        ) from None

    @contextmanager
    def shopping(application: Application) -> Iterator[None]:
        hosted = application.warehouses.get(DATABASE)
        assert hosted is not None
        shop = _Shopping(hosted.db)
        shop.begin()
        try:
            yield
        finally:
            shop.end()

    os.makedirs(path, exist_ok=True)
    options = Options(
        places=(Place(name=DATABASE, path=path),), port=port, schedule=True, state=os.path.join(path, "server.sqlite"),
        audit=os.devnull,
    )  # fmt: skip
    serve(options, say_hint, shopping)
    say_hint("stopped")


@dataclass
class _Shopping:
    """Two threads: one makes the views, one is the customers."""

    database: Database
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def begin(self) -> None:
        shop = Shop(self.database)
        shop.open()
        for work in (lambda: self._make(shop), lambda: self._live(shop)):
            self._threads.append(threading.Thread(target=work, name="penstock-shop", daemon=True))
            self._threads[-1].start()

    def end(self) -> None:
        self._over.set()
        self.database.interrupt()
        for thread in self._threads:
            thread.join()

    def _make(self, shop: Shop) -> None:
        wanted, began = list(statements()), time.monotonic()
        say_hint(f"the shop is open; now {numbered(len(wanted), 'view')} come, and Spark for them")
        try:
            for place, (name, statement) in enumerate(wanted, 1):
                if self._over.is_set():
                    return
                self.database.sql(statement)
                if place == 1 or place % 5 == 0:
                    say_hint(f"{place} of {len(wanted)} views are there, the last one {name}")
            shop.break_something()
            say_hint(f"all of them are there after {time.monotonic() - began:.0f} s; a few writes a second go on")
        except PenstockError as problem:
            if not self._over.is_set():
                say_hint(f"the shop stands still: {problem}")

    def _live(self, shop: Shop) -> None:
        while not self._over.wait(_PAUSE):
            try:
                shop.happen()
            except PenstockError as problem:  # a view is being created over what it changes, say
                if not self._over.is_set():
                    say_hint(f"a write was refused: {problem}")
