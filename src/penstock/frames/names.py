"""The columns that stand beside those of a query, in every room alike."""

from __future__ import annotations

WEIGHT = "__weight"
"""How many copies of a row came, or went (below zero)."""

LOCATED = FILE, PLACE = "__file", "__place"
"""Where a stored row lies: the file's name, and the row's number in it."""
