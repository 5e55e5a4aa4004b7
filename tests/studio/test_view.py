"""One view: what is told of it, and every button."""

from __future__ import annotations

import re
from collections.abc import Callable

from browsing import PHONE, Studio
from http_server import Server
from playwright.sync_api import Page, expect


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()
    expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")


def said(page: Page, text: str) -> None:
    """What a toast says; it is closed, so that the next one can be told from it."""
    toast = page.locator(".toast").filter(has_text=text)
    expect(toast).to_be_visible()
    toast.get_by_role("button", name="Close").click()


def test_its_definition_and_how_it_is_maintained(studio: Studio) -> None:
    page = studio.go("view/stock_sold")
    expect(page).to_have_title("stock_sold · View · Penstock")
    expect(page.get_by_role("heading", name="stock_sold", level=1)).to_be_visible()
    expect(page.get_by_label("Query", exact=True)).to_contain_text("SUM(l.quantity) AS sold")
    expect(page.locator(".sql-keyword").first).to_have_text("SELECT")
    expect(page.get_by_text("Maintained incrementally (policy AUTO).")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^inner join"))).to_contain_text("joined with the other inputs")
    expect(page.get_by_role("table", name="Columns").get_by_role("row")).to_have_count(6)
    expect(page.get_by_role("link", name="stock_by_category")).to_be_visible()
    expect(page.locator(".strip")).to_contain_text("/ 10 min")
    studio.accessible()
    studio.shoot("view")
    page.get_by_role("link", name="In the graph").click()
    expect(page.get_by_role("complementary", name="stock_sold")).to_be_visible()


def test_why_it_is_not_incremental_and_what_to_do(studio: Studio) -> None:
    page = studio.go("view/audit_names")
    expect(
        page.get_by_text("Recomputed in full at every change, because of the order-dependent aggregate FIRST")
    ).to_be_visible()
    expect(page.get_by_text("Use MIN, MAX, MIN_BY, MAX_BY or PERCENTILE")).to_be_visible()
    expect(page.get_by_text("RECOMPUTED", exact=True)).to_be_visible()


def test_lag_and_refreshes(studio: Studio) -> None:
    page = studio.go("view/stock_sold?tab=refreshes")
    expect(page.get_by_role("img", name=re.compile("Lag over time: .* within its target of 10 min"))).to_be_visible()
    rows = page.get_by_role("table", name="Refreshes").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("REQUESTED")
    expect(rows.nth(1)).to_contain_text("CHANGED")
    expect(rows.nth(1)).to_contain_text("+2")
    expect(rows.nth(1).locator(".phase").first).to_be_visible()
    page.get_by_label("with those that found nothing").check()
    expect(rows).to_have_count(6)
    studio.accessible()
    studio.shoot("view-refreshes")
    rows.nth(0).get_by_role("link").click()
    expect(page).to_have_url(re.compile("#/epochs/"))


def test_a_failed_refresh_says_why(studio: Studio) -> None:
    page = studio.go("view/stock_packs")
    expect(page.get_by_role("alert")).to_contain_text("Division by zero")
    expect(page.get_by_role("alert")).to_contain_text("The rows are those of the refresh before")
    studio.accessible()
    tab(page, "Refreshes")
    expect(page.get_by_role("table", name="Refreshes")).to_contain_text("FAILED")


def test_rows_page_by_page(studio: Studio, server: Server) -> None:
    server.sql("INSERT INTO orders VALUES " + ", ".join(f"({n}, {n}, 'eu', {n}, 'open')" for n in range(1000, 1060)))
    server.sql("REFRESH MATERIALIZED VIEW sales_by_customer")
    page = studio.go("view/sales_by_customer?tab=rows")
    rows = page.get_by_role("region", name="Rows").locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(page.get_by_text("1 to 50")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("51 to 64")).to_be_visible()
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_text("1 to 50")).to_be_visible()
    studio.accessible()
    page.get_by_label("As of epoch").fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_text("of epoch 3")).to_be_visible()
    expect(rows).to_have_count(3)
    studio.expects("404")
    page.get_by_label("As of epoch").fill("100000")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("alert")).to_contain_text("100000")


def test_what_differs_between_two_epochs(studio: Studio) -> None:
    page = studio.go("view/stock_sold?tab=changes")
    first, second = page.get_by_label("From epoch"), page.get_by_label("to epoch")
    expect(page.get_by_text("No row differs.")).to_be_visible()  # the last one was recomputed, to the same
    second.select_option(index=1)
    expect(page.get_by_text("+ 2 rows came")).to_be_visible()
    expect(page.get_by_text("\N{MINUS SIGN} 2 rows went")).to_be_visible()
    expect(page.locator("tr.came")).to_have_count(2)
    expect(first.locator("option")).to_have_count(1)
    studio.accessible()
    studio.shoot("view-changes")


def test_every_button_asks_first(studio: Studio, server: Server) -> None:
    page = studio.go("view/stock_best")
    for button, asks, yes, then in (
        ("Suspend", "Suspend stock_best?", "Suspend", "stock_best is suspended."),
        ("Resume", "Resume stock_best?", "Resume", "stock_best refreshes by itself again."),
        ("Full refresh", "Compute all of stock_best anew?", "Compute anew", "stock_best: FULL"),
    ):
        page.get_by_role("button", name=button, exact=True).click()
        dialog = page.get_by_role("dialog", name=asks)
        dialog.get_by_role("button", name="Cancel").click()
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("button", name=button, exact=True)).to_be_focused()
        page.get_by_role("button", name=button, exact=True).click()
        studio.accessible()
        dialog.get_by_role("button", name=yes).click()
        said(page, then)
    page.get_by_role("button", name="Alter").click()
    dialog = page.get_by_role("dialog", name="Alter stock_best")
    expect(dialog.get_by_role("button", name="Alter")).to_be_disabled()
    dialog.get_by_label("Refresh: when").fill("EVERY 7 MINUTES")
    dialog.get_by_label("Policy: how").select_option("INCREMENTAL")
    dialog.get_by_label("Target lag").fill("20 minutes")
    studio.accessible()
    dialog.get_by_role("button", name="Alter").click()
    said(page, "stock_best is altered.")
    told = server.ask("GET", "/api/v1/views/stock_best").json
    assert (told["refresh"], told["policy"], told["target_lag_seconds"]) == ("EVERY 7 MINUTES", "INCREMENTAL", 1200)
    expect(page.locator(".strip")).to_contain_text("EVERY 7 MINUTES")
    page.get_by_role("button", name="Alter").click()
    dialog.get_by_label("Refresh: when").fill("EVERY SO OFTEN")
    studio.expects("400")
    dialog.get_by_role("button", name="Alter").click()
    expect(dialog.get_by_role("alert")).to_contain_text("EVERY")  # it stays, and says why
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_it_lives(studio: Studio, server: Server) -> None:
    page = studio.go("view/sales_by_region?tab=rows")
    eu = page.get_by_role("row", name=re.compile("eu"))
    expect(eu).to_be_visible()
    was = eu.inner_text()
    server.sql("INSERT INTO orders VALUES (2000, 1, 'eu', 5, 'paid')")
    expect(eu).not_to_have_text(was, use_inner_text=True)


def test_with_the_keyboard_and_on_a_phone(opened: Callable[..., Studio], server: Server) -> None:
    studio = opened(server.url, viewport=PHONE, has_touch=True, is_mobile=True)
    page = studio.go("view/sales_board")
    page.get_by_role("tab", name="Definition").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Refreshes")).to_be_focused()
    expect(page.get_by_role("table", name="Refreshes")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_label("Query", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    studio.accessible()
    studio.shoot("view-phone")


def test_a_view_that_is_not_there(studio: Studio) -> None:
    studio.expects("404")
    page = studio.go("view/stock_sodl")
    expect(page.get_by_role("alert")).to_contain_text("Did you mean 'stock_sold'?")
    page.get_by_role("link", name="To the graph").click()
    expect(page.locator(".node").first).to_be_visible()
