"""Incremental maintenance: for each operator its batch meaning and, beside it, what it makes of a change.

``rules`` is the table of contents; ``node`` maintains a whole node with them.
"""
