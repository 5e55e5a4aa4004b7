"""The console: what is written is coloured and completed, what is run is shown, and a view is made step by step."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from browsing import PHONE, Studio
from http_server import Server, Servers, tokens_of
from playwright.sync_api import Page, expect


def write(page: Page, text: str) -> None:
    page.get_by_label("SQL statements").fill(text)


def run(page: Page, text: str) -> None:
    write(page, text)
    page.keyboard.press("Control+Enter")


def test_rows_are_shown_page_by_page_and_saved(studio: Studio, server: Server) -> None:
    server.sql(
        "INSERT INTO lines VALUES "
        + ", ".join(f"({n}, {n % 7}, {'NULL' if n == 1001 else n})" for n in range(1000, 1250))
    )
    page = studio.go("sql")
    expect(page.get_by_role("heading", name="No results yet")).to_be_visible()
    studio.accessible()
    run(page, "SELECT order_id, product_id, quantity FROM lines WHERE order_id >= 1000 ORDER BY order_id")
    rows = page.get_by_role("region", name="Rows").locator("tbody tr")
    expect(rows).to_have_count(100)
    expect(rows.nth(1).locator(".null")).to_have_text("NULL")
    expect(page.get_by_text("250 rows")).to_be_visible()
    page.get_by_role("button", name="Page after").click()
    expect(rows.first).to_contain_text("1100")
    page.get_by_role("button", name="Page after").click()
    expect(rows).to_have_count(50)
    expect(page.get_by_role("button", name="Page after")).to_be_disabled()
    studio.accessible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert (len(lines), lines[:3]) == (251, ["order_id,product_id,quantity", "1000,6,1000", "1001,0,"])
    page.get_by_label("Rows at most").select_option("100")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("there are more")).to_be_visible()


def test_large_numbers_are_shown_to_the_last_digit(studio: Studio) -> None:
    page = studio.go("sql")
    run(
        page,
        "SELECT 9007199254740993 AS n, -9223372036854775807 AS least, ARRAY(9007199254740995) AS several, 7 AS small",
    )
    row = page.get_by_role("region", name="Rows").locator("tbody tr")
    expect(row.locator("td")).to_have_text(
        ["1", "9007199254740993", "-9223372036854775807", '["9007199254740995"]', "7"]
    )


def test_several_statements_and_the_place_of_an_error(studio: Studio) -> None:
    studio.expects("400")
    page = studio.go("sql")
    texts = [
        "SELECT name FROM customers ORDER BY name",
        "INSERT INTO customers VALUES (70, 'Lin; --x', 'DE')",
        "SELEC 1",
        "SELECT 1",
    ]
    run(page, ";\n".join(texts))
    begin = ";\n".join(texts).index("SELEC 1")
    tabs = page.get_by_role("tab")
    expect(tabs).to_have_count(3)
    expect(tabs.nth(2)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator(".editor .sql-wrong")).to_have_text("SELEC")
    studio.accessible()
    page.get_by_role("button", name="Show the place").click()
    expect(page.get_by_label("SQL statements")).to_be_focused()
    assert page.evaluate("[document.activeElement.selectionStart, document.activeElement.selectionEnd]") == [
        begin,
        begin + 5,
    ]
    tabs.nth(2).focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("region", name="Rows")).to_contain_text("Barbara")
    tabs.nth(1).click()
    expect(page.get_by_role("tabpanel")).to_contain_text("INSERT: 1 row")
    # only what is selected is run
    write(page, "SELEC 2; SELECT country FROM customers WHERE customer_id = 70")
    page.evaluate("document.querySelector('.editor textarea').setSelectionRange(8, 80)")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="Rows")).to_contain_text("DE")


def test_names_are_completed_with_the_keyboard(studio: Studio) -> None:
    with studio.page.expect_response(re.compile("/schema/")):
        page = studio.go("sql")
    area = page.get_by_label("SQL statements")
    area.click()
    page.keyboard.type("sel")
    options = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    expect(options.first).to_contain_text("select")
    page.keyboard.press("Tab")
    page.keyboard.type(" revenue from sales_by_c")
    expect(options).to_have_count(2)
    studio.accessible()
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(area).to_have_value("select revenue from sales_by_customer")
    page.keyboard.type(" s where s.ord")
    page.keyboard.press("Enter")
    page.keyboard.type(" > 1 and s.")
    page.keyboard.press("Control+Space")
    expect(options).to_have_count(3)
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    expect(area).to_have_value("select revenue from sales_by_customer s where s.orders > 1 and s.")
    page.reload()
    expect(area).to_have_value(re.compile("^select revenue"))  # what was being written is kept


def test_a_chart_of_rows(studio: Studio) -> None:
    page = studio.go("sql")
    run(page, "SELECT category, sold, worth FROM stock_by_category")
    page.get_by_text("Chart", exact=True).click()
    expect(page.get_by_role("img", name="sold by category")).to_be_visible()
    page.get_by_label("y", exact=True).select_option("worth")
    expect(page.get_by_role("img", name="worth by category")).to_be_visible()
    studio.accessible()
    studio.shoot("sql-chart")


def test_what_was_run_is_remembered_here(studio: Studio) -> None:
    page = studio.go("sql")
    for text in ("SELECT title FROM products", "SELECT name FROM customers"):
        run(page, text)
        expect(page.locator(".outcome-text")).to_have_text(text)
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="History").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".history li")).to_have_count(2)
    studio.accessible()
    dialog.get_by_label("Search the history").fill("TITLE")
    expect(dialog.locator(".history li")).to_have_count(1)
    dialog.get_by_role("button", name="Use").click()
    expect(page.get_by_label("SQL statements")).to_have_value("SELECT title FROM products")
    page.get_by_role("button", name="History").click()
    dialog.get_by_role("button", name="Forget all").click()
    expect(dialog).to_contain_text("Nothing yet.")


def test_a_reader_may_only_query(opened: Callable[..., Studio], store: Path, serving: Servers) -> None:
    place = store.with_name("guarded")
    place.mkdir()
    tokens = tokens_of(place)
    studio = opened(serving("-w", f"shop={place}", "--rate", 100_000).url, viewport=PHONE)
    studio.page.add_init_script(f"sessionStorage.setItem('penstock.token', '{tokens['read']}')")
    studio.expects("400", "403")
    page = studio.go("sql")
    expect(page.get_by_text("Your role may run what only reads.")).to_be_visible()
    expect(page.get_by_role("button", name="New view")).to_be_disabled()
    run(page, "DROP TABLE orders")
    expect(page.get_by_role("alert")).to_contain_text("this statement changes something")
    run(page, "SELECT name FROM penstock.views")
    expect(page.get_by_text("No rows.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_view_is_made_step_by_step(studio: Studio, server: Server) -> None:
    """With Spark, which starts for it: so are cancelling and EXPLAIN, which need something that takes a while."""
    page = studio.go("sql")
    run(page, "SELECT COUNT(*) AS n FROM range(10) a CROSS JOIN range(3) b")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("You stopped waiting.")
    write(page, "SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_label("Explanation")).to_contain_text("Physical Plan", timeout=60_000)
    page.get_by_role("button", name="New view").click()
    dialog = page.get_by_role("dialog", name="New materialized view")
    create, check = (dialog.get_by_role("button", name=name) for name in ("Create", "Check"))
    expect(dialog.get_by_label("Query of the view")).to_have_value(re.compile("^SELECT region"))
    expect(check).to_be_disabled()
    dialog.get_by_label("Name").fill("region_totals")
    dialog.get_by_role("radio", name=re.compile("^In full")).check()
    dialog.get_by_role("radio", name=re.compile("^Every so often")).check()
    dialog.get_by_label("Every", exact=True).fill("10")
    dialog.get_by_label("May be at most this old").fill("30")
    statement = dialog.get_by_label("The statement that will run")
    expect(statement).to_contain_text(
        re.compile(r"REFRESH EVERY 10 MINUTES\s+TARGET LAG '30 minutes'\s+REFRESH POLICY FULL\s+AS")
    )
    check.click()
    expect(dialog.locator(".verdict")).to_contain_text("It will be recomputed in full")
    expect(create).to_be_enabled()
    dialog.get_by_role("radio", name=re.compile("^Whichever")).check()
    expect(create).to_be_disabled()  # what was checked was something else
    check.click()
    expect(dialog.locator(".verdict")).to_contain_text("It will be incremental.")
    studio.accessible()
    studio.shoot("sql-wizard")
    assert server.ask("GET", "/api/v1/views/region_totals").status == 404
    create.click()
    expect(page.get_by_role("heading", name="region_totals", level=1)).to_be_visible()
    assert server.ask("GET", "/api/v1/views/region_totals").json["refresh"] == "EVERY 10 MINUTES"
