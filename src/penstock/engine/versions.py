"""Which versions of Spark and Delta Lake go together, and which of them Penstock was tested with."""

from __future__ import annotations

import re
from importlib.metadata import version

from penstock.errors import SparkError

TESTED = {"4.1": ("4.4",), "4.2": ("4.4",)}
"""The minor versions of Delta Lake for each of Spark. Delta Lake is built for one minor version of Spark at a time."""

WITHOUT_JAR = ("4.4.1",)
"""Releases of the Python package whose jar was never published."""

_IN_PACKAGES = re.compile(r"io\.delta:delta-spark_[^:,]*:([^:,\s]+)")


def delta_package() -> str:
    """Where Spark finds Delta Lake's jar: the one of the installed Python packages, if they go together."""
    spark, delta = version("pyspark"), version("delta-spark")
    check("pyspark", spark, delta)
    if delta in WITHOUT_JAR:
        raise SparkError(f"delta-spark {delta} has no published jar. Run pip install {_wanted()}.")
    return f"io.delta:delta-spark_{_minor(spark)}_2.13:{delta}"


def check_session(spark: str, packages: str) -> None:
    """Refuse a session of another version; of Delta Lake's only what its packages tell is known."""
    found = _IN_PACKAGES.search(packages)
    check("the given session's Spark", spark, found[1] if found else None)


def check(what: str, spark: str, delta: str | None) -> None:
    """
    >>> check("pyspark", "4.2.0", "4.4.0")
    >>> check("pyspark", "4.0.1", None)
    Traceback (most recent call last):
        ...
    penstock.errors.SparkError: pyspark is version 4.0.1, and Penstock works with 4.1 and 4.2. \
Run pip install 'pyspark==4.2.*' 'delta-spark==4.4.0'.
    """
    if _minor(spark) not in TESTED:
        known = " and ".join(TESTED)
        raise SparkError(f"{what} is version {spark}, and Penstock works with {known}. Run pip install {_wanted()}.")
    if delta is not None and _minor(delta) not in TESTED[_minor(spark)]:
        raise SparkError(
            f"{what} is version {spark}, and Delta Lake is {delta}: Penstock works with Delta Lake "
            f"{' and '.join(TESTED[_minor(spark)])} there. Run pip install {_wanted()}."
        )


def _wanted() -> str:
    spark, deltas = list(TESTED.items())[-1]
    return f"'pyspark=={spark}.*' 'delta-spark=={deltas[-1]}.0'"


def _minor(full: str) -> str:
    """
    >>> _minor("4.2.1"), _minor("4.3.0.dev1")
    ('4.2', '4.3')
    """
    return ".".join(full.split(".")[:2])
