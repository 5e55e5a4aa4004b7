"""Rows that Spark computes."""
