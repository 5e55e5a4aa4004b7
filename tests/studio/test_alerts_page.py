"""Alerts, settings, checkpoints and watermarks: seen by everybody, acted on by who may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import PHONE, Studio
from http_server import Server, Servers, tokens_of
from playwright.sync_api import Page, expect


def said(page: Page, text: str) -> None:
    toast = page.locator(".toast").filter(has_text=text)
    expect(toast).to_be_visible()
    toast.get_by_role("button", name="Close").click()


def test_alerts_are_seen_acted_on_and_cleared(studio: Studio, server: Server) -> None:
    page = studio.go("alerts")
    # a view that waits for one that failed, since nothing can be divided by nothing
    server.sql("INSERT INTO products VALUES (5, 'Bowl', 'kitchen', 9.00, 0)")
    assert server.ask("POST", "/api/v1/refresh", {"views": ["stock_packs_dear"]}).status == 409
    alert = page.locator(".alert").filter(has_text="stock_packs_dear")
    expect(alert).to_contain_text("Waits for a failed view")
    expect(page.locator(".pages .count")).to_be_visible()
    studio.accessible()
    studio.shoot("alerts")
    server.sql("DELETE FROM products WHERE packs = 0")
    alert.get_by_role("button", name="Refresh", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Refresh").click()
    expect(alert).to_have_count(0)
    page.get_by_role("tab", name="Over").click()
    expect(page.get_by_role("table", name="Alerts that are over")).to_contain_text("stock_packs_dear")


def test_a_setting_is_changed(studio: Studio, server: Server) -> None:
    page = studio.go("settings")
    row = page.get_by_role("row").filter(has_text="history_retention")
    expect(row).to_contain_text("30 days")
    studio.accessible()
    studio.shoot("settings")
    studio.expects("400")
    row.get_by_role("button", name="Change history_retention").click()
    dialog = page.get_by_role("dialog", name="Change history_retention")
    expect(dialog.get_by_role("button", name="Change")).to_be_disabled()
    dialog.get_by_label("Value").fill("blue")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog.get_by_role("alert")).to_contain_text("blue")
    dialog.get_by_label("Value").fill("10 days")
    page.keyboard.press("Enter")
    said(page, "history_retention is 10 days now.")
    expect(row).to_contain_text("10 days changed")
    assert server.ask("GET", "/api/v1/settings").json["history_retention"] == "10 days"
    page.get_by_role("button", name="Change consistency").click()
    dialog = page.get_by_role("dialog", name="Change consistency")
    dialog.get_by_label("Value").select_option("NONE")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert server.ask("GET", "/api/v1/settings").json["consistency"] == "ATOMIC"


def test_a_checkpoint_is_made_gone_back_to_and_dropped(studio: Studio, server: Server) -> None:
    page = studio.go("settings?tab=checkpoints")
    expect(page.get_by_text("No checkpoints.")).to_be_visible()
    page.get_by_role("button", name="New checkpoint").click()
    page.get_by_role("dialog").get_by_label("Name").fill("before")
    page.get_by_role("dialog").get_by_role("button", name="Make it").click()
    said(page, "Checkpoint before names epoch")
    studio.accessible()
    epoch = server.ask("GET", "/api/v1/epochs?limit=1").json["epoch"]
    page.get_by_role("button", name="Restore").click()
    dialog = page.get_by_role("dialog", name="Bring all views back to before?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("button", name="Bring back").click()
    said(page, f"this is epoch {epoch + 1}")
    page.get_by_role("button", name="Drop before").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop").click()
    said(page, "Checkpoint before is dropped.")
    expect(page.get_by_text("No checkpoints.")).to_be_visible()
    studio.go(f"epochs/{epoch + 1}")
    expect(page.get_by_text(f"restored from epoch {epoch}")).to_be_visible()


def test_a_watermark_is_advanced(studio: Studio, server: Server) -> None:
    page = studio.go("settings?tab=watermarks")
    expect(page.get_by_role("heading", name="No watermarks")).to_be_visible()
    made = server.sql("CREATE TABLE trades (at TIMESTAMP, price INT, WATERMARK FOR at AS at - INTERVAL 5 SECONDS)")
    assert made.status == 200, made.body
    page.reload()
    expect(page.get_by_role("row").filter(has_text="trades")).to_contain_text("not known yet")
    page.get_by_role("button", name="Advance trades").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Moment (UTC)").fill("soon")
    expect(dialog.get_by_role("button", name="Advance")).to_be_disabled()
    dialog.get_by_label("Moment (UTC)").fill("2026-01-31 12:00:00")
    dialog.get_by_role("button", name="Advance").click()
    said(page, "watermark of trades advanced; refresh to see what it releases")
    page.get_by_role("button", name="Advance trades").click()
    dialog.get_by_label("Moment (UTC)").fill("2026-01-30")
    dialog.get_by_role("button", name="Advance").click()
    said(page, "watermark of trades stays where it is")
    studio.accessible()


@pytest.mark.parametrize("word", ["read", "refresh"])
def test_who_may_not_sees_why(word: str, opened: Callable[..., Studio], guarded: tuple[Server, dict[str, str]]) -> None:
    guard, tokens = guarded
    studio = opened(guard.url, viewport=PHONE)
    studio.page.add_init_script(f"sessionStorage.setItem('penstock.token', '{tokens[word]}')")
    page = studio.go("settings")
    expect(page.get_by_text(f"Your role is {word}")).to_be_visible()
    button = page.get_by_role("button", name="Change retention", exact=True)
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("title", f"This takes the role admin. Yours is {word}.")
    page.get_by_role("tab", name="Checkpoints").click()
    expect(page.get_by_role("button", name="New checkpoint")).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture(scope="module")
def guarded(store: Path, serving: Servers) -> tuple[Server, dict[str, str]]:
    """A server with a token of each role."""
    place = store.with_name("guarded")
    place.mkdir()
    tokens = tokens_of(place)
    return serving("-w", f"shop={place}", "--rate", 100_000), tokens
