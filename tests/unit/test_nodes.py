"""Cutting a plan into nodes: what is stateful below the top becomes a hidden node; equal sub-plans are one node."""

from __future__ import annotations

import re

import pytest
from plan_text import nodes

from penstock.plan import build, split
from penstock.plan.describe import describe_node, label_columns
from penstock.plan.operators import STATEFUL, render, walk
from penstock.sql.query import parse_query

GROUPED = "SELECT a, SUM(b) AS s FROM t GROUP BY a"


@pytest.mark.parametrize(
    ("query", "hidden"),
    [
        ("SELECT a FROM t WHERE b > 1", 0),
        ("SELECT a FROM t JOIN u USING (k)", 0),
        ("SELECT a FROM t UNION ALL SELECT c FROM u", 0),
        ("SELECT DISTINCT a FROM t", 0),
        (GROUPED, 0),
        ("SELECT s + 1 AS x FROM (SELECT SUM(b) AS s FROM t)", 0),
        (f"{GROUPED} HAVING SUM(b) > 1", 1),
        ("SELECT x FROM (SELECT a AS x, COUNT(*) AS n FROM t GROUP BY a) WHERE n > 1", 1),
        (f"SELECT MAX(s) AS m FROM ({GROUPED})", 1),
        (f"SELECT SUM(m) AS x FROM (SELECT s, MAX(a) AS m FROM ({GROUPED}) GROUP BY s)", 2),
        ("SELECT t.b FROM t JOIN (SELECT DISTINCT k FROM u) AS d USING (k)", 1),
        (f"SELECT t.b FROM t JOIN ({GROUPED}) AS g ON g.a = t.a", 1),
        (f"{GROUPED} UNION ALL SELECT c, d FROM u", 1),
        ("SELECT DISTINCT s FROM (SELECT a, SUM(b) AS s FROM t GROUP BY a)", 1),
        ("SELECT a FROM t UNION SELECT c FROM u", 0),
        ("SELECT a, COUNT(*) AS n FROM (SELECT DISTINCT a, b FROM t) GROUP BY a", 1),
    ],
)
def test_how_many_nodes(query: str, hidden: int) -> None:
    found = nodes(query)
    assert [node.hidden for node in found] == [True] * hidden + [False]
    assert found[-1].name == "v"
    for node in found:
        stateful = [op for op in walk(node.body) if isinstance(op, STATEFUL)]
        assert stateful in ([], [node.body]), "a stateful operator stands on top of a node or nowhere"


def test_inputs_come_before_readers() -> None:
    found = nodes(f"SELECT SUM(m) AS x FROM (SELECT s, MAX(a) AS m FROM ({GROUPED}) GROUP BY s)")
    known = {"t", "u", "w"}
    for node in found:
        assert set(node.inputs) <= known
        known.add(node.name)


def test_equal_parts_of_one_query_are_one_node() -> None:
    found = nodes(f"SELECT x.a FROM ({GROUPED}) AS x JOIN ({GROUPED}) AS y ON x.s = y.s")
    assert len(found) == 2
    assert found[1].inputs == (found[0].name,)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT z FROM (SELECT A AS z, SUM(B) AS total FROM T GROUP BY A) WHERE total > 5",
        "SELECT q.a FROM (SELECT x.a, SUM(x.b) AS s FROM t AS x GROUP BY x.a) AS q JOIN u ON u.k = q.a",
        "WITH g AS (SELECT a, SUM(b) AS s FROM t GROUP BY 1) SELECT a FROM g WHERE s < 0",
        "SELECT a FROM t GROUP BY a HAVING SUM(b) > 1 AND a > 2",
        "SELECT g.s FROM u JOIN (SELECT a, /* why */ sum(b) AS s FROM t GROUP BY ALL) AS g ON g.a = u.k",
    ],
)
def test_equal_parts_of_two_views_are_one_node(other: str) -> None:
    first = nodes(f"{GROUPED} HAVING SUM(b) > 1")[0]
    second = nodes(other, "w2")[0]
    assert (first.name, first.fingerprint) == (second.name, second.fingerprint)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT a, SUM(k) AS s FROM t GROUP BY a HAVING SUM(k) > 1",
        "SELECT a, MAX(b) AS s FROM t GROUP BY a HAVING MAX(b) > 1",
        "SELECT b, SUM(b) AS s FROM t GROUP BY b HAVING SUM(b) > 1",
        "SELECT a, SUM(b) AS s FROM t WHERE k > 1 GROUP BY a HAVING SUM(b) > 1",
        "SELECT a, SUM(b + 1) AS s FROM t GROUP BY a HAVING SUM(b + 1) > 1",
        "SELECT a, SUM(a) AS s FROM w GROUP BY a HAVING SUM(a) > 1",
        "SELECT a, SUM(b) AS s FROM t GROUP BY a, b HAVING SUM(b) > 1",
        "SELECT a, SUM(b) AS s FROM (SELECT * FROM t UNION ALL SELECT * FROM t) GROUP BY a HAVING SUM(b) > 1",
        "SELECT a, SUM(b) AS s FROM (SELECT DISTINCT * FROM t) GROUP BY a HAVING SUM(b) > 1",
    ],
)
def test_different_parts_are_different_nodes(other: str) -> None:
    known = {node.fingerprint for node in nodes(f"{GROUPED} HAVING SUM(b) > 1")}
    assert known.isdisjoint(node.fingerprint for node in nodes(other))


def test_operands_are_not_confused() -> None:
    first = nodes("SELECT DISTINCT x.a FROM t AS x JOIN t AS y ON x.a = y.b")[-1]
    second = nodes("SELECT DISTINCT x.a FROM t AS x JOIN t AS y ON x.b = y.a")[-1]
    assert first.fingerprint != second.fingerprint


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    # Nodes are found again by it after a restart: a change of this digest needs a migration of catalogs.
    assert nodes(GROUPED)[0].fingerprint == nodes(GROUPED)[0].fingerprint
    assert len({nodes(GROUPED, name)[0].fingerprint for name in ("v", "other")}) == 1


@pytest.mark.parametrize(
    ("query", "rule", "operator"),
    [
        ("SELECT a FROM t", "project", "t"),
        ("SELECT a FROM t WHERE b > 1", "filter", "filter b > 1 of t"),
        ("SELECT a FROM t JOIN u USING (k)", "join", "join of t, u on k = k"),
        ("SELECT a FROM t UNION ALL SELECT c FROM u", "union", "union of t, u"),
        ("SELECT DISTINCT a FROM t", "distinct", "distinct a of t"),
        (GROUPED, "aggregate", "SUM(b) by a of t"),
    ],
)
def test_a_node_in_words(query: str, rule: str, operator: str) -> None:
    found = describe_node(nodes(query)[-1], mergeable=True, labels={})
    assert (found["rule"], found["operator"]) == (rule, operator)
    assert found["reads"].startswith("the change")


@pytest.mark.parametrize(
    ("query", "operator"),
    [
        ("SELECT a, SUM(s * 2) AS x FROM (SELECT a, b, SUM(k) + COUNT(*) AS s FROM t GROUP BY a, b) GROUP BY a",
         "SUM((SUM(k) + COUNT(*)) * 2) by a of "),
        ("SELECT s FROM (SELECT DISTINCT a + b AS s FROM t) WHERE s * 2 > 5", "filter (a + b) * 2 > 5 of "),
        ("SELECT f, COUNT(*) AS n FROM (SELECT 1 AS f FROM t UNION ALL SELECT 2 AS f FROM u) GROUP BY f",
         "COUNT(*) by 1 or 2 of union of t, u"),
    ],
)  # fmt: skip
def test_labels_keep_their_brackets(query: str, operator: str) -> None:
    *hidden, view = nodes(query)
    labels = {node.name: label_columns(node, {}) for node in hidden}
    assert describe_node(view, mergeable=True, labels=labels)["operator"].startswith(operator)


def test_columns_of_hidden_nodes_are_called_what_they_hold() -> None:
    *hidden, view = nodes(f"SELECT a, s FROM ({GROUPED}) WHERE s > 5 ORDER BY s DESC LIMIT 3")
    labels: dict[str, dict[str, str]] = {}
    for node in hidden:
        labels[node.name] = label_columns(node, labels)
    found = describe_node(view, mergeable=True, labels=labels)["operator"]
    assert found.startswith("first 3 by SUM(b) DESC of filter SUM(b) > 5 of __node_")


def test_what_is_written_out_keeps_its_brackets() -> None:
    inner = "SELECT a OR b AS x, a RLIKE b AS r, k FROM t"
    (view,) = nodes(f"SELECT x AND k AS y, NOT x AS z, r = k AS s FROM ({inner})")
    texts = [render(e) for _, e in view.outputs]
    assert [re.sub(r"__c\d+", "c", text) for text in texts] == ["(c OR c) AND c", "NOT (c OR c)", "(c RLIKE c) = c"]


def test_views_of_other_settings_share_no_node() -> None:
    """Those of the usual settings have the names that they always had."""
    plan = build(parse_query(f"SELECT MAX(s) AS m FROM ({GROUPED})"), {"t": ("a", "b")})
    usual, berlin, paris = (split(plan, "v", settings)[0].name for settings in ("", "berlin", "paris"))
    assert usual == split(plan, "v")[0].name
    assert len({usual, berlin, paris}) == 3
    assert berlin == split(plan, "w", "berlin")[0].name
