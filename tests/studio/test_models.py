"""Read models: a document is found, walked through, and watched."""

from __future__ import annotations

from collections.abc import Callable

from browsing import PHONE, Studio
from http_server import Server
from playwright.sync_api import expect


def test_a_document_is_found_by_key_and_by_filter(studio: Studio) -> None:
    page = studio.go("models")
    expect(page.get_by_role("table", name="Read models").locator("tbody tr")).to_have_count(2)
    studio.accessible()
    page.get_by_role("link", name="tv_post").click()
    found = page.get_by_role("list", name="Documents found").get_by_role("link")
    expect(found).to_have_count(3)
    page.get_by_label("Value").fill("2")
    page.get_by_label("Value").press("Enter")
    expect(found).to_have_count(1)
    expect(page.get_by_role("tree", name="Document 2")).to_contain_text('"On kettles"')
    page.get_by_label("Column").select_option("author_id")
    page.get_by_label("Value").fill("a-1")
    page.get_by_role("button", name="Look up").click()
    expect(found).to_have_text(["1Hello · Ada", "3On rugs · Ada"])
    found.nth(1).click()
    expect(page.get_by_role("heading", name="pk_post = 3")).to_be_visible()
    expect(found.nth(1)).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="show all").click()
    expect(found).to_have_count(3)
    page.get_by_role("link", name="As a view").click()
    expect(page.get_by_role("heading", name="tv_post", level=1)).to_be_visible()


def test_the_tree_is_walked_with_the_keyboard(studio: Studio) -> None:
    page = studio.go("models/tv_post/1")
    tree = page.get_by_role("tree")
    items = tree.get_by_role("treeitem")
    expect(items).to_have_count(6)  # $, id, title, author, its id and name
    items.first.focus()
    for key, name in (("ArrowDown", "id"), ("End", "name"), ("ArrowLeft", "author"), ("Home", "$")):
        page.keyboard.press(key)
        expect(tree.locator(":focus .tree-name")).to_have_text(name)
    page.keyboard.press("ArrowLeft")
    expect(items).to_have_count(1)
    expect(items.first).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(items).to_have_count(6)


def test_what_changes_is_marked_as_it_happens(studio: Studio, server: Server) -> None:
    page = studio.go("models/tv_post/1")
    tree = page.get_by_role("tree")
    expect(tree).to_contain_text('"Ada"')
    done = server.sql("UPDATE tb_author SET name = 'Ada Lovelace' WHERE pk_author = 1")
    assert done.status == 200, done.body
    epoch = server.ask("GET", "/api/v1/epochs?limit=1").json["epoch"]
    marked = tree.locator(".changed")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text(f'name"Ada Lovelace"epoch {epoch}')
    changes = page.get_by_role("log", name="Changes of the document")
    expect(changes).to_contain_text('$.author.name "Ada" → "Ada Lovelace"')
    expect(changes.get_by_role("link", name=f"Epoch {epoch}")).to_be_visible()
    studio.accessible()
    studio.shoot("model")
    # what is within a closed branch is told, too
    tree.get_by_role("treeitem").first.focus()
    page.keyboard.press("ArrowLeft")
    expect(tree).to_contain_text("something in it changed")
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Take the marks away").click()
    expect(marked).to_have_count(0)
    # of another document nothing is marked; one that goes says so, and it comes again
    server.sql("UPDATE tb_post SET title = 'Other' WHERE pk_post = 3")
    studio.expects("404")
    server.sql("DELETE FROM tb_post WHERE pk_post = 1")
    expect(page.get_by_label("Document", exact=True)).to_contain_text("removed in epoch")
    expect(marked).to_have_count(0)
    server.sql("INSERT INTO tb_post VALUES (1, 'p-1', 2, 'Hello again')")
    expect(tree).to_contain_text('"Hello again"')
    expect(page.get_by_label("Document", exact=True)).not_to_contain_text("removed in epoch")


def test_what_is_not_there(studio: Studio, server: Server) -> None:
    studio.expects("404")
    page = studio.go("models/tv_post/77")
    expect(page.get_by_role("heading", name="No document with pk_post 77")).to_be_visible()
    server.sql("INSERT INTO tb_post VALUES (77, 'p-77', 1, 'Now it is')")
    expect(page.get_by_role("tree")).to_contain_text('"Now it is"')
    studio.go("models/tv_none")
    expect(page.get_by_role("heading", name="There is no read model tv_none")).to_be_visible()
    studio.expects("400")
    studio.go("models/tv_post/x")
    expect(page.get_by_role("alert")).to_contain_text("'x' is none")


def test_on_a_phone(opened: Callable[..., Studio], server: Server) -> None:
    studio = opened(server.url, viewport=PHONE)
    page = studio.go("models/tv_post/2")
    expect(page.get_by_role("tree")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    studio.accessible()
