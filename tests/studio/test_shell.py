"""Around the pages: who asks, tokens that come and go, databases, the theme, and what happens if the server is away."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from browsing import Studio
from http_server import Server, Servers
from playwright.sync_api import expect

from penstock.serve.roles import Role
from penstock.serve.state import State


@pytest.fixture(scope="module")
def tokens(store: Path) -> Iterator[State]:
    state = State(str(store.with_name("tokens.sqlite")))
    state.create("first", Role.ADMIN)
    yield state
    state.close()


@pytest.fixture(scope="module")
def guarded(tokens: State, store: Path, serving: Servers) -> Server:
    """A server with tokens, two databases, and a path before all that it has."""
    databases = ("-w", f"shop={store}", "-w", f"second={store.with_name('second')}")
    return serving(*databases, "--state", store.with_name("tokens.sqlite"), "--rate", 100_000, "--root-path", "/behind")


def test_it_takes_a_token_and_keeps_it_to_itself(opened: Callable[..., Studio], guarded: Server, tokens: State) -> None:
    _, text = tokens.create("reading", Role.READ)
    studio = opened(guarded.url)
    studio.expects("401")
    page = studio.go("view/stock_sold")
    dialog = page.get_by_role("dialog", name="Sign in")
    expect(dialog).to_contain_text("This server takes a token.")
    studio.accessible()
    studio.use("wrong")
    expect(dialog.get_by_role("alert")).to_contain_text("token")
    studio.use(text)
    expect(page.get_by_role("heading", name="stock_sold", level=1)).to_be_visible()
    expect(page.locator(".who")).to_have_text(re.compile("reading.*read"))
    assert text not in page.url
    assert text not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    for name, role in (("Refresh", "refresh"), ("Suspend", "refresh"), ("Alter", "admin")):
        button = page.get_by_role("button", name=name, exact=True)
        expect(button).to_be_disabled()
        expect(button).to_have_attribute("title", f"This takes the role {role}. Yours is read.")
    page.reload()
    expect(dialog).to_be_visible()  # nothing was kept
    studio.use(text, keep=True)
    expect(page.get_by_role("heading", name="stock_sold", level=1)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="stock_sold", level=1)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(dialog).to_contain_text("You are signed out.")
    page.reload()
    expect(dialog).to_be_visible()


def test_a_revoked_token_loses_nothing(opened: Callable[..., Studio], guarded: Server, tokens: State) -> None:
    _, text = tokens.create("revoked", Role.ADMIN)
    _, another = tokens.create("another", Role.ADMIN)
    studio = opened(guarded.url)
    studio.expects("401")
    page = studio.go("view/stock_best")
    studio.use(text)
    page.get_by_role("button", name="Alter").click()
    alter = page.get_by_role("dialog", name="Alter stock_best")
    alter.get_by_label("Target lag").fill("90 minutes")
    tokens.revoke("revoked")
    alter.get_by_role("button", name="Alter").click()
    sign_in = page.get_by_role("dialog", name="Sign in")
    expect(sign_in).to_contain_text("it has expired, or was revoked")
    studio.use(another)
    expect(page.get_by_role("log")).to_contain_text("stock_best is altered.")  # what was asked for went on
    expect(page.locator(".strip")).to_contain_text("1 h 30 min")
    tokens.revoke("another")
    page.get_by_role("tab", name="Rows").click()
    sign_in.get_by_role("button", name="Not now").click()
    expect(page.get_by_role("alert")).to_contain_text("this takes a token")
    expect(page.get_by_role("heading", name="stock_best", level=1)).to_be_visible()


def test_an_expired_token_is_asked_for_again(
    opened: Callable[..., Studio], guarded: Server, tokens: State, store: Path
) -> None:
    _, text = tokens.create("short", Role.READ, expires=timedelta(hours=1))
    _, another = tokens.create("longer", Role.READ)
    studio = opened(guarded.url)
    studio.expects("401")
    page = studio.go("view/stock_best")
    studio.use(text)
    expect(page.get_by_role("heading", name="stock_best", level=1)).to_be_visible()
    with sqlite3.connect(store.with_name("tokens.sqlite")) as state:  # an hour later
        assert state.execute("UPDATE tokens SET expires_at = created_at WHERE name = 'short'").rowcount == 1
    state.close()
    page.get_by_role("tab", name="Rows").click()
    expect(page.get_by_role("dialog", name="Sign in")).to_contain_text("it has expired, or was revoked")
    studio.use(another)
    expect(page.get_by_role("tabpanel").get_by_role("table")).to_be_visible()  # what was asked for went on


def test_databases_are_chosen(opened: Callable[..., Studio], guarded: Server, tokens: State) -> None:
    _, text = tokens.create("choosing", Role.READ)
    studio = opened(guarded.url)
    studio.expects("401")
    page = studio.go()
    studio.use(text)
    expect(page.locator(".node")).to_have_count(20)
    page.get_by_label("Database").select_option("second")
    expect(page.get_by_role("heading", name="Nothing here yet")).to_be_visible()
    expect(page).to_have_url(re.compile("database=second"))
    page.get_by_role("link", name="Epochs").click()
    expect(page).to_have_url(re.compile("#/epochs.*database=second"))


def test_the_theme_is_chosen_and_kept(studio: Studio) -> None:
    page = studio.go()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Theme: System").click()
    page.get_by_role("button", name="Theme: Light").click()
    expect(page.get_by_role("button", name="Theme: Dark")).to_be_visible()
    assert page.evaluate(ground) != light
    page.reload()
    expect(page.get_by_role("button", name="Theme: Dark")).to_be_visible()
    assert page.evaluate(ground) != light
    page.get_by_role("button", name="Theme: Dark").click()
    assert page.evaluate(ground) == light


def test_a_page_that_is_not_there(studio: Studio) -> None:
    page = studio.go("nothing")
    expect(page.get_by_role("heading", name="No such page")).to_be_visible()
    page.get_by_role("link", name="To the graph").click()
    expect(page.locator(".node")).to_have_count(20)


def test_the_server_goes_away_and_comes_back(opened: Callable[..., Studio], store: Path, serving: Servers) -> None:
    began = serving("-w", f"shop={store}")
    port = began.url.rpartition(":")[2]
    studio = opened(began.url)
    studio.expects("ERR_CONNECTION_", "ERR_INCOMPLETE_", "ERR_EMPTY_RESPONSE", "503")
    page = studio.go("view/stock_sold")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_text("Maintained incrementally")).to_be_visible()
    began.stop()
    expect(page.get_by_text("Not connected")).to_be_visible()
    page.get_by_role("tab", name="Rows").click()
    expect(page.get_by_role("alert")).to_contain_text("the server does not answer")
    serving("-w", f"shop={store}", "--port", port)
    page.get_by_role("button", name="Try now").click()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("region", name="Rows")).to_be_visible()
