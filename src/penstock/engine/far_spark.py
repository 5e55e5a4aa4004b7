"""What the embedded Spark has to know of object stores: Hadoop's way to S3, and the options that open it.

They are those that delta-rs and file access have, in Hadoop's words. A session that a user passes on has its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyspark

from penstock.errors import SparkError
from penstock.storage.locations import in_use, options_of

_HADOOP: Mapping[str, str] = {
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "region": "endpoint.region",
    "endpoint_url": "endpoint",
}
"""Hadoop's words for the options of S3, after ``fs.s3a.``."""


def s3_package() -> str:
    """Where Spark finds the way to S3: of the same version as the Hadoop that it was built with."""
    jars = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    version = next((jar.stem.removeprefix("hadoop-client-api-") for jar in jars), None)
    if version is None:
        raise SparkError(
            "the installed pyspark does not say which Hadoop it has, so that the embedded Spark cannot reach S3. "
            "Pass a session on that can: penstock.connect(path, spark=your_session)."
        )
    return f"org.apache.hadoop:hadoop-aws:{version}"


def s3_settings() -> dict[str, str]:
    """Settings of Spark, besides the package; none if nobody who is open has anything in S3."""
    if not in_use("aws_"):
        return {}
    found = options_of("s3://")
    settings = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
    for option, hadoop in _HADOOP.items():
        value = found.get(f"aws_{option}") or os.environ.get(f"AWS_{option}".upper())
        if value:
            settings[f"spark.hadoop.fs.s3a.{hadoop}"] = value
    endpoint = settings.get("spark.hadoop.fs.s3a.endpoint")
    if endpoint:
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
        settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(not endpoint.startswith("http:")).lower()
    return settings
