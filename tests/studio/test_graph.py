"""The graph: what is drawn, how it is moved through, and that it lives."""

from __future__ import annotations

import re
from collections.abc import Callable

from browsing import PHONE, Studio
from http_server import Server
from playwright.sync_api import Page, expect


def node(page: Page, name: str) -> object:
    return page.locator(f'.node[data-id="{name}"]')


def test_it_draws_every_table_and_view_and_how_they_stand(studio: Studio) -> None:
    page = studio.go()
    expect(page).to_have_title("Graph · Penstock")
    expect(page.locator(".node")).to_have_count(20)
    expect(node(page, "stock_packs")).to_have_class(re.compile("is-failing"))
    expect(node(page, "stock_packs")).to_have_accessible_name(re.compile("stock_packs, view, .* failing"))
    expect(node(page, "audit_customers")).to_have_class(re.compile("is-suspended"))
    expect(node(page, "sales_by_country")).to_have_class(re.compile("is-good"))
    expect(node(page, "sales_by_region")).to_have_accessible_name(re.compile("0 s old, immediate"))
    expect(node(page, "audit_names")).to_have_accessible_name(re.compile("recomputed"))
    expect(node(page, "tv_post")).to_have_accessible_name(re.compile("read model"))
    expect(page.locator(".group")).to_have_count(1)
    expect(page.locator(".tally")).to_have_text("14 views, 6 tables")
    studio.accessible()
    studio.shoot("graph")


def test_choosing_a_node_lights_its_path(studio: Studio) -> None:
    page = studio.go()
    node(page, "sales_by_customer").click()
    panel = page.get_by_role("complementary", name="sales_by_customer")
    expect(panel.get_by_text("1 node upstream, 2 downstream.")).to_be_visible()
    for lit in ("orders", "sales_by_customer", "sales_by_country", "sales_board"):
        expect(node(page, lit)).not_to_have_class(re.compile("unlit"))
    expect(node(page, "stock_sold")).to_have_class(re.compile("unlit"))
    expect(page.locator(".wire.lit")).to_have_count(4)
    studio.accessible()
    page.emulate_media(color_scheme="dark")
    studio.shoot("graph-dark")
    panel.get_by_role("button", name="sales_board").click()
    expect(page.get_by_role("complementary", name="sales_board")).to_be_visible()
    expect(page).to_have_url(re.compile("view=sales_board"))
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".unlit")).to_have_count(0)


def test_the_keyboard_goes_along_the_graph(studio: Studio) -> None:
    page = studio.go()
    expect(page.locator(".node")).to_have_count(20)
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    while not page.evaluate("document.activeElement.classList.contains('node')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Home")
    node(page, "orders").focus()
    for key, there in (
        ("ArrowRight", "sales_by_customer"),
        ("ArrowRight", "sales_by_country"),
        ("ArrowRight", "sales_board"),
    ):
        page.keyboard.press(key)
        expect(node(page, there)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(node(page, "sales_by_country")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_have_count(0)
    was = page.locator(".world").get_attribute("style")
    page.keyboard.press("+")
    assert page.locator(".world").get_attribute("style") != was
    page.keyboard.press("0")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="sales_by_country", level=1)).to_be_visible()


def test_search_filters_and_folding(studio: Studio) -> None:
    page = studio.go()
    expect(page.locator(".node")).to_have_count(20)
    page.keyboard.press("/")
    page.keyboard.type("stock")
    expect(page.locator(".tally")).to_have_text("5 matches")
    expect(page.locator(".node:not(.unlit)")).to_have_count(5)
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="1 failing").click()
    expect(page.locator(".node:not(.unlit)")).to_have_count(1)
    page.get_by_role("button", name="1 failing").click()
    page.get_by_label("Folding").select_option("Fold by schema")
    expect(node(page, "fold sales")).to_have_accessible_name(re.compile("^sales: 4 nodes folded"))
    expect(page.locator(".node.fold")).to_have_count(5)
    studio.accessible()
    node(page, "fold sales").dblclick()
    expect(node(page, "sales_board")).to_be_visible()
    page.get_by_role("button", name="Fold again").click()
    expect(node(page, "fold sales")).to_be_visible()
    page.get_by_label("Folding").select_option("Fold by layer")
    expect(node(page, "fold tables")).to_be_visible()


def test_it_is_moved_and_zoomed(studio: Studio) -> None:
    page = studio.go()
    expect(page.locator(".node")).to_have_count(20)
    world = page.locator(".world")

    def place() -> str | None:
        return world.get_attribute("style")

    fitted = place()
    for button in ("Zoom in", "Zoom out"):
        was = place()
        page.get_by_role("button", name=button).click()
        assert place() != was
    page.mouse.move(900, 700)
    page.mouse.wheel(0, -400)
    page.mouse.down()
    page.mouse.move(700, 600, steps=4)
    page.mouse.up()
    assert place() != fitted
    expect(page.get_by_role("complementary")).to_have_count(0)  # dragging chooses nothing
    page.get_by_role("button", name="Fit all").click()
    assert place() == fitted
    page.get_by_text("Legend").click()
    expect(page.get_by_text("published together")).to_be_visible()


def test_the_same_as_a_table(studio: Studio) -> None:
    page = studio.go()
    page.get_by_text("Table", exact=True).click()
    table = page.get_by_role("table", name="Tables and views")
    expect(table.get_by_role("row")).to_have_count(21)
    expect(table.get_by_role("row", name=re.compile("^sales_board"))).to_contain_text("sales_by_customer, customers")
    table.get_by_role("button", name="Lag / target").click()
    expect(table.get_by_role("columnheader", name=re.compile("Lag"))).to_have_attribute("aria-sort", "descending")
    studio.accessible()
    page.get_by_placeholder("Find by name").fill("board")
    row = table.get_by_role("row", name=re.compile("^sales_board"))
    row.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="sales_board", level=1)).to_be_visible()


def test_it_lives(studio: Studio, server: Server) -> None:
    page = studio.go()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(node(page, "sales_by_region")).to_be_visible()
    server.sql("INSERT INTO orders VALUES (100, 1, 'eu', 10, 'paid')")
    expect(node(page, "sales_by_region").locator(".ring")).to_have_count(1)  # it moves in the statement
    expect(node(page, "sales_by_customer").locator(".ring")).to_have_count(0)
    node(page, "sales_by_customer").click()
    panel = page.get_by_role("complementary")
    expect(panel.get_by_text("orders (1 commit)")).to_be_visible()
    panel.get_by_role("button", name="Refresh", exact=True).click()
    dialog = page.get_by_role("dialog", name="Refresh sales_by_customer?")
    expect(dialog).to_contain_text("It takes in what is new in orders")
    dialog.get_by_role("button", name="Refresh").click()
    expect(node(page, "sales_by_customer").locator(".ring")).to_have_count(1)
    expect(page.get_by_role("log")).to_contain_text("sales_by_customer: INCREMENTAL, +1 \N{MINUS SIGN}1")
    expect(panel.get_by_text("orders (1 commit)")).to_have_count(0)


def test_on_a_phone(opened: Callable[..., Studio], server: Server) -> None:
    studio = opened(server.url, viewport=PHONE, has_touch=True, is_mobile=True)
    page = studio.go()
    expect(page.locator(".node")).to_have_count(20)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    studio.accessible()
    page.get_by_role("button", name="Fit all").tap()  # the pages below do not lie over it
    node(page, "orders").tap()
    expect(page.get_by_role("complementary", name="orders")).to_be_visible()
    studio.shoot("graph-phone")
