"""The Studio in a real browser, on a real server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browsing import Studio
from http_server import Server, Servers
from playwright.sync_api import Browser, expect, sync_playwright
from pyspark.sql import SparkSession
from store import stock

import penstock

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium: none is downloaded, and it asks nobody for anything by itself.

    One for each file: as long as it is open, nothing else in this process can run an event loop.
    """
    place = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if place is None:
        pytest.skip(f"no browser: install one of {', '.join(_BROWSERS)}, such as with apt-get install chromium")
    expect.set_options(timeout=60_000)  # for a machine that does much else
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        with playwright.chromium.launch(executable_path=place, args=quiet) as found:
            yield found


@pytest.fixture(scope="session")
def stocked_store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once, with Spark; a server on it needs none."""
    path = tmp_path_factory.mktemp("store") / "shop"
    with penstock.connect(path) as db:
        stock(db)
    return path


@pytest.fixture(scope="module")
def store(stocked_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for one file of tests."""
    place = tmp_path_factory.mktemp("copy") / "shop"
    shutil.copytree(stocked_store, place)
    return place


@pytest.fixture(scope="module")
def serving() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    servers.stop()


@pytest.fixture(scope="module")
def server(browser: Browser, store: Path, serving: Servers) -> Server:
    return serving("-w", f"shop={store}", "--rate", 100_000)


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Studio]]:
    """Opens Studios, and sees afterwards that they were quiet."""
    studios: list[Studio] = []

    def open(url: str, **options: object) -> Studio:
        studios.append(Studio(browser, url, **options))
        return studios[-1]

    yield open
    for studio in studios:
        studio.close()
        assert not studio.problems


@pytest.fixture
def studio(opened: Callable[..., Studio], server: Server) -> Studio:
    return opened(server.url)
