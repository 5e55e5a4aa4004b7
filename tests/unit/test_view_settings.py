"""Settings of views: what is told apart, and what is shown."""

from __future__ import annotations

import json

import pytest

from penstock.catalog import NodeDetails
from penstock.errors import DefinitionError
from penstock.frames.settings import ANSI, DEFAULTS, USUAL, ZONE, Settings, check_readable


def test_spellings_of_the_defaults_are_the_defaults() -> None:
    spelled = {
        **DEFAULTS,
        ZONE: "Etc/UTC",
        ANSI: "TRUE",
        "spark.sql.mapKeyDedupPolicy": "exception",
        "spark.app.id": "7",
    }
    assert Settings.of(spelled) == USUAL
    assert USUAL.text == ""
    assert "settings" not in NodeDetails(settings=dict(USUAL.changed)).to_json()
    assert Settings.of(NodeDetails.of_json({"rule": "x"}).settings) == USUAL


def test_what_is_recorded_is_read_again() -> None:
    berlin = Settings.of({ZONE: "Europe/Berlin", ANSI: "false"})
    kept = json.loads(json.dumps(NodeDetails(settings=dict(berlin.changed)).to_json()))
    assert Settings.of(NodeDetails.of_json(kept).settings) == berlin
    assert not berlin.utc
    assert berlin.precision_loss
    assert berlin.here
    assert berlin.unlike(USUAL) == [
        f"{ZONE} = Europe/Berlin (this session: UTC)",
        f"{ANSI} = false (this session: true)",
    ]
    assert Settings.of({ANSI: "false", ZONE: "Europe/Berlin"}).text == berlin.text


def test_what_the_driver_does_not_compute_under() -> None:
    assert not Settings.of({"spark.sql.timestampType": "TIMESTAMP_NTZ"}).here
    assert Settings.of({"spark.sql.jsonGenerator.ignoreNullFields": "false"}).here


def test_what_no_view_is_created_under() -> None:
    check_readable("v", Settings.of({ZONE: "Europe/Berlin"}))
    with pytest.raises(DefinitionError, match="view 'v' cannot be created while"):
        check_readable("v", Settings.of({"spark.sql.parser.quotedRegexColumnNames": "true"}))
