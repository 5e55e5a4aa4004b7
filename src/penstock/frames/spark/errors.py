"""What Spark raises when a query fails. A classic session lets some errors of the JVM through as they are."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
