"""Epochs: the list, which is alive, and one of them as a timeline and as a table."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from browsing import PHONE, Studio
from http_server import Server, Servers
from playwright.sync_api import expect


def test_the_list_is_alive_and_leads_to_one(studio: Studio, server: Server) -> None:
    page = studio.go("epochs")
    rows = page.get_by_role("table", name="Epochs").locator("tbody tr")
    before = server.ask("GET", "/api/v1/epochs").json["epoch"]
    expect(rows.first.get_by_role("link")).to_have_text(str(before))
    expect(page.locator(".strip-bar")).to_have_count(before)
    server.sql("INSERT INTO orders VALUES (90, 1, 'eu', 5.00, 'open')")
    epoch = server.ask("POST", "/api/v1/refresh", {"views": ["sales_by_country"]}).json["epoch"]
    expect(rows.first.get_by_role("link")).to_have_text(str(epoch))
    expect(rows.first).to_contain_text("sales_by_customer")
    studio.accessible()
    studio.shoot("epochs")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Epoch {epoch}", level=1)).to_be_visible()
    page.go_back()
    page.locator(".strip-bar").nth(1).click()
    expect(page.get_by_role("heading", name="Epoch 2", level=1)).to_be_visible()


def test_one_as_a_timeline_and_as_a_table(studio: Studio, server: Server) -> None:
    server.sql("INSERT INTO orders VALUES (91, 1, 'eu', 7.00, 'paid')")
    epoch = server.ask("POST", "/api/v1/refresh", {"views": ["sales_board", "stock_best"]}).json["epoch"]
    told = server.ask("GET", f"/api/v1/epochs/{epoch}").json
    page = studio.go(f"epochs/{epoch}")
    bars = page.get_by_role("list", name="Nodes in the order in which they began").get_by_role("listitem")
    names = [node["name"] for node in told["nodes"] if not node["hidden"]]
    for name in names:
        expect(bars.get_by_role("link", name=name, exact=True)).to_be_visible()
    critical = [node for node in told["nodes"] if node["critical"]]
    expect(page.locator(".gantt-row.critical")).to_have_count(len(critical))
    # a reader stands to the right of what it reads
    places = {
        name: bars.filter(has=page.get_by_role("link", name=name, exact=True)).locator(".gantt-bar") for name in names
    }
    first, then = (places[name].bounding_box() for name in ("sales_by_customer", "sales_by_country"))
    assert first is not None
    assert then is not None
    assert first["x"] + first["width"] <= then["x"] + 3
    table = page.get_by_role("table", name="What was done to each node")
    row = table.get_by_role("row").filter(has=page.get_by_role("link", name="sales_by_customer", exact=True)).first
    expect(row).to_contain_text("INCREMENTAL")
    expect(row).to_contain_text("+1")
    expect(page.get_by_role("table", name="What was due, and why")).to_contain_text("sales_by_country")
    expect(page.locator(".facts")).to_contain_text("orders")
    studio.accessible()
    studio.shoot("epoch")
    page.get_by_role("button", name="the epoch before").click()
    expect(page.get_by_role("heading", name=f"Epoch {epoch - 1}", level=1)).to_be_visible()
    page.get_by_role("button", name="the next epoch").click()
    expect(page.get_by_role("button", name="the next epoch")).to_be_disabled()
    bars.get_by_role("link", name="sales_by_customer", exact=True).click()
    expect(page).to_have_url(re.compile("#/view/sales_by_customer"))


def test_one_that_is_not_there(studio: Studio) -> None:
    studio.expects("404")
    page = studio.go("epochs/99999")
    expect(page.get_by_role("alert")).to_contain_text("there is no published epoch 99999")
    studio.go("epochs/x")
    expect(page.get_by_role("heading", name="No such epoch")).to_be_visible()


def test_what_an_older_penstock_recorded_is_shown(
    opened: Callable[..., Studio], stocked_store: Path, tmp_path: Path, serving: Servers
) -> None:
    place = tmp_path / "old"
    shutil.copytree(stocked_store, place)
    with sqlite3.connect(place / "catalog.sqlite") as catalog:
        catalog.execute("UPDATE history SET details = json_remove(details, '$.work')")
        (epoch,) = catalog.execute(
            "SELECT MAX(epoch) FROM history WHERE view = 'stock_best' AND action = 'INCREMENTAL'"
        ).fetchone()
    catalog.close()
    studio = opened(serving("-w", f"shop={place}", "--rate", 100_000).url, viewport=PHONE)
    page = studio.go(f"epochs/{epoch}")
    expect(page.get_by_text("it was not recorded when each ran")).to_be_visible()
    expect(page.locator(".gantt-bar.untimed").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
