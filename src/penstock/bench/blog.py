"""Companies, users, posts and a feed: four levels of read models, each made of the one below; for the demo too."""

from __future__ import annotations

TABLES = {
    "tb_company": "pk_company INT, id STRING, name STRING",
    "tb_user": "pk_user INT, id STRING, fk_company INT, name STRING",
    "tb_post": "pk_post INT, id STRING, fk_user INT, title STRING",
}

MODELS = {
    "tv_company": """SELECT pk_company, id, jsonb_build_object('id', id, 'name', name) AS data FROM tb_company""",
    "tv_user": """SELECT u.pk_user, u.id, u.fk_company, c.id AS company_id,
       jsonb_build_object('id', u.id, 'name', u.name, 'company', v_company.data) AS data
  FROM tb_user u JOIN tb_company c ON c.pk_company = u.fk_company
  JOIN v_company ON v_company.pk_company = u.fk_company""",
    "tv_post": """SELECT p.pk_post, p.id, p.fk_user, u.id AS user_id,
       jsonb_build_object('id', p.id, 'title', p.title, 'author', v_user.data) AS data
  FROM tb_post p JOIN tb_user u ON u.pk_user = p.fk_user JOIN v_user ON v_user.pk_user = p.fk_user""",
    "tv_feed": """SELECT 1 AS pk_feed, jsonb_build_object('posts', jsonb_agg(v_post.data ORDER BY v_post.id)) AS data
  FROM v_post""",
}

_POSTS_OF_A_USER = 20
COMPANIES = 25


def users(posts: int) -> int:
    return max(posts // _POSTS_OF_A_USER, COMPANIES)


def id_of(post: int) -> str:
    """
    >>> id_of(7)
    'p000000007'
    """
    return f"p{post:09}"


def rows_of(posts: int) -> dict[str, str]:
    """Queries of the rows of each table, for so many posts: twenty of each user, and a 25th of them of each company."""
    authors = users(posts)
    return {
        "tb_company": f"SELECT INT(id), concat('c', id), concat('Company ', id) FROM range({COMPANIES})",
        "tb_user": f"SELECT INT(id), concat('u', id), INT(id % {COMPANIES}), concat('User ', id) FROM range({authors})",
        "tb_post": f"SELECT INT(id), concat('p', lpad(id, 9, '0')), INT(id % {authors}), concat('Post ', id) "
        f"FROM range({posts})",
    }
