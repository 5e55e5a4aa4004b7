"""What a node's record holds is kept as JSON, which older and newer versions of Penstock read and wrote too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.catalog import NodeDetails
from penstock.sql.statements import Placement
from penstock.vocabulary import Reason

MAINTAINED: dict[str, Any] = {
    "types": {"m0": "bigint"}, "schemas": {"t": ["k", "v"]}, "input_types": {"t": {"k": "int"}}, "incremental": True,
    "held_by_watermark": False, "rule": "aggregate", "operator": "aggregate by k", "reads": "the changed groups",
    "estimated_rows": 10, "late": False, "lateness": [["t", "at", 5]], "constructs": [["GROUP BY", "merged"]],
}  # fmt: skip
RECOMPUTED: dict[str, Any] = {
    "types": {}, "schemas": {"t": ["k"]}, "input_types": {"t": {"k": "int"}}, "incremental": False,
    "held_by_watermark": True, "rule": "recompute", "operator": "the whole query", "reads": "all of its inputs",
    "reason_code": "PIVOT", "reason": "PIVOT",
}  # fmt: skip
PLACEMENT = {"partition": ["day"], "cluster": [], "buckets": 8, "properties": [["delta.x", "1"]]}
MORE: list[dict[str, Any]] = [{}, {"renamed": {"a": "b"}}, {"settings": {"z": "1"}}, {"placement": PLACEMENT}, {"n": 1}]


@pytest.mark.parametrize("kept", [{**kept, **more} for kept in (MAINTAINED, RECOMPUTED) for more in MORE])
def test_what_is_kept_is_read_and_written_as_it_was(kept: dict[str, Any]) -> None:
    details = NodeDetails.of_json(kept)
    assert json.loads(json.dumps(details.to_json())) == kept
    assert NodeDetails.of_json(json.loads(json.dumps(details.to_json()))) == details


def test_what_is_kept_has_types() -> None:
    details = NodeDetails.of_json({**RECOMPUTED, "placement": PLACEMENT})
    assert details.reason_code is Reason.PIVOT
    assert details.placement == Placement(("day",), (), 8, (("delta.x", "1"),))
    assert details.schemas == {"t": ("k",)}


def test_what_another_version_wrote_can_be_read() -> None:
    old = NodeDetails.of_json({"incremental": False, "reason_code": "OF_OLD", "types": {}, "schemas": {}})
    assert (old.late, old.lateness, old.placement, old.settings) == (False, (), Placement(), {})
    assert old.reason_code == "OF_OLD"
    assert NodeDetails.of_json({"of": "morrow"}).to_json()["of"] == "morrow"
