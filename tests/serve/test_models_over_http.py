"""Read models over HTTP: documents by key and by filter, page by page, and whether they have changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from http_server import Server, Servers
from pyspark.sql import SparkSession

import penstock


@pytest.fixture(scope="module")
def blog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Posts with authors, and a table that has nothing to do with them. Made with Spark; what reads it needs none."""
    path = tmp_path_factory.mktemp("blog") / "blog"
    with penstock.connect(path) as db:
        db.sql("CREATE TABLE tb_user (pk_user INT, id STRING, name STRING)")
        db.sql("CREATE TABLE tb_post (pk_post INT, id STRING, fk_user INT, score DOUBLE, draft BOOLEAN)")
        db.sql("CREATE TABLE other (a INT)")
        db.sql("INSERT INTO tb_user VALUES (1, 'u-1', 'Ann'), (2, 'u/2', 'Bob')")
        db.sql(
            "INSERT INTO tb_post VALUES (7, 'p-7', 1, 0.5, true), (8, 'p-8', 2, 1.5, false), (9, 'p-9', 1, NULL, NULL)"
        )
        db.sql(
            "CREATE TABLE tv_user AS SELECT pk_user, id, jsonb_build_object('id', id, 'name', name) AS data "
            "FROM tb_user"
        )
        db.sql("""
            CREATE TABLE tv_post AS
            SELECT p.pk_post, p.id, p.fk_user, u.id AS user_id, p.score, p.draft,
                   jsonb_build_object('id', p.id, 'score', p.score, 'author', v_user.data) AS data
              FROM tb_post p JOIN tb_user u ON u.pk_user = p.fk_user JOIN v_user ON v_user.pk_user = p.fk_user""")
    return path


@pytest.fixture(scope="module")
def served(blog: Path, serving: Servers, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Server]:
    def serve() -> Server:
        place = tmp_path_factory.mktemp("copy") / "blog"
        shutil.copytree(blog, place)
        return serving("-w", f"shop={place}")

    return serve


WRONG = {
    "tv_post/6": (404, "no document whose pk_post is '6'"), "tv_post/u-1?by=user_id": (409, "several documents"),
    "tv_post/x": (400, "'x' is none"), "tv_post/99999999999": (400, "holds int32"), "none/1": (404, "none"),
    "other/1": (404, "not a read model"), "tv_post?colour=red": (404, "no column 'colour'"),
    "tv_post?id=p-7&id=p-8": (400, "given twice"), "tv_post?id=p-7&ID=p-8": (400, "given twice"),
    "tv_post?limit=0": (422, "limit"),
    "tv_post?data=x": (404, "no column 'data'"), "tv_post/1?by=updated_at": (404, "no column"),
}  # fmt: skip


def test_documents_are_read_by_key_and_by_filter(served: Callable[[], Server]) -> None:
    server = served()
    ask = server.ask
    found = ask("GET", "/api/v1/read/TV_POST/7")
    assert found.status == 200
    assert found.json["data"] == {"id": "p-7", "score": 0.5, "author": {"id": "u-1", "name": "Ann"}}
    assert (found.json["pk_post"], found.json["user_id"]) == (7, "u-1")
    assert ask("GET", "/api/v1/read/tv_post/p-8?by=id").json["pk_post"] == 8
    assert ask("GET", "/api/v1/read/tv_post/1.5?by=score").json["pk_post"] == 8
    pages, after = [], ""
    while after is not None:
        page = ask("GET", f"/api/v1/read/tv_post?limit=2{after and f'&after={after}'}").json
        pages.append([row["pk_post"] for row in page["result"]])
        assert (page["returned"], page["truncated"]) == (len(pages[-1]), "next" in page)
        after = page.get("next")
    assert pages == [[7, 8], [9]]
    keys = lambda query: [row["pk_post"] for row in ask("GET", f"/api/v1/read/tv_post?{query}").json["result"]]  # noqa: E731
    assert keys("user_id=u-1") == [7, 9]
    assert keys("user_id=u-1&after=7") == keys("user_id=u-1&pk_post=9") == [9]
    assert keys("user_id=u%2F2") == keys("draft=false") == [8]
    assert keys("user_id=none") == []
    # what is not there, or cannot be
    for path, (status, said) in WRONG.items():
        answer = ask("GET", f"/api/v1/read/{path}")
        assert (answer.status, said in answer.json["detail"]) == (status, True), (path, answer.body)


def test_an_answer_is_made_once_for_each_change(served: Callable[[], Server]) -> None:
    server = served()
    first = server.ask("GET", "/api/v1/read/tv_post/7")
    tag, epoch = first.headers["etag"], first.headers["x-penstock-epoch"]
    assert "no-cache" in first.headers["cache-control"]
    for path in ("tv_post/7", "tv_post?user_id=u-1"):
        again = server.ask("GET", f"/api/v1/read/{path}", If_None_Match=f'"x", W/{tag}')
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    # an epoch that does not touch the documents leaves the tag as it is
    assert server.sql("INSERT INTO tb_user VALUES (3, 'u-3', 'Eve')").status == 200
    same = server.ask("GET", "/api/v1/read/tv_post/7", If_None_Match=tag)
    assert (same.status, same.headers["etag"]) == (304, tag)
    assert int(same.headers["x-penstock-epoch"]) > int(epoch)
    # one that does, does not
    assert server.sql("UPDATE tb_user SET name = 'Anna' WHERE pk_user = 1").status == 200
    moved = server.ask("GET", "/api/v1/read/tv_post/7", If_None_Match=tag)
    assert (moved.status, moved.json["data"]["author"]["name"]) == (200, "Anna")
    assert moved.headers["etag"] != tag


def test_the_client_reads_documents(served: Callable[[], Server]) -> None:
    client = penstock.Client(served().url)
    found = client.get("tv_post", id="p-7")
    assert found is not None
    assert found["data"]["author"]["name"] == "Ann"
    assert client.get("tv_post", pk_post=6) is None
    assert [row["pk_post"] for row in client.find("tv_post", user_id="u-1")] == [7, 9]
    assert [row["pk_post"] for row in client.find("tv_post", limit=2)] == [7, 8]
    with pytest.raises(penstock.DefinitionError, match="several"):
        client.get("tv_post", user_id="u-1")
    with pytest.raises(penstock.NotSupportedError, match="NULL"):
        client.find("tv_post", user_id=None)
    models = {model["name"]: model for model in client.schema()["readModels"]}
    assert (models["tv_post"]["key"], models["tv_post"]["filters"]) == ("pk_post", ["id", "user_id"])
