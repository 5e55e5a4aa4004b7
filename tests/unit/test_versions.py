"""Which versions of Spark and Delta Lake are let in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import penstock
from penstock.engine.versions import TESTED, WITHOUT_JAR, check, check_session, delta_package


def test_the_jar_is_that_of_the_installed_packages() -> None:
    assert re.fullmatch(r"io\.delta:delta-spark_4\.[12]_2\.13:4\.4\.\d+", delta_package())


@pytest.mark.parametrize(
    ("spark", "delta", "told"),
    [
        ("3.5.9", "3.3.3", "pyspark is version 3.5.9, and Penstock works with 4.1 and 4.2"),
        ("4.3.0", "4.4.0", "pyspark is version 4.3.0, and Penstock works with 4.1 and 4.2"),
        ("4.2.0", "4.3.1", "Delta Lake is 4.3.1: Penstock works with Delta Lake 4.4 there"),
        ("4.1.4", "4.2.0", "Delta Lake is 4.2.0: Penstock works with Delta Lake 4.4 there"),
    ],
)
def test_what_was_not_tested_is_refused_with_what_to_install(spark: str, delta: str, told: str) -> None:
    with pytest.raises(penstock.SparkError, match=told) as refused:
        check("pyspark", spark, delta)
    assert "Run pip install 'pyspark==4.2.*' 'delta-spark==4.4.0'." in str(refused.value)


def test_a_given_session_is_judged_by_what_it_tells() -> None:
    check_session("4.2.0", "")
    check_session("4.1.4", "org.x:y:1,io.delta:delta-spark_4.1_2.13:4.4.0")
    with pytest.raises(penstock.SparkError, match=r"the given session's Spark is version 4\.0\.1"):
        check_session("4.0.1", "")
    with pytest.raises(penstock.SparkError, match=r"Delta Lake is 4\.2\.0"):
        check_session("4.1.4", "io.delta:delta-spark_4.1_2.13:4.2.0,org.x:y:1")


def test_the_package_asks_for_what_was_tested() -> None:
    asked = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    deltas = sorted({delta for minors in TESTED.values() for delta in minors})
    assert f'"pyspark>={min(TESTED)},<4.{int(max(TESTED)[2:]) + 1}"' in asked
    assert f'"delta-spark>={deltas[0]},!={",!=".join(WITHOUT_JAR)},<4.{int(deltas[-1][2:]) + 1}"' in asked
