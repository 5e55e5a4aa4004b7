"""500 views at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import Studio
from http_server import Servers
from playwright.sync_api import expect
from pyspark.sql import SparkSession

import penstock

DOMAINS = "shop web crm fin ops hr ads iot".split()


@pytest.fixture(scope="module")
def many(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 tables and 500 views in four layers. Whom a view reads is told by its number."""
    path = tmp_path_factory.mktemp("many") / "shop"
    with penstock.connect(path) as db:
        above = [f"raw_{domain}_{kind}" for domain in DOMAINS for kind in ("orders", "users")]
        for table in above:
            db.sql(f"CREATE TABLE {table} (id INT, k INT, v DECIMAL(10,2))")
            db.sql(f"INSERT INTO {table} VALUES (1, 1, 10), (2, 2, 20), (3, 1, 30)")
        for layer, size in (("stg", 120), ("int", 180), ("mart", 130), ("rep", 70)):
            names = [f"{layer}_{DOMAINS[n % 8]}_{n:03}" for n in range(size)]
            for n, name in enumerate(names):
                one, other = above[n * 7 % len(above)], above[(n * 7 + 3) % len(above)]
                query = f"SELECT a.id, a.k, b.v FROM {one} a JOIN {other} b ON a.id = b.id"
                if layer == "stg" or n % 3:
                    query = f"SELECT MAX(id) AS id, k, SUM(v) AS v FROM {one} GROUP BY k"
                lag = ("", "TARGET LAG '1 minute'", "TARGET LAG '2 hours'")[n % 3]
                db.sql(f"CREATE MATERIALIZED VIEW {name} {lag} WITH NO DATA AS {query}")
            above = names
    return path


@pytest.mark.long
def test_500_views_are_drawn(
    opened: Callable[..., Studio], many: Path, serving: Servers, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serving("-w", f"shop={many}", "--rate", 100_000)
    studio = opened(server.url)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        page = studio.go()
        expect(page.locator(".node")).to_have_count(516)
        took.append(time.perf_counter() - began)
        page.goto("about:blank")
    with capsys.disabled():
        print(f"\n500 views were drawn {', '.join(f'{seconds:.2f}' for seconds in took)} s after they were asked for")
    page = studio.go()
    expect(page.locator(".node")).to_have_count(516)
    page.get_by_label("Folding").select_option("Fold by schema")
    expect(page.locator(".node.fold")).to_have_count(5)
    page.get_by_placeholder("Find by name").fill("rep_web_0")
    expect(page.locator(".tally")).to_have_text("9 matches")
