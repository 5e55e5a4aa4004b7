"""Rows on the driver, and expressions over them with exactly Spark's meaning."""
