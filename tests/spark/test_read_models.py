"""Read models: documents made of documents, kept as what they are made of changes, and read by key."""

from __future__ import annotations

import json
from decimal import Decimal
from uuid import UUID

import pytest

import penstock
from oracle import assert_fresh, rows
from penstock import DefinitionError, DependencyError, NotFoundError, NotSupportedError, PenstockError, SqlError
from penstock.answering import Done
from penstock.catalog import Part
from penstock.errors import AlreadyExistsError, QueryError

TABLES = [
    "CREATE TABLE tb_company (pk_company INT, id STRING, name STRING)",
    "CREATE TABLE tb_user (pk_user INT, id STRING, fk_company INT, name STRING)",
    "CREATE TABLE tb_post (pk_post INT, id STRING, fk_user INT, title STRING)",
    "INSERT INTO tb_company VALUES (12, 'c12', 'ACME'), (13, 'c13', 'Other')",
    "INSERT INTO tb_user VALUES (1, 'u1', 12, 'Ann'), (2, 'u2', 13, 'Bob')",
    "INSERT INTO tb_post VALUES (7, 'p7', 1, 'Hello'), (8, 'p8', 2, 'World'), (9, 'p9', 1, NULL)",
]
MODELS = [
    "CREATE TABLE tv_company AS SELECT pk_company, id, jsonb_build_object('id', id, 'name', name) AS data "
    "FROM tb_company;",
    """CREATE TABLE tv_user AS SELECT u.pk_user, u.id, u.fk_company, c.id AS company_id,
       jsonb_build_object('id', u.id, 'name', u.name, 'company', v_company.data) AS data
  FROM tb_user u JOIN tb_company c ON c.pk_company = u.fk_company
  JOIN v_company ON v_company.pk_company = u.fk_company;""",
    """CREATE TABLE tv_post AS SELECT p.pk_post, p.id, p.fk_user, u.id AS user_id,
       jsonb_build_object('id', p.id, 'title', p.title, 'author', v_user.data) AS data
  FROM tb_post p JOIN tb_user u ON u.pk_user = p.fk_user JOIN v_user ON v_user.pk_user = p.fk_user;""",
    "CREATE TABLE tv_feed AS SELECT 1 AS pk_feed, "
    "jsonb_build_object('posts', jsonb_agg(v_post.data ORDER BY v_post.id)) AS data FROM v_post;",
]  # fmt: skip
LEVELS = ("tv_company", "tv_user", "tv_post", "tv_feed")


@pytest.fixture
def blog(db: penstock.Database) -> penstock.Database:
    for statement in (*TABLES, *MODELS):
        db.sql(statement)
    return db


def _follow(db: penstock.Database, change: str, kept: str = "") -> None:
    """Make a change, and check each level, which is right when the statement returns; ``kept`` had nothing to do."""
    done = db.sql(change)
    assert isinstance(done, Done)
    assert not any(view.stale for view in db.status())
    for level in LEVELS:
        assert_fresh(db, level)
        if level not in kept.split():
            last = db.history(level, 1)[0]
            assert (last.action, (last.details or {})["jobs"]) == ("INCREMENTAL", 0), (level, last)


def _author(name: str, company: str) -> dict[str, object]:
    return {"id": f"u{'1' if name == 'Ann' else '2'}", "name": name, "company": {"id": "c12", "name": company}}


def test_four_levels_follow_and_are_read_by_key(blog: penstock.Database) -> None:
    for level in LEVELS:
        assert_fresh(blog, level, action={"FULL", "NO_DATA"})
    before = {row["pk_post"]: row for row in blog.find("tv_post")}
    _follow(blog, "UPDATE tb_company SET name = 'ACME Corp' WHERE pk_company = 12")

    found = blog.get("tv_post", pk_post=7)
    assert found is not None
    assert found["data"] == {"id": "p7", "title": "Hello", "author": _author("Ann", "ACME Corp")}
    assert list(found["data"]) == ["id", "title", "author"]
    feed = blog.get("tv_feed", pk_feed=1)
    assert feed is not None
    assert [post["id"] for post in feed["data"]["posts"]] == ["p7", "p8", "p9"]
    assert feed["data"]["posts"][0] == found["data"]
    assert feed["data"]["posts"][2]["title"] is None
    # what did not change says so
    after = {row["pk_post"]: row for row in blog.find("tv_post")}
    assert after[8] == before[8]
    assert after[7]["updated_at"] > before[7]["updated_at"]

    _follow(blog, "INSERT INTO tb_post VALUES (10, 'p0', 2, 'é \"x\" 😀')", kept="tv_company tv_user")
    _follow(blog, "DELETE FROM tb_post WHERE pk_post IN (7, 8)", kept="tv_company tv_user")
    assert [row["id"] for row in blog.find("tv_post", user_id="u1")] == ["p9"]
    assert blog.get("tv_post", pk_post=7) is None
    assert [row["pk_post"] for row in blog.find("tv_post", limit=1)] == [9]
    # emptied, and filled again; a whole recomputation keeps the time of rows that stay
    _follow(blog, "DELETE FROM tb_post WHERE true", kept="tv_company tv_user")
    assert blog.get("tv_feed", pk_feed=1)["data"] == {"posts": []}  # type: ignore[index]
    _follow(blog, "INSERT INTO tb_post VALUES (1, 'a', 1, 'one'), (2, 'b', 1, 'two')", kept="tv_company tv_user")
    stamped = blog.find("tv_post")
    blog.refresh("tv_post", full=True)
    assert blog.find("tv_post") == stamped
    assert_fresh(blog, "tv_post", action="FULL")
    # v_post is the query, and tv_post in SQL has the time too
    assert rows(blog.sql("SELECT pk_post, data FROM v_post EXCEPT SELECT pk_post, data FROM tv_post")) == []
    assert blog.sql("SELECT * FROM tv_post").columns[-2:] == ["data", "updated_at"]


def test_what_is_said_of_read_models(blog: penstock.Database) -> None:
    shown = {row["table"]: row for row in blog.sql("SHOW READ MODELS").collect()}
    user = shown["tv_user"]
    assert (user["entity"], user["view"], user["key"]) == ("user", "v_user", "pk_user")
    assert (user["uuid_columns"], user["fk_columns"]) == (["id", "company_id"], ["fk_company"])
    assert user["sources"] == ["tb_user", "tb_company", "tv_company"]
    assert user["definition"] == MODELS[1].split(" AS ", 1)[1].rstrip(";")
    parts = {world.entity: world.parts for world in blog._catalog.world().models.values()}
    assert parts["user"][2] == Part(path="$.company", kind="nested_object", source="v_company")  # type: ignore[arg-type]
    assert parts["feed"] == (Part(path="$.posts[]", kind="array", source="v_post", match_key="pk_post"),)  # type: ignore[arg-type]
    told = {row[0]: row for row in blog.sql("DESCRIBE tv_feed").collect()}
    assert tuple(told["# Part $.posts[]"][1:]) == ("array", "from v_post, matched by pk_post")
    assert told["updated_at"][1] == "timestamp"
    assert {row["table"] for row in blog.sql("SELECT * FROM penstock.read_models").collect()} == set(LEVELS)
    assert rows(blog.sql("SELECT path FROM penstock.document_parts WHERE table = 'tv_company'")) == [
        ("$.id",),
        ("$.name",),
    ]
    assert ("tv_post", "tv_feed") in blog.graph().edges
    assert rows(blog.sql("SHOW CREATE TABLE tv_company")) == [
        (MODELS[0].replace(" AS SELECT", "\nAS SELECT").rstrip(";"),)
    ]


def test_whatever_is_altered_is_shown(blog: penstock.Database) -> None:
    """What SHOW CREATE prints makes the read model again, with all that was said of it since."""
    blog.sql("ALTER MATERIALIZED VIEW tv_feed SET TBLPROPERTIES ('team' = 'it''s us', 'penstock.state' = 'beside')")
    _follow(blog, "INSERT INTO tb_post VALUES (10, 'p0', 2, 'new'), (6, 'p1', 1, 'old')", kept="tv_company tv_user")
    with pytest.raises(NotSupportedError, match="changes with ALTER MATERIALIZED VIEW tv_feed SET TBLPROPERTIES"):
        blog.sql("ALTER TABLE tv_feed SET TBLPROPERTIES ('team' = 'others')")
    with pytest.raises(DefinitionError, match=r"no property 'penstock\.stat'"):
        blog.sql(MODELS[3].replace("tv_feed", "tv_b TBLPROPERTIES ('penstock.stat' = 'x')").replace("pk_feed", "pk_b"))
    blog.sql("ALTER MATERIALIZED VIEW tv_feed REFRESH ON COMMIT")
    blog.sql("ALTER MATERIALIZED VIEW tv_feed TARGET LAG '5 minutes' PRIORITY 3 CONSISTENCY NONE")
    before, shown = described(blog), [row[0] for row in blog.sql("SHOW CREATE TABLE tv_feed").collect()]
    assert [text.split("\n")[:2] for text in shown] == [
        ["CREATE TABLE tv_feed", "TBLPROPERTIES ('team' = 'it\\'s us', 'penstock.state' = 'beside')"],
        ["ALTER MATERIALIZED VIEW tv_feed REFRESH ON COMMIT CONSISTENCY NONE TARGET LAG '5 minutes' PRIORITY 3"],
    ]
    blog.sql("DROP TABLE tv_feed")
    for statement in shown:
        blog.sql(statement)
    assert described(blog) == before
    blog.sql("ALTER MATERIALIZED VIEW tv_feed REFRESH IMMEDIATE")
    _follow(blog, "UPDATE tb_company SET name = 'ACME Corp' WHERE pk_company = 12")


def described(db: penstock.Database) -> list[tuple[object, ...]]:
    changing = ("# Location", "# Created")
    return [tuple(row) for row in db.sql("DESCRIBE tv_feed").collect() if row[0] not in changing]


BAD = {
    "SELECT id, jsonb_build_object('a', id) AS data FROM tb_user": "no key.*'pk_bad'",
    "SELECT pk_user AS pk_bad, id FROM tb_user": "no document.*'data'",
    "SELECT pk_user AS pk_bad, name AS data FROM tb_user": "'data' .string. is not JSON",
    "SELECT pk_user AS pk_bad, id AS fk_x, jsonb_build_object('a', id) AS data FROM tb_user": "'fk_x' is string",
    "SELECT pk_user AS pk_bad, jsonb_build_object('a', v_bad.data) AS data FROM tb_user JOIN v_bad": "cycle",
    "SELECT 1 AS pk_bad, jsonb_build_object('a', 1) AS data": "reads no table",
    "SELECT pk_user AS pk_bad, jsonb_build_object('a', nope) AS data FROM tb_user": "nope",
    "SELECT pk_user AS pk_bad, jsonb_build_object('a', id FROM tb_user": "line",
    "SELECT pk_user AS pk_bad, jsonb_build_object('a') AS data FROM tb_user": "one is missing",
    "SELECT pk_user AS pk_bad, jsonb_build_object('a', 1, 'a', 2) AS data FROM tb_user": "'a' twice",
    "SELECT pk_user AS pk_bad, jsonb_build_object(name, 1) AS data FROM tb_user": "texts in quotes",
    "SELECT pk_user AS pk_bad, jsonb_build_object('a', INTERVAL 1 DAY * pk_user) AS data FROM tb_user": "no JSON",
    "SELECT array(pk_user) AS pk_bad, jsonb_build_object('a', 1) AS data FROM tb_user": "a whole number or a text",
}  # fmt: skip


def test_errors_name_the_object(blog: penstock.Database) -> None:
    for query, said in BAD.items():
        with pytest.raises(PenstockError, match=f"(?s)'tv_bad'.*{said}"):
            blog.sql(f"CREATE TABLE tv_bad AS {query}")
    with pytest.raises(QueryError, match=r"view 'bad': the query is not valid: .*`nope`"):
        blog.sql("CREATE MATERIALIZED VIEW bad AS SELECT nope FROM tb_user")
    with pytest.raises(QueryError, match=r"view 'bad': the query is not valid: .*`nope`"):
        blog.sql("CREATE VIEW bad AS SELECT nope FROM tb_user")
    with pytest.raises(AlreadyExistsError, match="read model 'tv_user' exists already"):
        blog.sql(MODELS[1])
    with pytest.raises(DefinitionError, match="takes a query, TBLPROPERTIES, and nothing else"):
        blog.sql("CREATE TABLE tv_x PARTITIONED BY (a) AS SELECT 1 AS a")
    with pytest.raises(NotSupportedError, match="'tv_user' is a read model: only its refresh writes it"):
        blog.sql("DELETE FROM tv_user")
    with pytest.raises(DependencyError, match="read model 'tv_user' cannot be dropped: 'tv_post' reads it"):
        blog.sql("DROP TABLE tv_user")
    with pytest.raises(AlreadyExistsError, match="'tv_user' is a read model"):
        blog.sql("CREATE OR REPLACE MATERIALIZED VIEW tv_user AS SELECT 1 AS a")
    with pytest.raises(AlreadyExistsError, match="taken by a view"):
        blog.sql("CREATE MATERIALIZED VIEW v_user AS SELECT 1 AS a")
    with pytest.raises(DependencyError, match="'v_user' is the query of the read model 'tv_user'"):
        blog.sql("DROP VIEW v_user")
    with pytest.raises(NotFoundError, match=r"no table or view 'tv_pots'\. Did you mean 'tv_post'"):
        blog.get("tv_pots", id="x")
    with pytest.raises(NotFoundError, match="'tb_user' is a table, not a read model"):
        blog.find("tb_user")
    with pytest.raises(NotFoundError, match="'tv_post' has no column 'pk_pots'"):
        blog.get("tv_post", pk_pots=1)
    with pytest.raises(DefinitionError, match="column 'pk_post' of 'tv_post' holds int32, and 'x' is none"):
        blog.get("tv_post", pk_post="x")
    with pytest.raises(DefinitionError, match="2 rows with user_id = 'u1'"):
        blog.get("tv_post", user_id="u1")
    assert blog.get("tv_post", id=str(UUID(int=0))) is None
    # plain views that read a table or a read model keep it
    blog.sql("CREATE VIEW names AS SELECT name FROM tb_user")
    blog.sql("CREATE VIEW about AS SELECT data FROM v_feed")
    with pytest.raises(DependencyError, match="'tv_feed' cannot be dropped: the view 'about' reads it"):
        blog.sql("DROP TABLE tv_feed")
    blog.sql("DROP VIEW about")
    blog.sql("DROP TABLE tv_feed")
    assert "v_feed" not in blog._catalog.world().plain
    with pytest.raises(DependencyError, match=r"the read model 'tv_post'.* Use .*DROP TABLE tv_post.* first"):
        blog.sql("DROP TABLE tb_user")


def test_every_type_has_its_text_and_numbers_are_exact(db: penstock.Database) -> None:
    """By Spark when it is created, by the driver when it changes: the same bytes, which the oracle compares."""
    db.sql(
        "CREATE TABLE t (pk INT, b BIGINT, d DECIMAL(38,9), x DOUBLE, s STRING, day DATE, at TIMESTAMP, "
        "local TIMESTAMP_NTZ, yes BOOLEAN, l ARRAY<INT>, st STRUCT<a: INT, b: STRUCT<c: STRING>>, m MAP<STRING, INT>, "
        "y BINARY)"
    )
    full = (
        "9007199254740993, 0.000000001, 0.1, 'é \\\"q\\\" \\\\ \\n 😀', DATE'2026-02-28', "
        "TIMESTAMP'2026-01-01 00:00:00.000001', TIMESTAMP_NTZ'2026-01-01 12:00:00', true, array(1, NULL), "
        "named_struct('a', 1, 'b', named_struct('c', 'x')), map('k', 1), X'00ff'"
    )
    db.sql(f"INSERT INTO t SELECT 1, {full}")
    db.sql(f"INSERT INTO t SELECT 2, {', '.join(['NULL'] * 12)}")
    db.sql(
        "CREATE TABLE tv_all AS SELECT pk AS pk_all, jsonb_build_object('b', b, 'd', d, 'x', x, 's', s, 'day', day, "
        "'at', at, 'local', local, 'yes', yes, 'l', l, 'st', st, 'm', m, 'y', y, 'none', NULL, 'deep', "
        "jsonb_build_array(jsonb_build_object(), jsonb_build_array(s, b))) AS data FROM t"
    )
    assert_fresh(db, "tv_all")
    one, two = db.find("tv_all")
    assert one["data"] == {
        "b": 9007199254740993, "d": Decimal("0.000000001"), "x": Decimal("0.1"), "s": 'é "q" \\ \n 😀',
        "day": "2026-02-28", "at": "2026-01-01T00:00:00.000001Z", "local": "2026-01-01T12:00:00.000000", "yes": True,
        "l": [1, None], "st": {"a": 1, "b": {"c": "x"}}, "m": {"k": 1}, "y": "AP8=", "none": None,
        "deep": [{}, ['é "q" \\ \n 😀', 9007199254740993]],
    }  # fmt: skip
    assert set(two["data"]) == set(one["data"])
    assert all(value is None for name, value in two["data"].items() if name != "deep")
    db.sql(f"INSERT INTO t SELECT 3, {full}")
    db.sql("INSERT INTO t SELECT 4, -1, -12.5, double('NaN'), '', NULL, NULL, NULL, false, array(), NULL, map(), X''")
    assert (db.history("tv_all", 1)[0].details or {})["jobs"] == 0
    assert_fresh(db, "tv_all", action="INCREMENTAL")
    stored = [row["data"] for row in db.sql("SELECT data FROM tv_all WHERE pk_all IN (1, 3)").collect()]
    assert len(set(stored)) == 1
    json.loads(stored[0])


def test_plain_views_are_written_out_where_they_are_read(db: penstock.Database) -> None:
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    db.sql("CREATE VIEW large AS SELECT id, region, amount FROM orders WHERE amount > 5 -- of all")
    db.sql("CREATE VIEW renamed (r, a) AS WITH x AS (SELECT * FROM large) SELECT region, amount FROM x")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT r, SUM(a) AS total FROM renamed GROUP BY r")
    assert_fresh(db, "totals", action="FULL")
    assert rows(db.sql("SELECT l.id, renamed.a FROM large l JOIN renamed ON l.region = r WHERE id = 1")) == [(1, 10)]
    found = db.read_here("SELECT region FROM large WHERE id = 1")
    assert found is None or found.rows.arrow().num_rows == 1
    db.sql("INSERT INTO orders VALUES (3, 'eu', 1), (4, 'eu', 7)")
    db.sql("INSERT INTO orders SELECT id + 100, 'xx', amount FROM large WHERE id = 1")
    db.sql("DELETE FROM orders WHERE region = 'xx' AND id IN (SELECT id FROM large)")
    db.refresh()
    assert_fresh(db, "totals", action="INCREMENTAL")
    assert ("renamed", "totals") in db.graph().edges
    assert ("large", "renamed") in db.graph().edges
    assert [row["name"] for row in db.sql("SHOW VIEWS").collect()] == ["large", "renamed"]

    with pytest.raises(DependencyError, match="'large' cannot be dropped: 'renamed' reads it"):
        db.sql("DROP VIEW large")
    with pytest.raises(DependencyError, match="cycle: large -> renamed -> large"):
        db.sql("CREATE OR REPLACE VIEW large AS SELECT r AS region, a AS amount FROM renamed")
    with pytest.raises(DependencyError, match="'totals' reads it, and its query would no longer hold"):
        db.sql("CREATE OR REPLACE VIEW renamed AS SELECT id FROM orders")
    with pytest.raises(AlreadyExistsError, match="'large' exists already"):
        db.sql("CREATE VIEW large AS SELECT 1 AS a")
    with pytest.raises(AlreadyExistsError, match="taken by a view"):
        db.sql("CREATE TABLE large (a INT)")
    with pytest.raises(NotFoundError, match="'large' is a plain view, not a materialized view"):
        db.refresh("large")
    with pytest.raises((NotSupportedError, QueryError), match="plain view"):
        db.sql("INSERT INTO large VALUES (1, 'x', 1)")
    with pytest.raises(SqlError, match="CTE 'orders'"):
        db.sql("WITH orders AS (SELECT 1 AS id) SELECT * FROM large, orders")

    done = db.sql("CREATE OR REPLACE VIEW large AS SELECT id, region, amount FROM orders WHERE amount > 0")
    assert str(done) == "view large created; planned again: totals"
    assert_fresh(db, "totals", action="FULL")
    assert rows(db.table("totals")) == [("eu", 18), ("us", 20)]
    db.sql("DROP MATERIALIZED VIEW totals")
    db.sql("DROP VIEW renamed")
    db.sql("DROP VIEW large")
    db.sql("DROP VIEW IF EXISTS large")
    db.sql("DROP TABLE orders")
