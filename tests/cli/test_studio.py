"""``penstock demo studio`` as a process: the page is there at once, a shop fills behind it, and Ctrl-C ends it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from penstock.bench.storefront import FAILING, RECOMPUTED, SUSPENDED, statements

MAIN = "from penstock.cli.main import main; main()"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-c", MAIN, "demo", "studio", "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    yield started
    if started.poll() is None:
        started.kill()
    started.wait()


def _said(process: subprocess.Popen[str], words: str) -> str:
    """The first line with these words."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if words in line:
            return line
    raise AssertionError("".join(seen))


def test_a_shop_of_twenty_views_is_open_until_ctrl_c(process: subprocess.Popen[str]) -> None:
    url = re.findall(r"http://[\d.:]+", _said(process, "serving shop"))[0]

    def ask(path: str) -> Any:
        with urlopen(f"{url}/api/v1/{path}") as answer:
            return json.load(answer)

    with urlopen(url) as page:
        assert b"Penstock" in page.read()
    assert {table["name"] for table in ask("schema/shop")["tables"]} >= {"customers", "orders", "clicks"}
    _said(process, "all of them are there")
    views = {view["name"]: view for view in ask("views")["result"]}
    assert len(views) == len(list(statements())) == 20
    assert [name for name, view in views.items() if not view["incremental"]] == [RECOMPUTED]
    assert views[RECOMPUTED]["reason"] == "AGGREGATE_FUNCTION"
    assert views[SUSPENDED]["state"] == "SUSPENDED"
    assert {view["refresh"] for view in views.values()} >= {"IMMEDIATE", "ON COMMIT"}
    assert ask("read/tv_order/1")["data"]["lines"][0]["product"]["name"].startswith("Product ")
    epoch = ask("epochs?limit=1")["epoch"]
    while ask("epochs?limit=1")["epoch"] == epoch:
        pass  # customers go on buying, and views follow
    while ask(f"views/{FAILING}")["last_status"] != "FAILED":
        pass
    process.send_signal(signal.SIGINT)
    assert "stopped" in _said(process, "stopped")
    assert process.wait() == 0
