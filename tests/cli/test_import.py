"""import: what it prints, for people and for machines, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

from command import Run
from pyspark.sql import SparkSession


def test_import_says_what_became_of_each_table(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "w"
    spark.sql("DROP SCHEMA IF EXISTS imported CASCADE")
    spark.sql("CREATE SCHEMA imported")
    try:
        spark.sql(f"CREATE TABLE imported.orders (id INT) USING delta LOCATION '{(tmp_path / 'orders').as_uri()}'")
        spark.sql(f"CREATE TABLE imported.events (id INT) USING csv LOCATION '{(tmp_path / 'events').as_uri()}'")
        one = run("import", "imported.orders", "-w", place)
        assert (one.exit_code, one.stdout.splitlines()[-1].split()) == (
            0, ["spark_catalog.imported.orders", "imported.orders", "-"],
        )  # fmt: skip
        both = run("import", "spark_catalog.imported", "--json", "-w", place)
        told = {each["source"]: each["name"] for each in json.loads(both.stdout)}
        assert told == {"spark_catalog.imported.orders": "imported.orders", "spark_catalog.imported.events": None}
        assert both.exit_code == 1, "one of them cannot be taken"
    finally:
        spark.sql("DROP SCHEMA imported CASCADE")
