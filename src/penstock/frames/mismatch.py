"""The proof that stored rows are not what they should be: a removal that finds no row, or a count below zero.

Where Spark computes, the proof is an error that the query raises by itself, so that looking for it costs no job.
"""

from __future__ import annotations

import re

_SAID = "STATE_MISMATCH: "
_RAISED = re.compile(_SAID + r"([^.\n]*)\.")


class StateMismatch(Exception):
    """What a node has stored cannot come from its inputs. Nothing may be built on it."""


def raising(what: str) -> str:
    """Spark SQL that ends a query with the mismatch."""
    return f"RAISE_ERROR('{_SAID}{what}.')"


def as_mismatch(problem: BaseException) -> StateMismatch | None:
    """The mismatch that an error is or, if a query raised it, tells of.

    >>> as_mismatch(ValueError("[USER_RAISED_EXCEPTION] STATE_MISMATCH: a count is below zero. SQLSTATE: P0001"))
    StateMismatch('a count is below zero')
    """
    if isinstance(problem, StateMismatch):
        return problem
    found = _RAISED.search(str(problem))
    return StateMismatch(found.group(1)) if found else None


def check_removed(wanted: int, found: int) -> None:
    """A removal must find what it removes, neither less nor more."""
    if found != wanted:
        raise StateMismatch(f"rows to be removed: {wanted:,}, rows found: {max(found, 0):,}")
