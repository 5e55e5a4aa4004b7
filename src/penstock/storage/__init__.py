"""Delta tables: what a version holds, what changed between two, and how a view's table takes a change.

Spark reads and writes data files; delta-rs reads and writes the log.
"""
